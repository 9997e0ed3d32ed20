"""Messages of the Pi coding agent as entries: one message, one entry."""

from __future__ import annotations

from typing import Any

from ....codec import compact_json, decode
from ....transcript import (
    Block,
    Entry,
    Extra,
    Media,
    Origin,
    Reasoning,
    Role,
    Source,
    Status,
    Text,
    ToolCall,
    ToolResult,
    Unknown,
    Usage,
)
from ..records import count, extra_of, iso_time, record_of, string_of

__all__ = ["FORMAT", "custom_entry", "message_entry", "summary_entry"]

FORMAT = "pi"
_STATUS: dict[str, Status] = {"aborted": "aborted", "error": "error", "length": "incomplete"}
# Kept from the model and not read: the display and bookkeeping data of tools, which often repeat a whole file.
_USER = frozenset({"role", "content", "timestamp"})
_ASSISTANT = frozenset({"role", "content", "timestamp", "model", "usage", "stopReason"})
_RESULT = frozenset({"role", "content", "timestamp", "toolCallId", "toolName", "isError", "details"})
_BASH = frozenset({"role", "timestamp"})
_CUSTOM = frozenset({"role", "content", "timestamp", "details"})


def message_entry(
    message: dict[str, Any],
    *,
    id: str,  # noqa: A002 - the name of the field
    time: str | None,
    line: int,
    native: str | None,
) -> Entry | None:
    """The entry of one message, without a place in a session; None for a message that the model never gets.

    Args:
        message: as it stands in the file.
        id: the entry's id.
        time: when its line was written; if None, the message's own time.
        line: 1-based line.
        native: the id that Pi gave to the line.
    """
    content = _content(message)
    if content is None:
        return None
    role, blocks, known = content
    answer = message if role == "assistant" else {}
    return Entry(
        id=id,
        role=role,
        blocks=blocks,
        group=string_of(answer.get("responseId")),
        model=string_of(answer.get("model")),
        time=time or iso_time(message.get("timestamp")),
        usage=_usage(answer.get("usage")),
        status=_STATUS.get(str(answer.get("stopReason")), "complete"),
        source=Source(FORMAT, line, native),
        wire=FORMAT,
        extra=extra_of(message, known),
    )


def _content(message: dict[str, Any]) -> tuple[Role, tuple[Block, ...], frozenset[str]] | None:
    """Role, blocks, and the fields of the message that are in the entry or left out."""
    content = message.get("content")
    match message.get("role"):
        case "user":
            return "user", _blocks(content), _USER
        case "assistant":
            return "assistant", _blocks(content, api=message.get("api")), _ASSISTANT
        case "toolResult" if call := string_of(message.get("toolCallId")):
            parts = tuple(part for part in _blocks(content) if isinstance(part, Text | Media | Unknown))
            failed = message.get("isError") is True
            return "tool", (ToolResult(call, parts, failed, string_of(message.get("toolName"))),), _RESULT
        case "bashExecution" if (blocks := _bash(message)) is not None:
            return "user", blocks, _BASH
        case "custom" | "hookMessage":
            return "user", _blocks(content, origin="injected"), _CUSTOM
        case "system":
            return "system", _blocks(content, origin="injected"), _USER
    return None


def _bash(message: dict[str, Any]) -> tuple[Block, ...] | None:
    """A command that the person ran beside the agent: the command is typed, its output is not. None where the model must not see it."""
    command, output = message.get("command"), message.get("output")
    if message.get("excludeFromContext") is True or not isinstance(command, str):
        return None
    return (Text(command), Text(output, "injected")) if isinstance(output, str) and output else (Text(command),)


def custom_entry(record: dict[str, Any], *, id: str, line: int, native: str | None) -> Entry:  # noqa: A002
    """The entry of a text that an extension sends to the model."""
    return Entry(
        id=id,
        role="user",
        blocks=_blocks(record.get("content"), origin="injected"),
        time=iso_time(record.get("timestamp")),
        source=Source(FORMAT, line, native),
        wire=FORMAT,
        extra=extra_of(record, frozenset({"type", "id", "parentId", "timestamp", "content", "details"})),
    )


def summary_entry(
    text: str,
    *,
    id: str,  # noqa: A002 - the name of the field
    time: str | None,
    line: int,
    native: str | None,
    extra: Extra | None = None,
) -> Entry:
    """A summary as Pi shows it: in the place of a user message."""
    return Entry(
        id=id,
        role="user",
        blocks=(Text(text, "summary"),),
        time=time,
        source=Source(FORMAT, line, native),
        wire=FORMAT,
        extra=extra,
    )


def _blocks(content: Any, *, origin: Origin = "typed", api: Any = None) -> tuple[Block, ...]:
    if isinstance(content, str):
        return (Text(content, origin),)
    return tuple(_block(raw, origin, api) for raw in content) if isinstance(content, list) else ()


def _block(raw: Any, origin: Origin, api: Any) -> Block:
    match raw:
        case {"type": "text", "text": str() as text}:
            return Text(text, origin, extra_of(raw, frozenset({"type", "text"})))
        case {"type": "thinking", "thinking": str() as text}:
            known = {"type", "thinking"} | ({"thinkingSignature"} if raw.get("thinkingSignature") else set())
            return Reasoning(text, _signature(raw, api), extra_of(raw, frozenset(known)))
        case {"type": "toolCall", "id": str() as call, "name": str() as name} if call and name:
            return _call(raw, call, name)
        case {"type": "image", "data": str() as data}:
            return Media(
                "image",
                string_of(raw.get("mimeType")),
                data,
                extra=extra_of(raw, frozenset({"type", "data", "mimeType"})),
            )
    return Text(raw, origin) if isinstance(raw, str) else Unknown(raw)


def _signature(raw: dict[str, Any], api: Any) -> Extra | None:
    """What the provider wants back with the thinking, under the provider's own name where Pi keeps it as it came."""
    signature = raw.get("thinkingSignature")
    if not signature:
        return None
    if api == "anthropic-messages":
        return {"data" if raw.get("redacted") is True else "signature": signature}
    return {"thinkingSignature": signature}


def _call(raw: dict[str, Any], call: str, name: str) -> ToolCall:
    given = raw.get("arguments")
    arguments = given if isinstance(given, str) else compact_json({} if given is None else given)
    known = {"type", "id", "name", "arguments"}
    # A left-over of streaming; worth keeping only where the call broke off and the parsed arguments are not all of it.
    partial = raw.get("partialJson")
    if isinstance(partial, str) and _same_json(partial, given):
        known.add("partialJson")
    return ToolCall(call, name, arguments, extra=extra_of(raw, frozenset(known)))


def _same_json(text: str, value: Any) -> bool:
    try:
        return bool(decode(text) == value)
    except (ValueError, RecursionError):
        return False


def _usage(usage: Any) -> Usage | None:
    """Pi's usage with the cached parts counted into the input (AC-05); None for the zeros of a failed call."""
    given = record_of(usage)
    read, write = count(given.get("cacheRead")), count(given.get("cacheWrite"))
    sent = count(given.get("input")) + read + write
    made = count(given.get("output"))
    if not sent and not made:
        return None
    return Usage(
        input_tokens=sent,
        output_tokens=made,
        cache_read=read,
        cache_write=write,
        reasoning=count(given.get("reasoning", given.get("reasoningTokens"))),
    )
