"""Writing entries: places each one in the tree, hashes it, keeps the counters and the search index in step.

Everything that is stored goes through `Appender.put`; it is used inside one write transaction and holds at most a few hundred rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import Connection, Row, func, insert, select, update

from ..codec import wire_safe
from ..errors import EntryNotFoundError, JournalError
from ..transcript import Entry
from .rows import Counts, chain_hash, check_id, content_hash, counts_of, encoded, packed, time_ms
from .schema import entries, segments, sessions
from .search_index import index_entries
from .sessions import now_ms
from .tree import scope_of

__all__ = ["PLACED", "Appender", "Placed", "append", "placed", "taken_ids"]

_FLUSH_ROWS = 400
_FLUSH_BYTES = 4_000_000
_CHUNK = 500
_LARGEST_SEQUENCE = 2**53


class Placed(NamedTuple):
    """A stored entry as the rows behind it need to know it."""

    n: int
    id: str
    segment: int
    depth: int
    sequence: int
    content_hash: bytes
    chain_hash: bytes


PLACED = tuple(entries.c[name] for name in Placed._fields)


def placed(connection: Connection, entry_id: str) -> Placed | None:
    """Where the entry with this id is stored."""
    row = connection.execute(select(*PLACED).where(entries.c.id == wire_safe(entry_id))).one_or_none()
    return None if row is None else Placed._make(row)


def taken_ids(connection: Connection, ids: Iterable[str]) -> list[Placed]:
    """The entries of the whole journal that have one of these ids."""
    wanted = [wire_safe(entry_id) for entry_id in ids]
    found: list[Placed] = []
    for start in range(0, len(wanted), _CHUNK):
        rows = connection.execute(select(*PLACED).where(entries.c.id.in_(wanted[start : start + _CHUNK])))
        found.extend(Placed._make(row) for row in rows)
    return found


class Appender:
    """Puts entries into one session, inside one write transaction. Call `finish` at the end.

    Args:
        connection: holds the write lock.
        session: the session's row.
    """

    def __init__(self, connection: Connection, session: Row[Any]) -> None:
        self._connection = connection
        self._session = session
        self._next = (connection.scalar(select(func.max(entries.c.n))) or 0) + 1
        self._next_segment = (connection.scalar(select(func.max(segments.c.n))) or 0) + 1
        self._tails: dict[int, int | None] = {}
        self.sequence: int = session.next_sequence
        """The lowest sequence that no entry of the session has reached."""
        self._totals = dict.fromkeys(
            ("entries", "revised", "user_texts", "assistant_texts", "tool_calls", "tool_results"), 0
        )
        self._first: int | None = session.first_ms
        self._last: int | None = session.last_ms
        self._rows: list[dict[str, Any]] = []
        self._segments: list[dict[str, Any]] = []
        self._indexed: list[tuple[int, Entry]] = []
        self._bytes = 0

    def put(self, entry: Entry, parent: Placed | None, *, revises: str | None = None) -> Placed:
        """Store `entry`, whose `parent` and `sequence` are final.

        Raises:
            JournalError: the id or the sequence cannot be stored, or the entry cannot be written as JSON.
        """
        check_id("entry", entry.id)
        if not 0 <= entry.sequence <= _LARGEST_SEQUENCE:
            raise JournalError(f"entry {entry.id!r} has the sequence {entry.sequence}; it counts from 0")
        payload = encoded(entry)
        content = content_hash(payload)
        place = Placed(
            self._next,
            entry.id,
            self._segment_after(parent),
            0 if parent is None else parent.depth + 1,
            entry.sequence,
            content,
            chain_hash(None if parent is None else parent.chain_hash, content),
        )
        self._tails[place.segment] = place.n
        self._next += 1
        self.sequence = max(self.sequence, entry.sequence + 1)
        counts = counts_of(entry)
        self._count(entry.role, counts, 1)
        moment = time_ms(entry.time)
        if moment is not None:
            self._first = moment if self._first is None else min(self._first, moment)
            self._last = moment if self._last is None else max(self._last, moment)
        stored = packed(payload)
        self._rows.append(
            {
                **place._asdict(),
                "parent": None if parent is None else parent.n,
                "role": entry.role,
                "time_ms": moment,
                "texts": counts.texts,
                "calls": counts.calls,
                "results": counts.results,
                "revises": revises,
                "payload": stored,
            }
        )
        self._indexed.append((place.n, entry))
        self._bytes += len(stored)
        if len(self._rows) >= _FLUSH_ROWS or self._bytes >= _FLUSH_BYTES:
            self._flush()
        return place

    def adopt(self, role: str, counts: Counts, sequence: int) -> None:
        """Count an entry of another session that this one shares from now on."""
        self._count(role, counts, 1)
        self.sequence = max(self.sequence, sequence + 1)

    def supersede(self, role: str, counts: Counts) -> None:
        """Count an entry of this session as an older version; a newer one is put beside it."""
        self._count(role, counts, -1)
        self._totals["revised"] += 1

    def _count(self, role: str, counts: Counts, by: int) -> None:
        self._totals["entries"] += by
        if role in ("user", "assistant"):
            self._totals[f"{role}_texts"] += by * counts.texts
        self._totals["tool_calls"] += by * counts.calls
        self._totals["tool_results"] += by * counts.results

    def finish(self, **changes: Any) -> None:
        """Write what is left and the session's row; `changes` are further columns of it."""
        self._flush()
        grown = {name: sessions.c[name] + by for name, by in self._totals.items() if by}
        row = {
            **grown, "next_sequence": self.sequence, "first_ms": self._first, "last_ms": self._last,
            "changed_ms": now_ms(), **changes,
        }  # fmt: skip
        self._connection.execute(update(sessions).where(sessions.c.n == self._session.n).values(row))

    def _segment_after(self, parent: Placed | None) -> int:
        """The segment that an entry behind `parent` continues, or a new one where it branches off."""
        if parent is not None and self._tail(parent.segment) == parent.n:
            return parent.segment
        segment = self._next_segment
        self._next_segment += 1
        self._segments.append(
            {
                "n": segment,
                "session": self._session.n,
                "parent": None if parent is None else parent.segment,
                "cut": None if parent is None else parent.n,
            }
        )
        return segment

    def _tail(self, segment: int) -> int | None:
        """The newest entry of a segment of this session; None for one of another session, which is not ours to continue."""
        if segment not in self._tails:
            owner = self._connection.scalar(select(segments.c.session).where(segments.c.n == segment))
            newest = select(func.max(entries.c.n)).where(entries.c.segment == segment)
            self._tails[segment] = self._connection.scalar(newest) if owner == self._session.n else None
        return self._tails[segment]

    def _flush(self) -> None:
        if not self._rows:
            return
        if self._segments:
            self._connection.execute(insert(segments), self._segments)
        self._connection.execute(insert(entries), self._rows)
        index_entries(self._connection, self._indexed)
        self._rows, self._segments, self._indexed, self._bytes = [], [], [], 0


