"""The fate of every block under a plan, and the sums that a report shows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import msgspec

from ..tokens import Counter, block_cost
from ..transcript import Block, Entry, Media, Reasoning, Text, ToolCall, ToolResult, View
from .plan import Fate, Kept, Plan

__all__ = ["FATES", "KINDS", "BlockFate", "Kind", "Tally", "block_kind", "fates", "tally"]

FATES: tuple[Fate, ...] = ("kept", "excerpted", "indexed", "summarised", "omitted")

Kind: TypeAlias = str
"""What a block is to a person: one of `KINDS`."""

KINDS: tuple[Kind, ...] = (
    "user",
    "assistant",
    "reasoning",
    "tool call",
    "tool result",
    "injected",
    "system",
    "media",
    "unknown",
)


@dataclass(frozen=True, slots=True)
class BlockFate:
    """What became of one block."""

    entry: Entry
    number: int
    fate: Fate
    reason: str = ""

    @property
    def block(self) -> Block:
        """The block itself."""
        return self.entry.blocks[self.number]


class Tally(msgspec.Struct, frozen=True):
    """Blocks of one kind with one fate."""

    kind: Kind
    fate: Fate
    blocks: int
    tokens: int
    """Tokens of the originals, whatever part of them is shown."""


def block_kind(entry: Entry, block: Block) -> Kind:
    """What the block is to a person."""
    match block:
        case Text(origin=origin):
            if entry.role in ("system", "developer"):
                return "system"
            return entry.role if origin == "typed" and entry.role in ("user", "assistant") else "injected"
        case Reasoning():
            return "reasoning"
        case ToolCall():
            return "tool call"
        case ToolResult():
            return "tool result"
        case Media():
            return "media"
        case _:
            return "unknown"


def fates(view: View, plan: Plan | None) -> Iterator[BlockFate]:
    """The fate of each block of the view, in order; without a plan all are kept."""
    if plan is None:
        for entry in view.entries:
            for number in range(len(entry.blocks)):
                yield BlockFate(entry, number, "kept", "nothing was compacted")
        return
    kept = {item.entry: item for item in plan.items if isinstance(item, Kept)}
    excerpted = {(excerpt.entry, excerpt.block): excerpt.reason for excerpt in plan.excerpts}
    indexed = {(ref.entry, ref.block) for ref in plan.indexed}
    omitted = {(ref.entry, ref.block) for ref in plan.omitted}
    cutoff = view.positions[plan.cutoff]
    for position, entry in enumerate(view.entries):
        item = kept.get(entry.id)
        for number in range(len(entry.blocks)):
            if position > cutoff:
                yield BlockFate(entry, number, "kept", "recent tail")
            elif item is not None and (item.blocks is None or number in item.blocks):
                cut = number in item.replaced
                yield BlockFate(entry, number, "excerpted" if cut else "kept", "cut" if cut else "original")
            elif (entry.id, number) in excerpted:
                yield BlockFate(entry, number, "excerpted", excerpted[entry.id, number])
            elif (entry.id, number) in indexed:
                yield BlockFate(entry, number, "indexed", "evidence row")
            elif (entry.id, number) in omitted:
                yield BlockFate(entry, number, "omitted", "in no summary")
            else:
                yield BlockFate(entry, number, plan.rest)


def tally(view: View, plan: Plan | None, counter: Counter) -> list[Tally]:
    """Blocks and tokens by kind and fate, in a fixed order; pairs that do not occur are left out."""
    sums: dict[tuple[Kind, Fate], list[int]] = {}
    for found in fates(view, plan):
        sum_ = sums.setdefault((block_kind(found.entry, found.block), found.fate), [0, 0])
        sum_[0] += 1
        sum_[1] += block_cost(found.block, counter)
    return [Tally(kind, fate, *sums[kind, fate]) for kind in KINDS for fate in FATES if (kind, fate) in sums]
