"""A copy of the answer, read while its bytes are relayed: what the provider counted, and whether it came to its end.

What the model said is not kept: the next request shows it as the client took it (design.md 9).
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from typing import Any

from ..codec import decode
from ..errors import FormatError
from ..formats.wire.response import finish_reason, response_entries, said_nothing
from ..session.overflow.classifying import classify, length_stop
from ..transcript import ToolCall, Usage
from .wires.base import GatewayWire, StreamEvent

__all__ = ["EventSplitter", "ReplyReader", "stopped_full"]

_LARGEST = 32 * 1024 * 1024


class EventSplitter:
    """The data of server-sent events, out of pieces that may break anywhere, also inside a character (GW-12)."""

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """The data of each event that this piece completes."""
        lines = (self._rest + piece).split(b"\n")
        self._rest = lines.pop()
        if len(self._rest) > _LARGEST:
            raise ValueError(f"a line of a stream has more than {_LARGEST:,} bytes")
        for line in lines:
            line = line.removesuffix(b"\r")
            if not line:
                if self._data:
                    yield b"\n".join(self._data)
                    self._data = []
            elif line.startswith(b"data:"):
                self._data.append(line[5:].removeprefix(b" "))


class ReplyReader:
    """Reads one answer of a wire, streamed or whole. Whatever cannot be read is left alone: the client gets its bytes all the same."""

    def __init__(self, wire: GatewayWire, content_type: str, encoding: str) -> None:
        self._wire = wire
        self.streamed = "event-stream" in content_type
        self.value: Any = None
        """The answer that was no stream, once it has ended."""
        self._events = EventSplitter()
        self._body = bytearray()
        self._usage: dict[str, Any] = {}
        self._unzip = zlib.decompressobj(wbits=47) if encoding in ("gzip", "deflate", "x-gzip") else None
        self.readable = self._unzip is not None or encoding in ("", "identity")
        self.finished = False
        self.failed: Any = None
        """The error that the provider told inside the answer."""

    def feed(self, piece: bytes) -> None:
        """Read on. Never raises."""
        if not self.readable:
            return
        try:
            self._read(self._unzip.decompress(piece) if self._unzip else piece)
        except (ValueError, zlib.error, RecursionError):
            self.readable = False

    def opening(self, piece: bytes) -> bool:
        """Read on, and say whether nothing but events without content was seen in this piece."""
        before, self._only_openings = self.finished, True
        self.feed(piece)
        return self.readable and self._only_openings and not self.finished and not before and self.failed is None

    def ended(self) -> None:
        """The body ended in good order."""
        if not self.streamed and self.readable:
            try:
                value = decode(bytes(self._body))
            except (ValueError, RecursionError):
                self.readable = False
                return
            if isinstance(value, dict):
                self.value = value
                self._note(StreamEvent(value["usage"] if isinstance(value.get("usage"), dict) else None))
            self.finished = True

    @property
    def usage(self) -> Usage | None:
        """What the provider counted, as far as it has said so."""
        return self._wire.usage(self._usage) if self._usage else None

    _only_openings = True

    def _read(self, data: bytes) -> None:
        if not self.streamed:
            self._body += data
            if len(self._body) > _LARGEST:
                self._body.clear()
                self.readable = False
            return
        for event in self._events.feed(data):
            if event == b"[DONE]":
                self.finished = True
                continue
            value = decode(event)
            if not isinstance(value, dict):
                continue
            told = self._wire.event(value)
            self._only_openings = self._only_openings and told.opening
            self._note(told)
            if told.failed:
                self.failed = value

    def _note(self, told: StreamEvent) -> None:
        if told.usage:
            # Anthropic's last report completes its first: fields that it repeats are the newer ones.
            self._usage.update({name: value for name, value in told.usage.items() if value is not None})
        self.finished = self.finished or told.finished


def stopped_full(wire: str, response: Mapping[str, Any], sent: int, window: int | None) -> bool:
    """Whether an answer ended because the window was full, so that the same request, made smaller, may be answered (OV-07, OV-13).

    One that makes calls is the client's, however it ended.

    Args:
        wire: as in `firsthand.formats.wire`.
        response: the answer's JSON.
        sent: tokens of the request by our count, where the provider says none.
        window: the window in force; None where it is unknown.
    """
    try:
        read = response_entries(wire, response)
    except (FormatError, TypeError, AttributeError, KeyError):
        return False
    if any(isinstance(block, ToolCall) for entry in read for block in entry.blocks):
        return False
    if classify(200, response).kind == "overflow":
        return True
    if finish_reason(wire, response) not in ("length", "max_tokens", "max_output_tokens"):
        return False
    usage = read[-1].usage if read else None
    sent = usage.input_tokens if usage and usage.input_tokens else sent
    return length_stop(sent, usage.output_tokens if usage else 0, window, said=not said_nothing(read)) == "overflow"
