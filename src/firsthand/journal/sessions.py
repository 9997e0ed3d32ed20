"""The rows of sessions: what is known about each, its counters, and finding one by its id."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from sqlalchemy import Connection, Row, Select, func, insert, select, update

from ..codec import decode_as, encode, wire_safe
from ..errors import SessionExistsError, SessionNotFoundError
from ..transcript import Damage, Extra
from .rows import check_id, packed, unpacked
from .schema import entries, session_markers, sessions

__all__ = [
    "LOCAL_TENANT",
    "Meta",
    "SessionInfo",
    "add_session",
    "describe",
    "infos",
    "meta_of",
    "session_row",
    "set_meta",
]

LOCAL_TENANT = "local"
"""The tenant of whoever works on this machine (design.md 9)."""

_LISTED = 8
_LARGEST = 2**53


class Meta(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What is known about a session beside its entries; the fields of `Transcript` of the same names."""

    title: str | None = None
    cwd: str | None = None
    model: str | None = None
    client: str | None = None
    time: str | None = None
    window: int | None = None
    system: str | None = None
    tools: tuple[Any, ...] | None = None
    parent_session: str | None = None
    forked_from: str | None = None
    damaged: tuple[Damage, ...] = ()
    warnings: tuple[str, ...] = ()
    extra: Extra | None = None


@dataclass(frozen=True)
class SessionInfo:
    """One session in a list. Counts are of its newest versions of entries, also those off the active path."""

    id: str
    format: str
    tenant: str
    title: str | None
    cwd: str | None
    model: str | None
    client: str | None
    window: int | None
    parent_session: str | None
    forked_from: str | None
    leaf: str | None
    """Id of the newest entry of the active path."""
    entries: int
    path_entries: int
    """Entries on the active path."""
    revised: int
    """Older versions of entries that are stored beside the newest."""
    user_texts: int
    assistant_texts: int
    tool_calls: int
    tool_results: int
    markers: int
    damaged: int
    """Parts of the imported file that could not be read."""
    warnings: int
    first_ms: int | None
    """Time of the oldest entry that has one, in milliseconds since 1970."""
    last_ms: int | None
    created_ms: int
    """When the journal took the session in."""
    changed_ms: int
    """When the journal last stored something for it."""


def now_ms() -> int:
    """The clock, in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def session_row(connection: Connection, session_id: str) -> Row[Any]:
    """The row of the session with exactly this id.

    Raises:
        SessionNotFoundError: there is none; lists the ids that start with it.
    """
    row = connection.execute(select(sessions).where(sessions.c.id == wire_safe(session_id))).one_or_none()
    if row is None:
        raise _not_found(session_id, _starting_with(connection, session_id))
    return row


def resolved_id(connection: Connection, session_id: str) -> str:
    """The full id of the session that `session_id` is, or is the only beginning of.

    Forks that were named after their session (`ID.f1`) do not make its beginning ambiguous.

    Raises:
        SessionNotFoundError: no session's id starts with it, or several do; lists them.
    """
    exact = connection.scalar(select(sessions.c.id).where(sessions.c.id == wire_safe(session_id)))
    if exact is not None:
        return str(exact)
    found = _starting_with(connection, session_id)
    own_forks = len(found) <= _LISTED and all(other.startswith(f"{found[0]}.f") for other in found[1:])
    if not found or not own_forks:
        raise _not_found(session_id, found)
    return found[0]


def _starting_with(connection: Connection, start: str) -> list[str]:
    if not start:
        return []
    start = wire_safe(start)
    chosen = (
        select(sessions.c.id)
        .where(func.substr(sessions.c.id, 1, len(start)) == start)
        .order_by(sessions.c.id)
        .limit(_LISTED + 1)
    )
    return [str(found) for found in connection.scalars(chosen)]


def _not_found(session_id: str, candidates: list[str]) -> SessionNotFoundError:
    if not candidates:
        return SessionNotFoundError(
            f"the journal has no session {session_id!r}; `firsthand sessions` lists those it has"
        )
    listed = ", ".join(candidates[:_LISTED]) + (", ..." if len(candidates) > _LISTED else "")
    return SessionNotFoundError(f"the journal has no session {session_id!r}; ids that start with it: {listed}")


def add_session(
    connection: Connection, session_id: str, *, format_name: str, tenant: str, meta: Meta, base: int | None = None
) -> Row[Any]:
    """Insert an empty session, or one that starts as the path to the entry with key `base`.

    Raises:
        SessionExistsError: the id is taken.
        JournalError: it is no valid id.
    """
    check_id("session", session_id)
    if connection.scalar(select(sessions.c.n).where(sessions.c.id == session_id)) is not None:
        raise SessionExistsError(
            f"the journal has a session {session_id!r} already; append to it, or choose another id"
        )
    now = now_ms()
    counters = dict.fromkeys(
        ("next_sequence", "entries", "revised", "user_texts", "assistant_texts", "tool_calls", "tool_results"), 0
    )
    row: dict[str, Any] = {
        "id": session_id, "tenant": wire_safe(tenant), "format": wire_safe(format_name), "base": base, "leaf": base,
        "created_ms": now, "changed_ms": now, **counters, **_columns(meta),
    }  # fmt: skip
    connection.execute(insert(sessions).values(row))
    return session_row(connection, session_id)


def set_meta(connection: Connection, session: int, meta: Meta) -> None:
    """Replace what is known about the session with key `session`."""
    connection.execute(update(sessions).where(sessions.c.n == session).values(_columns(meta)))


def meta_of(row: Row[Any]) -> Meta:
    """What is known about a session."""
    return decode_as(unpacked(row.meta), Meta)


def _columns(meta: Meta) -> dict[str, Any]:
    names = ("title", "cwd", "model", "client", "parent_session", "forked_from")
    texts = {name: None if (value := getattr(meta, name)) is None else wire_safe(value) for name in names}
    window = meta.window if meta.window is not None and 0 <= meta.window <= _LARGEST else None
    return {
        **texts, "window": window, "damaged": len(meta.damaged), "warnings": len(meta.warnings), "meta": packed(encode(meta)),
    }  # fmt: skip


_LEAVES = entries.alias("leaves")
_INFO = tuple(
    column
    for column in sessions.c
    if column.name not in ("n", "base", "leaf", "imported_leaf", "next_sequence", "meta")
)


def _infos() -> Select[Any]:
    marked = select(func.count()).where(session_markers.c.session == sessions.c.n).scalar_subquery()
    path_entries = func.coalesce(_LEAVES.c.depth + 1, 0)
    return select(
        *_INFO, _LEAVES.c.id.label("leaf"), path_entries.label("path_entries"), marked.label("markers")
    ).select_from(sessions.outerjoin(_LEAVES, _LEAVES.c.n == sessions.c.leaf))


def infos(connection: Connection, wanted: Mapping[str, Any] | None = None) -> list[SessionInfo]:
    """The sessions whose columns have the wanted values, the one that changed last first."""
    chosen = _infos().order_by(sessions.c.changed_ms.desc(), sessions.c.n.desc())
    for name, value in (wanted or {}).items():
        chosen = chosen.where(sessions.c[name] == (wire_safe(value) if isinstance(value, str) else value))
    return [SessionInfo(**row._mapping) for row in connection.execute(chosen)]


def describe(connection: Connection, session_id: str) -> SessionInfo:
    """One session by its exact id.

    Raises:
        SessionNotFoundError: there is none.
    """
    row = session_row(connection, session_id)
    return infos(connection, {"id": row.id})[0]
