"""Our own export: one JSON object a line, written by `firsthand.journal.export`, read back to equal entries, markers and metadata.

What a damaged file still holds is read: an entry whose parent was lost is put behind the entry before it, and a lost header costs the
session's id and metadata only (failure kinds JR-03, JR-04).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from ...codec import decode
from ...errors import EmptySessionError, FormatError
from ...transcript import Damage, Entry, Marker, Transcript
from .base import Input, Record, json_records

__all__ = ["EXTRAS", "FORMAT", "VERSION", "FirsthandReader"]

FORMAT = "firsthand"
VERSION = 1
"""Raised when an older reader would lose something of a file."""

EXTRAS = "firsthand"
"""The key of `Transcript.extra` under which pins and revisions are handed to the journal."""

_START = '{"type":"firsthand"'
_ENTRY = '{"type":"entry","entry":{'


class FirsthandReader:
    """Reads exports of a journal; several in one file are several sessions."""

    name = FORMAT
    title = "firsthand export"

    def sniff(self, source: Input) -> bool:
        """Whether the content starts like an export, or has its entry lines where the first line is damaged."""
        return source.head.startswith((_START, _ENTRY)) or f"\n{_ENTRY}" in source.head

    def read(self, source: Input) -> list[Transcript]:
        """The sessions of the file, in its order.

        Raises:
            EmptySessionError: no session and no entry could be read.
            FormatError: written by a newer version, of which this one would lose something.
        """
        records = json_records(source.data)
        found: list[_Session] = []
        for record in records:
            self._line(record, found)
        self._rescue(source, records.damaged, found)
        if not found:
            raise EmptySessionError(
                f"{source.name} looks like a firsthand export, but none of its lines could be read ({len(records.damaged)} damaged)"
            )
        for damage in records.damaged:
            _owner(found, damage.line).damaged.append(damage)
        return [session.transcript() for session in found]

    def _line(self, record: Record, found: list[_Session]) -> None:
        kind = record.value.get("type")
        if kind == FORMAT:
            found.append(_Session(record.line, _head(record)))
            return
        if not found:
            found.append(_Session(record.line, None))
        found[-1].take(kind, record)

    def _rescue(self, source: Input, damaged: list[Damage], found: list[_Session]) -> None:
        """Read what was appended to a line that broke off: its beginning is lost, the object at its end is not."""
        if not damaged:
            return
        lines = source.data.split(b"\n")
        for damage in damaged:
            line = lines[damage.line - 1]
            at = line.find(b'{"type":"', 1)
            while at > 0:
                try:
                    value = decode(line[at:])
                except (ValueError, RecursionError):
                    at = line.find(b'{"type":"', at + 1)
                    continue
                self._line(Record(damage.line, value), found)
                break


@dataclass
class _Session:
    line: int
    head: Transcript | None
    entries: dict[str, Entry] = field(default_factory=dict)
    markers: list[Marker] = field(default_factory=list)
    pins: list[str] = field(default_factory=list)
    revisions: dict[str, str] = field(default_factory=dict)
    damaged: list[Damage] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    end: dict[str, Any] | None = None
    last: str | None = None

    def take(self, kind: Any, record: Record) -> None:
        try:
            match kind:
                case "entry":
                    self._entry(msgspec.convert(record.value.get("entry"), Entry), record)
                case "marker":
                    self.markers.append(msgspec.convert(record.value.get("marker"), Marker))
                case "pin":
                    self.pins.append(msgspec.convert(record.value.get("entry"), str))
                case "end":
                    self.end = record.value
                case _:
                    self.damaged.append(Damage(record.line, f"a line of the unknown type {kind!r}"))
        except msgspec.ValidationError as error:
            self.damaged.append(Damage(record.line, f"a {kind} of another shape: {error}"))

    def _entry(self, entry: Entry, record: Record) -> None:
        if entry.id in self.entries:
            self.damaged.append(Damage(record.line, f"a second entry with the id {entry.id!r}"))
            return
        if entry.parent is not None and entry.parent not in self.entries:
            self.warnings.append(
                f"line {record.line}: the parent {entry.parent!r} of entry {entry.id!r} is lost; it stands behind {self.last!r} now"
            )
            entry = msgspec.structs.replace(entry, parent=self.last)
        self.entries[entry.id] = entry
        self.last = entry.id
        if isinstance(revises := record.value.get("revises"), str):
            self.revisions[entry.id] = revises

    def transcript(self) -> Transcript:
        head = self.head
        if head is None:
            first = next(iter(self.entries), None) or f"line-{self.line}"
            head = Transcript(id=f"recovered-{first}", format=FORMAT, entries=(), leaf=self.last)
            self.warnings.append("the first line is lost, and with it the session's id and metadata")
        leaf = head.leaf
        if leaf is not None and leaf not in self.entries:
            self.warnings.append(f"the newest entry {leaf!r} is lost; the session ends at {self.last!r} now")
            leaf = self.last
        counts = {"entries": len(self.entries), "markers": len(self.markers), "pins": len(self.pins)}
        if self.end is None:
            self.warnings.append(f"the file breaks off: its last line is missing after {counts['entries']:,} entries")
        else:
            self.warnings += [
                f"the file was written with {self.end.get(name)} {name}, but {count} were read"
                for name, count in counts.items()
                if self.end.get(name) != count
            ]
        ours: dict[str, Any] = {}
        if self.pins:
            ours["pins"] = self.pins
        if self.revisions:
            ours["revisions"] = self.revisions
        extra = {**(head.extra or {}), EXTRAS: ours} if ours else head.extra
        return msgspec.structs.replace(
            head,
            entries=tuple(self.entries.values()),
            leaf=leaf,
            markers=tuple(self.markers),
            damaged=(*head.damaged, *self.damaged),
            warnings=(*head.warnings, *self.warnings),
            extra=extra,
        )


def _head(record: Record) -> Transcript | None:
    version = record.value.get("version")
    if not isinstance(version, int) or version > VERSION:
        raise FormatError(
            f"line {record.line}: an export of version {version}; this firsthand reads up to version {VERSION} and would lose something; "
            "upgrade it"
        )
    session = record.value.get("session")
    try:
        return msgspec.convert({"entries": (), **session} if isinstance(session, dict) else session, Transcript)
    except msgspec.ValidationError:
        return None


def _owner(found: list[_Session], line: int) -> _Session:
    """The session in whose part of the file a line lies."""
    return next((session for session in reversed(found) if session.line <= line), found[0])
