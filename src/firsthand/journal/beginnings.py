"""The whole id behind its first characters, as excerpts and ledgers print it."""

from __future__ import annotations

from sqlalchemy import Connection, select

from ..codec import wire_safe
from ..errors import AmbiguousEntryError, EntryNotFoundError
from .append import PLACED, Placed
from .schema import entries
from .sessions import session_row
from .tree import path_reach, scope_of

__all__ = ["LEAST_BEGINNING", "full_id"]

LEAST_BEGINNING = 6
"""Characters of an id that are looked up as a beginning; with fewer, every journal has several."""
_BEHIND_ALL = "\U0010ffff"


def full_id(connection: Connection, beginning: str, session_id: str | None = None) -> str:
    """The id that `beginning` is, or is the only beginning of.

    In a session, an entry of its active path goes before others, since that is what a projection names: older versions of an entry have ids
    that begin like its own.

    Args:
        connection: to the journal.
        beginning: an id, or its first characters.
        session_id: only entries of this session.

    Raises:
        SessionNotFoundError: there is no such session.
        EntryNotFoundError: no id starts with it, or it is shorter than six characters and no id itself.
        AmbiguousEntryError: several do; names them.
    """
    wanted = wire_safe(beginning)
    exact = connection.scalar(select(entries.c.id).where(entries.c.id == wanted))
    if exact is not None:
        return beginning
    if len(beginning) < LEAST_BEGINNING:
        raise EntryNotFoundError(
            f"there is no entry {beginning!r}; give the whole id, or its first {LEAST_BEGINNING} characters and more"
        )
    rows = connection.execute(select(*PLACED).where(entries.c.id >= wanted, entries.c.id < wanted + _BEHIND_ALL))
    found = [Placed._make(row) for row in rows]
    if session_id is not None:
        session = session_row(connection, session_id)
        scope = scope_of(connection, session.n, session.base)
        found = [place for place in found if scope.holds(place.segment, place.n)]
        reaches = path_reach(connection, session.leaf) if len(found) > 1 else ()
        on_path = [
            place
            for place in found
            if any(reach.segment == place.segment and place.n <= reach.cut for reach in reaches)
        ]
        found = on_path or found
    if not found:
        where = "the journal" if session_id is None else f"session {session_id!r}"
        raise EntryNotFoundError(f"{where} has no entry whose id is or starts with {beginning!r}")
    if len(found) > 1:
        raise AmbiguousEntryError(beginning, [place.id for place in found], in_session=session_id is not None)
    return found[0].id
