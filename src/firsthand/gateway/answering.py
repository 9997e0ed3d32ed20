"""Sending a decided request on, and relaying its answer byte for byte as it comes.

What breaks at the provider breaks at the client: a stream that ends without its terminal mark is never ended in good order (GW-13).
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from starlette.types import Send

from ..codec import encode
from .config import GatewayConfig, Mode, Upstream
from .context import Prepared
from .engine import Engine
from .headers import OURS, RawHeaders, to_client, to_upstream
from .incoming import BodyTooLargeError, unpacked
from .replies import ReplyReader
from .telemetry import Telemetry
from .upstream import Answer, UpstreamError, Upstreams, host_of
from .wires import CHAT, MESSAGES, GatewayWire

__all__ = ["Answering", "BrokenError", "Exchange", "refuse", "told"]

_LARGEST_ERROR = 1024 * 1024
_LARGEST_HELD = 4 * 1024 * 1024
_HELD_FOR = 10.0
"""Seconds after which a stream that only says that it is alive is relayed all the same."""
_HELD_FROM = 100_000
"""Bytes of a request from which the first events of its answer are held back where the window is unknown."""


class BrokenError(Exception):
    """The answer cannot be ended in good order; the connection is closed instead."""


@dataclass
class Exchange:
    """One request on its way to its upstream."""

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


class Answering:
    """Sends requests to their upstreams and relays the answers."""

    def __init__(
        self, config: GatewayConfig, engine: Engine | None, upstreams: Upstreams, telemetry: Telemetry
    ) -> None:
        self._config = config
        self._engine = engine
        self._upstreams = upstreams
        self._telemetry = telemetry

    async def sent(
        self,
        exchange: Exchange,
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
        self._telemetry.first_byte.observe(time.perf_counter() - began)
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
        self, exchange: Exchange, answer: Answer, send: Send, prepared: Prepared, ours: dict[str, str]
    ) -> None:
        """An error answer: mended where that is possible, else relayed as it is."""
        body = await self._error_body(answer)
        again = await self._mended(prepared, answer.status, _plain(body, answer), dict(answer.named))
        if again is not None:
            await answer.close()
            await self._again(exchange, again, send)
            return
        self._telemetry.info(
            "refused", status=answer.status, upstream=exchange.upstream.name, decision=prepared.decision
        )
        await _start(send, answer, ours)
        await send({"type": "http.response.body", "body": body, "more_body": True})
        await self._rest(answer, send, None)

    async def _again(self, exchange: Exchange, prepared: Prepared, send: Send) -> None:
        headers = self.headers(exchange, len(prepared.body), unpacked_body=True)
        await self.sent(exchange, headers, prepared.body, send, prepared, exchange.wire, told(prepared, exchange.mode))

    async def _mended(
        self, prepared: Prepared, status: int, body: bytes, headers: Mapping[str, str]
    ) -> Prepared | None:
        """The request to send once more, or None."""
        if self._engine is None:
            return None
        try:
            return await self._engine.recover(prepared, status, body, headers)
        except Exception as error:
            self.failed("recover", error)
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
            raise BrokenError from error
        return read

    async def _read(
        self,
        exchange: Exchange,
        answer: Answer,
        send: Send,
        prepared: Prepared,
        wire: GatewayWire,
        ours: dict[str, str],
    ) -> None:
        """A success, read while it is relayed. Its first events are held back where they may turn out to be a refusal."""
        reader = ReplyReader(wire, answer.named.get("content-type", ""), answer.named.get("content-encoding", ""))
        held: list[bytes] = []
        replayed = False
        try:
            if self._may_overflow(prepared):
                again = await self._held(answer, reader, held, prepared)
                if again is not None:
                    await answer.close()
                    replayed = True
                    await self._again(exchange, again, send)
                    return
            await _start(send, answer, ours)
            for piece in held:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await self._rest(answer, send, reader)
        except UpstreamError as error:
            self._broke(error)
            raise BrokenError from error
        finally:
            if prepared.context is not None and not replayed:
                self._answered_by(prepared, reader)

    async def _held(
        self, answer: Answer, reader: ReplyReader, held: list[bytes], prepared: Prepared
    ) -> Prepared | None:
        """Reads what may turn out to be a refusal: a stream up to its first content, any other answer whole. What to send once more, or None."""
        began, size = time.perf_counter(), 0
        async for piece in answer.body:
            held.append(piece)
            size += len(piece)
            if reader.streamed:
                if not reader.opening(piece) or time.perf_counter() - began > _HELD_FOR:
                    break
                continue
            reader.feed(piece)
            if size > _LARGEST_HELD:
                return None
        if reader.streamed:
            if reader.failed is None:
                return None
            return await self._mended(prepared, answer.status, encode(reader.failed), dict(answer.named))
        reader.ended()
        if reader.value is None or self._engine is None:
            return None
        try:
            return await self._engine.stopped(prepared, reader.value)
        except Exception as error:
            self.failed("recover", error)
            return None

    def _answered_by(self, prepared: Prepared, reader: ReplyReader) -> None:
        usage = reader.usage
        if usage is not None:
            for kind in ("input_tokens", "output_tokens", "cache_read", "cache_write"):
                self._telemetry.reported.labels(kind).inc(getattr(usage, kind))
        try:
            assert self._engine is not None
            self._engine.answered(prepared, usage, complete=reader.finished and reader.failed is None)
        except Exception as error:
            self.failed("answered", error)

    async def _rest(self, answer: Answer, send: Send, reader: ReplyReader | None) -> None:
        """What is left of the body, piece by piece, and its end only where the upstream made one and the wire's mark was there."""
        try:
            async for piece in answer.body:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
                if reader is not None:
                    reader.feed(piece)
        except UpstreamError as error:
            self._broke(error)
            raise BrokenError from error
        if reader is not None:
            reader.ended()
            if reader.readable and not reader.finished and reader.failed is None:
                self._telemetry.upstream_errors.labels("no terminal mark").inc()
                self._telemetry.info("stream ended without its terminal mark")
                raise BrokenError
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _unreachable(self, exchange: Exchange, error: Exception, send: Send, ours: dict[str, str]) -> None:
        kind = type(error).__name__
        self._telemetry.upstream_errors.labels(kind).inc()
        self._telemetry.info("upstream could not be reached", upstream=exchange.upstream.name, error=kind)
        status = 504 if "Timeout" in kind else 502
        text = f"the upstream {exchange.upstream.name!r} could not be reached ({kind})"
        await refuse(send, status, (exchange.wire or CHAT).error("api_error", text), ours)

    def headers(self, exchange: Exchange, length: int | None, *, unpacked_body: bool) -> list[tuple[bytes, bytes]]:
        """The headers of the request that is sent on."""
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
        return bool(self._config.keys) and self._config.tenant([key]) is not None

    def _may_overflow(self, prepared: Prepared) -> bool:
        if prepared.context is None or prepared.retried:
            return False
        window, tokens = prepared.window.tokens, prepared.tokens_after or 0
        return len(prepared.body) >= _HELD_FROM if window is None else 2 * tokens >= window

    def failed(self, where: str, error: Exception) -> None:
        """A part of the gateway failed, which costs nobody a request."""
        self._telemetry.errors.labels(where).inc()
        self._telemetry.failed("gateway failed; the request goes through as it came", where, error)

    def _broke(self, error: Exception) -> None:
        self._telemetry.upstream_errors.labels(type(error).__name__).inc()
        self._telemetry.info("upstream broke off", error=type(error).__name__)

    def _count(self, exchange: Exchange, prepared: Prepared | None, status: int) -> None:
        wire = exchange.wire.name if exchange.wire else "other"
        decision = prepared.decision if prepared else "passed"
        self._telemetry.requests.labels(wire, decision, str(status)).inc()
        if self._engine is not None:
            self._telemetry.waiting.set(self._engine.recorder.waiting)
        if prepared is not None and prepared.tokens_before is not None and prepared.tokens_after is not None:
            self._telemetry.tokens_before.inc(prepared.tokens_before)
            self._telemetry.tokens_after.inc(prepared.tokens_after if exchange.mode == "on" else prepared.tokens_before)
        self._telemetry.info(
            "answered", wire=wire, decision=decision, mode=exchange.mode, status=status, tenant=exchange.tenant,
            session=prepared.context.path.session if prepared and prepared.context else None,
            reason=prepared.reason if prepared else "", before=prepared.tokens_before if prepared else None,
            after=prepared.tokens_after if prepared else None, ms=round(1_000 * (time.perf_counter() - exchange.began), 1),
        )  # fmt: skip


