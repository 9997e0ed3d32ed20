"""Paths: which rows a session consists of, and in what order.

The entries of a journal form a tree, cut into segments (see `schema.segments`). A path is walked segment by segment, never entry by
entry: a session that branched three times has four steps, however long it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, bindparam, func, select, text

from ..transcript import Entry
from .rows import entry_from
from .schema import adopted, entries, segments

__all__ = [
    "Reach",
    "Scope",
    "bounds_of",
    "entries_at",
    "keys_in",
    "keys_of",
    "path_keys",
    "path_reach",
    "rows_at",
    "scope_of",
]

_CHUNK = 500


class Reach(NamedTuple):
    """The part of a segment that belongs to a path: its entries up to and including the one with key `cut`."""

    segment: int
    cut: int


class Scope(NamedTuple):
    """All rows of one session: whole segments of its own, the path that it was forked from, and single rows that it adopted."""

    own: frozenset[int]
    base: tuple[Reach, ...]
    adopted: frozenset[int]

    def holds(self, segment: int, key: int) -> bool:
        """Whether the entry with this key, in this segment, belongs to the session."""
        return (
            segment in self.own
            or any(reach.segment == segment and key <= reach.cut for reach in self.base)
            or key in self.adopted
        )


_UP = text(
    """
    WITH RECURSIVE up (segment, cut) AS (
        SELECT segment, n FROM entries WHERE n = :leaf
        UNION ALL
        SELECT segments.parent, segments.cut FROM up JOIN segments ON segments.n = up.segment WHERE segments.parent IS NOT NULL
    )
    SELECT segment, cut FROM up
    """
)


def path_reach(connection: Connection, leaf: int | None) -> tuple[Reach, ...]:
    """The segments of the path to the entry with key `leaf`, root first; () for no leaf."""
    if leaf is None:
        return ()
    steps = [Reach(segment, cut) for segment, cut in connection.execute(_UP, {"leaf": leaf})]
    return tuple(reversed(steps))


def keys_in(connection: Connection, reaches: Iterable[Reach], after: int = 0) -> list[int]:
    """The keys of all entries in these parts of segments, in order of arrival; only those above `after`."""
    keys: list[int] = []
    for segment, cut in reaches:
        if cut > after:
            keys.extend(connection.scalars(_KEYS, {"segment": segment, "cut": cut, "after": after}))
    keys.sort()
    return keys


_KEYS = (
    select(entries.c.n)
    .where(
        entries.c.segment == bindparam("segment"),
        entries.c.n <= bindparam("cut"),
        entries.c.n > bindparam("after"),
    )
    .order_by(entries.c.n)
)


def path_keys(connection: Connection, leaf: int | None) -> list[int]:
    """The keys on the path to `leaf`, root first."""
    return keys_in(connection, path_reach(connection, leaf))


def scope_of(connection: Connection, session: int, base: int | None) -> Scope:
    """What belongs to the session with key `session`, forked at the entry with key `base`."""
    own = connection.scalars(select(segments.c.n).where(segments.c.session == session))
    rows = connection.scalars(select(adopted.c.entry).where(adopted.c.session == session))
    return Scope(frozenset(own), path_reach(connection, base), frozenset(rows))


_EVERYTHING = 2**62


def keys_of(connection: Connection, scope: Scope) -> list[int]:
    """The keys of all rows of a session, in order of arrival."""
    own = [Reach(segment, _EVERYTHING) for segment in scope.own]
    base = [reach for reach in scope.base if reach.segment not in scope.own]
    keys = keys_in(connection, (*own, *base))
    if scope.adopted:
        keys = sorted({*keys, *scope.adopted})
    return keys


def bounds_of(connection: Connection, session: int, scope: Scope) -> tuple[int, int]:
    """The lowest and the highest key of a session's rows; (1, 0) when it has none."""
    mine = select(func.min(entries.c.n), func.max(entries.c.n)).join(segments, segments.c.n == entries.c.segment)
    found = [*connection.execute(mine.where(segments.c.session == session)).one(), *scope.adopted]
    found += [reach.cut for reach in scope.base]
    if scope.base:
        first = select(func.min(entries.c.n)).where(entries.c.segment == scope.base[0].segment)
        found.append(connection.scalar(first))
    keys = [key for key in found if key is not None]
    return (min(keys), max(keys)) if keys else (1, 0)


def rows_at(connection: Connection, keys: Sequence[int], *columns: Any) -> Iterator[Row[Any]]:
    """The rows with these keys, which must rise, with only the named columns; read in pieces, so that memory stays flat."""
    for start in range(0, len(keys), _CHUNK):
        chosen = select(*columns).where(entries.c.n.in_(keys[start : start + _CHUNK])).order_by(entries.c.n)
        yield from connection.execute(chosen)


def entries_at(connection: Connection, keys: Sequence[int]) -> Iterator[Entry]:
    """The entries with these keys, which must rise.

    Raises:
        JournalDamagedError: a payload does not match its hash; names the entry.
    """
    for row in rows_at(connection, keys, entries.c.id, entries.c.payload, entries.c.content_hash):
        yield entry_from(row.id, row.payload, row.content_hash)
