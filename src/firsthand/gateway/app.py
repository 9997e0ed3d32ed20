"""The gateway as an ASGI application: its own few pages, and the relay behind every other path."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path as FilePath
from typing import Any

from httpx2 import AsyncBaseTransport
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route

from .. import __version__
from ..errors import SessionNotFoundError
from ..journal import Journal
from .config import GatewayConfig
from .engine import Engine
from .headers import from_elsewhere, shown_keys
from .relay import Relay
from .store import FORMAT, GatewayStore
from .telemetry import Telemetry
from .upstream import Upstreams

__all__ = ["build_app"]

_HOUR = 3_600.0


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
    pages = _Pages(config, told)

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        upstreams = Upstreams(config, transport)
        journal = engine = None
        if config.mode != "off":
            journal = Journal.open(FilePath(config.journal) if config.journal else None)
            engine = Engine(config, GatewayStore(journal, config.strategy), told.info)
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
            Route("/_firsthand/health", pages.health),
            Route("/_firsthand/status", pages.status),
            Route("/_firsthand/sessions", pages.sessions, methods=["GET", "DELETE"]),
            Route("/_firsthand/sessions/{session}", pages.session, methods=["DELETE"]),
            Route("/metrics", pages.metrics),
            Route("/_firsthand/metrics", pages.metrics),
            Route("/_firsthand/{rest:path}", pages.nothing),
            Mount("/", app=passed_on),
        ],
        lifespan=lifespan,
    )


class _Pages:
    """The gateway's own pages. With gateway keys each needs one, and shows what belongs to its tenant."""

    def __init__(self, config: GatewayConfig, telemetry: Telemetry) -> None:
        self._config = config
        self._telemetry = telemetry
        self._journal: Journal | None = None
        self._engine: Engine | None = None

    def opened(self, journal: Journal | None, engine: Engine | None) -> None:
        """Called when the gateway begins to serve."""
        self._journal = journal
        self._engine = engine

    async def health(self, request: Request) -> Response:
        """Whether it serves; needs no key and tells nothing else."""
        return JSONResponse({"status": "ok", "version": __version__})

    async def nothing(self, request: Request) -> Response:
        """What the gateway does not have is not asked of an upstream."""
        return JSONResponse({"error": {"message": f"the gateway has no page {request.url.path}"}}, 404)

    async def status(self, request: Request) -> Response:
        """What it is doing, live."""
        tenant = self._tenant(request)
        if tenant is None:
            return _unknown()
        known = self._engine.paths.tenant(tenant).paths if self._engine else {}
        recent = [
            {
                "session": path.session, "wire": path.wire, "messages": len(path.facts), "checkpoints": len(path.fronts),
                "covered": path.fronts[-1].covered if path.fronts else 0,
                "reported": path.anchor.usage.total if path.anchor else None,
            }
            for path in list(known.values())[-20:]
        ]  # fmt: skip
        return JSONResponse(
            {
                "version": __version__,
                "mode": self._config.mode,
                "strategy": self._config.strategy.name,
                "upstreams": {upstream.name: upstream.url for upstream in self._config.upstreams},
                "since": datetime.fromtimestamp(self._telemetry.started, UTC).isoformat(timespec="seconds"),
                "tenant": tenant,
                "sessions": recent[::-1],
                "totals": self._telemetry.sums() if not self._config.keys else {},
            }
        )

    async def metrics(self, request: Request) -> Response:
        """The numbers of the whole gateway; none of them names a session or a tenant."""
        if self._tenant(request) is None:
            return _unknown()
        return Response(self._telemetry.page(), media_type="text/plain; version=0.0.4; charset=utf-8")

    async def sessions(self, request: Request) -> Response:
        """The tenant's sessions; DELETE deletes them all."""
        tenant = self._tenant(request)
        if tenant is None:
            return _unknown()
        if self._journal is None:
            return JSONResponse({"sessions": []})
        found = await asyncio.to_thread(self._journal.sessions, tenant=tenant, format=FORMAT)
        if request.method == "DELETE":
            deleted = [await self._deleted(tenant, info.id) for info in found]
            return JSONResponse({"deleted": [session for session in deleted if session]})
        rows = [
            {"session": info.id, "entries": info.path_entries, "model": info.model, "changed_ms": info.changed_ms}
            for info in found
        ]
        return JSONResponse({"sessions": rows})

    async def session(self, request: Request) -> Response:
        """Deletes one session of the tenant."""
        tenant, session = self._tenant(request), request.path_params["session"]
        if tenant is None:
            return _unknown()
        found = (
            []
            if self._journal is None
            else await asyncio.to_thread(self._journal.sessions, tenant=tenant, format=FORMAT)
        )
        if session not in [info.id for info in found]:
            return JSONResponse({"error": {"message": "there is no such session"}}, 404)
        return JSONResponse({"deleted": [await self._deleted(tenant, session)]})

    async def forget_old(self) -> None:
        """Deletes, once an hour, the sessions in which nothing was said for the configured time."""
        assert self._journal is not None
        while True:
            limit = datetime.now(UTC) - timedelta(days=self._config.retention_days or 0)
            old = await asyncio.to_thread(self._journal.silent_since, limit.isoformat())
            ours = {info.id: info.tenant for info in await asyncio.to_thread(self._journal.sessions, format=FORMAT)}
            for session in old:
                if session in ours:
                    await self._deleted(ours[session], session)
            await asyncio.sleep(_HOUR)

    async def _deleted(self, tenant: str, session: str) -> str | None:
        assert self._journal is not None
        assert self._engine is not None
        known = self._engine.paths.tenant(tenant)
        if session in known.paths:
            self._engine.paths.forget(known, known.paths[session])
        await self._engine.recorder.flush()
        try:
            await asyncio.to_thread(self._journal.delete, session)
        except SessionNotFoundError:
            return None
        return session

    def _tenant(self, request: Request) -> str | None:
        named = {name.lower(): value for name, value in request.headers.items()}
        if not self._config.keys and from_elsewhere(named):
            return None
        return self._config.tenant(shown_keys(named))


def _unknown() -> Response:
    return JSONResponse({"error": {"message": "this needs a gateway key; send it as x-firsthand-key"}}, 401)
