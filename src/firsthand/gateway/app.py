"""The gateway as an ASGI application: its own few pages, and the relay behind every other path."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path as FilePath
from typing import Any

from httpx2 import AsyncBaseTransport
from starlette.applications import Starlette
from starlette.routing import Mount

from ..journal import Journal
from .config import GatewayConfig
from .engine import Engine
from .pages import Pages
from .relay import Relay
from .store import GatewayStore
from .telemetry import Telemetry
from .upstream import Upstreams

__all__ = ["build_app"]


def build_app(
    config: GatewayConfig, telemetry: Telemetry | None = None, *, transport: AsyncBaseTransport | None = None
) -> Starlette:
    """The application of one gateway. It opens its journal when it starts serving and closes it when it stops.

    In mode `off` there is no journal: nothing is looked into and nothing stored.

    Args:
        config: how it is set up.
        telemetry: where it logs and counts.
        transport: reaches all upstreams in place of HTTP connections.
    """
    told = telemetry or Telemetry()
    pages = Pages(config, told)

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        upstreams = Upstreams(config, transport)
        journal = engine = None
        if config.mode != "off":
            journal = Journal.open(FilePath(config.journal) if config.journal else None)
            engine = Engine(config, GatewayStore(journal, config.strategy), told.decided)
        pages.opened(journal, engine)
        app.state.engine = engine
        relay.append(Relay(config, engine, upstreams, told))
        forgetting = asyncio.ensure_future(pages.forget_old()) if journal and config.retention_days else None
        try:
            yield
        finally:
            if forgetting is not None:
                forgetting.cancel()
            await upstreams.close()
            if engine is not None:
                await engine.close()
            if journal is not None:
                journal.close()

    relay: list[Relay] = []

    async def passed_on(scope: Any, receive: Any, send: Any) -> None:
        await relay[0](scope, receive, send)

    return Starlette(
        routes=[
            *pages.routes(),
            Mount("/", app=passed_on),
        ],
        lifespan=lifespan,
    )
