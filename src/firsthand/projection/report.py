"""What a compaction decided, in numbers: for people, for programs, and for whoever checks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import msgspec

from ..budget import Budget
from ..transcript import View
from .fates import FATES, Tally, tally
from .plan import Kept, Plan

__all__ = ["Counts", "Outcome", "Report", "report_of"]

Outcome: TypeAlias = Literal["applied", "unchanged", "refused"]


class Counts(msgspec.Struct, frozen=True):
    """Blocks, and the tokens of their originals."""

    blocks: int
    tokens: int


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What a compaction decided, in numbers. Its JSON form is what `firsthand compact --json` prints, and is stable."""

    outcome: Outcome
    reason: str | None = None
    """Why nothing was changed, where nothing was."""
    strategy: str
    window: int
    output_ceiling: int
    input_limit: int
    counter: str
    counter_error: str
    """What is known about how far the counter is off."""
    tokens_before: int
    """Of the request before, system prompt and tools included, in the counter's tokens."""
    tokens_after: int
    entries: int
    """Entries of the active path."""
    covered: int
    """Of these, the ones that the projection covers."""
    kept: int
    """Covered ones of which at least a part stands in it as an original."""
    tail: int
    """The newest ones, which are untouched."""
    fates: dict[str, dict[str, Counts]]
    """By fate, then by kind of block."""
    notes: dict[str, str] = {}


def report_of(
    view: View, plan: Plan | None, budget: Budget, strategy: str, before: int, after: int, reason: str | None
) -> Report:
    """The numbers of one decision.

    Args:
        view: what was decided about.
        plan: the decision; None when nothing was changed.
        budget: counts.
        strategy: the strategy's name.
        before: tokens of the request before.
        after: tokens of the request now.
        reason: why nothing was changed.
    """
    covered = view.positions[plan.cutoff] + 1 if plan else 0
    kept = sum(isinstance(item, Kept) for item in plan.items) if plan else 0
    return Report(
        outcome="applied" if plan else "unchanged",
        reason=reason,
        strategy=strategy,
        window=budget.window,
        output_ceiling=budget.output_ceiling,
        input_limit=budget.input_limit,
        counter=budget.counter.name,
        counter_error=budget.counter.error,
        tokens_before=before,
        tokens_after=after,
        entries=len(view),
        covered=covered,
        kept=kept,
        tail=len(view) - covered,
        fates=_by_fate(tally(view, plan, budget.counter)),
        notes=plan.notes if plan else {},
    )


def _by_fate(rows: Sequence[Tally]) -> dict[str, dict[str, Counts]]:
    return {
        fate: {row.kind: Counts(row.blocks, row.tokens) for row in rows if row.fate == fate}
        for fate in FATES
        if any(row.fate == fate for row in rows)
    }
