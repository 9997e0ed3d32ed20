"""One compaction, from the view to the receipt, written once as a generator of effects.

    look up -> plan -> claim -> summaries -> plan -> check -> commit

Whatever fails on the way leaves the last projection in force: originals are never touched, and the checkpoint appears with its receipt in one
transaction or not at all (design.md 5).
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from ..checkpoint import (
    Checkpoint,
    Claim,
    Operation,
    new_operation_id,
    operation_over,
)
from ..errors import FirsthandError
from ..projection.plan import Plan
from ..projection.render import project
from ..projection.repair import repair
from ..strategies.contract import (
    Decision,
    NeedsSummary,
    Refused,
    Strategy,
    Summary,
    Unchanged,
)
from ..tokens import total_cost
from ..transcript import Usage, View
from .effects import Pause, Steps, Store
from .events import Applied, Failed, FellBack, Started, Unfinished
from .events import Unchanged as UnchangedEvent
from .job import Job
from .summarising import summary

__all__ = ["Outcome", "OutcomeKind", "compaction"]

OutcomeKind: TypeAlias = Literal["applied", "fallback", "unchanged", "failed"]

_POLL_SECONDS = 0.05
_LONGEST_WAIT_SECONDS = 420.0


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
            summaries[request.id] = yield from summary(job, request, usage)
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
