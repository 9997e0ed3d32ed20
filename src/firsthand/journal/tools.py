"""The tool behind a result: results carry the call's id, and clients use one id again in a later turn (failure kind SE-09)."""

from __future__ import annotations

from sqlalchemy import Connection

from ..codec import wire_safe
from .tree import path_reach

__all__ = ["tool_of_result"]

_LOOKED_AT = 100
_CALLS = (
    "SELECT calls.entry, calls.tool, entries.segment FROM calls JOIN entries ON entries.n = calls.entry "
    "WHERE calls.call_id = ? AND calls.entry <= ? ORDER BY calls.entry DESC, calls.block DESC LIMIT ?"
)


def tool_of_result(connection: Connection, call_id: str | None, key: int, segment: int) -> str | None:
    """The name of the tool that was called by `call_id` most recently on the path to the entry with this key, in this segment."""
    if not call_id:
        return None
    found = connection.exec_driver_sql(_CALLS, (wire_safe(call_id), key, _LOOKED_AT)).all()
    if not found or found[0].segment == segment:
        return str(found[0].tool) if found else None
    on_path = {reach.segment: reach.cut for reach in path_reach(connection, key)}
    return next((tool for entry, tool, place in found if entry <= on_path.get(place, -1)), None)
