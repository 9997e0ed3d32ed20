"""Anthropic messages to entries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ....codec import compact_json
from ....errors import FormatError
from ....transcript import (
    Block,
    Entry,
    Extra,
    Media,
    Reasoning,
    Role,
    Source,
    Text,
    ToolCall,
    ToolResult,
    Unknown,
    chained,
)
from ...files.base import entry_id
from ..calls import argument_object
from ..origin import origin_in_messages
from ..shape import difference
from .blocks import NAME, own_block, own_message

__all__ = ["read_messages"]

_SERVER_CALLS = ("server_tool_use", "mcp_tool_use")


def read_messages(messages: Sequence[dict[str, Any]], system: Any, session: str) -> tuple[Entry, ...]:
    """The system prompt and the messages as a path of entries.

    Raises:
        FormatError: something is not of this wire's shape; names its index.
    """
    entries: list[Entry] = []
    if system is not None:
        blocks, hints = _content(system, "the system prompt")
        entries.append(
            Entry(
                id=entry_id(session, "system"),
                role="system",
                blocks=blocks,
                wire=NAME,
                source=Source(NAME),
                extra=hints or None,
            )
        )
    entries += [_message(raw, index, session) for index, raw in enumerate(messages)]
    return chained(entries)


def _message(raw: dict[str, Any], index: int, session: str) -> Entry:
    where = f"message {index}"
    role = raw.get("role")
    if role not in ("user", "assistant", "system"):
        raise FormatError(f"{where} has the role {role!r}; the Messages API knows user and assistant")
    blocks, hints = _content(raw.get("content"), where)
    as_role: Role = role
    if role == "user":
        if blocks and all(isinstance(block, ToolResult) for block in blocks):
            as_role = "tool"
        blocks = tuple(
            msgspec.structs.replace(block, origin=origin_in_messages(block.text)) if isinstance(block, Text) else block
            for block in blocks
        )
    entry = Entry(
        id=entry_id(session, index),
        role=as_role,
        blocks=blocks,
        wire=NAME,
        source=Source(NAME, index),
        extra=hints or None,
    )
    return msgspec.structs.replace(entry, extra=difference(raw, own_message(entry), where, hints))


def _content(content: Any, where: str) -> tuple[tuple[Block, ...], Extra]:
    if isinstance(content, str):
        return (Text(content),), {}
    if not isinstance(content, list) or not all(isinstance(block, dict) for block in content):
        raise FormatError(f"{where}: the content must be a string or a list of blocks")
    blocks = tuple(_block(raw, where) for raw in content)
    return blocks, _list_hint(blocks)


def _list_hint(blocks: Sequence[Block]) -> Extra:
    """Remembers that the content was a list where it looks as if it could have been a string."""
    alone = len(blocks) == 1 and isinstance(blocks[0], Text) and not blocks[0].extra
    return {"~content": "list"} if alone else {}


def _block(raw: dict[str, Any], where: str) -> Block:
    kind = raw.get("type")
    if kind == "tool_use" and not (isinstance(raw.get("id"), str) and isinstance(raw.get("name"), str)):
        raise FormatError(f"{where}: a tool_use block needs an id and a name")
    if kind == "tool_result":
        return _result(raw, where)
    block = _known_block(raw)
    if isinstance(block, Unknown):
        return block
    if isinstance(block, ToolCall) and not isinstance(raw.get("input"), dict):
        raw = {**raw, "input": argument_object(block)}
    try:
        return msgspec.structs.replace(block, extra=difference(raw, own_block(block), where, block.extra))
    except FormatError:
        if kind == "tool_use":
            raise
        return Unknown(raw)


def _known_block(raw: dict[str, Any]) -> Text | Reasoning | ToolCall | Media | Unknown:
    match raw:
        case {"type": "text", "text": str() as text}:
            return Text(text)
        case {"type": "thinking", "thinking": str() as text}:
            return Reasoning(text, {"signature": raw["signature"]} if raw.get("signature") else None)
        case {"type": "redacted_thinking", "data": str() as data}:
            return Reasoning("", {"data": data})
        case {"type": "tool_use", "id": str() as call_id, "name": str() as name}:
            return ToolCall(call_id, name, _arguments(raw))
        case {"type": str() as kind, "id": str() as call_id, "name": str() as name} if kind in _SERVER_CALLS:
            hints = None if kind == "server_tool_use" else {"~type": kind}
            return ToolCall(call_id, name, _arguments(raw), "server", hints)
        case {"type": "image" | "document" as kind, "source": {"type": "base64", "data": str() as data} as source}:
            media_type = source.get("media_type")
            return Media(kind, media_type if isinstance(media_type, str) else None, data)
        case {"type": "image" | "document" as kind, "source": {"type": "url", "url": str() as url}}:
            return Media(kind, url=url)
        case {"type": "image" | "document" as kind, "source": {"type": "file", "file_id": str()}}:
            return Media(kind)
    return Unknown(raw)


def _arguments(raw: dict[str, Any]) -> str:
    given = raw.get("input")
    return given if isinstance(given, str) else compact_json({} if given is None else given)


def _result(raw: dict[str, Any], where: str) -> ToolResult:
    call_id = raw.get("tool_use_id")
    if not isinstance(call_id, str):
        raise FormatError(f"{where}: a tool_result block needs a tool_use_id")
    given = raw.get("content")
    parts: list[Text | Media | Unknown] = []
    hints: Extra = {}
    if isinstance(given, str):
        parts = [Text(given)] if given else []
    elif given:
        blocks, hints = _content(given, where)
        for part, block in zip(given, blocks, strict=True):
            parts.append(block if isinstance(block, Text | Media | Unknown) else Unknown(part))
    result = ToolResult(call_id, tuple(parts), raw.get("is_error") is True, extra=hints or None)
    return msgspec.structs.replace(result, extra=difference(raw, own_block(result), where, hints))
