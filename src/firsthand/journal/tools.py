"""The tool behind a result: results carry the call's id, and clients use one id again in a later turn (failure kind SE-09)."""

from __future__ import annotations

from sqlalchemy import Connection, select

from ..codec import wire_safe
from .schema import calls, entries
from .tree import path_reach

__all__ = ["tool_of_result"]

_LOOKED_AT = 100


def tool_of_result(connection: Connection, call_id: str | None, key: int) -> str | None:
    """The name of the tool that was called by `call_id` most recently on the path to the entry with key `key`."""
    if not call_id:
        return None
    chosen = (
        select(calls.c.entry, calls.c.tool, entries.c.segment)
        .join(entries, entries.c.n == calls.c.entry)
        .where(calls.c.call_id == wire_safe(call_id), calls.c.entry <= key)
        .order_by(calls.c.entry.desc(), calls.c.block.desc())
        .limit(_LOOKED_AT)
    )
    found = connection.execute(chosen).all()
    if not found:
        return None
    on_path = {reach.segment: reach.cut for reach in path_reach(connection, key)}
    return next((tool for entry, tool, segment in found if entry <= on_path.get(segment, -1)), None)
