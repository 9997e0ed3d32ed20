"""One exchange: a request in, decided, sent on, and its answer relayed byte for byte as it comes.

What breaks at the provider breaks at the client: a stream that ends without its terminal mark is never ended in good order (GW-13). What fails
in the gateway itself lets the request through as it came, with an error in the log and in a header.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any, get_args

from starlette.types import Receive, Scope, Send

from ..codec import encode
from ..errors import ConfigError
from .config import GatewayConfig, Mode, Upstream
from .context import Arrived, Prepared
from .engine import Engine
from .headers import OURS, RawHeaders, by_name, shown_keys, to_client, to_upstream
from .incoming import BodyTooLargeError, ClientGoneError, pieces, unpacked, until_gone, whole_body
from .replies import ReplyReader
from .summariser import UpstreamSummariser
from .telemetry import Telemetry
from .upstream import Answer, UpstreamError, Upstreams, host_of
from .wires import CHAT, MESSAGES, RESPONSES, GatewayWire, wire_of_path

__all__ = ["Relay"]

_COUNTS: dict[str, GatewayWire] = {"/messages/count_tokens": MESSAGES, "/responses/input_tokens": RESPONSES}
_LARGEST_ERROR = 1024 * 1024
_HELD_FROM = 100_000
"""Bytes of a request from which the first events of its answer are held back where the window is unknown."""


class _BrokenError(Exception):
    """The answer cannot be ended in good order; the connection is closed instead."""


@dataclass
class _Exchange:
    method: str
    path: str
    query: str
    headers: RawHeaders
    named: Mapping[str, str]
    upstream: Upstream
    wire: GatewayWire | None
    counting: bool
    tenant: str
    mode: Mode
    began: float = field(default_factory=time.perf_counter)

    @property
    def url(self) -> str:
        """Where it is sent."""
        return self.upstream.target(self.path) + (f"?{self.query}" if self.query else "")


class Relay:
    """The ASGI application behind all paths that are not the gateway's own."""

    def __init__(
        self, config: GatewayConfig, engine: Engine | None, upstreams: Upstreams, telemetry: Telemetry
    ) -> None:
        self.config = config
        self.engine = engine
        self._upstreams = upstreams
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
            await _refuse(
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
            await _refuse(send, status, shape.error("authentication_error", text), {})
            return
        try:
            upstream, rest = self.config.upstream(path)
        except ConfigError as error:
            await _refuse(send, 404, shape.error("not_found_error", str(error)), {})
            return
        counting = next((wire for end, wire in _COUNTS.items() if rest.rstrip("/").endswith(end)), None)
        exchange = _Exchange(
            scope["method"], rest, scope.get("query_string", b"").decode("latin-1"), headers, named, upstream,
            (wire or counting) if scope["method"] == "POST" else None, counting is not None, tenant, self._mode(named),
        )  # fmt: skip
        if self._running >= self.config.max_concurrent:
            text = f"this gateway answers {self.config.max_concurrent:,} requests at a time; come back in a moment"
            await _refuse(send, 503, shape.error("overloaded_error", text), {"retry-after": "1"})
            return
        self._running += 1
        self.telemetry.in_flight.inc()
        try:
            await self._answered(exchange, receive, send)
        finally:
            self._running -= 1
            self.telemetry.in_flight.dec()

    async def _answered(self, exchange: _Exchange, receive: Receive, send: Send) -> None:
        shape = exchange.wire or CHAT
        try:
            if exchange.wire is None or self.engine is None:
                await self._passed(exchange, receive, send)
                return
            body = await whole_body(receive, self.config.max_body)
            await _while_there(self._model(exchange, body, send), receive)
        except ClientGoneError:
            return
        except BodyTooLargeError:
            text = f"the request has more than the {self.config.max_body:,} bytes that this gateway takes (max_body)"
            await _refuse(send, 413, shape.error("request_too_large", text), {"connection": "close"})
        except _BrokenError:
            # Returning before the last part makes the server close the connection, which no client takes for an end.
            return

    async def _passed(self, exchange: _Exchange, receive: Receive, send: Send) -> None:
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
        body = await whole_body(receive, self.config.max_body) if small else counted()
        known = (
            len(body) if isinstance(body, bytes) and has_body else int(length) if length and length.isdigit() else None
        )
        headers = self._headers(exchange, known, unpacked_body=False)
        if has_body and known is None:
            headers.append((b"transfer-encoding", b"chunked"))
        work = self._sent(exchange, headers, body, send, None, None, {})
        # A body that is still being read has `receive` for itself.
        await (_while_there(work, receive) if isinstance(body, bytes) else work)

    async def _model(self, exchange: _Exchange, body: bytes, send: Send) -> None:
        """A request for a model that the engine decides about."""
        prepared, ours, plain = await self._prepared(exchange, body)
        changed = prepared.body is not plain
        sent = prepared.body if changed else body
        self.telemetry.deciding.observe(time.perf_counter() - exchange.began)
        headers = self._headers(exchange, len(sent), unpacked_body=changed)
        await self._sent(exchange, headers, sent, send, prepared, exchange.wire, ours)

    async def _prepared(self, exchange: _Exchange, body: bytes) -> tuple[Prepared, dict[str, str], bytes | None]:
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
            self._failed("prepare", error)
            prepared = Prepared(plain, "passed", "the gateway failed")
            return (
                prepared,
                {**_told(prepared, exchange.mode), f"{OURS}error": f"prepare: {type(error).__name__}"},
                plain,
            )
        return prepared, _told(prepared, exchange.mode), plain

    async def _sent(
        self,
        exchange: _Exchange,
        headers: list[tuple[bytes, bytes]],
        body: bytes | AsyncIterator[bytes],
        send: Send,
        prepared: Prepared | None,
        wire: GatewayWire | None,
        ours: dict[str, str],
    ) -> None:
        """Sends a request on and relays the answer; once more where a refusal can be mended."""
        began = time.perf_counter()
        try:
            answer = await self._upstreams.send(exchange.upstream, exchange.method, exchange.url, headers, body)
        except UpstreamError as error:
            await self._unreachable(exchange, error, send, ours)
            return
        self.telemetry.first_byte.observe(time.perf_counter() - began)
        try:
            if prepared is None or wire is None:
                await _start(send, answer, ours)
                await self._rest(answer, send, None)
            elif answer.status >= 400:
                await self._refused(exchange, answer, send, prepared, ours)
            else:
                await self._read(exchange, answer, send, prepared, wire, ours)
        finally:
            await answer.close()
            self._count(exchange, prepared, answer.status)

    async def _refused(
        self, exchange: _Exchange, answer: Answer, send: Send, prepared: Prepared, ours: dict[str, str]
    ) -> None:
        """An error answer: mended where that is possible, else relayed as it is."""
        body = await self._error_body(answer)
        plain = unpacked(body, answer.named.get("content-encoding", ""), _LARGEST_ERROR)
        again = await self._mended(prepared, answer.status, plain or b"", dict(answer.named))
        if again is not None:
            await answer.close()
            await self._again(exchange, again, send)
            return
        self.telemetry.info(
            "refused", status=answer.status, upstream=exchange.upstream.name, decision=prepared.decision
        )
        await _start(send, answer, ours)
        await send({"type": "http.response.body", "body": body, "more_body": True})
        await self._rest(answer, send, None)

    async def _again(self, exchange: _Exchange, prepared: Prepared, send: Send) -> None:
        headers = self._headers(exchange, len(prepared.body), unpacked_body=True)
        await self._sent(
            exchange, headers, prepared.body, send, prepared, exchange.wire, _told(prepared, exchange.mode)
        )

    async def _mended(
        self, prepared: Prepared, status: int, body: bytes, headers: Mapping[str, str]
    ) -> Prepared | None:
        """The request to send once more, or None."""
        if self.engine is None:
            return None
        try:
            return await self.engine.recover(prepared, status, body, headers)
        except Exception as error:
            self._failed("recover", error)
            return None

    async def _error_body(self, answer: Answer) -> bytes:
        """The raw body of an error, as far as it is read for judging; what comes behind is relayed."""
        read = b""
        try:
            async for piece in answer.body:
                read += piece
                if len(read) >= _LARGEST_ERROR:
                    break
        except UpstreamError as error:
            self._broke(error)
        return read

    async def _read(
        self,
        exchange: _Exchange,
        answer: Answer,
        send: Send,
        prepared: Prepared,
        wire: GatewayWire,
        ours: dict[str, str],
    ) -> None:
        """A success, read while it is relayed. Its first events are held back where they may turn out to be a refusal."""
        reader = ReplyReader(wire, answer.named.get("content-type", ""), answer.named.get("content-encoding", ""))
        held: list[bytes] = []
        try:
            if self._may_overflow(prepared, wire):
                async for piece in answer.body:
                    held.append(piece)
                    if not reader.opening(piece):
                        break
                if reader.failed is not None:
                    again = await self._mended(prepared, answer.status, encode(reader.failed), dict(answer.named))
                    if again is not None:
                        await answer.close()
                        await self._again(exchange, again, send)
                        return
            await _start(send, answer, ours)
            for piece in held:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await self._rest(answer, send, reader)
        except UpstreamError as error:
            self._broke(error)
            raise _BrokenError from error
        finally:
            if prepared.context is not None:
                self._answered_by(prepared, reader)

    def _answered_by(self, prepared: Prepared, reader: ReplyReader) -> None:
        usage = reader.usage
        if usage is not None:
            for kind in ("input_tokens", "output_tokens", "cache_read", "cache_write"):
                self.telemetry.reported.labels(kind).inc(getattr(usage, kind))
        try:
            assert self.engine is not None
            self.engine.answered(prepared, usage, complete=reader.finished and reader.failed is None)
        except Exception as error:
            self._failed("answered", error)

    async def _rest(self, answer: Answer, send: Send, reader: ReplyReader | None) -> None:
        """What is left of the body, piece by piece, and its end only where the upstream made one and the wire's mark was there."""
        try:
            async for piece in answer.body:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
                if reader is not None:
                    reader.feed(piece)
        except UpstreamError as error:
            self._broke(error)
            raise _BrokenError from error
        if reader is not None:
            reader.ended()
            if reader.readable and not reader.finished and reader.failed is None:
                self.telemetry.upstream_errors.labels("no terminal mark").inc()
                self.telemetry.info("stream ended without its terminal mark")
                raise _BrokenError
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _unreachable(self, exchange: _Exchange, error: Exception, send: Send, ours: dict[str, str]) -> None:
        kind = type(error).__name__
        self.telemetry.upstream_errors.labels(kind).inc()
        self.telemetry.info("upstream could not be reached", upstream=exchange.upstream.name, error=kind)
        status = 504 if "Timeout" in kind else 502
        text = f"the upstream {exchange.upstream.name!r} could not be reached ({kind})"
        await _refuse(send, status, (exchange.wire or CHAT).error("api_error", text), ours)

    def _headers(self, exchange: _Exchange, length: int | None, *, unpacked_body: bool) -> list[tuple[bytes, bytes]]:
        wire = "anthropic" if exchange.wire is MESSAGES or "anthropic-version" in exchange.named else None
        return to_upstream(
            exchange.headers,
            host=host_of(exchange.url),
            length=length,
            wire=wire,
            key=exchange.upstream.key,
            unpacked=unpacked_body,
            ours=self._is_ours,
        )

    def _is_ours(self, key: str) -> bool:
        return bool(self.config.keys) and self.config.tenant([key]) is not None

    def _mode(self, named: Mapping[str, str]) -> Mode:
        asked = named.get(f"{OURS}mode", "")
        if self.config.mode == "off" or asked not in get_args(Mode):
            return self.config.mode
        return asked  # type: ignore[return-value]

    def _stranger(self, named: Mapping[str, str]) -> tuple[int, str] | None:
        """Refuses pages of other sites in a browser on this machine, where no gateway key keeps them out."""
        if self.config.keys or "origin" not in named:
            return None
        host = named["origin"].partition("://")[2].rpartition(":")[0] or named["origin"].partition("://")[2]
        if host in ("localhost", "127.0.0.1", "[::1]"):
            return None
        return 403, "requests of web pages are refused; give the gateway keys to let them in"

    def _summariser(self, exchange: _Exchange) -> UpstreamSummariser | None:
        if not self.config.summaries:
            return None
        headers = self._headers(exchange, None, unpacked_body=True)
        return UpstreamSummariser(exchange.url, headers, self.config.read_timeout)

    def _may_overflow(self, prepared: Prepared, wire: GatewayWire) -> bool:
        if wire is not RESPONSES or prepared.context is None or prepared.retried:
            return False
        window, tokens = prepared.window.tokens, prepared.tokens_after or 0
        return len(prepared.body) >= _HELD_FROM if window is None else 2 * tokens >= window

    def _failed(self, where: str, error: Exception) -> None:
        self.telemetry.errors.labels(where).inc()
        self.telemetry.failed("gateway failed; the request goes through as it came", where, error)

    def _broke(self, error: Exception) -> None:
        self.telemetry.upstream_errors.labels(type(error).__name__).inc()
        self.telemetry.info("upstream broke off", error=type(error).__name__)

    def _count(self, exchange: _Exchange, prepared: Prepared | None, status: int) -> None:
        wire = exchange.wire.name if exchange.wire else "other"
        decision = prepared.decision if prepared else "passed"
        self.telemetry.requests.labels(wire, decision, str(status)).inc()
        if self.engine is not None:
            self.telemetry.waiting.set(self.engine.recorder.waiting)
        if prepared is not None and prepared.tokens_before is not None and prepared.tokens_after is not None:
            self.telemetry.tokens_before.inc(prepared.tokens_before)
            self.telemetry.tokens_after.inc(prepared.tokens_after if exchange.mode == "on" else prepared.tokens_before)
        self.telemetry.info(
            "answered", wire=wire, decision=decision, mode=exchange.mode, status=status, tenant=exchange.tenant,
            session=prepared.context.path.session if prepared and prepared.context else None,
            reason=prepared.reason if prepared else "", before=prepared.tokens_before if prepared else None,
            after=prepared.tokens_after if prepared else None, ms=round(1_000 * (time.perf_counter() - exchange.began), 1),
        )  # fmt: skip


def _told(prepared: Prepared, mode: Mode) -> dict[str, str]:
    """The headers that say what was done."""
    told: dict[str, str] = {f"{OURS}mode": mode, f"{OURS}decision": prepared.decision}
    if prepared.reason:
        told[f"{OURS}reason"] = prepared.reason
    if prepared.tokens_before is not None and prepared.tokens_after is not None:
        told[f"{OURS}tokens-before"] = str(prepared.tokens_before)
        told[f"{OURS}tokens-after"] = str(prepared.tokens_after)
        told[f"{OURS}tokens-saved"] = str(max(0, prepared.tokens_before - prepared.tokens_after))
    if prepared.window.tokens is not None:
        told[f"{OURS}window"] = f"{prepared.window.tokens}; {prepared.window.source}"
    if prepared.context is not None:
        told[f"{OURS}session"] = prepared.context.path.session
    return told


async def _start(send: Send, answer: Answer, ours: Mapping[str, str]) -> None:
    headers = to_client(answer.headers, ours)
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})


async def _refuse(send: Send, status: int, error: Any, more: Mapping[str, str]) -> None:
    """An answer of the gateway's own."""
    body = encode(error)
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    headers += [(name.encode(), value.encode("latin-1", "replace")) for name, value in more.items()]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})


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
