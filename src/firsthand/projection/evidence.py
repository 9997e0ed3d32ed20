"""The evidence index: bounded JSON rows about tool results, most telling first (futureos.md 4).

Rows are built from originals each time, never from an earlier index, and a row is never cut: it is written in full, written small, or left
out. Reasoning, images and provider data are never read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from ..codec import compact_json
from ..tokens import Counter
from ..transcript import Entry, ToolCall, ToolResult
from .plan import BlockRef

__all__ = ["FULL", "SMALL", "Candidate", "Ladder", "candidates", "evidence_rows", "prioritised", "row"]

_TARGET_KEYS = ("path", "file_path", "filePath", "command", "url")
_IMPORTANT = ("config", "schema", "validation", "test")
_SEGMENT = re.compile(r"[/\\]")
_LEAST_ROOM = 64
_MAX_ID = 256


@dataclass(frozen=True)
class Ladder:
    """Sizes of one kind of row, in characters."""

    head: int
    tail: int
    metadata: int


FULL = Ladder(head=380, tail=100, metadata=160)
SMALL = Ladder(head=64, tail=32, metadata=64)


@dataclass(frozen=True)
class Candidate:
    """A tool result that may get a row."""

    ref: BlockRef
    order: int
    """Position of its entry in the view, from 0."""
    call_id: str
    tool: str | None
    target: str | None
    content: str
    is_error: bool

    @property
    def group(self) -> tuple[str, str]:
        """What results are grouped by: the tool, and what it worked on."""
        return (self.tool or "unknown", self.call_id if self.target is None else self.target)

    @property
    def is_important(self) -> bool:
        """Whether the last part of the target names configuration, a schema, validation or tests."""
        name = _SEGMENT.split(self.group[1])[-1].lower()
        return any(word in name for word in _IMPORTANT)


def target_of(arguments: str) -> str | None:
    """What a call works on: the first of the keys path, file_path, filePath, command, url whose value is a string."""
    try:
        value = msgspec.json.decode(arguments)
    except (msgspec.DecodeError, UnicodeError):
        return None
    if not isinstance(value, Mapping):
        return None
    return next((value[key] for key in _TARGET_KEYS if isinstance(value.get(key), str)), None)


def candidates(entries: Iterable[Entry]) -> list[Candidate]:
    """All results in order, each with the call it answers; two pending calls of one id attribute nothing (futureos.md 4.2)."""
    pending: dict[str, tuple[str, str | None] | None] = {}
    found: list[Candidate] = []
    for order, entry in enumerate(entries):
        for number, block in enumerate(entry.blocks):
            if isinstance(block, ToolCall):
                pending[block.id] = None if block.id in pending else (block.name, target_of(block.arguments))
            elif isinstance(block, ToolResult):
                tool, target = pending.pop(block.call_id, None) or (None, None)
                if 0 < len(entry.id) <= _MAX_ID:
                    ref = BlockRef(entry.id, number)
                    found.append(Candidate(ref, order, block.call_id, tool, target, block.text, block.is_error))
    return found


def prioritised(found: Sequence[Candidate]) -> Iterator[Candidate]:
    """Each candidate once: errors newest first, then each group's last and first, then the rest newest first (futureos.md 4.3)."""
    groups: dict[tuple[str, str], list[Candidate]] = {}
    for candidate in found:
        groups.setdefault(candidate.group, []).append(candidate)
    ordered = sorted(
        groups.items(),
        key=lambda group: (not any(c.is_error for c in group[1]), not group[1][0].is_important, group[0]),
    )
    newest_first = found[::-1]
    seen: set[tuple[str, int]] = set()
    for candidate in (
        *(c for c in newest_first if c.is_error),
        *(c for _, members in ordered for c in (members[-1], members[0])),
        *newest_first,
    ):
        key = (candidate.ref.entry, candidate.ref.block)
        if key not in seen:
            seen.add(key)
            yield candidate


def row(candidate: Candidate, ladder: Ladder) -> str:
    """The candidate as one line of JSON with excerpts of that size."""
    content = candidate.content
    whole = len(content) <= ladder.head + ladder.tail
    fields: dict[str, Any] = {
        "entryId": candidate.ref.entry,
        "blockIndex": candidate.ref.block,
        "sourceOrder": candidate.order,
        "toolCallId": _clamped(candidate.call_id, ladder.metadata),
        "tool": _clamped(candidate.tool, ladder.metadata),
        "target": _clamped(candidate.target, ladder.metadata),
        "isError": candidate.is_error,
        "head": content if whole else content[: ladder.head],
        "tail": "" if whole else content[-ladder.tail :],
        "middleOmitted": not whole,
    }
    return compact_json(fields)


def _clamped(text: str | None, limit: int) -> str | None:
    return text if text is None or len(text) <= limit else text[:limit] + "… [cut]"


def evidence_rows(found: Sequence[Candidate], start: str, budget: int, counter: Counter) -> tuple[str, list[BlockRef]]:
    """The index body: `start`, then as many rows as `budget` tokens allow, most telling first (futureos.md 4.5).

    Returns:
        The text, and which results have a row. The text is `start` alone when `start` already fills the budget.
    """
    lines = [start]
    refs: list[BlockRef] = []
    body = start
    for candidate in prioritised(found):
        room = budget - counter.count(body)
        if room < _LEAST_ROOM:
            break
        for ladder in (FULL, SMALL):
            line = row(candidate, ladder)
            if counter.count(line) + 2 <= room:
                lines.append(line)
                refs.append(candidate.ref)
                body = "\n".join(lines)
                break
    return body, refs
