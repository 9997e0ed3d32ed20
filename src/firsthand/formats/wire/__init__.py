"""Wire formats: provider messages to entries and back."""

from __future__ import annotations

from ...errors import UnknownNameError
from . import anthropic, openai_chat, openai_responses, text
from .base import Wire, WireMessages

__all__ = ["WIRES", "Wire", "WireMessages", "wire_by_name"]

WIRES: dict[str, Wire] = {
    wire.name: wire for wire in (openai_chat.WIRE, openai_responses.WIRE, anthropic.WIRE, text.WIRE)
}


def wire_by_name(name: str) -> Wire:
    """The wire format of that name.

    Raises:
        UnknownNameError: there is none; the message lists those that are.
    """
    if name not in WIRES:
        raise UnknownNameError("wire", name, WIRES)
    return WIRES[name]
