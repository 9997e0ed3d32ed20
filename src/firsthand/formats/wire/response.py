"""What a provider answered, as entries: the three wire APIs' responses, their usage and how they ended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ...errors import FormatError
from ...transcript import Entry, Status, Text, ToolCall, Usage
from . import wire_by_name

__all__ = ["finish_reason", "response_entries", "said_nothing", "usage_of"]

_STATUS: dict[str, Status] = {
    "length": "incomplete",
    "max_tokens": "incomplete",
    "max_output_tokens": "incomplete",
    "model_context_window_exceeded": "incomplete",
    "incomplete": "incomplete",
    "content_filter": "incomplete",
    "failed": "error",
    "error": "error",
    "cancelled": "aborted",
}


def response_entries(wire: str, response: Mapping[str, Any], *, session: str = "") -> tuple[Entry, ...]:
    """The entries of one response, with usage on the last and the way it ended on each.

    Args:
        wire: `openai-chat`, `openai-responses` or `anthropic`.
        response: the response's JSON, as the API gave it or as a client put a stream together.
        session: goes into the entries' ids.

    Raises:
        FormatError: it is no response of that wire.
    """
    items = _items(wire, response)
    read = wire_by_name(wire).read(items, session=f"{session}/{response.get('id') or ''}")
    status = _STATUS.get(finish_reason(wire, response) or "", "complete")
    usage = usage_of(wire, response)
    last = len(read) - 1
    return tuple(
        msgspec.structs.replace(
            entry,
            status=status,
            usage=usage if position == last else None,
            group=_text(response.get("id")),
            model=_text(response.get("model")),
        )
        for position, entry in enumerate(read)
    )


def finish_reason(wire: str, response: Mapping[str, Any]) -> str | None:
    """Why the response ended, in the provider's word."""
    if wire == "openai-chat":
        choices = response.get("choices")
        return _text(choices[0].get("finish_reason")) if isinstance(choices, list) and choices else None
    if wire == "anthropic":
        return _text(response.get("stop_reason"))
    details = response.get("incomplete_details")
    return (_text(details.get("reason")) if isinstance(details, Mapping) else None) or _text(response.get("status"))


def usage_of(wire: str, response: Mapping[str, Any]) -> Usage | None:
    """The response's usage in one meaning: `input_tokens` holds everything that was sent, cached parts included (AC-05, AC-06)."""
    usage = response.get("usage")
    if not isinstance(usage, Mapping):
        return None
    if wire == "anthropic":
        read, write = _number(usage, "cache_read_input_tokens"), _number(usage, "cache_creation_input_tokens")
        return Usage(
            input_tokens=_number(usage, "input_tokens") + read + write,
            output_tokens=_number(usage, "output_tokens"),
            cache_read=read,
            cache_write=write,
        )
    chat = wire == "openai-chat"
    sent, answered = ("prompt_tokens", "completion_tokens") if chat else ("input_tokens", "output_tokens")
    return Usage(
        input_tokens=_number(usage, sent),
        output_tokens=_number(usage, answered),
        cache_read=_number(usage.get(f"{sent}_details") or {}, "cached_tokens"),
        reasoning=_number(usage.get(f"{answered}_details") or {}, "reasoning_tokens"),
    )


def said_nothing(entries: tuple[Entry, ...]) -> bool:
    """Whether a response holds neither text nor a call (OV-13)."""
    return not any(
        isinstance(block, ToolCall) or (isinstance(block, Text) and block.text.strip())
        for entry in entries
        for block in entry.blocks
    )


def _items(wire: str, response: Mapping[str, Any]) -> list[dict[str, Any]]:
    if wire == "openai-chat":
        choices = response.get("choices")
        if isinstance(choices, list) and choices and isinstance(choices[0].get("message"), dict):
            return [choices[0]["message"]]
        if response.get("role") == "assistant":
            return [dict(response)]
        raise FormatError("a chat completion needs choices[0].message")
    if wire == "anthropic":
        if not isinstance(response.get("content"), list):
            raise FormatError("an Anthropic message needs a list under 'content'")
        return [{"role": "assistant", "content": response["content"]}]
    output = response.get("output")
    if not isinstance(output, list):
        raise FormatError("a response of the Responses API needs a list under 'output'")
    return output


def _number(usage: Mapping[str, Any], name: str) -> int:
    value = usage.get(name)
    return value if isinstance(value, int) and value > 0 else 0


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
