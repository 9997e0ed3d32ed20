"""Reading sessions back: entries of a path, views, whole transcripts, exports. Each function works inside one read transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import Connection, Row, select

from ..errors import EntryNotFoundError
from ..transcript import Entry, Transcript, View
from .append import Placed, placed
from .markers import markers_of
from .rows import entry_from
from .schema import entries, pins, segments, sessions
from .sessions import meta_of, session_row
from .tree import entries_at, keys_in, keys_of, path_keys, path_reach, scope_of

__all__ = [
    "ExportParts",
    "around",
    "entry",
    "export_parts",
    "path_of",
    "place_in",
    "placed_anywhere",
    "transcript",
    "view",
]


def placed_anywhere(connection: Connection, entry_id: str) -> Placed:
    """Where an entry is stored, whatever its session.

    Raises:
        EntryNotFoundError: the journal has none of that id.
    """
    place = placed(connection, entry_id)
    if place is None:
        raise EntryNotFoundError(f"the journal has no entry {entry_id!r}")
    return place


def place_in(connection: Connection, session_id: str, entry_id: str) -> tuple[Row[Any], Placed]:
    """A session's row, and where its entry of that id is stored.

    Raises:
        SessionNotFoundError: there is no such session.
        EntryNotFoundError: it has no such entry.
    """
    session = session_row(connection, session_id)
    place = placed(connection, entry_id)
    if place is None or not scope_of(connection, session.n, session.base).holds(place.segment, place.n):
        raise EntryNotFoundError(f"session {session_id!r} has no entry {entry_id!r}")
    return session, place


def session_of(connection: Connection, entry_id: str) -> str:
    """Id of the session that an entry was appended to.

    Raises:
        EntryNotFoundError: the journal has none of that id.
    """
    place = placed_anywhere(connection, entry_id)
    owner = (
        select(sessions.c.id).join(segments, segments.c.session == sessions.c.n).where(segments.c.n == place.segment)
    )
    return str(connection.scalar(owner))


def path_of(
    connection: Connection, session_id: str, *, upto: str | None = None, after: str | None = None
) -> tuple[Row[Any], list[int]]:
    """A session's row, and the keys of its path to `upto` (its leaf when None), those up to `after` left out.

    Raises:
        SessionNotFoundError: there is no such session.
        EntryNotFoundError: it has no entry `upto`, or none `after` on that path.
    """
    session = session_row(connection, session_id)
    leaf = session.leaf if upto is None else place_in(connection, session_id, upto)[1].n
    if after is None:
        return session, path_keys(connection, leaf)
    place = place_in(connection, session_id, after)[1]
    reaches = path_reach(connection, leaf)
    if not any(reach.segment == place.segment and place.n <= reach.cut for reach in reaches):
        raise EntryNotFoundError(f"entry {after!r} does not lie on that path of session {session_id!r}")
    return session, keys_in(connection, reaches, place.n)


def entry(connection: Connection, entry_id: str) -> Entry:
    """One entry, checked against its hash.

    Raises:
        EntryNotFoundError: the journal has none of that id.
        JournalDamagedError: its bytes do not match their hash.
    """
    place = placed_anywhere(connection, entry_id)
    payload = connection.scalar(select(entries.c.payload).where(entries.c.n == place.n))
    return entry_from(entry_id, payload or b"", place.content_hash)


def view(connection: Connection, session_id: str, upto: str | None) -> tuple[View, list[int]]:
    """The active path with pins and markers, and the keys of its entries; without features."""
    session, keys = path_of(connection, session_id, upto=upto)
    on_path = frozenset(keys)
    found = View(
        entries=tuple(entries_at(connection, keys)),
        pins=frozenset(entry_id for key, entry_id in _pins(connection, session) if key in on_path),
        markers=tuple(
            marker for after, marker in markers_of(connection, session.n) if after is None or after in on_path
        ),
    )
    return found, keys


def around(connection: Connection, session_id: str, entry_id: str, context: int) -> tuple[Entry, ...]:
    """An entry and its neighbours, on the active path or else on the path that ends at it."""
    _, place = place_in(connection, session_id, entry_id)
    _, keys = path_of(connection, session_id)
    if place.n not in keys:
        keys = path_keys(connection, place.n)
    at = keys.index(place.n)
    return tuple(entries_at(connection, keys[max(0, at - context) : at + context + 1]))


def transcript(connection: Connection, session_id: str) -> Transcript:
    """The whole session, entries off its active path included, in order of arrival."""
    session = session_row(connection, session_id)
    keys = keys_of(connection, scope_of(connection, session.n, session.base))
    return msgspec.structs.replace(_head(connection, session), entries=tuple(entries_at(connection, keys)))


class ExportParts(NamedTuple):
    """What an export writes beside the entries, and the keys of those."""

    head: Transcript
    keys: list[int]
    pins: list[str]
    revisions: dict[str, str]


def export_parts(connection: Connection, session_id: str) -> ExportParts:
    """What the export of a session is made of."""
    session = session_row(connection, session_id)
    keys = keys_of(connection, scope_of(connection, session.n, session.base))
    pinned = [entry_id for _, entry_id in _pins(connection, session)]
    return ExportParts(_head(connection, session), keys, pinned, _revisions(connection, keys))


def _head(connection: Connection, session: Row[Any]) -> Transcript:
    """A session as a transcript without its entries."""
    leaf = connection.scalar(select(entries.c.id).where(entries.c.n == session.leaf))
    meta = meta_of(session)
    known = {name: getattr(meta, name) for name in meta.__struct_fields__}
    marked = tuple(marker for _, marker in markers_of(connection, session.n))
    return Transcript(id=session.id, format=session.format, entries=(), leaf=leaf, markers=marked, **known)


def _pins(connection: Connection, session: Row[Any]) -> list[tuple[int, str]]:
    chosen = (
        select(entries.c.n, entries.c.id)
        .join(pins, pins.c.entry == entries.c.n)
        .where(pins.c.session == session.n)
        .order_by(entries.c.n)
    )
    return [(key, entry_id) for key, entry_id in connection.execute(chosen)]


def _revisions(connection: Connection, keys: Sequence[int]) -> dict[str, str]:
    chosen = select(entries.c.n, entries.c.id, entries.c.revises).where(entries.c.revises.is_not(None))
    ours = frozenset(keys)
    return {entry_id: revises for key, entry_id, revises in connection.execute(chosen) if key in ours}
