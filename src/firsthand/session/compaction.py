"""One compaction, from the view to the receipt, written once as a generator of effects.

    look up -> plan -> claim -> summaries -> plan -> check -> commit

Whatever fails on the way leaves the last projection in force: originals are never touched, and the checkpoint appears with its receipt in one
transaction or not at all (design.md 5).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import msgspec

from ..budget import Budget, Occupancy
from ..checkpoint import (
    Checkpoint,
    CheckpointStore,
    Claim,
    Operation,
    fingerprint,
    new_operation_id,
    operation_over,
)
from ..errors import FirsthandError, ProviderError
from ..formats.wire.response import usage_of
from ..projection.plan import Item, Kept, Plan
from ..projection.render import project
from ..projection.repair import repair
from ..strategies.contract import (
    CompactionRequest,
    Decision,
    NeedsSummary,
    Refused,
    Strategy,
    Summary,
    SummaryRequest,
    Unchanged,
)
from ..summary.attempts import DEADLINE_SECONDS, pause_before_retry
from ..summary.request import summary_body
from ..summary.validation import accepted
from ..tokens import FRAMING, entry_cost, total_cost
from ..transcript import Usage, View, typed_text
from .effects import AskModel, Pause, Steps, Store, Summariser
from .events import Applied, Event, Failed, FellBack, Started, Unfinished
from .events import Unchanged as UnchangedEvent
from .overflow.classifying import classify
from .requests import Attachment, attached

__all__ = ["Job", "Outcome", "OutcomeKind", "compaction"]

OutcomeKind: TypeAlias = Literal["applied", "fallback", "unchanged", "failed"]

_POLL_SECONDS = 0.05
_LONGEST_WAIT_SECONDS = 420.0
_MOST_REFUSALS = 16


@dataclass(frozen=True)
class Outcome:
    """How a compaction ended. `applied` and `fallback` have a checkpoint, the other two have not."""

    kind: OutcomeKind
    reason: str = ""
    checkpoint: Checkpoint | None = None
    operation: str | None = None
    sizes: Mapping[str, int] = field(default_factory=dict)
    usage: tuple[Usage, ...] = ()
    """Of the summary's calls."""
    reused: bool = False
    """The same request was answered before; its checkpoint is given again, and nothing was called."""


@dataclass(frozen=True)
class Job:
    """All that one compaction needs to know."""

    session: str
    store: CheckpointStore
    view: View
    chain: str
    """Chain hash of the view's newest entry, in hex: equal only for equal histories."""
    strategy: Strategy
    fallback: Strategy | None
    """Takes over when `strategy` cannot do without the summary that failed."""
    budget: Budget
    request: CompactionRequest
    previous: Checkpoint | None
    occupancy: Occupancy
    wire: str
    model: str | None = None
    system: Any = None
    tools: Sequence[Any] | None = None
    attachments: Sequence[Attachment] = ()
    summariser: Summariser | None = None
    output_cap: int | None = None
    """The most output that the model may be asked for (SU-10); None where nobody said."""
    deadline: float = DEADLINE_SECONDS
    emit: Callable[[Event], None] = lambda event: None
    price: Callable[[Sequence[Usage]], float | None] = lambda usage: None
    view_for: Callable[[Strategy], View] | None = None
    """Reads the view with the derived rows of another strategy than `strategy`; None where it carries none."""

    @property
    def key(self) -> str:
        """What makes two requests the same (futureos.md 6.4): history, budget, settings, instructions and algorithm; not what came later."""
        budget = self.budget
        return fingerprint(
            self.chain,
            [
                budget.window,
                budget.output_ceiling,
                budget.fixed,
                budget.counter.name,
                budget.profile,
                budget.target,
                budget.threshold,
            ],
            self.request,
            [self.strategy.name, self.strategy.version, self.strategy.options()],
            self.summariser is not None,
            sorted(self.view.pins),
        )


def compaction(job: Job) -> Steps[Outcome]:
    """Makes one compaction, or learns that it was made, is being made, or is not needed."""
    started = time.monotonic()
    done: Claim | None = yield Store("look up", lambda: job.store.completed(job.key))
    if done is not None:
        return _reused(done)
    decision = _planned(job, None)
    if isinstance(decision, Unchanged | Refused):
        return _refused(job, decision, None)
    operation_id = new_operation_id()
    try:
        claim = yield from _claimed(job, operation_id)
        if claim.kind == "completed":
            return _reused(claim)
        if claim.kind != "new":
            return _not_ours(job, claim.operation)
        return (yield from _carried_out(job, operation_id, decision, started))
    except GeneratorExit:
        # The steps were abandoned (an event loop that was torn down), and nobody carries out effects for them any more.
        job.store.fail(operation_id, "abandoned")
        raise
    except BaseException as error:
        reason = str(error) or type(error).__name__
        if (yield Store("fail", lambda: job.store.fail(operation_id, reason))):
            job.emit(Failed(session=job.session, operation=operation_id, reason=reason))
        if isinstance(error, FirsthandError):
            return Outcome("failed", reason, operation=operation_id)
        raise
    finally:
        operation_over(operation_id)


