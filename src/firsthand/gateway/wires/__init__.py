"""The wire APIs that the gateway speaks, one file each."""

from __future__ import annotations

from .base import GatewayWire, Outline, StreamEvent
from .chat import CHAT
from .messages import MESSAGES
from .responses import RESPONSES

__all__ = ["CHAT", "GATEWAY_WIRES", "MESSAGES", "RESPONSES", "GatewayWire", "Outline", "StreamEvent", "wire_of_path"]

GATEWAY_WIRES: tuple[GatewayWire, ...] = (CHAT, RESPONSES, MESSAGES)


def wire_of_path(path: str) -> GatewayWire | None:
    """The wire whose requests go to this path; None for every other path."""
    path = path.rstrip("/")
    return next((wire for wire in GATEWAY_WIRES if path.endswith(wire.endpoint)), None)
