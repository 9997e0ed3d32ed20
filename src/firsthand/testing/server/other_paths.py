"""The paths beside the three wires: model lists, token counts, compaction by path, and quick refusals of what no API has."""

from __future__ import annotations

from typing import Any

from .accounting import request_pieces
from .received import Received
from .settings import Settings
from .stream import CREATED

__all__ = ["respond"]

_NO_HEADERS: dict[str, str] = {}


def respond(got: Received, path: str, settings: Settings) -> tuple[int, Any, dict[str, str]]:
    """Status, JSON value and headers for `path`, which has no `/v1` before it (real-clients.md, the list for gateways)."""
    if got.headers.get("upgrade", "").lower() == "websocket":
        # With 426 Codex falls back to HTTP at its first try; with 404 it would ask seven times.
        return 426, _error("this server speaks HTTP only", "invalid_request_error"), {"upgrade": "HTTP/1.1"}
    if got.method in ("GET", "HEAD") and path == "/models":
        return 200, _models(settings.models, anthropic="anthropic-version" in got.headers), _NO_HEADERS
    if got.method in ("GET", "HEAD") and path.startswith("/models/"):
        name = path.removeprefix("/models/")
        if name in settings.models:
            return 200, _model(name, anthropic="anthropic-version" in got.headers), _NO_HEADERS
    if got.method == "POST" and path in ("/messages/count_tokens", "/responses/input_tokens", "/responses/compact"):
        return _counted(got, path, settings)
    return 404, _error(f"there is no {got.method} {got.path} here", "invalid_request_error"), _NO_HEADERS


def _counted(got: Received, path: str, settings: Settings) -> tuple[int, Any, dict[str, str]]:
    """Answers that need no script: counts, and the compaction endpoint (user messages and one opaque item)."""
    if not isinstance(got.json, dict):
        got.violations = got.violations or ("the body is no JSON object",)
        return 400, _error("the body is no JSON object", "invalid_request_error"), _NO_HEADERS
    got.tokens = sum(piece.tokens for piece in request_pieces(got.json, settings.counter))
    if path == "/messages/count_tokens":
        return 200, {"input_tokens": got.tokens}, _NO_HEADERS
    if path == "/responses/input_tokens":
        return 200, {"object": "response.input_tokens", "input_tokens": got.tokens}, _NO_HEADERS
    number = got.number
    kept = [item for item in got.messages if isinstance(item, dict) and item.get("role") == "user"]
    opaque = {"type": "compaction", "id": f"cmp_{number:06d}", "encrypted_content": f"opaque_{number:06d}"}
    usage = {
        "input_tokens": got.tokens,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": 0,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": got.tokens,
    }
    body = {"id": f"resp_{number:06d}", "object": "response.compaction", "created_at": CREATED}
    return 200, {**body, "output": [*kept, opaque], "usage": usage}, _NO_HEADERS


def _error(message: str, kind: str) -> Any:
    return {"error": {"message": message, "type": kind, "param": None, "code": None}}


def _model(name: str, *, anthropic: bool) -> dict[str, Any]:
    if anthropic:
        return {"type": "model", "id": name, "display_name": name, "created_at": "2023-11-14T22:13:20Z"}
    return {"id": name, "object": "model", "created": CREATED, "owned_by": "firsthand"}


def _models(names: tuple[str, ...], *, anthropic: bool) -> dict[str, Any]:
    data = [_model(name, anthropic=anthropic) for name in names]
    if anthropic:
        return {
            "data": data,
            "has_more": False,
            "first_id": names[0] if names else None,
            "last_id": names[-1] if names else None,
        }
    return {"object": "list", "data": data}
