"""Which stored entries an import may recognise: the versions that the journal holds of each entry of a file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec
from sqlalchemy import Connection, Row, select

from ..transcript import Entry
from .append import PLACED, Placed, taken_ids
from .rows import Counts, content_hash, encoded, entry_from
from .schema import entries
from .tree import keys_of, rows_at, scope_of

__all__ = ["Version", "Versions"]

_COLUMNS = (*PLACED, *(entries.c[name] for name in ("parent", "role", "texts", "calls", "results", "revises")))


@dataclass(frozen=True)
class Version:
    """One stored version of an entry."""

    place: Placed
    parent: int | None
    role: str
    counts: Counts
    foreign: bool
    """Another session's, which this one may adopt."""


@dataclass
class Versions:
    """The versions of entries by the id that the file gives them, oldest first."""

    connection: Connection
    _by_id: dict[str, list[Version]] = field(default_factory=dict)
    _names: dict[int, str] = field(default_factory=dict)

    def load_session(self, session: Row[Any]) -> None:
        """Learn all entries of a session."""
        keys = keys_of(self.connection, scope_of(self.connection, session.n, session.base))
        for row in rows_at(self.connection, keys, *_COLUMNS):
            self._add(row, foreign=False)

    def load_elsewhere(self, ids: Iterable[str]) -> None:
        """Learn the entries that other sessions have under those of these ids that are not known yet."""
        missing = [entry_id for entry_id in ids if entry_id not in self._by_id]
        keys = sorted(place.n for place in taken_ids(self.connection, missing))
        for row in rows_at(self.connection, keys, *_COLUMNS):
            self._add(row, foreign=True)

    def of(self, entry_id: str) -> list[Version]:
        """The versions of the entry that the file calls `entry_id`; [] when the journal has none."""
        return self._by_id.get(entry_id, [])

    def find(self, entry: Entry, parent: Placed | None) -> Version | None:
        """The newest version with the entry's content that stands behind `parent`."""
        wanted = None if parent is None else parent.n
        for version in reversed(self.of(entry.id)):
            if version.parent == wanted and self.same_content(entry, version):
                return version
        return None

    def same_content(self, entry: Entry, version: Version) -> bool:
        """Whether a version says what the entry says; where it was read from and its place in the session do not count."""
        place = version.place
        there = msgspec.structs.replace(entry, id=place.id, parent=self._name(version.parent), sequence=place.sequence)
        if content_hash(encoded(there)) == place.content_hash:
            return True
        payload = self.connection.scalar(select(entries.c.payload).where(entries.c.n == place.n)) or b""
        stored = entry_from(place.id, payload, place.content_hash)
        return msgspec.structs.replace(stored, source=None) == msgspec.structs.replace(there, source=None)

    def _add(self, row: Row[Any], *, foreign: bool) -> None:
        place = Placed._make(row[: len(PLACED)])
        version = Version(place, row.parent, row.role, Counts(row.texts, row.calls, row.results), foreign)
        self._names[place.n] = place.id
        self._by_id.setdefault(place.id, []).append(version)
        if row.revises is not None and not foreign:
            self._by_id.setdefault(row.revises, []).append(version)

    def _name(self, key: int | None) -> str | None:
        """The id of the entry with this key."""
        if key is None:
            return None
        if key not in self._names:
            self._names[key] = str(self.connection.scalar(select(entries.c.id).where(entries.c.n == key)))
        return self._names[key]
