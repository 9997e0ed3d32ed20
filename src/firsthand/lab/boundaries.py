"""Where the lab cuts sessions, and which entries before a cut are the exam tail (measures.md, "Boundaries" and "Values")."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ..tokens import Counter, entry_cost
from ..transcript import Entry, Text, ToolCall, ToolResult, View

__all__ = ["EXAM_TAIL", "Boundary", "boundaries", "deciles", "exam_tail", "safe_positions", "steps_after"]

EXAM_TAIL = 8_000
"""Tokens of the newest entries before a boundary whose values are asked apart, as `recent`."""

BoundaryKind: TypeAlias = Literal["share", "records", "recorded"]


@dataclass(frozen=True, slots=True)
class Boundary:
    """A position that is safe to cut: a strategy sees `entries[:position]` and nothing after it."""

    position: int
    label: str
    """How it was chosen: `40%`, `28 records`, `recorded:ID`."""
    kind: BoundaryKind = "share"
    stage: int = 0
    """The published exam's stage number: 0, 3 and 7 for the first, second and third share."""


def safe_positions(entries: Sequence[Entry]) -> list[int]:
    """Positions where no call awaits its result (futureos.md 8.3), rising; 0 is not among them.

    A call counts as pending only if its result really comes later: one that was abandoned would forbid every later cut.
    """
    last_result = {
        block.call_id: position
        for position, entry in enumerate(entries)
        for block in entry.blocks
        if isinstance(block, ToolResult)
    }
    safe: list[int] = []
    pending_until = -1
    for position, entry in enumerate(entries):
        for block in entry.blocks:
            if isinstance(block, ToolCall):
                pending_until = max(pending_until, last_result.get(block.id, -1))
        together = (
            position + 1 < len(entries)
            and entry.role == "assistant"
            and entries[position + 1].role == "assistant"
            and entry.group is not None
            and entry.group == entries[position + 1].group
        )
        if pending_until <= position and not together:
            safe.append(position + 1)
    return safe


def boundaries(view: View, shares: Sequence[int], costs: Sequence[int], *, recorded: bool = True) -> list[Boundary]:
    """The boundaries of a session, oldest first.

    Args:
        view: the active path with its recorded compactions.
        shares: percentages of the entries' tokens; each is moved to the nearest safe position before.
        costs: tokens of each entry.
        recorded: also every position where the client itself compacted.
    """
    safe = safe_positions(view.entries)
    total = sum(costs)
    found: dict[int, Boundary] = {}
    for number, share in enumerate(sorted(shares)):
        wanted = 0
        passed = 0
        while wanted < len(costs) and (passed + costs[wanted]) * 100 <= total * share:
            passed += costs[wanted]
            wanted += 1
        position = max((place for place in safe if place <= wanted), default=0)
        if position and position not in found:
            found[position] = Boundary(position, f"{share}%", "share", (0, 3, 7)[min(number, 2)])
    if recorded:
        for marker in view.markers:
            if marker.after is not None and marker.after in view.positions:
                position = view.positions[marker.after] + 1
                found.setdefault(position, Boundary(position, f"recorded:{marker.id}", "recorded"))
    return [found[position] for position in sorted(found)]


def exam_tail(entries: Sequence[Entry], position: int, counter: Counter, most: int = EXAM_TAIL) -> int:
    """Position where the exam tail before a boundary begins: the newest whole entries of together at most `most` tokens."""
    size = 0
    while position and (size := size + entry_cost(entries[position - 1], counter)) <= most:
        position -= 1
    return position


def deciles(costs: Sequence[int]) -> list[int]:
    """The age decile of each entry, 0 the oldest, by the tokens before its middle."""
    total = sum(costs) or 1
    found: list[int] = []
    before = 0
    for cost in costs:
        found.append(min(9, (before + cost // 2) * 10 // total))
        before += cost
    return found


def steps_after(entries: Sequence[Entry], position: int, steps: int) -> int:
    """Position behind the first `steps` model responses after a boundary, with what answers the last of them.

    Assistant entries that follow each other are one response, unless the file says that they are not.
    """
    seen = 0
    for at in range(position, len(entries)):
        entry = entries[at]
        if entry.role != "assistant" or not any(isinstance(block, (Text, ToolCall)) for block in entry.blocks):
            continue
        before = entries[at - 1] if at > position else None
        same = (
            before is not None and before.role == "assistant" and (before.group is None or before.group == entry.group)
        )
        seen += not same
        if seen > steps:
            return at
    return len(entries)
