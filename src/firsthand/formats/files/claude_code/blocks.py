"""Content of Claude Code messages as blocks, and which of their texts a person typed."""

from __future__ import annotations

import re
from typing import Any

from ....codec import compact_json
from ....transcript import Block, Media, Origin, Reasoning, Text, ToolCall, ToolResult, Unknown, Usage
from ..records import count, extra_of, string_of

__all__ = ["INTERRUPTED", "assistant_blocks", "prompt_blocks", "result_content", "usage_of", "user_blocks"]

# What the client writes into user lines by itself, recognised by how the text starts (session-formats.md, "Not typed by the user").
_CLIENT_TAGS = (
    "bash-stderr",
    "bash-stdout",
    "ide_diagnostics",
    "ide_opened_file",
    "ide_selection",
    "local-command-caveat",
    "local-command-stderr",
    "local-command-stdout",
    "system-reminder",
    "task-notification",
    "user-prompt-submit-hook",
)
INTERRUPTED = "[Request interrupted by user"
"""How the notice starts that the client writes when the person stops a run."""

_INJECTED = re.compile(
    rf"\s*(?:<(?:{'|'.join(_CLIENT_TAGS)})>|{re.escape(INTERRUPTED)}|Caveat: The messages below were generated)"
)
_SUMMARY = re.compile(r"\s*This session is being continued from a previous conversation")
# An echo shows what the person typed between two marks of the client; the rest of it is the client's.
_ECHO = re.compile(r"\s*<(?:command-name|command-message|bash-input)>")
_TYPED_PART = re.compile(r"<(command-args|bash-input)>(.*)</\1>", re.DOTALL)
_REMINDER = re.compile(r"<system-reminder>.*?</system-reminder>", re.DOTALL)

_TEXT = frozenset({"type", "text"})
_THINKING = frozenset({"type", "thinking"})
_REDACTED = frozenset({"type", "data"})
_CALL = frozenset({"type", "id", "name", "input"})
_RESULT = frozenset({"type", "tool_use_id", "content", "is_error"})
_MEDIA = frozenset({"type", "source"})


def prompt_blocks(text: str, *, human: bool | None = None) -> tuple[Text, ...]:
    """A user text as blocks by origin; joined, they are the text again, byte for byte.

    Args:
        text: what stands in the user message.
        human: what the client itself says about who wrote it; None when it says nothing, so that the text has to tell.
    """
    if human is not None:
        return (Text(text, "typed" if human else "injected"),)
    if _INJECTED.match(text):
        return _split(text, _REMINDER) if text.lstrip().startswith("<system-reminder>") else (Text(text, "injected"),)
    if _SUMMARY.match(text):
        return (Text(text, "summary"),)
    if _ECHO.match(text):
        found = _TYPED_PART.search(text)
        if found is None or not found[2].strip():
            return (Text(text, "injected"),)
        start, end = found.span(2)
        return (Text(text[:start], "injected"), Text(text[start:end]), Text(text[end:], "injected"))
    return _split(text, _REMINDER)


def _split(text: str, injected: re.Pattern[str]) -> tuple[Text, ...]:
    """`text` as typed parts and the parts that `injected` matches; blank typed parts stay with their neighbour."""
    parts: list[Text] = []
    at = 0
    for found in injected.finditer(text):
        if text[at : found.start()].strip():
            parts.append(Text(text[at : found.start()]))
            at = found.start()
        parts.append(Text(text[at : found.end()], "injected"))
        at = found.end()
    rest = text[at:]
    if rest.strip() or not parts:
        parts.append(Text(rest))
    elif rest:
        parts[-1] = Text(parts[-1].text + rest, "injected")
    return tuple(parts)


def user_blocks(content: Any, *, human: bool | None = None, origin: Origin | None = None) -> tuple[Block, ...]:
    """The content of a user message: a string, or a list of text, images and tool results.

    Args:
        content: as it stands in `message.content`.
        human: as in `prompt_blocks`.
        origin: the origin of all its texts, where it is known to be one.
    """
    if isinstance(content, str):
        return (Text(content, origin),) if origin else prompt_blocks(content, human=human)
    blocks: list[Block] = []
    for raw in content if isinstance(content, list) else ():
        block = _block(raw)
        if isinstance(block, Text):
            if origin:
                blocks.append(Text(block.text, origin, block.extra))
            elif block.extra:
                parts = prompt_blocks(block.text, human=human)
                blocks += [*parts[:-1], Text(parts[-1].text, parts[-1].origin, block.extra)]
            else:
                blocks += prompt_blocks(block.text, human=human)
        else:
            blocks.append(block)
    return tuple(blocks)


