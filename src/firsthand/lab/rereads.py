"""What an agent had to read again after a compaction, and what that cost (measures.md, "Audit of a recorded compaction").

A re-read is a call after the compaction whose target was looked at before it and is not in what was kept, up to the first write to that
target. Open in the definition, and fixed here: a target is in what was kept when at least half of the lines of its newest earlier result
stand there; calls are looked at up to the session's next compaction, so that each re-read belongs to one; a command shows something else once
anything was written; the lines that the agent had seen already, and for the first time sees again, are counted apart.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from ..tokens import Counter
from ..transcript import Entry, ToolCall, ToolResult
from .targets import Touched, touched
from .values import literal

__all__ = ["ReRead", "kept_lines", "lines_of", "re_reads"]

_NUMBERED = re.compile(r"^\s*\d+[→\t|:]\s?")
_HALF = 0.5


@dataclass(frozen=True, slots=True)
class ReRead:
    """One call that looked again at what had been seen before the compaction."""

    entry: str
    """Id of the entry with the call."""
    position: int
    tool: str
    target: str
    tokens: int
    """Of its result."""
    seen_tokens: int
    """Of the lines in it that a result of the same target showed before the compaction, and none since."""
    before: str
    """Id of the entry with the newest earlier result of that target."""
    lines: frozenset[str]
    """The lines of that earlier result."""


@dataclass(slots=True)
class _Look:
    entry: str
    lines: frozenset[str]


@dataclass(slots=True)
class _State:
    looked: dict[str, _Look] = field(default_factory=dict)
    seen: dict[str, set[str]] = field(default_factory=dict)

    def add(self, target: str, entry: str, text: str) -> None:
        lines = lines_of(text)
        if lines:
            self.looked[target] = _Look(entry, lines)
            self.seen.setdefault(target, set()).update(lines)


def lines_of(text: str) -> frozenset[str]:
    """The lines of a text as they are compared: literal, without the numbers that a tool put before them, without blank ones."""
    stripped = (_NUMBERED.sub("", line).strip() for line in literal(text).splitlines())
    return frozenset(line for line in stripped if line)


def kept_lines(lines: frozenset[str], kept: frozenset[str]) -> bool:
    """Whether at least half of the lines stand in what was kept."""
    return bool(lines) and len(lines & kept) >= _HALF * len(lines)


def re_reads(
    entries: Sequence[Entry],
    boundary: int,
    end: int,
    kept: frozenset[str],
    counter: Counter,
    cwd: str | None = None,
) -> list[ReRead]:
    """The re-reads of `entries[boundary:end]`, in order.

    Args:
        entries: the whole active path.
        boundary: the compaction came before this position.
        end: position of the next compaction, or the number of entries.
        kept: the lines of what was kept (see `lines_of`).
        counter: counts the results.
        cwd: the session's folder.
    """
    state = _State()
    calls: dict[str, tuple[Entry, ToolCall, Touched]] = {}
    found: list[ReRead] = []
    written: set[str] = set()
    back: dict[str, set[str]] = {}
    for position, entry in enumerate(entries[:end]):
        after = position >= boundary
        for block in entry.blocks:
            if isinstance(block, ToolCall):
                calls[block.id] = (entry, block, touched(block, cwd))
            elif isinstance(block, ToolResult) and block.call_id in calls:
                caller, call, what = calls.pop(block.call_id)
                text = block.text
                if after and not block.is_error:
                    reread = _judge(caller, position, call, what, text, state, back, written, kept, counter)
                    if reread is not None:
                        found.append(reread)
                if not after and not block.is_error:
                    for target in what.read:
                        state.add(target, caller.id, text)
                if after and not block.is_error:
                    written.update(what.written)
    return found


def _judge(
    caller: Entry,
    position: int,
    call: ToolCall,
    what: Touched,
    text: str,
    state: _State,
    back: dict[str, set[str]],
    written: set[str],
    kept: frozenset[str],
    counter: Counter,
) -> ReRead | None:
    for target in what.read:
        look = state.looked.get(target)
        changed = bool(written) if target.startswith("$ ") else target in written or "*" in written
        if look is None or changed or kept_lines(look.lines, kept):
            continue
        shown = back.setdefault(target, set())
        again = [line for line in text.splitlines() if lines_of(line) & (state.seen[target] - shown)]
        shown |= lines_of(text)
        return ReRead(
            caller.id,
            position,
            call.name,
            target.removeprefix("$ "),
            counter.count(text),
            counter.count("\n".join(again)),
            look.entry,
            look.lines,
        )
    return None
