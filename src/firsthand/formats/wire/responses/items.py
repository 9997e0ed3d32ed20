"""Items of the Responses API as its own clients write them, made from blocks that were read from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....codec import decode
from ....transcript import Block, Entry, Media, Reasoning, Role, Text, ToolCall, ToolResult, Unknown
from ..calls import argument_text
from ..placeholders import left_out
from ..shape import hint, restored
from .parts import media_part, own_part, text_part

__all__ = ["NAME", "own_call", "own_message", "own_output", "own_reasoning"]

NAME = "openai-responses"

Item = dict[str, Any]


def own_message(entry: Entry, *, exact: bool) -> Item:
    """A message that was read from this wire, fields that only the client knows aside."""
    content: Any = _parts(entry.blocks, entry.role, exact=exact)
    if hint(entry.extra, "content") == "string" and len(entry.blocks) == 1 and isinstance(entry.blocks[0], Text):
        content = entry.blocks[0].text
    return {"type": "message", "role": entry.role, "content": content}


def own_reasoning(block: Reasoning) -> Item:
    """A reasoning item that was read from this wire."""
    opaque = block.opaque or {}
    fields: dict[str, list[Item]] = {"summary": [], "content": []}
    parts = hint(block.extra, "parts") or ([["summary", len(block.text)]] if block.text else [])
    if sum(length for _, length in parts) + 2 * max(0, len(parts) - 1) != len(block.text):
        # The text is not the one that the lengths were taken of.
        parts = [["summary", len(block.text)]]
    at = 0
    for field, length in parts:
        kind = "summary_text" if field == "summary" else "reasoning_text"
        fields[field].append({"type": kind, "text": block.text[at : at + length]})
        at += length + 2
    return {
        "type": "reasoning",
        **({"id": opaque["id"]} if "id" in opaque else {}),
        "summary": fields["summary"],
        **({"content": fields["content"]} if fields["content"] else {}),
        **({"encrypted_content": opaque["encrypted_content"]} if "encrypted_content" in opaque else {}),
    }


def own_call(call: ToolCall, *, call_id: str | None = None, exact: bool = True) -> Item:
    """A call that was read from this wire. Without `exact`, broken arguments of a function become valid JSON."""
    arguments: Any = call.arguments
    if hint(call.extra, "arguments") == "object":
        arguments = decode(call.arguments)
    elif call.kind == "function" and not exact:
        arguments = argument_text(call, any_json=True)
    match call.kind:
        case "function":
            return {"type": "function_call", "call_id": call_id or call.id, "name": call.name, "arguments": arguments}
        case "custom":
            return {"type": "custom_tool_call", "call_id": call_id or call.id, "name": call.name, "input": arguments}
    payload = hint(call.extra, "payload")
    return {
        "type": call.kind,
        "call_id": call_id or call.id,
        **({} if hint(call.extra, "name") is False else {"name": call.name}),
        **({payload: arguments} if payload else {}),
    }


def own_output(result: ToolResult, *, call_id: str | None = None, kind: str | None = None, exact: bool) -> Item:
    """An output that was read from this wire; `kind` is its type where the call demands another."""
    as_it_was = hint(result.extra, "output")
    output: Any
    if as_it_was == "raw" and len(result.content) == 1 and isinstance(result.content[0], Unknown):
        output = result.content[0].raw
    elif as_it_was == "list":
        output = _parts(result.content, "tool", exact=exact)
    else:
        output = result.text
    return {
        "type": kind or hint(result.extra, "type") or "function_call_output",
        "call_id": call_id or result.call_id,
        "output": output,
    }


def _parts(blocks: Sequence[Block], role: Role, *, exact: bool) -> list[Item]:
    parts = []
    for block in blocks:
        if isinstance(block, Media) and not exact:
            by_model = role == "assistant"
            parts.append(text_part(left_out(block), role) if by_model else media_part(block, own=True))
        else:
            # Empty texts stay: clients of this API send them in outputs, and it takes them.
            extra = block.extra if isinstance(block, Text | Media) else None
            parts.append(restored(own_part(block, role), extra))
    return parts
