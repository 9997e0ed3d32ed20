"""Calls brought into a provider's shape: ids and names that it accepts, arguments that are valid JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from hashlib import blake2b
from typing import Any

import msgspec

from ...codec import compact_json
from ...transcript import Entry, ToolCall, ToolResult

__all__ = ["TOOL_NAME", "accepted_name", "argument_object", "argument_text", "wire_ids"]

TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""Tool names that all providers accept."""

_UNSAFE = re.compile(r"[^a-zA-Z0-9_-]")
_UNPARSED = "unparsed_arguments"
"""The key under which arguments that are no JSON object are sent whole (GW-04)."""


def argument_object(call: ToolCall) -> dict[str, Any]:
    """The arguments as a JSON object.

    Free text of a custom tool becomes `{"input": text}`. Text that is no JSON object (broken off, another JSON value) is sent whole under one
    key, so that nothing of it is lost or guessed at; the stored text stays as it is.
    """
    if call.kind == "custom":
        return {"input": call.arguments}
    if not call.arguments.strip():
        return {}
    value = _parsed(call.arguments)
    return value if isinstance(value, dict) else {_UNPARSED: call.arguments}


def argument_text(call: ToolCall, *, any_json: bool = False) -> str:
    """The arguments as JSON text: as they are when they are an object (with `any_json`, any JSON value), else as `argument_object` has them."""
    if call.kind != "custom" and call.arguments.strip():
        value = _parsed(call.arguments)
        if isinstance(value, dict) or (any_json and value is not _BROKEN):
            return call.arguments
    return compact_json(argument_object(call))


_BROKEN = object()


def _parsed(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (ValueError, RecursionError):
        # Escaped lone surrogates are JSON for the standard library only; NaN and infinities are none, though it reads them.
        try:
            value = json.loads(text)
            json.dumps(value, allow_nan=False)
        except (ValueError, RecursionError):
            return _BROKEN
        return value


def accepted_name(name: str) -> str:
    """`name`, or the nearest that every provider accepts."""
    return name if TOOL_NAME.fullmatch(name) else (_UNSAFE.sub("_", name)[:64] or "unnamed_tool")


def wire_ids(entries: Iterable[Entry], accepts: Callable[[Entry, str], bool], limit: int) -> dict[str, str]:
    """For each call id of the entries the id that is sent.

    An id that is accepted stays. Any other becomes its safe characters and a hash of the whole, at most `limit` characters: the same in every
    request, and different for different ids.

    Args:
        entries: what is sent, results included.
        accepts: whether the wire takes this id of this entry as it is.
        limit: longest id of our making.
    """
    ids: dict[str, str] = {}
    for entry in entries:
        for block in entry.blocks:
            if isinstance(block, ToolCall):
                call_id = block.id
            elif isinstance(block, ToolResult):
                call_id = block.call_id
            else:
                continue
            if call_id not in ids:
                ids[call_id] = call_id if accepts(entry, call_id) else _safe_id(call_id, limit)
    return ids


def _safe_id(call_id: str, limit: int) -> str:
    mark = blake2b(call_id.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
    return f"{_UNSAFE.sub('_', call_id)[: limit - len(mark) - 1]}_{mark}"
