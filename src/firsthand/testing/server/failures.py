"""Scripted failures as a provider sends them: status, headers and body."""

from __future__ import annotations

from typing import Any

from ...session.overflow.shape import Shape
from ...session.overflow.table import shape_named
from .received import Received
from .script import Failure, FailureKind
from .stream import Turn, WireServer

__all__ = ["failed", "overflow_shape", "refused"]

# Per kind: status, OpenAI's type and code, Anthropic's type, text.
_KINDS: dict[FailureKind, tuple[int, str, str | None, str, str]] = {
    "rate_limit": (
        429,
        "requests",
        "rate_limit_exceeded",
        "rate_limit_error",
        "Rate limit reached; tokens per minute are spent.",
    ),
    "overloaded": (529, "server_error", "overloaded", "overloaded_error", "Overloaded"),
    "unavailable": (503, "server_error", "service_unavailable", "api_error", "The service is unavailable for now."),
    "server": (500, "server_error", None, "api_error", "The server had an error."),
    "auth": (
        401,
        "invalid_request_error",
        "invalid_api_key",
        "authentication_error",
        "Incorrect API key provided: {key}.",
    ),
    "invalid_request": (400, "invalid_request_error", None, "invalid_request_error", "The request is invalid."),
    "invalid_encrypted_content": (
        400,
        "invalid_request_error",
        "invalid_encrypted_content",
        "invalid_request_error",
        "The encrypted content of a reasoning item could not be verified.",
    ),
}


def failed(
    failure: Failure, turn: Turn, got: Received, wire: WireServer, window: int | None
) -> tuple[int, dict[str, str], Any]:
    """Status, headers and JSON body of a scripted failure (not of the kind `malformed`, which has no JSON)."""
    headers = {**failure.headers, **({"retry-after": failure.retry_after} if failure.retry_after else {})}
    if failure.kind == "overflow":
        shape = overflow_shape(failure.provider, wire)
        limit = failure.limit or window or max(1, got.tokens - 1)
        requested = failure.requested or max(got.tokens, limit + 1)
        return failure.status or shape.status, {**shape.headers, **headers}, shape.example(limit, requested)
    status, kind, code, anthropic, text = _KINDS[failure.kind]
    text = (failure.message if failure.message is not None else text).replace("{key}", got.key)
    return (
        failure.status or status,
        headers,
        wire.error(turn, anthropic if got.wire == "anthropic" else kind, text, code=code),
    )


def refused(turn: Turn, wire: WireServer, param: str | None, message: str) -> Any:
    """The body of the 400 that an invalid request gets."""
    return wire.error(turn, "invalid_request_error", message, param=param)


def overflow_shape(provider: str | None, wire: WireServer) -> Shape:
    """The row of the overflow table that a server of this provider, or else of this wire, refuses with.

    Raises:
        UnknownNameError: no row of that name.
    """
    return shape_named(provider or wire.provider)
