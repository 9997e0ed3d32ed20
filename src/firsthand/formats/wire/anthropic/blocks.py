"""Content blocks of the Messages API as its own clients write them, made from blocks that were read from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....transcript import Block, Entry, Media, Reasoning, Text, ToolCall, ToolResult, Unknown
from ..calls import argument_object
from ..shape import hint, restored

__all__ = ["NAME", "content_of", "own_block", "written_block"]

NAME = "anthropic"

Raw = dict[str, Any]


def own_block(block: Block, *, call_id: str | None = None) -> Raw:
    """A block as this wire's client wrote it, fields that only the client knows aside."""
    match block:
        case Text(text=text):
            return {"type": "text", "text": text}
        case Reasoning(opaque={"data": data}):
            return {"type": "redacted_thinking", "data": data}
        case Reasoning(text=text, opaque=opaque):
            return {"type": "thinking", "thinking": text, **(opaque or {})}
        case ToolCall(name=name, kind=kind):
            label = hint(block.extra, "type") or ("server_tool_use" if kind == "server" else "tool_use")
            return {"type": label, "id": call_id or block.id, "name": name, "input": argument_object(block)}
        case ToolResult(content=content):
            shown = content_of(content, [written_block(part) for part in content], block.extra)
            return {
                "type": "tool_result",
                "tool_use_id": call_id or block.call_id,
                **({"content": shown} if content else {}),
                **({"is_error": True} if block.is_error else {}),
            }
        case Media(kind=kind):
            return {"type": kind, "source": _source(block)}
        case Unknown(raw=dict() as raw):
            return dict(raw)
    raise AssertionError(f"no block for {type(block).__name__}")


def written_block(block: Block, *, call_id: str | None = None) -> Raw:
    """A block that was read from this wire, with all its fields."""
    ours = own_block(block, call_id=call_id)
    return ours if isinstance(block, Unknown) else restored(ours, block.extra)


def content_of(blocks: Sequence[Block], written: list[Raw], extra: dict[str, Any] | None) -> Any:
    """The value of `content`: a string for a single plain text, unless it was a list."""
    if len(blocks) == 1 and isinstance(blocks[0], Text) and not blocks[0].extra and hint(extra, "content") != "list":
        return blocks[0].text
    return written


def own_message(entry: Entry) -> Raw:
    """A message that was read from this wire, fields that only the client knows aside."""
    content = content_of(entry.blocks, [written_block(block) for block in entry.blocks], entry.extra)
    return {"role": "user" if entry.role == "tool" else entry.role, "content": content}


def _source(media: Media) -> Raw:
    if media.data is not None:
        return {"type": "base64", "media_type": media.media_type, "data": media.data}
    return {"type": "url", "url": media.url} if media.url is not None else {}
