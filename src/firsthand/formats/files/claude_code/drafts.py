"""Entries and compactions of a Claude Code conversation in the making, and where each of its lines went."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ....transcript import Block, Entry, Role, Source, Status, Text, Usage
from ..base import entry_id

__all__ = ["FORMAT", "Compaction", "Conversation", "Draft"]

FORMAT = "claude-code"


@dataclass(slots=True)
class Draft:
    """An entry in the making; may still get blocks from later lines of the same response."""

    native: str | int
    """The id that the client gave to its first line, or the line's number."""
    line: int
    role: Role
    blocks: list[Block]
    parent: str | None = None
    """The line that it hangs off, by the client's id."""
    linked: bool = True
    """False where the client gave no parent at all, not even none; then the draft before it is its parent."""
    time: str | None = None
    group: str | None = None
    model: str | None = None
    usage: Usage | None = None
    status: Status = "complete"
    stopped: bool = False
    """Whether the provider gave the reason why the response ended."""
    aside: bool = False
    """A text that the client slips in beside the conversation; it waits until the results of the calls before it are there."""
    pieces: list[tuple[str | int, int]] = field(default_factory=list)
    """The lines that it came from and how many blocks each gave."""

    @property
    def typed(self) -> bool:
        """Whether a person typed any of it."""
        return self.role == "user" and any(
            isinstance(block, Text) and block.origin == "typed" and block.text.strip() for block in self.blocks
        )

    def entry(self, session: str, *, parent: str | None = None, sequence: int = 0) -> Entry:
        """The entry, with its place in the session."""
        return Entry(
            id=entry_id(session, self.native),
            role=self.role,
            blocks=tuple(self.blocks),
            parent=parent,
            sequence=sequence,
            group=self.group,
            model=self.model,
            time=self.time,
            usage=self.usage,
            status=self.status,
            source=Source(FORMAT, self.line, self.native if isinstance(self.native, str) else None),
            wire="anthropic",
        )


@dataclass(slots=True)
class Compaction:
    """A boundary line, its summary, and what the client put back in after it."""

    native: str | int
    before: int
    """How many drafts stood before it."""
    logical: str | None
    """The last line before it, by the client's id."""
    time: str | None
    details: dict[str, Any] = field(default_factory=dict)
    summary: Draft | None = None
    restored: list[Draft] = field(default_factory=list)
    open: bool = True
    """Whether attachments still belong to what the client restores, rather than to the conversation that goes on."""


@dataclass
class Conversation:
    """All drafts of one conversation, and for each line the draft or the next line up that stands for it."""

    drafts: list[Draft] = field(default_factory=list)
    compactions: list[Compaction] = field(default_factory=list)
    at: dict[str, int] = field(default_factory=dict)
    """Index of the draft that a line became."""
    passed: dict[str, str | None] = field(default_factory=dict)
    """For a line that became none: the line above it."""
    boundaries: dict[str, Compaction] = field(default_factory=dict)
    above: dict[str, str | None] = field(default_factory=dict)
    """For every line: the line above it."""

    def resolve(self, line: str | None, otherwise: int) -> int | None:
        """The draft that stands at `line` or next above it; `otherwise` where the way up is broken, as by a damaged line."""
        hops = 0
        while line is not None:
            if (index := self.at.get(line)) is not None:
                return index
            if compaction := self.boundaries.get(line):
                return self.before(compaction)
            hops += 1
            if line not in self.passed or hops > len(self.passed):
                return otherwise if otherwise >= 0 else None
            line = self.passed[line]
        return None

    def before(self, compaction: Compaction) -> int | None:
        """The draft from which the conversation goes on after a compaction: the last one before it, unless that is on another branch."""
        last = compaction.before - 1
        if last < 0:
            return None
        logical = self.logical(compaction)
        if logical is None or logical > last:
            # A forked session writes what the compaction preserved after the boundary, and names it as what came before.
            return last
        at: int | None = last
        while at is not None and at > logical:
            up = self._plain(self.drafts[at].parent)
            at = up if up is not None and up < at else None
        return last if at == logical else logical

    def logical(self, compaction: Compaction) -> int | None:
        """The draft that the client names as the last before the compaction."""
        return self._plain(compaction.logical)

    def _plain(self, line: str | None) -> int | None:
        """Like `resolve`, but never across a compaction."""
        hops = 0
        while line is not None and line not in self.at and hops <= len(self.passed):
            line, hops = self.passed.get(line), hops + 1
        return None if line is None else self.at.get(line)
