"""The gateway's own pages: health, status, metrics, and one's own sessions."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from .. import __version__
from ..errors import FirsthandError, SessionNotFoundError
from ..journal import Journal
from .config import GatewayConfig
from .engine import Engine
from .headers import from_elsewhere, shown_keys
from .store import FORMAT
from .telemetry import Telemetry

__all__ = ["API", "Pages"]

_HOUR = 3_600.0


def _answer(text: str, schema: dict[str, Any] | None = None, kind: str = "application/json") -> dict[str, Any]:
    return {"description": text, "content": {kind: {"schema": schema or {"type": "object"}}}}


def _object(**properties: str | dict[str, Any]) -> dict[str, Any]:
    made = {name: {"type": kind} if isinstance(kind, str) else kind for name, kind in properties.items()}
    return {"type": "object", "properties": made, "required": list(made)}


_ERROR = _object(error=_object(message="string"))
_KEYLESS = {"401": _answer("no gateway key", _ERROR)}
_SESSIONS = {"type": "array", "items": _object(session="string", entries="integer", changed_ms="integer")}
_DELETED = {
    "200": _answer("what was deleted", _object(deleted={"type": "array", "items": {"type": "string"}})),
    **_KEYLESS,
}
_SESSION = {"name": "session", "in": "path", "required": True, "schema": {"type": "string"}}
_STATUS = _object(
    version="string", mode="string", strategy="string", upstreams="object", since="string", tenant="string",
    sessions="array", totals="object",
)  # fmt: skip

API: dict[str, Any] = {
    "openapi": "3.1.0",
    "info": {"title": "firsthand gateway", "version": __version__},
    "paths": {
        "/_firsthand/health": {
            "get": {"responses": {"200": _answer("it serves", _object(status="string", version="string"))}}
        },
        "/_firsthand/status": {"get": {"responses": {"200": _answer("what it is doing", _STATUS), **_KEYLESS}}},
        "/_firsthand/sessions": {
            "get": {"responses": {"200": _answer("the tenant's sessions", _object(sessions=_SESSIONS)), **_KEYLESS}},
            "delete": {"responses": _DELETED},
        },
        "/_firsthand/sessions/{session}": {
            "delete": {"parameters": [_SESSION], "responses": {**_DELETED, "404": _answer("there is none", _ERROR)}}
        },
        "/metrics": {
            "get": {"responses": {"200": _answer("for Prometheus", {"type": "string"}, "text/plain"), **_KEYLESS}}
        },
    },
}
"""The pages as an OpenAPI document."""


class Pages:
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

    def routes(self) -> list[Route]:
        """Where they are. What the gateway does not have is not asked of an upstream."""
        return [
            Route("/_firsthand/health", self.health),
            Route("/_firsthand/openapi.json", self.openapi),
            Route("/_firsthand/status", self.status),
            Route("/_firsthand/sessions", self.sessions, methods=["GET", "DELETE"]),
            Route("/_firsthand/sessions/{session}", self.session, methods=["DELETE"]),
            Route("/_firsthand/metrics", self.metrics),
            Route("/metrics", self.metrics),
            Route("/_firsthand/{rest:path}", self.nothing),
        ]

    async def openapi(self, request: Request) -> Response:
        """What these pages take and give, for programs."""
        return JSONResponse(API)

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
            try:
                await self._forget(datetime.now(UTC) - timedelta(days=self._config.retention_days or 0))
            except FirsthandError as error:
                self._telemetry.failed("old sessions could not be deleted; another attempt follows", "retention", error)
            await asyncio.sleep(_HOUR)

    async def _forget(self, limit: datetime) -> None:
        assert self._journal is not None
        old = await asyncio.to_thread(self._journal.silent_since, limit.isoformat())
        ours = {info.id: info.tenant for info in await asyncio.to_thread(self._journal.sessions, format=FORMAT)}
        for session in old:
            if session in ours:
                await self._deleted(ours[session], session)

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