def _claimed(job: Job, operation_id: str) -> Steps[Claim]:
    """Claims the operation; waits while somebody else is at it."""
    waited = 0.0
    while True:
        claim: Claim = yield Store("claim", lambda: job.store.claim(job.key, job.request.trigger, operation_id))
        if claim.kind != "running" or waited >= _LONGEST_WAIT_SECONDS:
            return claim
        yield Pause(_POLL_SECONDS)
        waited += _POLL_SECONDS


def _carried_out(job: Job, operation_id: str, decision: Decision, started: float) -> Steps[Outcome]:
    job.emit(
        Started(
            session=job.session,
            operation=operation_id,
            trigger=job.request.trigger,
            tokens_before=job.occupancy.tokens,
        )
    )
    usage: list[Usage] = []
    summaries: dict[str, Summary] = {}
    while isinstance(decision, NeedsSummary):
        asked = [request for request in decision.requests if request.id not in summaries]
        if not asked:
            decision = Refused(
                "invalid-summary", f"strategy {job.strategy.name!r} asks for the same summary again and again"
            )
            break
        for request in asked:
            summaries[request.id] = yield from _summary(job, request, usage)
        decision = _planned(job, summaries)
    fell_back = next((s.failure for s in summaries.values() if s.failure), None)
    if isinstance(decision, Refused) and fell_back is not None and job.fallback is not None:
        view = yield from _view_for(job, job.fallback)
        decision = job.fallback.plan(view, job.budget, job.request, _plan_of(job.previous), None, job.occupancy)
    if not isinstance(decision, Plan):
        if isinstance(decision, Refused) and fell_back is not None:
            # The model may answer next time, so the same request must not count as answered.
            yield Store("fail", lambda: job.store.fail(operation_id, _reason(decision)))
        else:
            yield Store("complete", lambda: job.store.complete_unchanged(operation_id, _reason(decision)))
        return _refused(job, decision, operation_id, tuple(usage))
    problem, after = _checked(job, decision)
    if problem is not None:
        yield Store("complete", lambda: job.store.complete_unchanged(operation_id, problem.message))
        return _refused(job, problem, operation_id, tuple(usage))
    plan = decision
    checkpoint: Checkpoint = yield Store(
        "commit",
        lambda: job.store.commit(operation_id, plan, head=job.view.entries[-1].id, baseline=after),
    )
    reason = plan.notes.get("fallback") or fell_back
    event: dict[str, Any] = {
        "session": job.session,
        "operation": operation_id,
        "checkpoint": checkpoint.id,
        "tokens_before": job.occupancy.tokens,
        "tokens_after": after,
        "milliseconds": int((time.monotonic() - started) * 1_000),
        "usage": tuple(usage),
        "cost": job.price(usage) if usage else None,
    }
    job.emit(Applied(**event) if reason is None else FellBack(**event, reason=reason))
    return Outcome(
        "applied" if reason is None else "fallback", reason or "", checkpoint, operation_id, usage=tuple(usage)
    )


def _view_for(job: Job, strategy: Strategy) -> Steps[View]:
    view_for = job.view_for
    if view_for is None:
        return job.view
    found: View = yield Store("read features", lambda: view_for(strategy))
    return found


def _planned(job: Job, summaries: Mapping[str, Summary] | None) -> Decision:
    decision = job.strategy.plan(job.view, job.budget, job.request, _plan_of(job.previous), summaries, job.occupancy)
    if (
        isinstance(decision, Plan)
        and job.previous is not None
        and decision.cutoff == job.previous.plan.cutoff
        and summaries is None
    ):
        return Unchanged("everything before the tail is covered already")
    return decision


def _plan_of(checkpoint: Checkpoint | None) -> Plan | None:
    return None if checkpoint is None else checkpoint.plan