def assistant_blocks(content: Any, origin: Origin = "typed") -> tuple[Block, ...]:
    """The content of an assistant message. `origin` is `injected` for messages that the client made up."""
    if isinstance(content, str):
        return (Text(content, origin),)
    blocks = tuple(_block(raw) for raw in content) if isinstance(content, list) else ()
    if origin == "typed":
        return blocks
    return tuple(Text(block.text, origin, block.extra) if isinstance(block, Text) else block for block in blocks)


def _block(raw: Any) -> Block:
    if isinstance(raw, str):
        return Text(raw)
    if not isinstance(raw, dict):
        return Unknown(raw)
    match raw.get("type"):
        case "text" if isinstance(text := raw.get("text"), str):
            return Text(text, extra=extra_of(raw, _TEXT))
        case "thinking" if isinstance(text := raw.get("thinking"), str):
            # An empty signature, as of a response that broke off, is none that could be sent back.
            if signature := raw.get("signature"):
                return Reasoning(text, {"signature": signature}, extra_of(raw, _THINKING | {"signature"}))
            return Reasoning(text, None, extra_of(raw, _THINKING))
        case "redacted_thinking" if "data" in raw:
            return Reasoning("", {"data": raw["data"]}, extra_of(raw, _REDACTED))
        case "tool_use" | "server_tool_use" | "mcp_tool_use" as kind:
            if (call := string_of(raw.get("id"))) and (name := string_of(raw.get("name"))):
                given = raw.get("input")
                arguments = given if isinstance(given, str) else compact_json({} if given is None else given)
                extra = extra_of(raw, _CALL)
                if kind == "mcp_tool_use":
                    extra = {
                        "~type": kind,
                        **(extra or {}),
                    }  # the wire's hint that it is not the other kind of server call
                return ToolCall(call, name, arguments, "function" if kind == "tool_use" else "server", extra)
        case "tool_result" if call := string_of(raw.get("tool_use_id")):
            return ToolResult(
                call, result_content(raw.get("content")), raw.get("is_error") is True, extra=extra_of(raw, _RESULT)
            )
        case "image" | "document" as kind if isinstance(source := raw.get("source"), dict):
            return _media(kind, source, raw)
    return Unknown(raw)


def _media(kind: str, source: dict[str, Any], raw: dict[str, Any]) -> Media | Unknown:
    extra = extra_of(raw, _MEDIA)
    match source:
        case {"type": "base64", "data": str() as data, **rest} if not rest.keys() - {"media_type"}:
            return Media(kind, string_of(rest.get("media_type")), data, extra=extra)
        case {"type": "url", "url": str() as url, **rest} if not rest:
            return Media(kind, url=url, extra=extra)
        case {"type": "file", "file_id": str()}:
            return Media(kind, extra={**(extra or {}), "source": source})
    return Unknown(raw)


def result_content(content: Any) -> tuple[Text | Media | Unknown, ...]:
    """The content of a tool result: nothing, a string, or a list of parts."""
    if content is None:
        return ()
    if isinstance(content, str):
        return (Text(content),)
    parts: list[Text | Media | Unknown] = []
    for raw in content if isinstance(content, list) else [content]:
        part = _block(raw)
        parts.append(part if isinstance(part, Text | Media | Unknown) else Unknown(raw))
    return tuple(parts)


def usage_of(usage: Any) -> Usage | None:
    """Anthropic usage with the cached parts counted into the input (AC-05); None when it says nothing."""
    if not isinstance(usage, dict):
        return None
    read, write = count(usage.get("cache_read_input_tokens")), count(usage.get("cache_creation_input_tokens"))
    total = count(usage.get("input_tokens")) + read + write
    output = count(usage.get("output_tokens"))
    if not total and not output:
        return None
    return Usage(input_tokens=total, output_tokens=output, cache_read=read, cache_write=write)
