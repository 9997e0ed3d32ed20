"""What the three wires share: one turn's ids and numbers, the places where a stream can be cut, and the framing of events."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from ...codec import encode
from ...transcript import Usage
from .script import Cut, Reply

__all__ = ["CREATED", "Events", "Turn", "WireServer", "event", "pieces", "split_arguments"]

CREATED = 1_700_000_000
"""The time that every answer names: answers depend on the script alone, never on a clock."""

Events: TypeAlias = Iterator[bytes | Cut]
"""A stream in order: the bytes of its events, and between them the names of the places where it could be cut."""


@dataclass(frozen=True)
class Turn:
    """One request, as far as an answer depends on it."""

    number: int
    """1-based, in order of arrival."""
    request: Mapping[str, Any]
    usage: Usage
    """What is to be reported."""

    @property
    def model(self) -> str:
        """The model that the request asked for."""
        return str(self.request.get("model", ""))

    def id(self, prefix: str, index: int | None = None) -> str:
        """An id that depends on the request's number only."""
        return f"{prefix}_{self.number:06d}" + ("" if index is None else f"_{index}")


class WireServer(Protocol):
    """The serving side of one wire: a reply as a body, as a stream, and errors in the wire's own form."""

    provider: str
    """Row of the overflow table that a request on this wire is refused with by default."""

    def body(self, reply: Reply, turn: Turn) -> dict[str, Any]:
        """The whole answer of a request that does not stream."""
        ...

    def events(self, reply: Reply, turn: Turn) -> Events:
        """The same answer as a stream."""
        ...

    def error(self, turn: Turn, kind: str, message: str, *, code: str | None = None, param: str | None = None) -> Any:
        """An error's body. `kind` is the error's type as this wire names it."""
        ...

    def error_events(self, turn: Turn, body: Any, after: str) -> Events:
        """A stream that tells an error, after some text."""
        ...


def event(data: Any, name: str | None = None) -> bytes:
    """One server-sent event; JSON unless it is bytes already."""
    payload = data if isinstance(data, bytes) else encode(data)
    return (f"event: {name}\n".encode() if name else b"") + b"data: " + payload + b"\n\n"


def pieces(text: str, size: int | None) -> list[str]:
    """`text` as a stream sends it: words with what follows them, or pieces of `size` characters. Joined they are `text`."""
    if size is None:
        return re.findall(r"\S+\s*|\s+", text)
    return [text[at : at + size] for at in range(0, len(text), size)]


def split_arguments(text: str, size: int | None) -> list[str]:
    """The arguments of a call as a stream sends them: two halves, or pieces of `size` characters; at least one piece."""
    return pieces(text, size or max(1, (len(text) + 1) // 2)) or [""]
