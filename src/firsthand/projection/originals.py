"""Which originals of a covered range can stand in the projection verbatim, and which of them fit (futureos.md 3.3 and 3.5).

Beside what the person and the model wrote there are *instructions*: system and developer entries, and what a client put in front of the
first typed text (rule files, environment). They stay in place, once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ..tokens import FRAMING, Counter, block_cost, entry_cost
from ..transcript import Entry, Text, ToolCall, ToolResult
from .boundaries import has_result, turn_start
from .plan import Kept

__all__ = ["Class", "Original", "fitting", "originals"]

Class: TypeAlias = Literal["user", "pinned", "assistant", "instruction"]
_REQUIRED = ("user", "pinned")


@dataclass(frozen=True, slots=True)
class Original:
    """A covered entry that can be shown in its own role."""

    kept: Kept
    kind: Class
    cost: int
    """Tokens that it takes as a message of the projection."""

    @property
    def is_required(self) -> bool:
        """Whether it must be shown: user text and pins are never demoted."""
        return self.kind in _REQUIRED


def originals(entries: Sequence[Entry], counter: Counter, pins: Collection[str] = ()) -> list[Original]:
    """What of `entries` can be protected, in order.

    Of user and assistant entries the typed, non-blank texts; of instructions everything, but an instruction that repeats an earlier one is
    left out. Summaries are nobody's original. A pinned entry is protected whole, together with what its calls or results pair with.
    """
    pinned = _pinned_blocks(entries, pins) if pins else {}
    found: list[Original] = []
    seen: set[tuple[str, ...]] = set()
    leading = True
    for entry in entries:
        leading = leading and not turn_start(entry) and entry.role != "assistant"
        if entry.id in pinned:
            found.append(_original(entry, pinned[entry.id], "pinned", counter))
        elif entry.role in ("system", "developer") or (leading and entry.role == "user" and not has_result(entry)):
            texts = tuple(block.text for block in entry.blocks if isinstance(block, Text) and block.origin != "summary")
            if any(text.strip() for text in texts) and texts not in seen:
                seen.add(texts)
                found.append(Original(Kept(entry.id), "instruction", entry_cost(entry, counter)))
        elif entry.role in ("user", "assistant") and (blocks := _typed_blocks(entry)):
            found.append(_original(entry, blocks, "user" if entry.role == "user" else "assistant", counter))
    return found


def _original(entry: Entry, blocks: Sequence[int], kind: Class, counter: Counter) -> Original:
    cost = FRAMING + sum(block_cost(entry.blocks[number], counter) for number in blocks)
    return Original(Kept(entry.id, None if len(blocks) == len(entry.blocks) else tuple(blocks)), kind, cost)


def _typed_blocks(entry: Entry) -> list[int]:
    return [
        number
        for number, block in enumerate(entry.blocks)
        if isinstance(block, Text) and block.origin == "typed" and block.text.strip()
    ]


def _pinned_blocks(entries: Sequence[Entry], pins: Collection[str]) -> dict[str, list[int]]:
    """The blocks to keep of each entry because of pins: all of a pinned one, and the other halves of its pairs."""
    calls = {b.id for e in entries if e.id in pins for b in e.blocks if isinstance(b, ToolCall)}
    answered = {b.call_id for e in entries if e.id in pins for b in e.blocks if isinstance(b, ToolResult)}
    kept: dict[str, list[int]] = {}
    for entry in entries:
        if entry.id in pins:
            kept[entry.id] = list(range(len(entry.blocks)))
            continue
        halves = [
            number
            for number, block in enumerate(entry.blocks)
            if (isinstance(block, ToolCall) and block.id in answered)
            or (isinstance(block, ToolResult) and block.call_id in calls)
        ]
        if halves:
            own = _typed_blocks(entry) if entry.role in ("user", "assistant") else []
            kept[entry.id] = sorted({*halves, *own})
    return kept


def fitting(found: Sequence[Original], room: int) -> tuple[list[Original], int]:
    """All user originals and pins, and what else `room` tokens allow: instructions oldest first, then assistant texts newest first.

    First fit, not a prefix: a small older text is kept after a larger newer one was passed over (futureos.md 3.5).

    Returns:
        The kept originals in order, and how many were demoted.
    """
    kept = {id(original) for original in found if original.is_required}
    for original in _by_rank(found):
        if original.cost <= room:
            room -= original.cost
            kept.add(id(original))
    return [original for original in found if id(original) in kept], len(found) - len(kept)


def _by_rank(found: Sequence[Original]) -> Iterable[Original]:
    yield from (original for original in found if original.kind == "instruction")
    yield from (original for original in reversed(found) if original.kind == "assistant")
