"""Messages in the shape of the Chat Completions API, as benchmark harnesses store them.

Only what makes blocks of a message; whose message it is, and whether its text was typed, the readers know.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...transcript import Block, Media, Origin, Reasoning, Text, ToolCall, ToolResult, Unknown
from .records import record_of, string_of
from .values import arguments_of, items_of, media_of

__all__ = ["call_blocks", "content_blocks", "reasoning_blocks", "result_of"]


def content_blocks(content: Any, origin: Origin = "typed") -> tuple[Text | Media | Unknown, ...]:
    """The content of a message: a string, or a list of parts. Empty texts are nothing."""
    if content is None or content == "":
        return ()
    if isinstance(content, str):
        return (Text(content, origin),)
    if not isinstance(content, list):
        return (Unknown(content),)
    out: list[Text | Media | Unknown] = []
    for part in content:
        given = record_of(part)
        text = given.get("text", part)
        if isinstance(text, str) and str(given.get("type", "text")) in ("text", "input_text", "output_text"):
            extra = {name: value for name, value in given.items() if name not in ("type", "text")}
            if text:
                out.append(Text(text, origin, extra or None))
            continue
        image = given.get("image_url")
        url = image if isinstance(image, str) else record_of(image).get("url")
        out.append(media_of(None, url) if isinstance(url, str) else Unknown(part))
    return tuple(out)


def reasoning_blocks(message: Mapping[str, Any]) -> tuple[Reasoning, ...]:
    """The thinking of a response: blocks with their signatures where they are kept, else the readable text."""
    blocks = message.get("thinking_blocks")
    if isinstance(blocks, list) and blocks:
        out = []
        for block in map(record_of, blocks):
            opaque = {name: block[name] for name in ("signature", "data") if block.get(name)}
            out.append(Reasoning(string_of(block.get("thinking")) or "", opaque or None))
        return tuple(out)
    text = string_of(message.get("reasoning_content")) or string_of(message.get("reasoning"))
    return (Reasoning(text),) if text else ()


def call_blocks(message: Mapping[str, Any], fallback: str) -> tuple[Block, ...]:
    """The tool calls of a response, in order. A call without an id gets `fallback` and its number."""
    out: list[Block] = []
    for number, call in enumerate(items_of(message.get("tool_calls"))):
        given = record_of(call)
        function = record_of(given.get("function"))
        name = string_of(function.get("name")) or string_of(given.get("name"))
        if name is None:
            out.append(Unknown(call))
            continue
        call_id = string_of(given.get("id")) or f"{fallback}-{number}"
        out.append(ToolCall(call_id, name, arguments_of(function.get("arguments", given.get("arguments")))))
    return tuple(out)


def result_of(message: Mapping[str, Any], call_id: str, *, is_error: bool = False) -> ToolResult:
    """The result that a message of the role `tool` holds, as the answer to `call_id`."""
    return ToolResult(call_id, content_blocks(message.get("content")), is_error, string_of(message.get("name")))