def _summary(job: Job, request: SummaryRequest, usage: list[Usage]) -> Steps[Summary]:
    """Asks for one summary: bounded retries on passing failures, smaller when it is too large for us or for the provider (SU-08, SU-09)."""
    if job.summariser is None:
        return Summary(failure="no model for summaries is set")
    cap = max(1, min(job.output_cap or request.max_output, job.budget.window // 2))
    fitting = _shrunk_to_fit(job, msgspec.structs.replace(request, max_output=min(request.max_output, cap)))
    if fitting is None:
        return Summary(failure="the summary request does not fit into the window and cannot be made smaller")
    request = fitting
    retries = refusals = 0
    while True:
        body = _body(job, request)
        try:
            response: Mapping[str, Any] = yield AskModel(job.summariser, body, job.deadline)
        except ProviderError as error:
            if error.status is not None and classify(error.status, error.body).kind == "overflow":
                refusals += 1
                smaller = job.strategy.shrink(request) if refusals < _MOST_REFUSALS else None
                if smaller is None:
                    return Summary(failure="the summary request is too large and cannot be made smaller")
                request = smaller
                continue
            pause = pause_before_retry(error, retries)
            if pause is None:
                return Summary(failure=f"the summary call failed: {error}")
            retries += 1
            yield Pause(pause)
            continue
        found = usage_of(job.wire, response)
        if found is not None:
            usage.append(found)
        typed = (text for entry in job.view.entries if entry.role == "user" for text in typed_text(entry))
        return accepted(job.wire, response, request, job.budget.counter, typed)


def _shrunk_to_fit(job: Job, request: SummaryRequest) -> SummaryRequest | None:
    """The largest form of a request that fits by our own count; None when none does, since what cannot fit is not sent (SU-09)."""
    counter = job.budget.counter
    costs: dict[int, int] = {}

    def cost(item: Item) -> int:
        if id(item) not in costs:
            costs[id(item)] = (
                entry_cost(job.view[item.entry], counter)
                if isinstance(item, Kept)
                else FRAMING + counter.count(item.text)
            )
        return costs[id(item)]

    room = job.budget.window - request.max_output - (job.budget.fixed if request.system is None else 0)
    while sum(map(cost, request.items)) + counter.count(request.instruction) > room:
        smaller = job.strategy.shrink(request)
        if smaller is None or len(smaller.items) >= len(request.items):
            return None
        request = smaller
    return request


def _body(job: Job, request: SummaryRequest) -> dict[str, Any]:
    """The request's body: rendered like a request of the session, attachments included, so that it starts with the same bytes."""
    last = job.view.entries[-1].id
    shown_as = Plan(strategy="", version="", covered_from=last, cutoff=last, items=request.items)
    entries = project(job.view, shown_as)
    installed = () if job.previous is None else job.previous.plan.items
    front = len(installed) if request.items[: len(installed)] == installed else 0
    cutoff = "" if job.previous is None else job.previous.plan.cutoff
    shown, _ = attached(entries[:front], entries[front:], job.attachments, cutoff)
    return summary_body(request, job.wire, repair(shown).entries, model=job.model, system=job.system, tools=job.tools)


def _checked(job: Job, plan: Plan) -> tuple[Refused | None, int]:
    """The size that the plan really has, and why it must not be installed, if so (design.md 5: 3 and 4)."""
    after = total_cost(repair(project(job.view, plan)).entries, job.budget.counter) + job.budget.fixed
    sizes = {"before": job.occupancy.tokens, "after": after, "input_limit": job.budget.input_limit}
    if after > job.budget.input_limit:
        return Refused(
            "budget-exceeded",
            f"the projection would take {after:,} tokens and the input limit is {job.budget.input_limit:,}",
            sizes,
        ), after
    if after >= job.occupancy.tokens:
        return Refused(
            "no-progress",
            f"not beneficial: the projection would take {after:,} tokens and the request takes {job.occupancy.tokens:,} now",
            sizes,
        ), after
    return None, after


def _reused(claim: Claim) -> Outcome:
    checkpoint = claim.checkpoint
    if checkpoint is None:
        reason = (claim.operation.receipt or {}).get("reason", "")
        return Outcome("unchanged", reason, operation=claim.operation.id, reused=True)
    fell_back = checkpoint.plan.notes.get("fallback")
    kind: OutcomeKind = "applied" if fell_back is None else "fallback"
    return Outcome(kind, fell_back or "", checkpoint, claim.operation.id, reused=True)


def _not_ours(job: Job, operation: Operation) -> Outcome:
    if operation.unfinished:
        job.emit(Unfinished(session=job.session, operation=operation.id, started_ms=operation.started_ms))
        return Outcome(
            "failed",
            f"the same compaction was started by {operation.owner}, which is gone; "
            f"`firsthand session resolve {operation.id} --failed` clears the way",
            operation=operation.id,
        )
    return Outcome("failed", f"the same compaction is still being made by {operation.owner}", operation=operation.id)


def _refused(job: Job, decision: Decision, operation: str | None, usage: tuple[Usage, ...] = ()) -> Outcome:
    sizes = decision.sizes if isinstance(decision, Refused) else {}
    kind: OutcomeKind = "failed" if isinstance(decision, Refused) and decision.reason != "no-progress" else "unchanged"
    told = Failed if kind == "failed" else UnchangedEvent
    job.emit(told(session=job.session, operation=operation, reason=_reason(decision), sizes=sizes, usage=usage))
    return Outcome(kind, _reason(decision), operation=operation, sizes=sizes, usage=usage)


def _reason(decision: Decision) -> str:
    match decision:
        case Refused(message=message):
            return message
        case Unchanged(reason=reason):
            return reason
        case _:
            return "the strategy asked for another summary"
