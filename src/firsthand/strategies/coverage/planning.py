"""One plan of `coverage`: the history divided, the excerpts chosen, the whole checked."""

from __future__ import annotations

from ...budget import Budget
from ...projection.plan import Plan, Synthetic
from ...tokens import FRAMING
from ...transcript import Entry, Media, Text, ToolCall, ToolResult, View
from ..contract import CompactionRequest, Decision, Refused
from .choosing import chosen
from .dividing import Divided, divided
from .handoff import MOST, Handoff, Offer
from .sizing import Options

__all__ = ["plan_view"]


def plan_view(
    view: View,
    budget: Budget,
    request: CompactionRequest,
    options: Options,
    size: int,
    name: str,
    version: str,
    summary: str | None = None,
    summary_share: int = 0,
) -> Decision:
    """The plan for a view, or why there is none.

    Args:
        view: what may be seen.
        budget: of the next request.
        request: what was asked for.
        options: the user's.
        size: tokens of the request as it is, fixed tokens included.
        name: the strategy's name.
        version: the strategy's version.
        summary: text that a model wrote, of which lines are shown as far as they are worth it.
        summary_share: percent of the target for them at most.
    """
    work = divided(view, budget, request, options, size)
    if not isinstance(work, Divided):
        return work
    fixed = work.whole.cost + work.tail_cost
    room = min(work.whole.target, work.sizes.limit) - fixed - FRAMING
    offer = None if summary is None else Offer(summary, min(MOST, room // 2, work.whole.target * summary_share // 100))
    text, groups, handoff = chosen(work, room, offer)
    history = fixed + (FRAMING + budget.counter.count(text) if text else 0) + handoff.tokens
    after = history + work.whole.placed + budget.fixed
    if (refused := _checked(work, history, after, request, size)) is not None:
        return refused
    kept = tuple(original.kept for original in work.whole.kept)
    if not text and not (
        work.whole.is_user_whole
        and any(_says_something(entry) for entry in (*(view[item.entry] for item in kept), *view.entries[work.cut :]))
    ):
        return Refused(
            "budget-exceeded",
            f"the {min(work.whole.target, work.sizes.limit):,} tokens that the history may take hold neither the user text nor an excerpt "
            "of it, so it would be gone without a word; use a larger window or target",
            {"size": size, "limit": work.sizes.limit},
        )
    return Plan(
        strategy=name,
        version=version,
        covered_from=view.entries[0].id,
        cutoff=view.entries[work.cut - 1].id,
        items=(
            *kept,
            *((Synthetic("summary", handoff.text),) if handoff.text else ()),
            *((Synthetic("excerpts", text),) if text else ()),
        ),
        excerpts=tuple(group.excerpt(view.entries) for group in groups),
        tokens_before=size,
        tokens_after=after,
        trigger=request.trigger,
        phase=request.phase,
        instructions=request.instructions,
        rest="summarised" if handoff.text else "omitted",
        summary=summary,
        notes={
            "target": f"{work.whole.target}",
            "excerpts": f"{sum(len(group.units) for group in groups)} lines in {len(groups)} groups",
            **({} if summary is None else {"summary": _said_of(handoff)}),
        },
    )


def _said_of(handoff: Handoff) -> str:
    return (
        f"{handoff.lines} lines of it in {handoff.tokens:,} tokens"
        if handoff.text
        else "nothing of it is worth its tokens"
    )


def _says_something(entry: Entry) -> bool:
    """Whether every wire has a message for it: some drop blank texts and reasoning, and have instructions apart."""
    return entry.role not in ("system", "developer") and any(
        isinstance(block, (ToolCall, ToolResult, Media)) or (isinstance(block, Text) and block.text.strip())
        for block in entry.blocks
    )


def _checked(work: Divided, history: int, after: int, request: CompactionRequest, size: int) -> Refused | None:
    """Why the plan cannot stand, or None when it can."""
    limit = work.sizes.limit if work.sizes.may_rise else min(work.sizes.limit, work.whole.target)
    if history > limit or after > work.budget.input_limit:
        return Refused(
            "budget-exceeded",
            f"the newest step ({work.tail_cost:,} tokens) and what must stay whole ({work.whole.cost:,}) exceed the {limit:,} tokens that the "
            f"history may take beside {work.whole.placed:,} of system and developer messages; shorten the newest message, take a pin back, or use "
            "a larger window or target",
            {"whole": work.whole.cost, "tail": work.tail_cost, "placed": work.whole.placed, "limit": limit},
        )
    if request.trigger != "manual" and after >= size:
        return Refused(
            "no-progress",
            f"the projection would take {after:,} tokens and the request takes {size:,} now",
            {"before": size, "after": after},
        )
    return None
