"""An OpenAI-compatible endpoint that is paid for through a ledger. One request, one answer: nothing is retried and nothing redirected."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...codec import decode, encode
from ...errors import ConfigError, MissingExtraError
from ...formats.wire.response import usage_of
from ...transcript import Usage
from ..money.prices import Price
from .ledger import Ledger
from .paid_calls import Call, Settled

__all__ = ["Endpoint", "reply_json", "reply_usage"]

_WIRE = "openai-chat"
_MARKS = 1_024
"""Tokens that a chat template may add around the messages; everything else of a prompt stands in the request's bytes."""
_CAPS = ("max_completion_tokens", "max_tokens")


@dataclass(frozen=True)
class Endpoint:
    """Where the model is, what it is called and what it costs.

    Raises:
        MissingExtraError: on construction, when `httpx2` is not installed.
    """

    url: str
    """Base URL, the part before `/chat/completions`."""
    model: str
    price: Price
    key: str | None = None
    """Goes into the request's header and nowhere else."""
    timeout: float = 600.0
    """Seconds for the whole answer."""
    extra: Mapping[str, Any] | None = None
    """More fields of every body, such as a provider's switch for reasoning."""

    def __post_init__(self) -> None:
        try:
            import httpx2  # noqa: F401
        except ImportError:
            raise MissingExtraError("calling a model over HTTP", "http") from None

    def __repr__(self) -> str:
        return f"Endpoint({self.url!r}, {self.model!r})"

    def ask(self, ledger: Ledger, identity: str, body: Mapping[str, Any]) -> Call:
        """The call with its reply, paid for once.

        Args:
            ledger: reserves the worst case, and keeps request and reply.
            identity: what the call is for; replicates differ in it.
            body: the request without `model`. It must hold an output cap, or no worst case could be told.

        Raises:
            BudgetSpentError: it does not fit the budget; nothing was sent.
            UnresolvedCallError: it was sent before and has no reply; nothing was sent.
            ConfigError: the body has no output cap.
        """
        return ledger.call(identity, *self.priced(body), self.send)

    def priced(self, body: Mapping[str, Any]) -> tuple[bytes, int]:
        """The exact request, and the most that it can cost, in picos.

        Raises:
            ConfigError: the body has no output cap.
        """
        cap = next((body[name] for name in _CAPS if isinstance(body.get(name), int)), None)
        if cap is None:
            raise ConfigError("a request without an output cap has no worst case; nothing was sent")
        request = encode({"model": self.model, **body, **(self.extra or {})})
        return request, self.price.worst(len(request) + _MARKS, cap)

    def send(self, request: bytes) -> Settled:
        """Sends a reserved request, once, and says what came back of it."""
        import httpx2

        headers = {"content-type": "application/json"}
        if self.key is not None:
            headers["authorization"] = f"Bearer {self.key}"
        url = self.url.rstrip("/") + "/chat/completions"
        try:
            answer = httpx2.post(url, content=request, headers=headers, timeout=self.timeout)
        except (httpx2.ConnectError, httpx2.UnsupportedProtocol, httpx2.InvalidURL) as error:
            # Nothing left this machine, so nothing can be charged.
            return Settled(None, b"", 0, f"could not be reached: {type(error).__name__}")
        except httpx2.HTTPError as error:
            # It may have been answered and billed before the connection broke.
            return Settled(None, b"", None, f"no answer: {type(error).__name__}")
        raw = answer.content
        if self.key:
            # Some providers repeat the key that they refuse; it goes into no file.
            raw = raw.replace(self.key.encode(), b"[key]")
        if answer.status_code >= 300:
            # Providers do not bill what they refuse; what broke on their side they may have.
            charged = 0 if 300 <= answer.status_code < 500 else None
            return Settled(answer.status_code, raw, charged, f"answered {answer.status_code}")
        usage = reply_usage(raw)
        if usage is None and reply_json(raw) is None:
            return Settled(answer.status_code, raw, None, "answered with no JSON object")
        return Settled(answer.status_code, raw, None if usage is None else self.price.charge(usage))


def reply_json(reply: bytes | None) -> dict[str, Any] | None:
    """A kept reply as a JSON object, or None where it is none."""
    try:
        value = decode(reply or b"")
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def reply_usage(reply: bytes | None) -> Usage | None:
    """The usage that a kept reply reports, or None where it has none that makes sense."""
    value = reply_json(reply)
    usage = None if value is None else usage_of(_WIRE, value)
    if (
        usage is None
        or usage.input_tokens < 1
        or usage.output_tokens < 0
        or not 0 <= usage.cache_read <= usage.input_tokens
    ):
        return None
    return usage
