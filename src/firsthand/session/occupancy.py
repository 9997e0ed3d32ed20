"""How full the window would be: the last valid usage as anchor, and estimates of what came after it."""

from __future__ import annotations

from collections.abc import Sequence

from ..budget import Budget, Occupancy
from ..tokens import total_cost
from ..transcript import Entry
from .overflow.classifying import silent_truncation

__all__ = ["occupancy"]


def occupancy(
    shown: Sequence[Entry], fresh: int, budget: Budget, baseline: int = 0, counted_fixed: int | None = None
) -> Occupancy:
    """Tokens that a request with these entries would take.

    A provider's count is exact for what it counted, so the newest one anchors the sum; what came after it is estimated. Usage that was
    reported before the newest checkpoint counted a history that is not sent any more, and a report of zero is no report (failure kinds AC-07
    to AC-09, AC-13). The same goes for a count that says that the provider cut the request in silence (OV-12): the estimate is nearer to what
    will be sent.

    Args:
        shown: the entries of the projection, oldest first.
        fresh: how many of them, from the end, were recorded after the newest checkpoint; only their usage is valid.
        budget: counts, and knows the fixed tokens.
        baseline: size of the projection when the newest checkpoint was committed; 0 without one.
        counted_fixed: fixed tokens of the request that the newest usage counted, where that is known. What system prompt and tools have grown
            by since is added.
    """
    first = len(shown) - fresh
    for position in range(len(shown) - 1, first - 1, -1):
        usage = shown[position].usage
        if usage is not None and usage.input_tokens > 0:
            if _was_cut(shown[:position], usage.input_tokens, budget):
                break
            reported = usage.total
            grown = 0 if counted_fixed is None else max(0, budget.fixed - counted_fixed)
            return Occupancy(reported + grown + total_cost(shown[position + 1 :], budget.counter), reported, baseline)
    return Occupancy(budget.fixed + total_cost(shown, budget.counter), 0, baseline)


def _was_cut(sent: Sequence[Entry], counted: int, budget: Budget) -> bool:
    # Estimating a whole history is left out where the count alone rules a cut out.
    if not budget.window <= 2 * counted <= 2 * budget.window:
        return False
    return silent_truncation(counted, budget.fixed + total_cost(sent, budget.counter), budget.window)
