"""Items of the Responses API to entries, one for each item."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ....codec import compact_json
from ....errors import FormatError
from ....transcript import Block, Entry, Extra, Reasoning, Role, Source, Text, ToolCall, ToolResult, Unknown, chained
from ...files.base import entry_id
from ..origin import origin_in_responses
from ..shape import difference
from .items import NAME, own_call, own_message, own_output, own_reasoning
from .parts import read_parts

__all__ = ["read_items"]

_PAYLOADS = ("action", "actions", "operation", "arguments", "input")
"""Where calls of the provider's own tools, run by the client, keep what they ask for."""


def read_items(items: Sequence[dict[str, Any]], session: str) -> tuple[Entry, ...]:
    """The items as a path of entries.

    Raises:
        FormatError: an item is not of this wire's shape; names its index.
    """
    return chained(_entry(raw, index, session) for index, raw in enumerate(items))


def _entry(raw: dict[str, Any], index: int, session: str) -> Entry:
    where = f"item {index}"
    kind = raw.get("type", "message" if "role" in raw else None)
    if not isinstance(kind, str):
        raise FormatError(f"{where} has neither a type nor a role")
    native = raw.get("id")
    entry = Entry(
        id=entry_id(session, index),
        role="assistant",
        status="incomplete" if raw.get("status") == "incomplete" else "complete",
        wire=NAME,
        source=Source(NAME, index, native if isinstance(native, str) else None),
    )
    if kind == "message":
        return _message(entry, raw, where)
    role, block = _block(raw, kind, where)
    extra = {"~item": True} if isinstance(block, Unknown) else None
    return msgspec.structs.replace(entry, role=role, blocks=(block,), extra=extra)


def _message(entry: Entry, raw: dict[str, Any], where: str) -> Entry:
    role = raw.get("role")
    if role not in ("user", "assistant", "system", "developer"):
        raise FormatError(f"{where} is a message of the role {role!r}; the Responses API knows no such role")
    content = raw.get("content")
    hints: Extra = {}
    if isinstance(content, str):
        blocks: tuple[Block, ...] = (Text(content),)
        hints["~content"] = "string"
    elif isinstance(content, list):
        blocks = read_parts(content, role, where)
    else:
        raise FormatError(f"{where}: the content must be a string or a list of parts")
    if role == "user":
        blocks = tuple(
            msgspec.structs.replace(block, origin=origin_in_responses(block.text)) if isinstance(block, Text) else block
            for block in blocks
        )
    entry = msgspec.structs.replace(entry, role=role, blocks=blocks, extra=hints or None)
    return msgspec.structs.replace(entry, extra=difference(raw, own_message(entry, exact=True), where, hints))


def _block(raw: dict[str, Any], kind: str, where: str) -> tuple[Role, Block]:
    call_id = raw.get("call_id")
    if kind == "local_shell_call_output" and call_id is None:
        # The one output that names its call in another field.
        call_id = raw.get("id")
    try:
        if kind == "reasoning":
            return "assistant", _reasoning(raw, where)
        if isinstance(call_id, str) and call_id:
            if kind.endswith("_call_output"):
                return "tool", _output(raw, kind, call_id, where)
            if kind.endswith("_call"):
                return "assistant", _call(raw, kind, call_id, where)
    except FormatError:
        if kind in ("function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output"):
            raise
        return "assistant", Unknown(raw)
    if kind in ("function_call", "custom_tool_call", "function_call_output", "custom_tool_call_output"):
        raise FormatError(f"{where} is a {kind} without a call_id")
    # What only asks the server for something is neither the model's nor a tool's.
    return ("developer" if kind == "compaction_trigger" else "assistant"), Unknown(raw)


def _reasoning(raw: dict[str, Any], where: str) -> Reasoning:
    texts: list[str] = []
    parts: list[tuple[str, int]] = []
    for field, kind in (("summary", "summary_text"), ("content", "reasoning_text")):
        given = raw.get(field)
        if given is not None and not isinstance(given, list):
            raise FormatError(f"{where}: its {field} is no list")
        for part in given or ():
            match part:
                case {"type": found, "text": str() as text, **rest} if found == kind and not rest:
                    texts.append(text)
                    parts.append((field, len(text)))
                case _:
                    raise FormatError(f"{where}: a part of its {field} is of an unknown shape")
    opaque = {name: raw[name] for name in ("id", "encrypted_content") if raw.get(name)}
    # One summary text is the rule; anything else is remembered by lengths, so that the text can be taken apart again.
    hints: Extra = (
        {}
        if parts in ([], [("summary", len(texts[0]) if texts else 0)])
        else {"~parts": [list(part) for part in parts]}
    )
    block = Reasoning("\n\n".join(texts), opaque or None, hints or None)
    return msgspec.structs.replace(block, extra=difference(raw, own_reasoning(block), where, hints))


def _call(raw: dict[str, Any], kind: str, call_id: str, where: str) -> ToolCall:
    name = raw.get("name")
    hints: Extra = {}
    if kind == "function_call":
        given, our_kind = raw.get("arguments"), "function"
    elif kind == "custom_tool_call":
        given, our_kind = raw.get("input"), "custom"
    else:
        field = next((field for field in _PAYLOADS if raw.get(field) is not None), None)
        given, our_kind = (raw[field], kind) if field else (None, kind)
        hints["~payload"] = field
        if not isinstance(name, str):
            name = kind.removesuffix("_call")
            hints["~name"] = False
    if not isinstance(name, str):
        raise FormatError(f"{where} is a {kind} without a name")
    if given is not None and not isinstance(given, str):
        hints["~arguments"] = "object"
        given = compact_json(given)
    call = ToolCall(call_id, name, given or "", our_kind, hints or None)
    return msgspec.structs.replace(call, extra=difference(raw, own_call(call), where, hints))


def _output(raw: dict[str, Any], kind: str, call_id: str, where: str) -> ToolResult:
    output = raw.get("output")
    hints: Extra = {} if kind == "function_call_output" else {"~type": kind}
    content: tuple[Any, ...]
    if output is None:
        content = ()
    elif isinstance(output, str):
        content = (Text(output),)
    elif isinstance(output, list) and all(
        isinstance(part, dict) and str(part.get("type")) in _OUTPUT_PARTS for part in output
    ):
        content = read_parts(output, "tool", where)
        hints["~output"] = "list"
    else:
        content = (Unknown(output),)
        hints["~output"] = "raw"
    result = ToolResult(call_id, content, extra=hints or None)
    return msgspec.structs.replace(result, extra=difference(raw, own_output(result, exact=True), where, hints))


_OUTPUT_PARTS = frozenset(
    {"input_text", "input_image", "input_file", "input_audio", "output_text", "text", "encrypted_content"}
)
