"""Reading what a client sends, within limits."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator

from starlette.types import Receive

__all__ = ["BodyTooLargeError", "ClientGoneError", "pieces", "unpacked", "until_gone", "whole_body"]


class BodyTooLargeError(Exception):
    """The body is larger than the gateway takes."""


class ClientGoneError(Exception):
    """The client closed the connection before its request was whole."""


async def pieces(receive: Receive) -> AsyncIterator[bytes]:
    """The body as it arrives.

    Raises:
        ClientGoneError: the connection closed before its end.
    """
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGoneError
        if message.get("body"):
            yield message["body"]
        if not message.get("more_body", False):
            return


async def whole_body(receive: Receive, at_most: int) -> bytes:
    """The whole body.

    Raises:
        BodyTooLargeError: it has more than `at_most` bytes; the rest was not read.
        ClientGoneError: the connection closed before its end.
    """
    parts: list[bytes] = []
    size = 0
    async for piece in pieces(receive):
        size += len(piece)
        if size > at_most:
            raise BodyTooLargeError
        parts.append(piece)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def unpacked(body: bytes, encoding: str, at_most: int) -> bytes | None:
    """The body without its content encoding; None when we cannot read it.

    Raises:
        BodyTooLargeError: it unpacks to more than `at_most` bytes.
    """
    match encoding.strip().lower():
        case "" | "identity":
            return body
        case "gzip" | "x-gzip" | "deflate":
            unzip = zlib.decompressobj(wbits=47)
            try:
                plain = unzip.decompress(body, at_most + 1)
            except zlib.error:
                return None
            if len(plain) > at_most:
                raise BodyTooLargeError
            return plain if unzip.eof else None
    return None


async def until_gone(receive: Receive) -> None:
    """Returns when the client closes the connection."""
    while (await receive())["type"] != "http.disconnect":
        await asyncio.sleep(0)
