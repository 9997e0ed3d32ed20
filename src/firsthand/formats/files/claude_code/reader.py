"""Session files of Claude Code: JSON lines, one file per session (session-formats.md, "Claude Code").

Seen in real files: client versions 1.0.108, 2.1.7, 2.1.226, 2.1.227 and 2.1.232.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from ....transcript import Damage, Entry, Text, Transcript
from ..base import Input, Record, json_records
from ..records import Tally, first_records, has_keys, string_of
from .chain import Chain
from .drafts import FORMAT
from .sidechains import Sidechain, call_that_started, sidechains

__all__ = ["ClaudeCodeReader"]

_CONVERSATION = frozenset({"user", "assistant", "attachment", "system"})
# Lines about the client's own state; none is part of the conversation.
_STATE = frozenset(
    {
        "agent-color",
        "agent-name",
        "agent-setting",
        "ai-title",
        "custom-title",
        "file-history-delta",
        "file-history-snapshot",
        "frame-link",
        "last-prompt",
        "mode",
        "permission-mode",
        "pr-link",
        "progress",
        "queue-operation",
        "summary",
        "tag",
    }
)
_TITLES = {"custom-title": "customTitle", "ai-title": "aiTitle", "agent-name": "agentName"}


class ClaudeCodeReader:
    """Reads Claude Code's session files: the main conversation, and each sub-agent in it as a session of its own (IM-05)."""

    name = FORMAT
    title = "Claude Code"

    def sniff(self, source: Input) -> bool:
        """Whether a line among the first has Claude Code's envelope, or is one of its state lines."""
        records = first_records(source)
        if any(("sessionId" in record and "parentUuid" in record) or _is_state(record) for record in records):
            return True
        return not records and has_keys(source, "parentUuid", "isSidechain")

    def read(self, source: Input) -> list[Transcript]:
        """The main conversation, then its sub-agents.

        Raises:
            EmptySessionError: the file holds records, but no entry could be made of any.
        """
        file = _File()
        records = json_records(source.data)
        for record in records:
            file.add(record)
        damaged = sorted(records.damaged + file.damaged, key=lambda damage: damage.line)
        transcripts = file.transcripts(tuple(damaged))
        if not transcripts:
            raise file.tally.empty(source, self.title, damaged)
        return transcripts


def _is_state(record: dict[str, Any]) -> bool:
    kind = record.get("type")
    if kind in ("file-history-snapshot", "file-history-delta"):
        return "messageId" in record
    if kind == "summary":
        return "leafUuid" in record
    return isinstance(kind, str) and kind in _STATE and "sessionId" in record


