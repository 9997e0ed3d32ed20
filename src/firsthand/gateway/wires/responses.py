"""OpenAI's Responses API, as the gateway sees it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...codec import decode
from ...formats.wire.response import usage_of
from ...transcript import Usage
from .base import Outline, StreamEvent, bare_texts
from .content import parsed, parts_of, with_part, without

__all__ = ["RESPONSES", "Responses"]

_ENDS = frozenset({"response.completed", "response.incomplete", "response.failed"})
_OPENINGS = frozenset({"response.created", "response.in_progress", "response.queued"})
_COMPACTIONS = frozenset({"compaction", "compaction_summary"})


class Responses:
    """The wire of Codex. One item is one message of the path."""

    name = "openai-responses"
    endpoint = "/responses"
    messages = "input"
    fixed: tuple[str, ...] = ("instructions", "tools", "text")
    output: tuple[str, ...] = ("max_output_tokens",)

    def outline(self, message: Mapping[str, Any]) -> Outline:
        """See `GatewayWire.outline`."""
        kind = str(message.get("type", "message"))
        call_id = message.get("call_id")
        if kind == "message":
            role = str(message.get("role"))
            parts = parts_of(message.get("content"))
            return Outline(role, (), (), parts if role == "assistant" else bare_texts(parts))
        if isinstance(call_id, str) and kind.endswith("_output"):
            output = message.get("output")
            return Outline("tool", (), (call_id,), bare_texts(parts_of(output), named=True))
        if isinstance(call_id, str) and kind.endswith("_call"):
            rest = without(message, ("arguments", "input", "call_id"))
            asked = parsed(message.get("arguments", message.get("input")))
            return Outline("assistant", (call_id,), (), [rest, asked])
        return Outline("assistant", (), (), without(message))

    def is_head(self, message: Mapping[str, Any]) -> bool:
        """See `GatewayWire.is_head`."""
        return message.get("role") in ("system", "developer")

    def is_opaque_history(self, message: Mapping[str, Any]) -> bool:
        """See `GatewayWire.is_opaque_history`."""
        return message.get("type") in _COMPACTIONS

    def with_text(self, raw: bytes, text: str) -> bytes | None:
        """See `GatewayWire.with_text`. An output that is a string stays one."""
        message = decode(raw)
        if str(message.get("type", "message")).endswith("_output"):
            return with_part(raw, "output", "input_text", text, strings=False)
        return with_part(raw, "content", "input_text", text, strings=True) if message.get("role") == "user" else None

    def event(self, event: Mapping[str, Any]) -> StreamEvent:
        """See `GatewayWire.event`."""
        kind = event.get("type")
        response = event.get("response")
        usage = response.get("usage") if isinstance(response, dict) else None
        failed = kind in ("response.failed", "error")
        return StreamEvent(usage if isinstance(usage, dict) else None, kind in _ENDS, failed, kind in _OPENINGS)

    def usage(self, usage: Mapping[str, Any]) -> Usage | None:
        """See `GatewayWire.usage`."""
        return usage_of(self.name, {"usage": usage})

    def error(self, kind: str, message: str) -> dict[str, Any]:
        """See `GatewayWire.error`."""
        return {"error": {"message": message, "type": kind, "param": None, "code": None}}


RESPONSES = Responses()
