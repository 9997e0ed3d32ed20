"""Session files of the Pi coding agent and of its fork Oh My Pi: JSON lines (session-formats.md, "Pi coding agent"; pi.md 2 and 3).

Version 1 is a list; versions 2 and 3 are a tree by `id` and `parentId`. Seen in real files: version 1, and version 3 of the fork.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ....transcript import Damage, Entry, Marker, Transcript
from ..base import Input, Record, entry_id, json_records
from ..branches import arrival_order
from ..records import Names, Tally, count, extra_of, first_records, iso_time, record_of, string_of
from .messages import FORMAT, custom_entry, message_entry, summary_entry

__all__ = ["PiReader"]

_ROLES = frozenset({"user", "assistant", "toolResult", "bashExecution", "custom", "hookMessage", "system"})
# Lines about the client's own state, or data of extensions that is never sent.
_STATE = frozenset(
    {
        "context_edit",
        "credential_pin",
        "custom",
        "label",
        "model_change",
        "session",
        "session_info",
        "session_init",
        "thinking_level_change",
        "title",
        "title_change",
        "ttsr_injection",
        "usage",
    }
)
_COMPACTION = frozenset(
    {
        "type",
        "id",
        "parentId",
        "timestamp",
        "summary",
        "tokensBefore",
        "firstKeptEntryId",
        "firstKeptEntryIndex",
        "systemMessage",
    }
)


class PiReader:
    """Reads Pi's session files: one message is one entry, all leaves of the tree are kept (IM-06, IM-13)."""

    name = FORMAT
    title = "Pi"

    def sniff(self, source: Input) -> bool:
        """Whether a header or a message of Pi is among the first lines; the header need not be the first of them."""
        for record in first_records(source):
            if record.get("type") == "session" and "id" in record and "timestamp" in record and "cwd" in record:
                return True
            if record.get("type") == "message" and record_of(record.get("message")).get("role") in _ROLES:
                return True
        return False

    def read(self, source: Input) -> list[Transcript]:
        """The one session of the file.

        Raises:
            EmptySessionError: the file holds records, but no entry could be made of any.
        """
        lines = json_records(source.data)
        records = list(lines)
        session = _Session(records, lines.damaged)
        for position in range(len(records)):
            session.add(position)
        if not session.made:
            raise session.tally.empty(source, self.title, session.damaged)
        return [session.transcript()]


