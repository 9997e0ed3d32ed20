"""Response items of Codex as entries: one item, one entry."""

from __future__ import annotations

from typing import Any

from ...codec import compact_json
from ...transcript import (
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
)
from .codex_typed import TEXTS, Typed
from .records import extra_of, record_of, string_of
from .values import media_of

__all__ = ["CALLS", "FORMAT", "OPAQUE", "TYPES", "entry_of", "item_key"]

FORMAT = "codex"
CALLS = frozenset(
    {
        "function_call",
        "custom_tool_call",
        "local_shell_call",
        "tool_search_call",
        "web_search_call",
        "image_generation_call",
    }
)
OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output", "tool_search_output"})
OPAQUE = frozenset({"compaction", "compaction_summary", "context_compaction"})
"""Summaries that only the provider can read; they stand in replacement histories."""
TYPES = CALLS | OUTPUTS | OPAQUE | {"message", "reasoning"}

_MESSAGE = frozenset({"type", "role", "content"})
_REASONING = frozenset({"type", "summary", "content", "encrypted_content"})
_CALL = frozenset({"type", "call_id", "name", "arguments", "input", "action"})
_CALL_BY_ID = _CALL | {"id"}
_OUTPUT = frozenset({"type", "call_id", "output"})
_TEXT = frozenset({"type", "text"})
_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "developer": "developer", "system": "system"}


def entry_of(
    item: dict[str, Any],
    *,
    id: str,  # noqa: A002 - the name of the field
    typed: Typed,
    line: int | None = None,
    model: str | None = None,
    time: str | None = None,
    parent: str | None = None,
    sequence: int = 0,
) -> Entry:
    """The entry of one response item.

    Args:
        item: the item as it stands in the file.
        id: the entry's id.
        typed: tells typed user texts from injected ones.
        line: 1-based line.
        model: the model in use; kept for what a model made.
        time: when the line was written.
        parent: id of the entry before it.
        sequence: its position in the session.
    """
    role, blocks, known = _content(item, typed, line)
    native = string_of(item.get("id"))
    return Entry(
        id=id,
        role=role,
        blocks=blocks,
        parent=parent,
        sequence=sequence,
        model=model if role == "assistant" else None,
        time=time,
        status="incomplete" if item.get("status") == "incomplete" else "complete",
        source=Source(FORMAT, line, native),
        wire="openai-responses",
        extra=extra_of(item, known),
    )


def item_key(item: dict[str, Any]) -> str:
    """What two copies of an item have in common: everything but ids and the client's notes."""
    skipped = {"id", "status", "phase", "internal_chat_message_metadata_passthrough"}
    return compact_json({name: item[name] for name in sorted(item) if name not in skipped and item[name] is not None})


def _content(item: dict[str, Any], typed: Typed, line: int | None) -> tuple[Role, tuple[Block, ...], frozenset[str]]:
    """Role, blocks, and the fields of the item that they stand for."""
    kind = item.get("type")
    if kind == "message" and (role := _ROLES.get(str(item.get("role")))):
        return role, _message(item, role, typed, line), _MESSAGE
    if kind == "reasoning":
        return "assistant", _reasoning(item), _REASONING
    if kind in CALLS and (call := _call(item)):
        return "assistant", (call,), _CALL if "call_id" in item else _CALL_BY_ID
    if kind in OUTPUTS and (call_id := string_of(item.get("call_id"))):
        output = item.get("output")
        failed = record_of(output).get("success") is False
        return "tool", (ToolResult(call_id, _parts(output), failed),), _OUTPUT
    return "assistant", (Unknown(item),), frozenset(item)


def _message(item: dict[str, Any], role: Role, typed: Typed, line: int | None) -> tuple[Block, ...]:
    parts = _parts(item.get("content"))
    texts = [part for part in parts if isinstance(part, Text)]
    if role == "assistant":
        return parts
    by_part = typed.blocks(item, texts, line) if role == "user" else [[_injected(text)] for text in texts]
    blocks = iter(by_part)
    return tuple(block for part in parts for block in (next(blocks) if isinstance(part, Text) else [part]))


def _injected(text: Text) -> Text:
    return Text(text.text, "injected", text.extra)


def _parts(content: Any) -> tuple[Text | Media | Unknown, ...]:
    """Content of a message or an output: a string, a list of parts, or the object of old clients."""
    if content is None:
        return ()
    if isinstance(content, str):
        return (Text(content),)
    if isinstance(content, dict) and isinstance(content.get("content"), str):
        return (Text(content["content"]),)
    return tuple(_part(part) for part in (content if isinstance(content, list) else [content]))


def _part(part: Any) -> Text | Media | Unknown:
    match part:
        case {"type": kind, "text": str() as text} if kind in TEXTS:
            return Text(text, extra=extra_of(part, _TEXT))
        case {"type": "input_image", "image_url": str() as url}:
            return media_of(None, url, extra=extra_of(part, frozenset({"type", "image_url"})))
    return Unknown(part)


def _reasoning(item: dict[str, Any]) -> tuple[Reasoning, ...]:
    texts = [
        part["text"]
        for field in ("summary", "content")
        for part in (item.get(field) or ())
        if isinstance(part, dict) and isinstance(part.get("text"), str)
    ]
    opaque: Extra | None = None
    if item.get("encrypted_content") is not None:
        opaque = {"encrypted_content": item["encrypted_content"]}
    first = Reasoning(texts[0] if texts else "", opaque)
    return (first, *(Reasoning(text) for text in texts[1:]))


def _call(item: dict[str, Any]) -> ToolCall | None:
    kind = item["type"]
    call_id = string_of(item.get("call_id")) or string_of(item.get("id"))
    name = string_of(item.get("name"))
    if call_id is None:
        return None
    if kind in ("function_call", "custom_tool_call"):
        given = item.get("arguments" if kind == "function_call" else "input")
        arguments = given if isinstance(given, str) else compact_json({} if given is None else given)
        return ToolCall(call_id, name, arguments, kind.partition("_")[0]) if name else None
    action = item.get("action", item.get("arguments"))
    if action is None:
        return None
    arguments = action if isinstance(action, str) else compact_json(action)
    name = kind.removesuffix("_call")
    return ToolCall(
        call_id, name, arguments, {"local_shell": "local_shell", "tool_search": "tool_search"}.get(name, "server")
    )
