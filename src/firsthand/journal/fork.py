"""Forks: a new session that starts as the path to an entry of another one. Costs one row, however long the path is.

A fork shares the entries before its point and inherits the markers and pins whose position lies there; what the other session stores later
never reaches it (futureos.md 6.6, failure kind JR-07).
"""

from __future__ import annotations

from itertools import count
from typing import Any

import msgspec
from sqlalchemy import Connection, Row, func, insert, select, update

from ..errors import EntryNotFoundError
from .append import Placed, placed
from .schema import entries, markers, pins, session_markers, sessions
from .sessions import add_session, meta_of
from .tree import path_reach, scope_of

__all__ = ["fork"]


def fork(connection: Connection, session: Row[Any], at: str | None, new_id: str | None) -> str:
    """Make a session that ends at the entry `at` (the leaf when None) of `session`; returns its id.

    Raises:
        EntryNotFoundError: the session has no entry `at`.
        SessionExistsError: `new_id` is taken.
    """
    point = _point(connection, session, at)
    meta = msgspec.structs.replace(meta_of(session), forked_from=session.id, damaged=(), warnings=())
    base = None if point is None else point.n
    child = add_session(
        connection,
        new_id if new_id is not None else _free_id(connection, session.id),
        format_name=session.format,
        tenant=session.tenant,
        meta=meta,
        base=base,
    )
    if point is None:
        return str(child.id)
    reaches = path_reach(connection, base)
    on_path = {reach.segment: reach.cut for reach in reaches}
    _inherit(connection, session.n, child.n, on_path)
    connection.execute(update(sessions).where(sessions.c.n == child.n).values(_counters(connection, on_path)))
    return str(child.id)


def _point(connection: Connection, session: Row[Any], at: str | None) -> Placed | None:
    if at is None:
        if session.leaf is None:
            return None
        at = connection.scalar(select(entries.c.id).where(entries.c.n == session.leaf)) or ""
    point = placed(connection, at)
    if point is None or not scope_of(connection, session.n, session.base).holds(point.segment, point.n):
        raise EntryNotFoundError(f"session {session.id!r} has no entry {at!r} to fork at")
    return point


def _free_id(connection: Connection, session_id: str) -> str:
    names = (f"{session_id}.f{number}" for number in count(1))
    return next(name for name in names if connection.scalar(select(sessions.c.n).where(sessions.c.id == name)) is None)


def _inherit(connection: Connection, parent: int, child: int, on_path: dict[int, int]) -> None:
    """Link the markers and pins whose entry lies on the path."""
    place = (entries.c.segment, entries.c.n)
    marked = (
        select(session_markers.c.marker, markers.c.after, *place)
        .join(markers, markers.c.n == session_markers.c.marker)
        .outerjoin(entries, entries.c.n == markers.c.after)
        .where(session_markers.c.session == parent)
    )
    links = [
        {"session": child, "marker": marker}
        for marker, after, segment, key in connection.execute(marked)
        if after is None or (key is not None and key <= on_path.get(segment, -1))
    ]
    if links:
        connection.execute(insert(session_markers), links)
    pinned = select(*place).join(pins, pins.c.entry == entries.c.n).where(pins.c.session == parent)
    kept = [
        {"session": child, "entry": key}
        for segment, key in connection.execute(pinned)
        if key <= on_path.get(segment, -1)
    ]
    if kept:
        connection.execute(insert(pins), kept)


def _counters(connection: Connection, on_path: dict[int, int]) -> dict[str, Any]:
    """The counters of a session that consists of this path only."""
    total: dict[str, Any] = dict.fromkeys(("entries", "user_texts", "assistant_texts", "tool_calls", "tool_results"), 0)
    newest, times = -1, []
    for segment, cut in on_path.items():
        chosen = (
            select(
                entries.c.role,
                func.count(),
                func.sum(entries.c.texts),
                func.sum(entries.c.calls),
                func.sum(entries.c.results),
                func.max(entries.c.sequence),
                func.min(entries.c.time_ms),
                func.max(entries.c.time_ms),
            )
            .where(entries.c.segment == segment, entries.c.n <= cut)
            .group_by(entries.c.role)
        )
        for role, rows, texts, calls, results, sequence, first, last in connection.execute(chosen):
            total["entries"] += rows
            if role in ("user", "assistant"):
                total[f"{role}_texts"] += texts
            total["tool_calls"] += calls
            total["tool_results"] += results
            newest = max(newest, sequence)
            times += [time for time in (first, last) if time is not None]
    return {
        **total, "next_sequence": newest + 1, "first_ms": min(times, default=None), "last_ms": max(times, default=None),
    }  # fmt: skip
