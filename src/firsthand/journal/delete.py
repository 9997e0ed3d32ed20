"""Deleting sessions: the only way by which an entry leaves a journal.

What another session needs stays: a fork keeps the path that it shares, an import keeps what it adopted, and such entries pass into that
session's hands. Checkpoints go with the session that made them; a fork that had inherited one covers that history again. The rest goes in one
transaction, out of the search index too, and its bytes are overwritten.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import Column, Connection, Row, Table, delete, func, insert, select, update

from . import search_index
from .runtime_tables import attachments, checkpoints, learned, operations
from .schema import adopted, entries, erasing, features, markers, pins, segments, session_markers, sessions
from .tree import path_reach

__all__ = ["Deleted", "delete_session", "older_than"]

_CHUNK = 500


@dataclass(frozen=True)
class Deleted:
    """What went, and what stayed for others."""

    session: str
    entries: int
    """Entries that are gone."""
    kept: int
    """Entries of the session that stay, because another session needs them."""


class _Need(NamedTuple):
    """How far into a segment another session reaches, and which one reaches farthest."""

    cut: int
    session: int


def older_than(connection: Connection, time_ms: int, tenant: str | None) -> list[Row[Any]]:
    """The sessions in which nothing was said since that time; where no entry has a time, in which nothing was stored."""
    newest = func.coalesce(sessions.c.last_ms, sessions.c.changed_ms)
    chosen = select(sessions).where(newest < time_ms).order_by(sessions.c.n)
    if tenant is not None:
        chosen = chosen.where(sessions.c.tenant == tenant)
    return list(connection.execute(chosen))


def delete_session(connection: Connection, session: Row[Any]) -> Deleted:
    """Delete a session, inside a write transaction."""
    own = list(connection.scalars(select(segments.c.n).where(segments.c.session == session.n)))
    needs = _needs(connection, session.n)
    gone: list[int] = []
    kept = 0
    for segment in own:
        keys = list(connection.scalars(select(entries.c.n).where(entries.c.segment == segment)))
        need = needs.get(segment)
        if need is not None:
            connection.execute(update(segments).where(segments.c.n == segment).values(session=need.session))
            kept += sum(1 for key in keys if key <= need.cut)
            keys = [key for key in keys if key > need.cut]
        gone += keys
    _erase(connection, sorted(gone))
    _delete_in(connection, segments, segments.c.n, [segment for segment in own if segment not in needs])
    for table in (adopted, pins, session_markers, attachments, checkpoints, operations, learned):
        connection.execute(delete(table).where(table.c.session == session.n))
    connection.execute(delete(markers).where(markers.c.n.not_in(select(session_markers.c.marker))))
    connection.execute(delete(sessions).where(sessions.c.n == session.n))
    return Deleted(session.id, len(gone), kept)


def _needs(connection: Connection, session: int) -> dict[int, _Need]:
    """What other sessions need of this one's segments.

    They reach into it by the entry that they were forked at, by entries that they adopted, and by segments of their own that branch off from
    it. An entry needs all that stand before it, so of each segment a beginning is needed.
    """
    home = segments.alias("home")
    mine = entries.join(home, home.c.n == entries.c.segment)
    bases = (
        select(sessions.c.n, sessions.c.base)
        .select_from(mine.join(sessions, sessions.c.base == entries.c.n))
        .where(home.c.session == session, sessions.c.n != session)
    )
    taken = (
        select(adopted.c.session, func.max(entries.c.n))
        .select_from(mine.join(adopted, adopted.c.entry == entries.c.n))
        .where(home.c.session == session, adopted.c.session != session)
        .group_by(adopted.c.session, entries.c.segment)
    )
    branches = (
        select(segments.c.session, segments.c.cut)
        .select_from(home.join(segments, segments.c.parent == home.c.n))
        .where(home.c.session == session, segments.c.session != session)
    )
    needs: dict[int, _Need] = {}
    for other, key in [row for query in (bases, taken, branches) for row in connection.execute(query)]:
        for segment, cut in path_reach(connection, key):
            if segment not in needs or cut > needs[segment].cut:
                needs[segment] = _Need(cut, other)
    return needs


def _erase(connection: Connection, keys: Sequence[int]) -> None:
    """Delete entries and what was derived from them."""
    whole = search_index.remove(connection, keys)
    _delete_in(connection, features, features.c.entry, keys)
    if keys:
        # The trigger lets only those go whose keys stand here.
        connection.execute(insert(erasing), [{"entry": key} for key in keys])
    _delete_in(connection, entries, entries.c.n, keys)
    connection.execute(delete(erasing))
    if whole:
        search_index.merge(connection)
    else:
        # A damaged entry could not be taken out of the index, since nobody knows what it said.
        search_index.rebuild(connection)


def _delete_in(connection: Connection, table: Table, column: Column[int], keys: Sequence[int]) -> None:
    for start in range(0, len(keys), _CHUNK):
        connection.execute(delete(table).where(column.in_(keys[start : start + _CHUNK])))