class _Session:
    """What is known about a session while its lines go by. Lines are known by their position in the file."""

    def __init__(self, records: list[Record], damaged: list[Damage]) -> None:
        self.records = records
        self.damaged = list(damaged)
        self.tally = Tally()
        self.made: dict[int, Entry] = {}
        self.header = next((record.value for record in records if record.value.get("type") == "session"), {})
        first = records[0].value if records else {}
        self.session = string_of(self.header.get("id")) or f"{FORMAT}-{iso_time(first.get('timestamp')) or 'unnamed'}"
        self._at: dict[str, int] = {}
        self._parents: list[int | None] = self._links()
        self._names = Names()
        self._compactions: dict[int, str] = {}
        """The id of the marker for each compaction."""
        self._title: str | None = None
        self._init: dict[str, Any] = {}

    def _links(self) -> list[int | None]:
        """For each line the line above it: the one that it names, or in version 1, and where that is missing, the one before it."""
        for position, record in enumerate(self.records):
            if native := string_of(record.value.get("id")):
                self._at.setdefault(native, position)
        parents: list[int | None] = []
        for position, record in enumerate(self.records):
            before = position - 1 if position else None
            if "parentId" not in record.value:
                parents.append(before)
                continue
            parent = string_of(record.value["parentId"])
            at = self._at.get(parent) if parent else None
            if parent is not None and at in (None, position):
                at = before  # the line above is damaged
            parents.append(at)
        return parents

    def add(self, position: int) -> None:
        """One line of the file."""
        record = self.records[position]
        value, line = record.value, record.line
        kind = value.get("type")
        native = string_of(value.get("id"))
        if native is not None and self._at.get(native) != position and self.records[self._at[native]].value == value:
            self.tally.left_out["repeated line"] += 1
            return
        made = entry_id(self.session, self._names.give(native, line))
        entry: Entry | None = None
        match kind:
            case "message":
                message = record_of(value.get("message"))
                entry = message_entry(message, id=made, time=iso_time(value.get("timestamp")), line=line, native=native)
                if entry is None:
                    self._no_entry(message, line)
            case "custom_message":
                entry = custom_entry(value, id=made, line=line, native=native)
            case "branch_summary" if text := string_of(value.get("summary")):
                entry = summary_entry(
                    text,
                    id=made,
                    time=iso_time(value.get("timestamp")),
                    line=line,
                    native=native,
                    extra=extra_of(value, frozenset({"type", "id", "parentId", "timestamp", "summary"})),
                )
            case "compaction":
                self._compactions[position] = made
            case "session_info" | "title" | "title_change":
                self._title = string_of(value.get("name")) or string_of(value.get("title")) or self._title
                self.tally.left_out[kind] += 1
            case _:
                if kind == "session_init":
                    self._init = value
                known = kind in _STATE or kind == "branch_summary"
                (self.tally.left_out if known else self.tally.unknown)[str(kind)] += 1
        if entry is not None:
            self.made[position] = entry

    def _no_entry(self, message: dict[str, Any], line: int) -> None:
        role = message.get("role")
        if role == "bashExecution" and message.get("excludeFromContext") is True:
            self.tally.left_out["bashExecution that the person kept from the model"] += 1
        elif role in _ROLES:
            self.damaged.append(Damage(line, f"a message of role {role!r} without what makes it one"))
        else:
            self.tally.unknown[f"message/{role}"] += 1

    def _path_to(self, position: int | None) -> list[int]:
        """The lines from the root to this one."""
        path: list[int] = []
        while position is not None:
            path.append(position)
            position = self._parents[position]
        return path[::-1]

    def _entry_above(self, position: int | None) -> int | None:
        while position is not None and position not in self.made:
            position = self._parents[position]
        return position

    def transcript(self) -> Transcript:
        """The session."""
        order = [position for position in arrival_order(self._parents) if position in self.made]
        entries: list[Entry] = []
        for sequence, position in enumerate(order):
            above = self._entry_above(self._parents[position])
            parent = None if above is None else self.made[above].id
            entries.append(msgspec.structs.replace(self.made[position], parent=parent, sequence=sequence))
        leaf = self._entry_above(len(self.records) - 1)
        header, init = self.header, self._init
        tools = init.get("tools")
        model = next((entry.model for entry in reversed(entries) if entry.model), None)
        return Transcript(
            id=self.session,
            format=FORMAT,
            entries=tuple(entries),
            leaf=None if leaf is None else self.made[leaf].id,
            markers=tuple(self._marker(position) for position in self._compactions),
            title=self._title,
            cwd=string_of(header.get("cwd")),
            model=model or string_of(header.get("modelId")),
            time=iso_time(header.get("timestamp")),
            system=string_of(init.get("systemPrompt")),
            tools=tuple(tools) if isinstance(tools, list) and tools else None,
            forked_from=string_of(header.get("parentSession")) or string_of(header.get("branchedFrom")),
            damaged=tuple(sorted(self.damaged, key=lambda damage: damage.line)),
            warnings=self.tally.warnings(),
            extra=self.tally.extra(),
        )

    def _marker(self, position: int) -> Marker:
        """Pi shows the summary in the place of a user message, then what it kept (pi.md 3, rules 4 and 5)."""
        record = self.records[position]
        value = record.value
        native = string_of(value.get("id"))
        made = self._compactions[position]
        time = iso_time(value.get("timestamp"))
        above = self._parents[position]
        path = self._path_to(above)
        kept = [self.made[at].id for at in path[self._first_kept(value, path) :] if at in self.made]
        shown: list[str | Entry] = []
        if text := string_of(value.get("summary")):
            summary = summary_entry(
                text,
                id=entry_id(self.session, f"{made}#summary"),
                time=time,
                line=record.line,
                native=native,
            )
            shown.append(summary)
        after = self._entry_above(above)
        return Marker(
            id=made,
            after=None if after is None else self.made[after].id,
            shown=(*shown, *kept),
            tokens_before=count(value.get("tokensBefore")) or None,
            time=time,
            extra=extra_of(value, _COMPACTION),
        )

    def _first_kept(self, value: dict[str, Any], path: list[int]) -> int:
        """Position in `path` of the first line that a compaction kept; its end when it kept none."""
        index = value.get("firstKeptEntryIndex")
        if isinstance(index, int) and not isinstance(index, bool):
            return next((at for at, position in enumerate(path) if self._row(position) >= index), len(path))
        first = string_of(value.get("firstKeptEntryId"))
        at = self._at.get(first) if first else None
        return path.index(at) if at in path else len(path)

    def _row(self, position: int) -> int:
        """A line's index as version 1 counts: lines from 0, the header's included, damaged ones too."""
        return self.records[position].line - 1
