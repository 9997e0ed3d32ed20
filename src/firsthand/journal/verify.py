"""Checking a journal: every payload against its hash, the chain, parents and places, the rows of sessions. Repairs nothing.

Damage is named entry by entry, so that a person can decide: restore a backup, import the session's own file again, or delete it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from sqlalchemy import Connection, Row, select
from sqlalchemy.exc import DBAPIError

from ..errors import JournalDamagedError
from ..transcript import Entry
from . import search_index
from .markers import markers_of
from .rows import chain_hash, counts_of, entry_from
from .schema import entries, pins, segments, sessions
from .sessions import meta_of
from .tree import keys_of, scope_of

__all__ = ["Problem", "Verified", "verify"]

_CHUNK = 500
_PAGES_LISTED = 20
_REBUILD = "; rebuild the index"


@dataclass(frozen=True)
class Problem:
    """One thing that is not as it was stored."""

    kind: str
    """`file`, `session`, `entry`, `chain`, `place`, `marker` or `search`."""
    detail: str
    session: str | None = None
    entry: str | None = None
    """Id of the damaged entry."""


@dataclass(frozen=True)
class Verified:
    """What was checked, and what was found wrong."""

    sessions: int
    entries: int
    markers: int
    problems: tuple[Problem, ...]

    @property
    def ok(self) -> bool:
        """Whether everything is as it was stored."""
        return not self.problems


class Verification:
    """One pass over a journal, or over one session of it."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._problems: list[Problem] = []
        self._sessions = self._entries = self._markers = 0
        self._newest: dict[int, int] = {}

    def run(self, session: Row[Any] | None) -> Verified:
        """Check the session, or everything."""
        try:
            self._file()
            chosen = [session] if session is not None else self._connection.execute(select(sessions)).all()
            for row in chosen:
                self._session(row)
            if session is None:
                keys: Sequence[int] = list(self._connection.scalars(select(entries.c.n).order_by(entries.c.n)))
            else:
                keys = self._keys(session)
            for start in range(0, len(keys), _CHUNK):
                self._piece(keys[start : start + _CHUNK])
            if session is None:
                self._index()
        except DBAPIError as error:
            self._problems.append(Problem("file", f"reading stopped: {error.orig}"))
        return Verified(self._sessions, self._entries, self._markers, tuple(self._problems))

    def _file(self) -> None:
        found = self._connection.exec_driver_sql(f"PRAGMA quick_check({_PAGES_LISTED})").scalars().all()
        self._problems += [Problem("file", str(line)) for line in found if line != "ok"]

    def _keys(self, session: Row[Any]) -> list[int]:
        return keys_of(self._connection, scope_of(self._connection, session.n, session.base))

    def _session(self, row: Row[Any]) -> None:
        self._sessions += 1

        def wrong(detail: str, kind: str = "session") -> None:
            self._problems.append(Problem(kind, detail, session=row.id))

        try:
            meta_of(row)
        except (JournalDamagedError, msgspec.ValidationError, ValueError) as error:
            wrong(f"what is known about it cannot be read: {error}")
        try:
            self._markers += len(markers_of(self._connection, row.n))
        except JournalDamagedError as error:
            wrong(str(error), "marker")
        keys = self._keys(row)
        there = set(keys)
        for name in ("base", "leaf", "imported_leaf"):
            key = getattr(row, name)
            if key is not None and key not in there:
                wrong(f"its {name} is no entry of the session")
        if len(keys) != row.entries + row.revised:
            wrong(f"it counts {row.entries:,} entries and {row.revised:,} older versions, but has {len(keys):,} rows")
        for key in self._connection.scalars(select(pins.c.entry).where(pins.c.session == row.n)):
            if key not in there:
                wrong(f"a pin names row {key}, which is no entry of the session")

    def _rows(self, keys: Sequence[int]) -> Sequence[Row[Any]]:
        parents = entries.alias("parents")
        chosen = select(
            entries,
            parents.c.id.label("parent_id"),
            parents.c.chain_hash.label("parent_chain"),
            parents.c.depth.label("parent_depth"),
            parents.c.segment.label("parent_segment"),
            segments.c.n.label("segment_row"),
            segments.c.cut,
        ).select_from(
            entries.outerjoin(parents, parents.c.n == entries.c.parent).outerjoin(
                segments, segments.c.n == entries.c.segment
            )
        )
        return self._connection.execute(chosen.where(entries.c.n.in_(keys)).order_by(entries.c.n)).all()

    def _piece(self, keys: Sequence[int]) -> None:
        whole: dict[int, Entry] = {}
        rows = self._rows(keys)
        for row in rows:
            try:
                entry = self._entry(row)
            except TypeError as error:
                # SQLite stores any type in any column, if somebody writes it there.
                self._problems.append(Problem("entry", f"a column holds another type: {error}", entry=row.id))
            else:
                if entry is not None:
                    whole[row.n] = entry
        by_key = {row.n: row for row in rows}
        for key, detail in search_index.unindexed(self._connection, list(whole.items())):
            row = by_key[key]
            self._problems.append(Problem("search", detail + _REBUILD, self._owner(row.segment), row.id))

    def _index(self) -> None:
        lost = search_index.stale(self._connection)
        if lost:
            self._problems.append(Problem("search", f"{lost:,} rows of the search index belong to no entry{_REBUILD}"))

    def _entry(self, row: Row[Any]) -> Entry | None:
        self._entries += 1
        entry: Entry | None = None

        def wrong(kind: str, detail: str) -> None:
            self._problems.append(Problem(kind, detail, session=self._owner(row.segment), entry=row.id))

        try:
            entry = entry_from(row.id, row.payload, row.content_hash)
        except JournalDamagedError as error:
            wrong("entry", str(error))
        else:
            for detail in _columns_that_differ(entry, row):
                wrong("entry", detail)
        if row.parent is not None and row.parent_id is None:
            wrong("place", f"its parent, row {row.parent}, is missing")
        elif chain_hash(row.parent_chain, row.content_hash) != row.chain_hash:
            wrong("chain", "its chain hash does not follow from its parent's")
        misplaced = self._misplaced(row)
        if misplaced:
            wrong("place", misplaced)
        return entry

    def _misplaced(self, row: Row[Any]) -> str | None:
        before = self._newest.get(row.segment)
        self._newest[row.segment] = row.n
        if row.segment_row is None:
            return f"its segment {row.segment} is missing"
        if row.depth != (0 if row.parent is None else (row.parent_depth or 0) + 1):
            return f"its depth {row.depth} is not one more than its parent's"
        if row.parent_segment != row.segment and (before is not None or row.cut != row.parent):
            return "it opens a segment that has entries or starts elsewhere"
        # Where only part of a segment is checked, the first entry seen has a predecessor that was not.
        if row.parent_segment == row.segment and before not in (None, row.parent):
            return "it does not continue its segment"
        return None

    def _owner(self, segment: int) -> str | None:
        chosen = select(sessions.c.id).join(segments, segments.c.session == sessions.c.n).where(segments.c.n == segment)
        return self._connection.scalar(chosen)


def _columns_that_differ(entry: Entry, row: Row[Any]) -> Iterator[str]:
    pairs = {
        "id": (row.id, entry.id),
        "parent": (row.parent_id, entry.parent),
        "sequence": (row.sequence, entry.sequence),
        "role": (row.role, entry.role),
        "counts": ((row.texts, row.calls, row.results), tuple(counts_of(entry))),
    }
    for name, (stored, said) in pairs.items():
        if stored != said:
            yield f"its {name} {stored!r} in the table is {said!r} in its payload"


def verify(connection: Connection, session: Row[Any] | None) -> Verified:
    """Check a journal, or one session with everything on its paths."""
    return Verification(connection).run(session)
