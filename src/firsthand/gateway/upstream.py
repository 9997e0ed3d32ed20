"""Connections to the providers: raw requests out, raw answers back. No redirects, no cookies, nothing added."""

from __future__ import annotations

import urllib.request
from collections.abc import AsyncIterable, AsyncIterator, Mapping
from typing import Any
from urllib.parse import urlsplit

import httpx2

from .config import GatewayConfig, Upstream

__all__ = ["Answer", "UpstreamError", "Upstreams", "host_of"]

UpstreamError = httpx2.TransportError
"""What the transport raises when a provider cannot be reached or breaks off."""

_KEPT_OPEN = 30.0


class Answer:
    """An upstream's answer: its headers are there, its body comes."""

    def __init__(self, response: httpx2.Response) -> None:
        self._response = response
        self.status = response.status_code
        self.headers = response.headers.raw
        self.named: Mapping[str, str] = response.headers
        """By name in any case."""
        self.body: AsyncIterator[bytes] = response.aiter_raw()
        """The bytes that were not read yet, as they come on the wire.

        Raises `UpstreamError` when the connection breaks."""

    async def close(self) -> None:
        """Give the connection back, or up where the body was not read to its end."""
        await self._response.aclose()


class Upstreams:
    """One pool of connections for each upstream; or one transport for all, to reach a server in this process."""

    def __init__(self, config: GatewayConfig, transport: httpx2.AsyncBaseTransport | None = None) -> None:
        self._timeout = {
            "connect": config.connect_timeout,
            "read": config.read_timeout,
            "write": config.read_timeout,
            "pool": None,
        }
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=100, keepalive_expiry=_KEPT_OPEN)
        self._transports: dict[str, httpx2.AsyncBaseTransport] = {
            upstream.name: transport or httpx2.AsyncHTTPTransport(limits=limits, proxy=_proxy(upstream))
            for upstream in config.upstreams
        }

    async def send(
        self,
        upstream: Upstream,
        method: str,
        url: str,
        headers: list[tuple[bytes, bytes]],
        body: bytes | AsyncIterable[bytes],
    ) -> Answer:
        """Send a request; returns when the answer's headers are there.

        Raises:
            UpstreamError: it could not be sent, or broke off before the headers.
        """
        transport = self._transports[upstream.name]
        extensions: dict[str, Any] = {"timeout": self._timeout}
        request = httpx2.Request(method, url, headers=headers, content=body, extensions=extensions)
        try:
            return Answer(await transport.handle_async_request(request))
        except httpx2.RemoteProtocolError:
            if not isinstance(body, bytes):
                raise
        # A connection that was kept open was closed at the other end just then; a fresh one tells whether that was all.
        request = httpx2.Request(method, url, headers=headers, content=body, extensions=extensions)
        return Answer(await transport.handle_async_request(request))

    async def close(self) -> None:
        """Close all connections."""
        for transport in self._transports.values():
            await transport.aclose()


def host_of(url: str) -> str:
    """The value of a Host header for a URL."""
    return urlsplit(url).netloc


def _proxy(upstream: Upstream) -> str | None:
    """The proxy that the environment names for this upstream; none leads to this machine itself."""
    parts = urlsplit(upstream.url)
    if upstream.is_loopback or (parts.hostname and urllib.request.proxy_bypass(parts.hostname)):
        return None
    return urllib.request.getproxies().get(parts.scheme)
