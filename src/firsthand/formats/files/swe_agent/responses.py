"""Responses of the Responses API as mini-swe-agent stores them: one object with the items of a response in `output`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....transcript import Block, Reasoning, ToolCall, Unknown
from ..chat_messages import content_blocks
from ..records import record_of, string_of
from ..values import arguments_of, items_of

__all__ = ["response_blocks"]


def response_blocks(response: Mapping[str, Any], fallback: str) -> tuple[Block, ...]:
    """The items of a response as blocks, in order. A call without an id gets `fallback` and its number."""
    out: list[Block] = []
    for number, item in enumerate(map(record_of, items_of(response.get("output")))):
        match item.get("type"):
            case "message":
                out += content_blocks(item.get("content"))
            case "reasoning":
                parts = [record_of(part).get("text") for part in items_of(item.get("summary"))]
                opaque = {name: item[name] for name in ("id", "encrypted_content") if item.get(name)}
                out.append(Reasoning("\n".join(p for p in parts if isinstance(p, str)), opaque or None))
            case "function_call":
                call = string_of(item.get("call_id")) or string_of(item.get("id")) or f"{fallback}-{number}"
                out.append(ToolCall(call, string_of(item.get("name")) or "", arguments_of(item.get("arguments"))))
            case _:
                out.append(Unknown(item))
    return tuple(out)
