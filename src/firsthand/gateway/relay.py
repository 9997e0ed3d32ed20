"""The front door: who asks, for which upstream, within which limits, and what the engine makes of the body.

What fails in the gateway itself lets the request through as it came, with an error in the log and in a header.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any, get_args

from starlette.types import Receive, Scope, Send

from ..errors import ConfigError
from .answering import Answering, BrokenError, Exchange, refuse, told
from .config import GatewayConfig, Mode
from .context import Arrived, Prepared
from .engine import Engine
from .headers import OURS, RawHeaders, by_name, from_elsewhere, shown_keys
from .incoming import BodyTooLargeError, ClientGoneError, pieces, unpacked, until_gone, whole_body
from .summariser import UpstreamSummariser
from .telemetry import Telemetry
from .upstream import Upstreams
from .wires import CHAT, MESSAGES, RESPONSES, GatewayWire, wire_of_path

__all__ = ["Relay"]

_COUNTS: dict[str, GatewayWire] = {"/messages/count_tokens": MESSAGES, "/responses/input_tokens": RESPONSES}


class _TooSlowError(Exception):
    """The request's body did not arrive in time."""


class Relay:
    """The ASGI application behind all paths that are not the gateway's own."""

    def __init__(
        self, config: GatewayConfig, engine: Engine | None, upstreams: Upstreams, telemetry: Telemetry
    ) -> None:
        self.config = config
        self.engine = engine
        self._answering = Answering(config, engine, upstreams, telemetry)
        self.telemetry = telemetry
        self._running = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        path = (scope.get("raw_path") or scope["path"].encode()).decode("latin-1")
        headers: RawHeaders = scope["headers"]
        named = by_name(headers)
        wire = wire_of_path(path)
        shape = wire or CHAT
        if named.get("upgrade", "").lower() == "websocket":
            # With 426 Codex falls back to HTTP at its first try.
            await refuse(
                send,
                426,
                shape.error("invalid_request_error", "this gateway speaks HTTP only"),
                {"upgrade": "HTTP/1.1"},
            )
            return
        refusal = self._stranger(named)
        tenant = None if refusal else self.config.tenant(shown_keys(named))
        if tenant is None:
            status, text = refusal or (401, "this gateway needs one of its own keys; send it as x-firsthand-key")
            await refuse(send, status, shape.error("authentication_error", text), {})
            return
        try:
            upstream, rest = self.config.upstream(path)
        except ConfigError as error:
            await refuse(send, 404, shape.error("not_found_error", str(error)), {})
            return
        counting = next((wire for end, wire in _COUNTS.items() if rest.rstrip("/").endswith(end)), None)
        exchange = Exchange(
            scope["method"], rest, scope.get("query_string", b"").decode("latin-1"), headers, named, upstream,
            (wire or counting) if scope["method"] == "POST" else None, counting is not None, tenant, self._mode(named),
        )  # fmt: skip
        if self._running >= self.config.max_concurrent:
            text = f"this gateway answers {self.config.max_concurrent:,} requests at a time; come back in a moment"
            await refuse(send, 503, shape.error("overloaded_error", text), {"retry-after": "1"})
            return
        self._running += 1
        self.telemetry.in_flight.inc()
        try:
            await self._answered(exchange, receive, send)
        finally:
            self._running -= 1
            self.telemetry.in_flight.dec()

    async def _answered(self, exchange: Exchange, receive: Receive, send: Send) -> None:
        shape = exchange.wire or CHAT
        try:
            if exchange.wire is None or self.engine is None:
                await self._passed(exchange, receive, send)
                return
            body = await self._body(receive)
            await _while_there(self._model(exchange, body, send), receive)
        except ClientGoneError:
            return
        except _TooSlowError:
            text = f"the request did not arrive within {self.config.client_timeout:g} seconds (client_timeout)"
            await refuse(send, 408, shape.error("timeout_error", text), {"connection": "close"})
        except BodyTooLargeError:
            text = f"the request has more than the {self.config.max_body:,} bytes that this gateway takes (max_body)"
            await refuse(send, 413, shape.error("request_too_large", text), {"connection": "close"})
        except BrokenError:
            # Returning before the last part makes the server close the connection, which no client takes for an end.
            return

    async def _passed(self, exchange: Exchange, receive: Receive, send: Send) -> None:
        """Everything that is no request for a model, and everything in mode `off`."""
        length = exchange.named.get("content-length")
        has_body = length is not None or "transfer-encoding" in exchange.named
        size = 0

        async def counted() -> AsyncIterator[bytes]:
            nonlocal size
            async for piece in pieces(receive):
                size += len(piece)
                if size > self.config.max_body:
                    raise BodyTooLargeError
                yield piece

        if length is not None and length.isdigit() and int(length) > self.config.max_body:
            raise BodyTooLargeError
        small = exchange.wire is not None or not has_body
        body = await self._body(receive) if small else counted()
        known = (
            len(body) if isinstance(body, bytes) and has_body else int(length) if length and length.isdigit() else None
        )
        headers = self._answering.headers(exchange, known, unpacked_body=False)
        if has_body and known is None:
            headers.append((b"transfer-encoding", b"chunked"))
        work = self._answering.sent(exchange, headers, body, send, None, None, {})
        # A body that is still being read has `receive` for itself.
        await (_while_there(work, receive) if isinstance(body, bytes) else work)

    async def _body(self, receive: Receive) -> bytes:
        try:
            async with asyncio.timeout(self.config.client_timeout):
                return await whole_body(receive, self.config.max_body)
        except TimeoutError:
            raise _TooSlowError from None

    async def _model(self, exchange: Exchange, body: bytes, send: Send) -> None:
        """A request for a model that the engine decides about."""
        prepared, ours, plain = await self._prepared(exchange, body)
        changed = prepared.body is not plain
        sent = prepared.body if changed else body
        self.telemetry.deciding.observe(time.perf_counter() - exchange.began)
        headers = self._answering.headers(exchange, len(sent), unpacked_body=changed)
        await self._answering.sent(exchange, headers, sent, send, prepared, exchange.wire, ours)

    async def _prepared(self, exchange: Exchange, body: bytes) -> tuple[Prepared, dict[str, str], bytes | None]:
        """What to send, the headers that say so, and the body without its encoding."""
        assert self.engine is not None
        assert exchange.wire is not None
        plain = unpacked(body, exchange.named.get("content-encoding", ""), self.config.max_body)
        if plain is None or exchange.mode == "off":
            reason = "mode off" if exchange.mode == "off" else "its content encoding cannot be read"
            return Prepared(body, "passed", reason), {f"{OURS}decision": "passed", f"{OURS}reason": reason}, body
        arrived = Arrived(
            exchange.wire, plain, exchange.named, exchange.tenant, exchange.upstream, exchange.mode, exchange.counting,
            self._summariser(exchange),
        )  # fmt: skip
        try:
            prepared = await self.engine.prepare(arrived)
        except Exception as error:
            self._answering.failed("prepare", error)
            prepared = Prepared(plain, "passed", "the gateway failed")
            return (
                prepared,
                {**told(prepared, exchange.mode), f"{OURS}error": f"prepare: {type(error).__name__}"},
                plain,
            )
        return prepared, told(prepared, exchange.mode), plain

    def _mode(self, named: Mapping[str, str]) -> Mode:
        asked = named.get(f"{OURS}mode", "")
        if self.config.mode == "off" or asked not in get_args(Mode):
            return self.config.mode
        return asked  # type: ignore[return-value]

    def _stranger(self, named: Mapping[str, str]) -> tuple[int, str] | None:
        """Refuses pages of other sites in a browser on this machine, where no gateway key keeps them out."""
        if self.config.keys or not from_elsewhere(named):
            return None
        return 403, "requests of web pages, and under another name than localhost, need a gateway key"

    def _summariser(self, exchange: Exchange) -> UpstreamSummariser | None:
        if not self.config.summaries:
            return None
        headers = self._answering.headers(exchange, None, unpacked_body=True)
        return UpstreamSummariser(exchange.url, headers, self.config.read_timeout)


async def _while_there(work: Any, receive: Receive) -> None:
    """Does the work; gives it up when the client goes away, so that the upstream is told at once."""
    working, gone = asyncio.ensure_future(work), asyncio.ensure_future(until_gone(receive))
    try:
        await asyncio.wait({working, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            working.cancel()
        await asyncio.wait({working})
        if not working.cancelled():
            working.result()
    finally:
        gone.cancel()
        working.cancel()