def told(prepared: Prepared, mode: Mode) -> dict[str, str]:
    """The headers that say what was done."""
    told: dict[str, str] = {f"{OURS}mode": mode, f"{OURS}decision": prepared.decision}
    if prepared.reason:
        told[f"{OURS}reason"] = prepared.reason
    if prepared.tokens_before is not None and prepared.tokens_after is not None:
        told[f"{OURS}tokens-before"] = str(prepared.tokens_before)
        told[f"{OURS}tokens-after"] = str(prepared.tokens_after)
        told[f"{OURS}tokens-saved"] = str(max(0, prepared.tokens_before - prepared.tokens_after))
    if prepared.recalled:
        told[f"{OURS}recall"] = f"{prepared.recalled} tokens"
    if prepared.error:
        told[f"{OURS}error"] = prepared.error
    if prepared.window.tokens is not None:
        told[f"{OURS}window"] = f"{prepared.window.tokens}; {prepared.window.source}"
    if prepared.context is not None:
        told[f"{OURS}session"] = prepared.context.path.session
    return told


async def _start(send: Send, answer: Answer, ours: Mapping[str, str]) -> None:
    headers = to_client(answer.headers, ours)
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})


async def refuse(send: Send, status: int, error: Any, more: Mapping[str, str]) -> None:
    """An answer of the gateway's own."""
    body = encode(error)
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    headers += [(name.encode(), value.encode("latin-1", "replace")) for name, value in more.items()]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})


def _plain(body: bytes, answer: Answer) -> bytes:
    """An error's body without its encoding; nothing where that cannot be undone."""
    try:
        return unpacked(body, answer.named.get("content-encoding", ""), _LARGEST_ERROR) or b""
    except BodyTooLargeError:
        return b""
