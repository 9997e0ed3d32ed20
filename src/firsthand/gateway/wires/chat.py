"""Chat Completions, as the gateway sees it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...codec import decode
from ...formats.wire.response import usage_of
from ...transcript import Usage
from .base import Outline, StreamEvent, bare_texts
from .content import parsed, parts_of, with_part, without

__all__ = ["CHAT", "Chat"]

_SHOWN = frozenset({"role", "content", "tool_calls", "tool_call_id", "function_call", "reasoning_content", "reasoning"})


class Chat:
    """The wire of OpenAI's Chat Completions and the many servers that speak it."""

    name = "openai-chat"
    endpoint = "/chat/completions"
    messages = "messages"
    fixed: tuple[str, ...] = ("tools", "functions", "response_format")
    output: tuple[str, ...] = ("max_completion_tokens", "max_tokens")

    def outline(self, message: Mapping[str, Any]) -> Outline:
        """See `GatewayWire.outline`. Reasoning that some servers put beside the content is volatile: clients drop it."""
        role = str(message.get("role"))
        parts = parts_of(message.get("content"))
        if role == "assistant":
            calls = [call for call in message.get("tool_calls") or () if isinstance(call, dict)]
            made = [_call(call) for call in calls]
            rest = without(message, _SHOWN)
            ids = tuple(str(call.get("id")) for call in calls)
            return Outline(role, ids, (), [parts, made, rest, message.get("function_call")])
        if role == "tool":
            return Outline(role, (), (str(message.get("tool_call_id")),), bare_texts(parts, named=True))
        return Outline(role, (), (), [bare_texts(parts), without(message, _SHOWN)])

    def is_head(self, message: Mapping[str, Any]) -> bool:
        """See `GatewayWire.is_head`."""
        return message.get("role") in ("system", "developer")

    def is_opaque_history(self, message: Mapping[str, Any]) -> bool:
        """Never: this API has no such thing."""
        return False

    def with_text(self, raw: bytes, text: str) -> bytes | None:
        """See `GatewayWire.with_text`. A tool's content stays a string where it is one: few servers take a list there."""
        role = decode(raw).get("role")
        if role not in ("user", "tool"):
            return None
        return with_part(raw, "content", "text", text, strings=role == "user")

    def event(self, event: Mapping[str, Any]) -> StreamEvent:
        """See `GatewayWire.event`."""
        usage = event.get("usage")
        choices = event.get("choices")
        finished = isinstance(choices, list) and any(
            isinstance(choice, dict) and choice.get("finish_reason") for choice in choices
        )
        opening = isinstance(choices, list) and bool(choices) and all(map(_is_opening, choices))
        return StreamEvent(usage if isinstance(usage, dict) else None, finished, bool(event.get("error")), opening)

    def usage(self, usage: Mapping[str, Any]) -> Usage | None:
        """See `GatewayWire.usage`."""
        return usage_of(self.name, {"usage": usage})

    def error(self, kind: str, message: str) -> dict[str, Any]:
        """See `GatewayWire.error`."""
        return {"error": {"message": message, "type": kind, "param": None, "code": None}}


def _call(call: Mapping[str, Any]) -> Any:
    body = call.get(str(call.get("type") or "function"))
    if not isinstance(body, dict):
        return without(call)
    return [body.get("name"), parsed(body.get("arguments", body.get("input")))]


def _is_opening(choice: Any) -> bool:
    """Whether a choice only names the role so far."""
    if not isinstance(choice, dict) or choice.get("finish_reason"):
        return False
    delta = choice.get("delta")
    return isinstance(delta, dict) and not any(value for name, value in delta.items() if name != "role")


CHAT = Chat()
