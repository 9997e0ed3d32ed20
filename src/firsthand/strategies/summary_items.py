"""Which messages a summary request shows its model when not all of them fit (futureos.md 5.2)."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ..budget import Budget
from ..projection.plan import Item, Kept, Plan
from ..projection.render import shown
from ..tokens import total_cost
from ..transcript import View
from .contract import SummaryRequest

__all__ = ["halved", "summary_items"]


def summary_items(view: View, previous: Plan | None, budget: Budget, reserve: int) -> tuple[Item, ...]:
    """The session as the model sees it now: all of it when it fits, else the first two messages and the longest suffix that fits with them.

    Args:
        view: the entries.
        previous: the plan that is in force.
        budget: of the next request.
        reserve: tokens that the summary may take; twice as many stay free, and some for the instruction.
    """
    current = shown(view, previous)
    items: tuple[Item, ...] = tuple(part.item or Kept(part.entry.id) for part in current)
    costs = [total_cost((part.entry,), budget.counter) for part in current]
    return _fitted(items, costs, budget.window - 2 * reserve - min(2_048, budget.window // 16))


def halved(request: SummaryRequest) -> SummaryRequest | None:
    """The first two messages and the newer half of the rest; nothing when there is no half left (SU-09)."""
    items = request.items
    if len(items) <= 3:
        return None
    return msgspec.structs.replace(request, items=items[:2] + items[2 + (len(items) - 2 + 1) // 2 :])


def _fitted(items: tuple[Item, ...], costs: Sequence[int], room: int) -> tuple[Item, ...]:
    if sum(costs) <= room:
        return items
    start = len(items)
    left = room - sum(costs[:2])
    while start > 2 and costs[start - 1] <= left:
        start -= 1
        left -= costs[start]
    return items[:2] + items[max(start, 2) :]
