"""Takes the shape of a real client's requests: a fake model server waits for one that has a system prompt and tools, and keeps these."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from ...errors import ConfigError, FirsthandError
from ...testing.server import FakeServer, Received, Reply
from .shape import RequestShape, shape_of_body

__all__ = ["Captured", "capture"]

_PATIENCE = 5.0


@dataclass(frozen=True, slots=True)
class Captured:
    """A shape, and the request that it was taken from. No header of it is kept but the client's name."""

    shape: RequestShape
    wire: str
    client: str
    others: int
    """Requests before it that had no system prompt or no tools: titles, warm-ups, model lists."""


def capture(
    seconds: float, *, port: int = 0, host: str = "127.0.0.1", ready: Callable[[str], None] = lambda url: None
) -> Captured:
    """The shape of the first request with system prompt and tools that arrives. All requests are answered with a short text.

    Args:
        seconds: how long to wait.
        port: where to listen; 0 for a free port.
        host: the address to listen at.
        ready: called with the server's address, without `/v1`, when it listens.

    Raises:
        FirsthandError: none arrived in time; says what arrived instead.
        ConfigError: the address cannot be had.
        MissingExtraError: the extra `testing` is not installed.
    """
    found: list[tuple[RequestShape, Received]] = []
    passed: list[str] = []
    arrived = threading.Event()

    def look(got: Received) -> None:
        if arrived.is_set() or got.wire is None or not isinstance(got.json, dict):
            return
        try:
            shape = shape_of_body(got.json)
        except ConfigError as error:
            passed.append(str(error))
            return
        found.append((shape, got))
        arrived.set()

    # Clients differ in what they take for a whole answer; validity is their business here.
    with FakeServer(default=Reply("ok"), on_request=look, validate=False, host=host, port=port) as server:
        ready(server.url)
        if arrived.wait(seconds):
            _until_answered(found[0][1])
        received = len(server.requests)
    if not found:
        came = f"{received:,} requests came, none of them with both" if received else "no request came"
        why = f" ({'; '.join(dict.fromkeys(passed))})" if passed else ""
        raise FirsthandError(
            f"nothing was captured in {seconds:g} s: {came}{why}; point the client's base URL at the address and send one ordinary turn"
        )
    shape, got = found[0]
    return Captured(shape, got.wire or "", got.headers.get("user-agent", "")[:200], len(passed))


def _until_answered(got: Received) -> None:
    """Lets the client have its answer, so that it does not try again at an address that is gone."""
    until = time.monotonic() + _PATIENCE
    while not got.finished and time.monotonic() < until:
        time.sleep(0.02)
