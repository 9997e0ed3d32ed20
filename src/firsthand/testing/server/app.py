"""The fake model server as an ASGI application: paths, checks, the script, and the three wires."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import zlib
from collections import defaultdict
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from ...codec import decode, encode
from ...transcript import Usage
from . import other_paths
from .accounting import PrefixCache, output_tokens, request_pieces
from .checks import faults
from .failures import failed, overflow_shape, refused
from .received import Received, WireName
from .script import Answer, Failure, Raw, Reply
from .sending import Pace, Sending
from .settings import Settings
from .stream import Turn, WireServer
from .wire_chat import ChatServer
from .wire_messages import MessagesServer
from .wire_responses import ResponsesServer, compacted, wants_compaction

__all__ = ["build_app"]

_WIRES: dict[WireName, WireServer] = {
    "openai-chat": ChatServer(),
    "openai-responses": ResponsesServer(),
    "anthropic": MessagesServer(),
}
_PATHS: dict[str, WireName] = {
    "/chat/completions": "openai-chat",
    "/responses": "openai-responses",
    "/messages": "anthropic",
}
_JSON = "application/json"


def build_app(settings: Settings) -> ASGIApp:
    """The application that answers by `settings` and logs into `settings.log`."""
    serving = _Serving(settings)

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        settings.started(asyncio.get_running_loop(), serving.stopping)
        yield

    methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
    return Starlette(routes=[Route("/{path:path}", serving.answer, methods=methods)], lifespan=lifespan)


class _Serving:
    """What all requests of one server share."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.stopping = asyncio.Event()
        self.pace = Pace(self.stopping)
        # A provider's cache serves one model on one API.
        self.caches: defaultdict[tuple[WireName, str], PrefixCache] = defaultdict(PrefixCache)

    async def answer(self, request: Request) -> Response:
        """Logs a request and answers it."""
        body = await request.body()
        got = Received(
            number=len(self.settings.log) + 1,
            method=request.method,
            path=request.url.path,
            query=request.url.query,
            headers=_joined(request.headers.items()),
            body=body,
        )
        got.json, unreadable = _parsed(body, got.headers.get("content-encoding", ""))
        path = got.path.rstrip("/").removeprefix("/v1") or "/"
        if request.method == "POST":
            got.wire = _PATHS.get(path)
        self.settings.log.append(got)
        try:
            sending = await self._model(got, unreadable) if got.wire else self._other(got, path)
            if self.settings.on_request is not None:
                self.settings.on_request(got)
        except Exception as error:  # raised where the test sees it, on leaving the server
            self.settings.errors.append(error)
            sending = self._json(got, {"error": {"message": f"the fake server failed: {error!r}"}}, status=500)
        return sending  # type: ignore[return-value]  # Starlette calls whatever ASGI app an endpoint returns

    def _other(self, got: Received, path: str) -> Sending:
        """Model lists, counts, compaction by path, and what no API has."""
        status, value, headers = other_paths.respond(got, path, self.settings)
        return self._json(got, value, status=status, headers=headers)

    async def _model(self, got: Received, unreadable: str) -> Sending:
        """The answer of one of the three wires; `unreadable` says why there is no JSON."""
        assert got.wire is not None
        wire = _WIRES[got.wire]
        request = got.json if isinstance(got.json, dict) else {}
        turn = Turn(got.number, request, Usage(input_tokens=0))
        beta = got.headers.get("anthropic-beta", "")
        judged = self.settings.validate
        found = [(None, unreadable)] if unreadable else faults(got.wire, got.json, messages=judged, beta=beta)
        if found:
            got.violations = tuple(f"{param}: {message}" if param else message for param, message in found)
            return self._json(got, refused(turn, wire, *found[0]), status=400)
        pieces = request_pieces(request, self.settings.counter)
        got.tokens = sum(piece.tokens for piece in pieces)
        window = self.settings.window
        if window is not None and got.tokens > window and self.settings.overflow == "refuse":
            shape = overflow_shape(self.settings.provider, wire)
            return self._json(got, shape.example(window, got.tokens), status=shape.status, headers=shape.headers)
        if self.settings.cache:
            got.cached = self.caches[got.wire, turn.model].serve(pieces, self.settings.counter)
        answer = await self._scripted(got)
        if answer is None:
            message = f"the script has no reply left for request {got.number}"
            self.settings.problems.append(message)
            return self._json(
                got, wire.error(turn, "invalid_request_error", message, code="script_exhausted"), status=400
            )
        got.answer = answer
        return self._sent(got, answer, turn, wire)

    async def _scripted(self, got: Received) -> Answer | None:
        """The script's answer; a function's exception is kept for the test and answered as a server error."""
        try:
            answer = self.settings.next_answer(got)
            return await answer if inspect.isawaitable(answer) else answer
        except Exception as error:
            self.settings.errors.append(error)
            return Failure("server", message=f"the script's function raised {error!r}")

    def _sent(self, got: Received, answer: Answer, turn: Turn, wire: WireServer) -> Sending:
        match answer:
            case Raw():
                return self._raw(got, answer)
            case Failure():
                return self._failure(got, answer, turn, wire)
            case Reply():
                return self._reply(got, answer, turn, wire)

    def _reply(self, got: Received, reply: Reply, turn: Turn, wire: WireServer) -> Sending:
        if got.wire == "openai-responses" and wants_compaction(turn.request):
            reply = compacted(reply, turn)
        turn = replace(turn, usage=reply.usage or self._usage(got, reply))
        gzip = reply.encoding == "gzip"
        if turn.request.get("stream") is True:
            return Sending(
                got,
                wire.events(reply, turn),
                self.pace,
                headers={
                    **self._headers(got, "text/event-stream; charset=utf-8"),
                    "cache-control": "no-cache",
                    **reply.headers,
                },
                delay=reply.delay,
                chunk_delay=reply.chunk_delay,
                chunk_size=reply.chunk_size,
                cut=reply.cut,
                cut_cleanly=reply.cut_cleanly,
                gzip=gzip,
            )
        body = encode(wire.body(reply, turn))
        half = len(body) // 2
        parts: list[Any] = [body[:half], "start", body[half:]] if reply.cut else [body]
        return Sending(
            got,
            parts,
            self.pace,
            headers={**self._headers(got, _JSON), **reply.headers},
            length=None if gzip or reply.cut_cleanly else len(body),
            delay=reply.delay,
            chunk_delay=reply.chunk_delay,
            chunk_size=reply.chunk_size,
            cut="start" if reply.cut else None,
            cut_cleanly=reply.cut_cleanly,
            gzip=gzip,
        )

    def _usage(self, got: Received, reply: Reply) -> Usage:
        """What a provider would report for this reply."""
        window = self.settings.window
        sent = got.tokens
        if window is not None and self.settings.overflow == "truncate":
            sent = min(sent, window)
        counter = self.settings.counter
        return Usage(
            input_tokens=sent,
            output_tokens=output_tokens(reply, counter),
            cache_read=min(got.cached, sent),
            reasoning=counter.count(reply.reasoning),
        )

    def _failure(self, got: Received, failure: Failure, turn: Turn, wire: WireServer) -> Sending:
        stream = turn.request.get("stream") is True
        if failure.kind == "malformed":
            body = encode(wire.body(Reply("a reply whose JSON breaks off"), turn))
            cut = body[: len(body) * 2 // 3]
            parts = [b"data: ", cut, b"\n\n"] if stream else [cut]
            kind = "text/event-stream; charset=utf-8" if stream else _JSON
            return Sending(
                got, parts, self.pace, headers={**self._headers(got, kind), **failure.headers}, delay=failure.delay
            )
        status, headers, value = failed(failure, turn, got, wire, self.settings.window)
        if failure.in_stream and stream:
            return Sending(
                got,
                wire.error_events(turn, value, failure.after),
                self.pace,
                headers={**self._headers(got, "text/event-stream; charset=utf-8"), **headers},
                delay=failure.delay,
            )
        return self._json(got, value, status=status, headers=headers, delay=failure.delay)

    def _raw(self, got: Received, raw: Raw) -> Sending:
        parts: list[Any] = [raw.body, "before_end"]
        return Sending(
            got,
            parts,
            self.pace,
            status=raw.status,
            headers={**self._headers(got, raw.content_type), **raw.headers},
            delay=raw.delay,
            chunk_delay=raw.chunk_delay,
            chunk_size=raw.chunk_size,
            cut="before_end" if raw.cut else None,
        )

    def _json(
        self, got: Received, value: Any, *, status: int = 200, headers: Any = None, delay: float = 0.0
    ) -> Sending:
        """One JSON value; a text is sent as it is, as proxies in front of providers do."""
        body = value.encode() if isinstance(value, str) else encode(value)
        kind = "text/html" if isinstance(value, str) else _JSON
        sent = {**self._headers(got, kind), **(headers or {})}
        return Sending(got, [body], self.pace, status=status, headers=sent, length=len(body), delay=delay)

    def _headers(self, got: Received, kind: str) -> dict[str, str]:
        """Content type, and the request id as each provider names it."""
        name = "request-id" if got.wire == "anthropic" else "x-request-id"
        return {"content-type": kind, name: f"req_{got.number:06d}"}


def _joined(items: Any) -> dict[str, str]:
    headers: dict[str, str] = {}
    for name, value in items:
        name = name.lower()
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


def _parsed(body: bytes, encoding: str) -> tuple[Any, str]:
    """The JSON of a body, and why there is none."""
    if not body:
        return None, ""
    try:
        match encoding.strip().lower():
            case "" | "identity":
                plain = body
            case "gzip" | "deflate":
                plain = zlib.decompress(body, wbits=47)
            case _:
                return None, f"content encoding {encoding!r} is not understood; send gzip or none"
        return decode(plain), ""
    except (ValueError, RecursionError, zlib.error) as error:
        return None, f"the body is no JSON: {error}"
