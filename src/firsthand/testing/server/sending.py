"""Writing an answer to the connection: pace, pieces, content encoding, and breaking off."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Iterable, Mapping

from starlette.types import Receive, Scope, Send

from .received import Received
from .script import Cut

__all__ = ["Pace", "Sending"]


class Pace:
    """Waits that end when the server stops, so that no slow answer outlives it."""

    def __init__(self, stopping: asyncio.Event) -> None:
        self._stopping = stopping

    async def wait(self, seconds: float) -> bool:
        """Waits; False when the server is stopping and the answer must be given up."""
        if self._stopping.is_set():
            return False
        if seconds <= 0:
            return True
        try:
            await asyncio.wait_for(self._stopping.wait(), seconds)
        except TimeoutError:
            return True
        return False


class Sending:
    """An answer as an ASGI response.

    `parts` are bytes and names of places; at the place named `cut` the answer ends, cleanly or by closing the connection without the
    mark that ends a body, which clients see as a broken connection.
    """

    def __init__(
        self,
        got: Received,
        parts: Iterable[bytes | Cut],
        pace: Pace,
        *,
        status: int = 200,
        headers: Mapping[str, str],
        length: int | None = None,
        delay: float = 0.0,
        chunk_delay: float = 0.0,
        chunk_size: int | None = None,
        cut: Cut | None = None,
        cut_cleanly: bool = False,
        gzip: bool = False,
    ) -> None:
        self._got = got
        self._parts = parts
        self._pace = pace
        self._status = status
        self._headers = dict(headers)
        if length is not None:
            self._headers["content-length"] = str(length)
        self._delay = delay
        self._chunk_delay = chunk_delay
        self._chunk_size = chunk_size
        self._cut = cut
        self._clean = cut_cleanly
        self._zip = zlib.compressobj(wbits=31) if gzip else None
        if gzip:
            self._headers["content-encoding"] = "gzip"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends the answer. Returning before its last part makes the server close the connection."""
        try:
            await self._send(send)
        except OSError:
            return  # the client went away, which `Received.finished` tells

    async def _send(self, send: Send) -> None:
        if not await self._pace.wait(self._delay):
            return
        self._got.status = self._status
        headers = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in self._headers.items()]
        await send({"type": "http.response.start", "status": self._status, "headers": headers})
        waiting = b""
        was_cut = False
        for part in self._parts:
            if isinstance(part, str):
                was_cut = part == self._cut
                if was_cut:
                    break
                continue
            waiting += part if self._zip is None else self._zip.compress(part) + self._zip.flush(zlib.Z_SYNC_FLUSH)
            size = self._chunk_size or max(1, len(waiting))
            while len(waiting) >= size:
                if not await self._write(send, waiting[:size]):
                    return
                waiting = waiting[size:]
        if self._zip is not None and not was_cut:
            waiting += self._zip.flush()
        if waiting and not await self._write(send, waiting):
            return
        self._got.finished = True
        if not was_cut or self._clean:
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _write(self, send: Send, data: bytes) -> bool:
        if not await self._pace.wait(self._chunk_delay):
            return False
        await send({"type": "http.response.body", "body": data, "more_body": True})
        # One write, one turn of the loop: many streams advance side by side.
        await asyncio.sleep(0)
        return True
