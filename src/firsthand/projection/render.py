"""A plan made visible: the entries that the next request shows.

The tail is the very same objects as in the view, so a writer that gives back what it read sends them byte for byte.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from ..transcript import Block, Entry, Text, ToolResult, Unknown, View
from .plan import Item, Kept, Plan, Synthetic

__all__ = ["Shown", "applies", "project", "shown"]


@dataclass(frozen=True, slots=True)
class Shown:
    """One entry of a projection: as it is shown, and which item of the plan put it there (None for the tail)."""

    entry: Entry
    item: Item | None = None

    @property
    def is_synthetic(self) -> bool:
        """Whether its text is of our making."""
        return isinstance(self.item, Synthetic)


def project(view: View, plan: Plan | None) -> tuple[Entry, ...]:
    """The entries of the projection, oldest first; the whole view when there is no plan.

    Raises:
        KeyError: the plan refers to an entry that the view does not have; ask `applies` first where that can be.
    """
    return tuple(part.entry for part in shown(view, plan))


def shown(view: View, plan: Plan | None) -> list[Shown]:
    """Like `project`, with the item behind each entry.

    Raises:
        KeyError: as in `project`.
    """
    if plan is None:
        return [Shown(entry) for entry in view.entries]
    front = [
        Shown(_kept(view, item) if isinstance(item, Kept) else _synthetic(item, number, plan), item)
        for number, item in enumerate(plan.items)
    ]
    return front + [Shown(entry) for entry in view.entries[view.positions[plan.cutoff] + 1 :]]


def applies(plan: Plan, view: View) -> bool:
    """Whether everything that the plan refers to is in the view, in the order that it needs (futureos.md 6.2)."""
    positions = view.positions
    if plan.covered_from not in positions or plan.cutoff not in positions:
        return False
    cutoff = positions[plan.cutoff]
    if positions[plan.covered_from] > cutoff:
        return False
    kept = [item.entry for item in plan.items if isinstance(item, Kept)]
    return len(set(kept)) == len(kept) and all(positions.get(entry, cutoff + 1) <= cutoff for entry in kept)


def _kept(view: View, item: Kept) -> Entry:
    entry = view[item.entry]
    if item.blocks is None and not item.replaced:
        return entry
    return msgspec.structs.replace(entry, blocks=tuple(_blocks(entry, item)))


def _blocks(entry: Entry, item: Kept) -> Iterator[Block]:
    for number in range(len(entry.blocks)) if item.blocks is None else item.blocks:
        block = entry.blocks[number]
        text = item.replaced.get(number)
        if text is None:
            yield block
        elif isinstance(block, ToolResult):
            yield msgspec.structs.replace(block, content=(Text(text),))
        elif isinstance(block, Text):
            yield msgspec.structs.replace(block, text=text)
        else:
            yield Text(text, origin="injected")


def _synthetic(item: Synthetic, number: int, plan: Plan) -> Entry:
    block: Block = Text(item.text, origin=item.origin) if item.raw is None else Unknown(item.raw)
    return Entry(id=f"s{number}-{plan.cutoff}", role=item.role, blocks=(block,))
