"""What both FutureOS strategies decide before any synthetic text is written: gate, cut and budget (futureos.md 2.3 and 3)."""

from __future__ import annotations

from dataclasses import dataclass

from ...budget import Budget, Occupancy
from ...projection.boundaries import open_step, recent_tail, turn_start
from ...projection.originals import Original, fitting, originals
from ...projection.plan import Kept, Plan
from ...projection.render import Shown, shown
from ...tokens import total_cost
from ...transcript import View
from ..contract import CompactionRequest, Refused, Unchanged
from ..gating import gate, is_gated

__all__ = ["DEMOTED", "SLOT", "Prepared", "final_check", "prepare"]

SLOT = 2_048
"""Planned size of the whole synthetic message without a summary, in tokens."""

DEMOTED = (
    "{count} older assistant outputs or instruction blocks were left out of this context and not summarized; their exact text can be "
    "queried from the original history."
)
"""The retention note; its cost is reserved with this wording whatever the strategy."""

_PLAN_SLACK = 64
_SOFT_TARGET = 32_000
_MANUAL_KEEP = 15_000
_LEAST_KEEP = 256


@dataclass(frozen=True)
class _Cut:
    """A chosen cut: what is covered, what stays."""

    covered: list[Shown]
    tail: list[Shown]
    cutoff: str


@dataclass(frozen=True)
class Prepared:
    """Everything that is decided before the synthetic text is written."""

    cut: _Cut
    anchors: list[Original]
    demoted: int
    tail_cost: int
    slot: int
    target: int
    tokens_before: int


def prepare(
    view: View,
    budget: Budget,
    request: CompactionRequest,
    previous: Plan | None,
    occupancy: Occupancy | None,
    slot_cap: int,
    *,
    from_originals: bool,
) -> Prepared | Unchanged | Refused:
    """The cut and what stays of the covered originals, or why there is none.

    View, budget, request, previous plan and occupancy are what `Strategy.plan` gets. The synthetic message is planned with at most
    `slot_cap` tokens. With `from_originals` the choice is made from the originals instead of the last projection.
    """
    current = shown(view, previous)
    before = total_cost((part.entry for part in current), budget.counter) + budget.fixed
    size = max(before, occupancy.tokens if occupancy and request.trigger != "provider_context_limit" else 0)
    stop = gate(size, bool(current), budget, request)
    if stop is not None:
        return stop
    selection = shown(view, None) if from_originals else current
    covered_before = 0 if from_originals or previous is None else len(previous.items)
    keep = max(1, min(budget.keep_recent, _MANUAL_KEEP if request.trigger == "manual" else budget.keep_recent))
    if budget.target:
        keep = max(1, min(keep, budget.target // 4))
    decision: Prepared | Unchanged | Refused
    while True:
        cut = _choose_cut(selection, covered_before, keep, budget, request)
        decision = _of_cut(cut, view, size, budget, request, slot_cap, before)
        # Where a tail of the usual size leaves no room for user text and index, a shorter one may.
        if not isinstance(decision, Refused) or decision.reason != "budget-exceeded" or keep <= _LEAST_KEEP:
            return decision
        keep //= 2


def _of_cut(
    cut: _Cut | None, view: View, size: int, budget: Budget, request: CompactionRequest, slot_cap: int, before: int
) -> Prepared | Unchanged | Refused:
    """Steps 5 to 8 of futureos.md 2.3."""
    if cut is None:
        if is_gated(request) and size <= budget.input_limit:
            return Unchanged("nothing older to cover, and the request still fits")
        return Refused(
            "no-valid-boundary",
            f"the request takes {size:,} tokens, the input limit is {budget.input_limit:,}, and nothing older can be covered; "
            "shorten the newest message or use a model with a larger window",
            {"size": size, "input_limit": budget.input_limit},
        )
    new = [part for part in cut.covered if part.item is None]
    if not any(part.entry.blocks for part in new):
        return Unchanged("everything before the tail is covered already")
    return _budgeted(cut, view, budget, slot_cap, before)


def _choose_cut(
    parts: list[Shown], covered_before: int, keep: int, budget: Budget, request: CompactionRequest
) -> _Cut | None:
    """The cut of futureos.md 3.2 for a tail of `keep` tokens; covered are at least the first `covered_before` parts."""
    entries = [part.entry for part in parts]
    costs = [total_cost((entry,), budget.counter) for entry in entries]
    manual = request.trigger == "manual"
    starts = [position for position, part in enumerate(parts) if part.item is None and turn_start(part.entry)]
    at = recent_tail(entries, costs, starts, keep, cover_all_if_short=manual)
    may_cover_all = manual or (
        request.phase == "mid_turn" and request.trigger in ("automatic", "provider_context_limit")
    )
    if may_cover_all and (at is None or sum(costs[at:]) > keep):
        at = len(parts)
    if at is None:
        return None
    at = max(min(at, open_step(entries)), covered_before)
    covered = [part for part in parts[:at] if part.item is None]
    if not covered:
        return _Cut(parts[:at], parts[at:], "") if covered_before and at == covered_before else None
    return _Cut(parts[:at], parts[at:], covered[-1].entry.id)


def _budgeted(cut: _Cut, view: View, budget: Budget, slot_cap: int, before: int) -> Prepared | Refused:
    """What stays of the originals, and whether it fits (futureos.md 3.4, 3.5)."""
    counter = budget.counter
    max_target = min(budget.max_target, budget.target or budget.max_target)
    # Fixed tokens or a target can leave less than the window promises; the index takes at most a third of what there is (AC-03).
    slot = max(1, min(budget.window // 8, slot_cap, max_target // 3))
    tail_cost = total_cost((part.entry for part in cut.tail), counter)
    # An anchor of the last projection shows some blocks of its entry; which ones can be protected is asked of the original.
    covered = [
        view[part.item.entry] if isinstance(part.item, Kept) else part.entry
        for part in cut.covered
        if not part.is_synthetic
    ]
    found = originals(covered, counter, view.pins)
    users = sum(original.cost for original in found if original.is_required)
    base = users + tail_cost + slot + _PLAN_SLACK
    if base > max_target:
        return Refused(
            "budget-exceeded",
            f"user text with pins ({users:,} tokens), the recent tail ({tail_cost:,}) and the index ({slot:,}) exceed the {max_target:,} tokens "
            "that a projection may take, and user text is never cut; split the material, start a new session, or use a larger window",
            {"user_text": users, "tail": tail_cost, "index": slot, "max_target": max_target},
        )
    anchors, demoted = fitting(found, max_target - base)
    required = base + sum(original.cost for original in anchors if not original.is_required)
    return Prepared(cut, anchors, demoted, tail_cost, slot, max(min(_SOFT_TARGET, max_target), required), before)


def final_check(history: int, prepared: Prepared, budget: Budget, request: CompactionRequest) -> Refused | None:
    """Finalisation of futureos.md 2.3."""
    if history > prepared.target or history + budget.fixed > budget.input_limit:
        return Refused(
            "budget-exceeded",
            f"the projection takes {history:,} tokens, more than its target of {prepared.target:,}",
            {"history": history, "target": prepared.target, "input_limit": budget.input_limit},
        )
    after = history + budget.fixed
    if request.trigger != "manual" and after >= prepared.tokens_before:
        return Refused(
            "no-progress",
            f"the projection would take {after:,} tokens and the request takes {prepared.tokens_before:,} now",
            {"before": prepared.tokens_before, "after": after},
        )
    return None
