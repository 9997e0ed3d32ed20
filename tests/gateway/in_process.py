"""A gateway and the fake model server in one event loop, without sockets: for thousands of conversations."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, Self, TypeVar

import httpx2
from gatewayed import PATHS, request

from firsthand.gateway.app import build_app
from firsthand.gateway.config import GatewayConfig, Upstream
from firsthand.gateway.telemetry import Telemetry
from firsthand.testing.server import FakeServer
from firsthand.testing.server.app import build_app as build_server

T = TypeVar("T")


class InProcess:
    """Requests go through the whole gateway; only the connections are missing."""

    def __init__(self, folder: Path, server: FakeServer | None = None, **settings: Any) -> None:
        self.server = server or FakeServer(validate=False, cache=False)
        config = GatewayConfig(
            [Upstream("default", "http://127.0.0.1:9")], registry=False, journal=str(folder / "gateway.db"), **settings
        )
        self.log = io.StringIO()
        upstream = httpx2.ASGITransport(app=build_server(self.server._settings))
        self.app = build_app(config, Telemetry(self.log), transport=upstream)
        self.loop = asyncio.new_event_loop()
        self._lifespan = self.app.router.lifespan_context(self.app)
        self._client = httpx2.AsyncClient(transport=httpx2.ASGITransport(app=self.app), base_url="http://127.0.0.1")

    def __enter__(self) -> Self:
        self.do(self._lifespan.__aenter__())
        return self

    def __exit__(self, *exc: object) -> None:
        self.do(self._client.aclose())
        self.do(self._lifespan.__aexit__(None, None, None))
        self.loop.close()

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(work)

    def send(self, wire: str, body: bytes, headers: dict[str, str] | None = None) -> httpx2.Response:
        sent = {"content-type": "application/json", **(headers or {})}
        return self.do(self._client.post(PATHS[wire], content=body, headers=sent))

    def ask(self, wire: str, messages: Any, headers: dict[str, str] | None = None, **more: Any) -> httpx2.Response:
        return self.send(wire, json.dumps(request(wire, messages, **more)).encode(), headers)

    @property
    def arrived(self) -> Any:
        """The newest request that the server got."""
        return self.server.requests[-1]
