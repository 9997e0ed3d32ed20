"""The summary of one compaction: asked for within a deadline, made smaller until it fits, and checked, as a generator of effects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ..errors import ProviderError
from ..formats.wire.response import usage_of
from ..projection.plan import Item, Kept, Plan
from ..projection.render import project
from ..projection.repair import repair
from ..strategies.contract import Summary, SummaryRequest
from ..summary.attempts import pause_before_retry
from ..summary.request import summary_body
from ..summary.validation import accepted
from ..tokens import FRAMING, entry_cost
from ..transcript import Usage, typed_text
from .effects import AskModel, Pause, Steps
from .job import Job
from .overflow.classifying import classify
from .requests import attached

__all__ = ["summary"]

_MOST_REFUSALS = 16


def summary(job: Job, request: SummaryRequest, usage: list[Usage]) -> Steps[Summary]:
    """Asks for one summary: bounded retries on passing failures, smaller when it is too large for us or for the provider (SU-08, SU-09).

    Args:
        job: the compaction that wants it.
        request: what the strategy asked for.
        usage: takes what each answered call used.
    """
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
