"""Anthropic's Messages API, as the gateway sees it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...codec import decode
from ...formats.wire.response import usage_of
from ...transcript import Usage
from .base import Outline, StreamEvent, bare_texts
from .content import parts_of, with_part, without

__all__ = ["MESSAGES", "Messages"]

_OPENINGS = frozenset({"message_start", "ping"})
_THINKING = frozenset({"thinking", "redacted_thinking"})


class Messages:
    """The wire of Claude Code."""

    name = "anthropic"
    endpoint = "/messages"
    messages = "messages"
    fixed: tuple[str, ...] = ("system", "tools")
    output: tuple[str, ...] = ("max_tokens",)

    def outline(self, message: Mapping[str, Any]) -> Outline:
        """See `GatewayWire.outline`. Thinking is volatile: clients drop that of earlier turns."""
        role = str(message.get("role"))
        calls: list[str] = []
        results: list[str] = []
        content: list[Any] = []
        given = message.get("content")
        for raw, part in zip(given if isinstance(given, list) else [given], parts_of(given), strict=False):
            kind = part.get("type") if isinstance(part, dict) else None
            if kind in _THINKING:
                continue
            if kind == "tool_use":
                calls.append(str(raw.get("id")))
                content.append([part.get("name"), part.get("input")])
            elif kind == "tool_result":
                results.append(str(part.get("tool_use_id")))
                content.append([part.get("is_error"), bare_texts(parts_of(part.get("content")), named=True)])
            else:
                content.append(part)
        if role == "user":
            content = bare_texts(content)
        only_results = bool(results) and len(content) == len(results)
        return Outline(
            "tool" if only_results else role,
            tuple(calls),
            tuple(results),
            [content, without(message, ("role", "content"))],
        )

    def is_head(self, message: Mapping[str, Any]) -> bool:
        """See `GatewayWire.is_head`; the system prompt stands beside the messages."""
        return message.get("role") == "system"

    def is_opaque_history(self, message: Mapping[str, Any]) -> bool:
        """See `GatewayWire.is_opaque_history`."""
        content = message.get("content")
        return isinstance(content, list) and any(
            isinstance(block, dict) and block.get("type") == "compaction" for block in content
        )

    def with_text(self, raw: bytes, text: str) -> bytes | None:
        """See `GatewayWire.with_text`. It stands behind results, and behind the block that the client marked for the cache."""
        return with_part(raw, "content", "text", text, strings=True) if decode(raw).get("role") == "user" else None

    def event(self, event: Mapping[str, Any]) -> StreamEvent:
        """See `GatewayWire.event`."""
        kind = event.get("type")
        message = event.get("message")
        usage = message.get("usage") if isinstance(message, dict) else event.get("usage")
        told = usage if isinstance(usage, dict) else None
        return StreamEvent(told, kind == "message_stop", kind == "error", kind in _OPENINGS)

    def usage(self, usage: Mapping[str, Any]) -> Usage | None:
        """See `GatewayWire.usage`."""
        return usage_of(self.name, {"usage": usage})

    def error(self, kind: str, message: str) -> dict[str, Any]:
        """See `GatewayWire.error`."""
        return {"type": "error", "error": {"type": kind, "message": message}}


MESSAGES = Messages()
