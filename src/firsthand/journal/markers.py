"""Recorded markers: the compactions that a client made by itself. A fork shares the rows of those it inherits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec
from sqlalchemy import Connection, func, insert, select

from ..codec import wire_safe
from ..transcript import Entry, Marker
from .rows import content_hash, encoded, marker_from, packed
from .schema import markers, session_markers

__all__ = ["UNKNOWN", "add_markers", "markers_of"]

UNKNOWN = 0
"""In `markers.after`: the marker stands after an entry that the session does not have. No entry has this key."""


def add_markers(
    connection: Connection, session: int, found: Iterable[Marker], keys: Mapping[str, int], names: Mapping[str, str]
) -> int:
    """Store the markers that are new or changed; the newest of one id counts.

    Args:
        connection: holds the write lock.
        session: the session's key.
        found: the markers of a transcript, with the ids that its file uses.
        keys: the keys of the session's entries, by those ids.
        names: their stored ids, where another version of an entry holds the id of the file.

    Returns:
        How many were stored.
    """
    newest = dict(_hashes(connection, session))
    following = (connection.scalar(select(func.max(markers.c.n))) or 0) + 1
    rows: list[dict[str, object]] = []
    for original in found:
        marker = _renamed(original, names)
        payload = encoded(marker)
        digest = content_hash(payload)
        name = wire_safe(marker.id)
        if newest.get(name) == digest:
            continue
        newest[name] = digest
        after = None if original.after is None else keys.get(original.after, UNKNOWN)
        rows.append(
            {"n": following + len(rows), "id": name, "after": after, "content_hash": digest, "payload": packed(payload)}
        )
    if rows:
        connection.execute(insert(markers), rows)
        connection.execute(insert(session_markers), [{"session": session, "marker": row["n"]} for row in rows])
    return len(rows)


def markers_of(connection: Connection, session: int) -> list[tuple[int | None, Marker]]:
    """The session's markers, the newest of each id, in order of first arrival; each with the key of the entry that it stands after.

    Raises:
        JournalDamagedError: a payload does not match its hash; names the marker.
    """
    chosen = (
        select(markers.c.id, markers.c.after, markers.c.payload, markers.c.content_hash)
        .join(session_markers, session_markers.c.marker == markers.c.n)
        .where(session_markers.c.session == session)
        .order_by(markers.c.n)
    )
    newest: dict[str, tuple[int | None, bytes, bytes]] = {}
    for marker_id, after, payload, digest in connection.execute(chosen):
        newest[marker_id] = after, payload, digest
    return [(after, marker_from(name, payload, digest)) for name, (after, payload, digest) in newest.items()]


def _hashes(connection: Connection, session: int) -> list[tuple[str, bytes]]:
    chosen = (
        select(markers.c.id, markers.c.content_hash)
        .join(session_markers, session_markers.c.marker == markers.c.n)
        .where(session_markers.c.session == session)
        .order_by(markers.c.n)
    )
    return [(marker_id, digest) for marker_id, digest in connection.execute(chosen)]


def _renamed(marker: Marker, names: Mapping[str, str]) -> Marker:
    if not names:
        return marker
    shown: tuple[str | Entry, ...] = tuple(
        names.get(item, item) if isinstance(item, str) else item for item in marker.shown
    )
    after = None if marker.after is None else names.get(marker.after, marker.after)
    return msgspec.structs.replace(marker, after=after, shown=shown)
