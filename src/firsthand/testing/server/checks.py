"""What makes a request invalid: the fields that each API demands, and the rules of `firsthand.testing.validate` for its messages."""

from __future__ import annotations

from typing import Any

from ..validate import validate
from .received import WireName

__all__ = ["Fault", "faults"]

Fault = tuple[str | None, str]
"""The parameter at fault and what is wrong with it."""

_MESSAGES = {"openai-chat": "messages", "openai-responses": "input", "anthropic": "messages"}


def faults(wire: WireName, body: Any, *, messages: bool = True, beta: str = "") -> list[Fault]:
    """Everything that the provider would refuse the request for; [] for a valid one.

    Args:
        wire: the wire that was called.
        body: the parsed body; None where it was no JSON.
        messages: whether the messages are judged by the validator as well.
        beta: Anthropic's header `anthropic-beta`; with one for the middle of a conversation, system messages may stand there.
    """
    if not isinstance(body, dict):
        return [(None, "the body is no JSON object")]
    found: list[Fault] = []
    if not isinstance(body.get("model"), str) or not body["model"]:
        found.append(("model", "field required"))
    if not isinstance(body.get("stream", False), bool | None):
        found.append(("stream", "must be true or false"))
    name = _MESSAGES[wire]
    value = body.get(name)
    if isinstance(value, str) and wire == "openai-responses":
        value = [{"role": "user", "content": value}]
    if not isinstance(value, list) or not value:
        found.append((name, "must be a list with at least one message"))
    if wire == "anthropic":
        ceiling = body.get("max_tokens")
        if not isinstance(ceiling, int) or isinstance(ceiling, bool) or ceiling < 1:
            found.append(("max_tokens", "field required, at least 1"))
    if found or not messages:
        return found
    if wire == "anthropic" and "mid-conversation" in beta:
        given = [message for message in value or () if not _is_instruction(message)]
        body = {**body, name: given}
    return [
        (f"{name}.{fault.index}" if fault.index >= 0 else name, f"{fault.rule}: {fault.explanation}")
        for fault in validate(wire, body)
    ]


def _is_instruction(message: Any) -> bool:
    return isinstance(message, dict) and message.get("role") == "system"
