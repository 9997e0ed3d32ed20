"""What the gateway must know about a wire API beside reading and writing its messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from ...transcript import Usage

__all__ = ["GatewayWire", "Outline", "StreamEvent", "bare_texts", "reminders_removed"]

_OPEN, _CLOSE = "<system-reminder>", "</system-reminder>"


class Outline(NamedTuple):
    """What matching looks at in one message."""

    role: str
    """`user`, `assistant`, `tool`, or what else the wire has."""
    calls: tuple[str, ...]
    """Ids of the calls that it makes and that a client's result must answer."""
    results: tuple[str, ...]
    """Ids of the calls that it answers."""
    content: Any
    """Its content without the client's volatile parts: equal for two forms of one message."""


class StreamEvent(NamedTuple):
    """What one event of a stream says beside content."""

    usage: Mapping[str, Any] | None = None
    """Fields of the provider's usage object; later ones complete earlier ones."""
    finished: bool = False
    """The terminal mark: without it an end of the body is a break (GW-13)."""
    failed: bool = False
    """The provider tells an error inside the stream."""
    opening: bool = False
    """It holds no content yet and may be held back until the next one."""


class GatewayWire(Protocol):
    """One wire API, as the gateway sees it. Instances have no state."""

    name: str
    """As in `firsthand.formats.wire`."""
    endpoint: str
    """Where the path of its requests ends."""
    messages: str
    """The field that holds the conversation."""
    fixed: tuple[str, ...]
    """Fields beside the messages that take tokens: system prompt, tool definitions."""
    output: tuple[str, ...]
    """Fields that may hold the output ceiling, the decisive one first."""

    def outline(self, message: Mapping[str, Any]) -> Outline:
        """What matching looks at in `message`."""
        ...

    def is_head(self, message: Mapping[str, Any]) -> bool:
        """Whether a leading message is an instruction that stays in front, whatever is covered."""
        ...

    def is_opaque_history(self, message: Mapping[str, Any]) -> bool:
        """Whether it stands for earlier history in a form that only the provider can read; nothing up to it may be covered."""
        ...

    def with_text(self, raw: bytes, text: str) -> bytes | None:
        """A user's message or a result with one text more at its end, all else the bytes that came; None where the API has no place for one."""
        ...

    def event(self, event: Mapping[str, Any]) -> StreamEvent:
        """What one JSON event of a stream says."""
        ...

    def usage(self, usage: Mapping[str, Any]) -> Usage | None:
        """The provider's usage object in one meaning."""
        ...

    def error(self, kind: str, message: str) -> dict[str, Any]:
        """An error of the gateway's own in the shape of this API."""
        ...


def bare_texts(parts: list[Any], *, named: bool = False) -> list[Any]:
    """The parts of a user's or a tool's content without reminders that clients glue to the newest message and take away again.

    Where nothing else is left, the parts as they are: a message of reminders alone is told from another by what they say; unless it is
    `named` by the call that it answers.
    """
    bare: list[Any] = []
    for part in parts:
        if isinstance(part, dict) and isinstance(part.get("text"), str):
            text = _without_reminders(part["text"])
            if text:
                bare.append(part if text == part["text"] else {**part, "text": text})
        else:
            bare.append(part)
    return bare if named else bare or parts


def _without_reminders(text: str) -> str:
    """The text without reminders at its end, and without the line ends that clients put between."""
    while (text := text.rstrip()).endswith(_CLOSE):
        start = text.rfind(_OPEN)
        if start < 0:
            break
        text = text[:start]
    return text


def reminders_removed(text: str) -> str:
    """The text without reminders, wherever they stand in it."""
    kept: list[str] = []
    at = 0
    while (start := text.find(_OPEN, at)) >= 0 and (end := text.find(_CLOSE, start)) >= 0:
        kept.append(text[at:start])
        at = end + len(_CLOSE)
    return "".join((*kept, text[at:]))
