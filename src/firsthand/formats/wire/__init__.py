"""Wire formats: provider messages to entries and back."""

from __future__ import annotations

from ...errors import UnknownNameError
from .anthropic.wire import WIRE as ANTHROPIC
from .base import Wire, WireMessages
from .chat.wire import WIRE as OPENAI_CHAT
from .responses.wire import WIRE as OPENAI_RESPONSES
from .text import WIRE as TEXT

__all__ = ["WIRES", "Wire", "WireMessages", "wire_by_name"]

WIRES: dict[str, Wire] = {wire.name: wire for wire in (OPENAI_CHAT, OPENAI_RESPONSES, ANTHROPIC, TEXT)}


def wire_by_name(name: str) -> Wire:
    """The wire format of that name.

    Raises:
        UnknownNameError: there is none; the message lists those that are.
    """
    if name not in WIRES:
        raise UnknownNameError("wire", name, WIRES)
    return WIRES[name]