def append(connection: Connection, session: Row[Any], new: Iterable[Entry]) -> list[Entry]:
    """Append entries to a session, each one behind the one before it unless it names another parent.

    An entry without a parent gets the session's leaf, or the entry before it in this batch. A sequence below the session's next one is
    replaced by the next one, so sequences are unique and rise in order of arrival (failure kinds JR-02, JR-06). The last entry becomes
    the leaf.

    Raises:
        EntryNotFoundError: a parent is not in the session.
        JournalError: the journal has an entry of that id already.
    """
    batch = list(new)
    if not batch:
        return []
    taken = taken_ids(connection, (entry.id for entry in batch))
    if taken:
        raise JournalError(
            f"the journal has an entry {taken[0].id!r} already; ids are unique in a journal, and what is stored is never replaced"
        )
    appender = Appender(connection, session)
    leaf = connection.execute(select(*PLACED).where(entries.c.n == session.leaf)).one_or_none()
    parent = None if leaf is None else Placed._make(leaf)
    here: dict[str, Placed] = {} if parent is None else {parent.id: parent}
    stored: list[Entry] = []
    for entry in batch:
        if entry.id in here:
            raise JournalError(f"two entries of this batch have the id {entry.id!r}; nothing was stored")
        if entry.parent is not None:
            parent = here.get(entry.parent) or _parent_in(connection, session, entry)
        sequence = max(entry.sequence, appender.sequence)
        parent_id = None if parent is None else parent.id
        if entry.parent != parent_id or entry.sequence != sequence:
            entry = msgspec.structs.replace(entry, parent=parent_id, sequence=sequence)
        parent = here[entry.id] = appender.put(entry, parent)
        stored.append(entry)
    appender.finish(leaf=None if parent is None else parent.n)
    return stored


def _parent_in(connection: Connection, session: Row[Any], entry: Entry) -> Placed:
    found = placed(connection, entry.parent or "")
    if found is None or not scope_of(connection, session.n, session.base).holds(found.segment, found.n):
        raise EntryNotFoundError(
            f"session {session.id!r} has no entry {entry.parent!r}, which entry {entry.id!r} names as its parent; append the parent first"
        )
    return found