class _File:
    """What is known about a file while its lines go by."""

    def __init__(self) -> None:
        self.tally = Tally()
        self.main = Chain(self.tally)
        self.side: list[Record] = []
        self.damaged: list[Damage] = []
        self.titles: dict[str, str] = {}
        self.summaries: list[tuple[str, str]] = []
        self.sessions: Counter[str] = Counter()
        self.first: dict[str, Any] = {}
        self.last: dict[str, Any] = {}

    def add(self, record: Record) -> None:
        """One line of the file."""
        value = record.value
        kind = value.get("type")
        if kind in _CONVERSATION:
            self._line(record)
        elif isinstance(kind, str) and kind in _STATE:
            self._state(kind, value)
            self.tally.left_out[kind] += 1
            self.main.skip(record)
        else:
            self.tally.unknown[str(kind)] += 1
            self.main.skip(record)

    def _line(self, record: Record) -> None:
        value = record.value
        if value.get("isSidechain") is True:
            self.side.append(record)
            return
        if not self.first:
            self.first = value
        self.last = value
        if session := string_of(value.get("sessionId")):
            self.sessions[session] += 1
        if _is_whole(value):
            self.main.add(record)
        else:
            self.damaged.append(Damage(record.line, f"a line of type {value.get('type')!r} without its message"))
            self.main.skip(record)

    def _state(self, kind: str, value: dict[str, Any]) -> None:
        if kind == "last-prompt":
            if leaf := string_of(value.get("leafUuid")):
                self.main.tip = leaf
        elif kind == "summary":
            if (leaf := string_of(value.get("leafUuid"))) and (text := string_of(value.get("summary"))):
                self.summaries.append((leaf, text))
        elif (field := _TITLES.get(kind)) and (title := string_of(value.get(field))):
            self.titles[kind] = title

    def transcripts(self, damaged: tuple[Damage, ...]) -> list[Transcript]:
        """The main conversation and its sub-agents, as far as they hold anything."""
        session = string_of(self.last.get("sessionId")) or next(reversed(self.sessions), None)
        side = sidechains(self.side, self.main.conversation)
        if session is None:
            owner = next((string_of(record.value.get("sessionId")) for record in self.side), None)
            session = owner or f"{FORMAT}-{string_of(self.first.get('uuid')) or 'unnamed'}"
        if len(self.sessions) > 1:
            others = ", ".join(f"{name} ({lines:,} lines)" for name, lines in self.sessions.items() if name != session)
            self.tally.notes.append(f"holds lines of other sessions too: {others}; all were read as one")
        found = [self._main(session, damaged)] if self.main.conversation.drafts else []
        for chain in side:
            child = self._side(chain, session, () if found else damaged)
            if child is not None:
                found.append(child)
        return found

    def _main(self, session: str, damaged: tuple[Damage, ...]) -> Transcript:
        entries, markers, leaf = self.main.finish(session)
        title = next((self.titles[kind] for kind in _TITLES if kind in self.titles), None)
        if title is None:
            title = next((text for at, text in reversed(self.summaries) if at in self.main.conversation.above), None)
        return Transcript(
            id=session,
            format=FORMAT,
            entries=entries,
            leaf=leaf,
            markers=markers,
            title=title,
            cwd=string_of(self.first.get("cwd")),
            model=_model(entries),
            client=string_of(self.last.get("version")),
            time=string_of(self.first.get("timestamp")),
            damaged=damaged,
            warnings=self.tally.warnings(),
            extra=self.tally.extra(),
        )

    def _side(self, side: Sidechain, session: str, damaged: tuple[Damage, ...]) -> Transcript | None:
        tally = Tally()
        chain = Chain(tally)
        for record in side.replayed:
            chain.skip(record)
        for record in side.own:
            (chain.add if _is_whole(record.value) else chain.skip)(record)
        if not chain.conversation.drafts:
            return None
        if side.replayed:
            tally.left_out["line that repeats the parent's"] += len(side.replayed)
        first, last = side.own[0].value, side.own[-1].value
        agent = string_of(first.get("agentId"))
        child = f"agent-{agent}-{session}" if agent else f"agent-{side.key}"
        entries, markers, leaf = chain.finish(child)
        prompt = next((block.text for block in entries[0].blocks if isinstance(block, Text)), None)
        call = call_that_started(self.main.conversation, prompt) if prompt else None
        return Transcript(
            id=child,
            format=FORMAT,
            entries=entries,
            leaf=leaf,
            markers=markers,
            cwd=string_of(first.get("cwd")),
            model=_model(entries),
            client=string_of(last.get("version")),
            time=string_of(first.get("timestamp")),
            parent_session=session,
            damaged=damaged,
            warnings=tally.warnings(),
            extra={**(tally.extra() or {}), **({"call_id": call} if call else {})} or None,
        )


def _is_whole(value: dict[str, Any]) -> bool:
    match value:
        case {"type": "user" | "assistant", "message": {"content": str() | list()}}:
            return True
        case {"type": "attachment", "attachment": dict()}:
            return True
        case {"type": "system"}:
            return True
    return False


def _model(entries: tuple[Entry, ...]) -> str | None:
    return next((entry.model for entry in reversed(entries) if entry.model), None)
