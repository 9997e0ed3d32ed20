"""Whose entry a found one is, and how long ago it was said."""

from __future__ import annotations

from typing import Any, NamedTuple

from sqlalchemy import Connection, Row

from .tree import path_reach

__all__ = ["Owner", "Owners"]


_OWNER = (
    "SELECT sessions.n, sessions.id, sessions.tenant, sessions.leaf, entries.depth "
    "FROM sessions LEFT JOIN entries ON entries.n = sessions.leaf "
)
_SEGMENT = _OWNER + "WHERE sessions.n = (SELECT session FROM segments WHERE n = ?)"
_SESSION = _OWNER + "WHERE sessions.n = ?"


class Owner(NamedTuple):
    """A session as a match names it."""

    id: str
    tenant: str
    length: int
    """Entries on its active path."""
    reach: dict[int, int]
    """Its active path: the newest key of each segment."""

    def age(self, segment: int, key: int, depth: int) -> int | None:
        """Entries on the active path behind this one; None off that path."""
        return self.length - 1 - depth if key <= self.reach.get(segment, -1) else None


class Owners:
    """Looks up the session of a segment, each one once.

    Args:
        connection: reads one moment of the journal.
        only: the session that was asked for, which then owns everything found, what it shares with others included.
    """

    def __init__(self, connection: Connection, only: Row[Any] | None) -> None:
        self._connection = connection
        self._by_segment: dict[int, Owner] = {}
        self._by_session: dict[int, Owner] = {}
        self._only = None if only is None else self._owner(_SESSION, only.n)

    def of(self, segment: int) -> Owner:
        """The session that owns the entries of a segment."""
        if self._only is not None:
            return self._only
        if segment not in self._by_segment:
            self._by_segment[segment] = self._owner(_SEGMENT, segment)
        return self._by_segment[segment]

    def _owner(self, chosen: str, key: int) -> Owner:
        session, name, tenant, leaf, depth = self._connection.exec_driver_sql(chosen, (key,)).one()
        if session not in self._by_session:
            reach = dict(path_reach(self._connection, leaf))
            self._by_session[session] = Owner(name, tenant, 0 if depth is None else depth + 1, reach)
        return self._by_session[session]
