"""Response items of Codex as entries: one item, one entry.

They are the items of the Responses API, so what stands in an entry is what that wire's reader makes of them, and its writer gives them
back. The shapes that make up nearly all of a file are read here directly, which is several times faster; tests hold both to the same result.
"""

from __future__ import annotations

from typing import Any

from ....codec import compact_json
from ....errors import FormatError
from ....transcript import Block, Entry, Extra, Reasoning, Role, Source, Text, ToolCall, ToolResult, Unknown
from ..records import extra_of, record_of, string_of
from .typed import Typed

__all__ = ["FORMAT", "OPAQUE", "TYPES", "entry_of", "item_key"]

FORMAT = "codex"
OPAQUE = frozenset({"compaction", "compaction_summary", "context_compaction"})
"""Summaries that only the provider can read; they stand in replacement histories."""
TYPES = OPAQUE | {
    "message",
    "reasoning",
    "function_call",
    "function_call_output",
    "custom_tool_call",
    "custom_tool_call_output",
    "local_shell_call",
    "tool_search_call",
    "tool_search_output",
    "web_search_call",
    "image_generation_call",
}
"""The types of items."""

_WIRE = "openai-responses"
_MESSAGE = frozenset({"type", "role", "content"})
_REASONING = frozenset({"type", "id", "summary", "encrypted_content"})
_FUNCTION = frozenset({"type", "call_id", "name", "arguments"})
_CUSTOM = frozenset({"type", "call_id", "name", "input"})
_OUTPUT = frozenset({"type", "call_id", "output"})
_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "developer": "developer", "system": "system"}

_Content = tuple[Role, tuple[Block, ...], Extra | None]


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
    role, blocks, extra = _plain(item) or _by_wire(item)
    if role == "user":
        texts = iter(typed.blocks(item, [block for block in blocks if isinstance(block, Text)], line))
        blocks = tuple(part for block in blocks for part in (next(texts) if isinstance(block, Text) else [block]))
    elif role in ("developer", "system"):
        blocks = tuple(
            Text(block.text, "injected", block.extra) if isinstance(block, Text) else block for block in blocks
        )
    return Entry(
        id=id,
        role=role,
        blocks=blocks,
        parent=parent,
        sequence=sequence,
        model=model if role == "assistant" else None,
        time=time,
        status="incomplete" if item.get("status") == "incomplete" else "complete",
        source=Source(FORMAT, line, string_of(item.get("id"))),
        wire=_WIRE,
        extra=extra,
    )


def item_key(item: dict[str, Any]) -> str:
    """What two copies of an item have in common: everything but ids and the client's notes."""
    skipped = {"id", "status", "phase", "internal_chat_message_metadata_passthrough"}
    return compact_json({name: item[name] for name in sorted(item) if name not in skipped and item[name] is not None})


def _plain(item: dict[str, Any]) -> _Content | None:
    """Role, blocks and extra of an item in one of the usual shapes; None for any other."""
    match item:
        case {
            "type": "message",
            "role": "user" | "assistant" | "developer" | "system" as role,
            "content": list() as parts,
        }:
            texts = _plain_parts(parts, "output_text" if role == "assistant" else "input_text")
            return None if texts is None else (_ROLES[role], texts, extra_of(item, _MESSAGE))
        case {
            "type": "function_call",
            "call_id": str() as call,
            "name": str() as name,
            "arguments": str() as arguments,
        } if call:
            return "assistant", (ToolCall(call, name, arguments, "function", extra_of(item, _FUNCTION)),), None
        case {"type": "custom_tool_call", "call_id": str() as call, "name": str() as name, "input": str() as text} if (
            call
        ):
            return "assistant", (ToolCall(call, name, text, "custom", extra_of(item, _CUSTOM)),), None
        case {
            "type": "function_call_output" | "custom_tool_call_output" as kind,
            "call_id": str() as call,
            "output": output,
        } if call:
            return _plain_output(item, kind, call, output)
        case {"type": "reasoning", "summary": list() as parts} if "content" not in item:
            texts = _plain_parts(parts, "summary_text")
            if texts is None or len(texts) > 1:
                return None
            opaque = {name: item[name] for name in ("id", "encrypted_content") if item.get(name)}
            thought = Reasoning(texts[0].text if texts else "", opaque or None, extra_of(item, _REASONING))
            return "assistant", (thought,), None
    return None


def _plain_output(item: dict[str, Any], kind: str, call: str, output: Any) -> _Content | None:
    hints: Extra = {} if kind == "function_call_output" else {"~type": kind}
    content: tuple[Text, ...] | None
    failed = False
    if isinstance(output, str):
        content = (Text(output),)
    elif isinstance(output, list):
        content = _plain_parts(output, "input_text")
        hints["~output"] = "list"
    elif isinstance(text := record_of(output).get("content"), str):
        # Very old clients wrote an object, which the API no longer knows.
        content = (Text(text),)
        failed = output.get("success") is False
    else:
        content = None
    if content is None:
        return None
    extra = {**hints, **(extra_of(item, _OUTPUT) or {})}
    return "tool", (ToolResult(call, content, failed, extra=extra or None),), None


def _plain_parts(parts: list[Any], kind: str) -> tuple[Text, ...] | None:
    texts = []
    for part in parts:
        match part:
            case {"type": found, "text": str() as text, **rest} if found == kind and not rest:
                texts.append(Text(text))
            case _:
                return None
    return tuple(texts)


def _by_wire(item: dict[str, Any]) -> _Content:
    """The same for any other shape, by the reader of the Responses API; an item that it refuses is kept whole."""
    # The wire package uses a reader of this one; imported late, neither has to be there first.
    from ...wire import wire_by_name

    try:
        (entry,) = wire_by_name(_WIRE).read([item])
    except FormatError:
        return "assistant", (Unknown(item),), {"~item": True}
    return entry.role, entry.blocks, entry.extra
