"""What a client's request is, told by its structure and never by its wording: session keys, and compactions of the client's own.

Observed with the real clients (real-clients.md, points 8 and 9). A mistake does no harm: a compaction request is sent with its whole history
where that fits and is not recorded; what it said shows with the next request if it was a part of the conversation after all.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..codec import decode
from .keys import keys_of
from .paths import Path
from .request import Facts, GatewayRequest, Unmanaged
from .scan import ScanError, fields, items

__all__ = ["client_compaction", "session_key", "without_thinking"]

_KEY_HEADERS = ("session-id", "session_id", "x-session-id", "x-claude-code-session-id", "thread-id")
_CODEX = "x-codex-turn-metadata"
_REMINDER = "<system-reminder>"
_SERIALISED = re.compile(
    r"(?:.{0,200}\n){0,3}(?:<conversation>|\[(?:User|Assistant|Assistant tool calls?|Tool result)\]:\s)"
)
"""A conversation as text, in tags or as Pi has a turn's beginning, below a heading; OpenCode has a sentence and an empty line above it."""


def session_key(request: GatewayRequest, headers: Mapping[str, str]) -> str:
    """The client's name for its session; empty where it sends none. It only narrows the search: sub-agents and title requests share it."""
    for name in _KEY_HEADERS:
        if headers.get(name):
            return headers[name][:200]
    key = request.value("prompt_cache_key")
    return key[:200] if isinstance(key, str) else ""


def client_compaction(
    request: GatewayRequest,
    headers: Mapping[str, str],
    facts: Sequence[Facts],
    found: tuple[Path, int] | None,
    *,
    head: int,
) -> str | None:
    """Which client's own compaction this request is, or None.

    Args:
        request: the request.
        headers: its headers by lower-case name.
        facts: those of the conversation, without the head.
        found: the longest path that it begins with, and how many messages they share.
        head: how many messages stand in front of the conversation.
    """
    if _codex_says_so(request, headers):
        return "codex"
    if request.wire.name == "openai-responses" and b'"compaction_trigger"' in request.item(-1):
        return "codex-remote"
    tools = request.value("tools")
    if found is not None and tools == [] and found[0].tools and found[1] >= len(facts) - 1:
        return "codex"
    if not tools and len(facts) == 1 and head <= 1 and _is_serialised(request):
        return "opencode-or-pi"
    if request.wire.name == "anthropic" and tools and found is not None and _has_one_text_more(request, facts, *found):
        return "claude-code"
    return None


def _codex_says_so(request: GatewayRequest, headers: Mapping[str, str]) -> bool:
    told = headers.get(_CODEX)
    if told is None and "client_metadata" in request.fields:
        metadata = request.value("client_metadata")
        told = metadata.get(_CODEX) if isinstance(metadata, dict) else None
    if not isinstance(told, str) or "compaction" not in told:
        return False
    try:
        value = decode(told)
    except ValueError:
        return False
    return isinstance(value, dict) and value.get("request_kind") == "compaction"


def _is_serialised(request: GatewayRequest) -> bool:
    """Whether the only message is a conversation as text."""
    message: Any = decode(request.item(-1))
    content = message.get("content")
    if isinstance(content, list) and content and isinstance(content[0], dict):
        content = content[0].get("text")
    return isinstance(content, str) and _SERIALISED.match(content.lstrip()) is not None


def _has_one_text_more(request: GatewayRequest, facts: Sequence[Facts], path: Path, shared: int) -> bool:
    """Whether the newest message is one that the path has, with one more text block at its end that is no reminder."""
    last = len(facts) - 1
    if shared < last or len(path.facts) <= last:
        return False
    message: Any = decode(request.item(-1))
    content = message.get("content")
    if message.get("role") != "user" or not isinstance(content, list) or len(content) < 2:
        return False
    added = content[-1]
    text = added.get("text") if isinstance(added, dict) and added.get("type") == "text" else None
    if not isinstance(text, str) or text.lstrip().startswith(_REMINDER):
        return False
    known = path.facts[last]
    without = keys_of(request.wire.outline({**message, "content": content[:-1]}))
    return known.content == without.content and known.exact != facts[last].exact


def without_thinking(request: GatewayRequest) -> bytes | None:
    """The body without opaque reasoning, for a provider that could not verify it (GW-09); None when there is none in it.

    Items are left out whole; what the client put into them otherwise is not touched. Opaque compactions stay: they are the history.
    """
    kept: list[bytes] = []
    changed = False
    for number in range(len(request.items)):
        raw = request.item(number)
        if b'"reasoning"' not in raw and b'thinking"' not in raw:
            kept.append(raw)
            continue
        smaller = _item_without(request.wire.name, raw)
        changed = changed or smaller != raw
        if smaller is not None:
            kept.append(smaller)
    return request.with_messages(kept) if changed else None


def _item_without(wire: str, raw: bytes) -> bytes | None:
    """One message without its opaque reasoning; None when nothing else is in it."""
    message: Any = decode(raw)
    if wire == "openai-responses":
        return None if message.get("type") == "reasoning" else raw
    content = message.get("content")
    if wire != "anthropic" or not isinstance(content, list):
        return raw
    try:
        span = fields(raw)["content"]
        blocks = items(span.of(raw))
    except (ScanError, KeyError) as error:
        raise Unmanaged("a message cannot be taken apart") from error
    spans = [
        found.of(span.of(raw))
        for found, block in zip(blocks, content, strict=True)
        if not (isinstance(block, dict) and str(block.get("type")) in ("thinking", "redacted_thinking"))
    ]
    if len(spans) == len(blocks):
        return raw
    if not spans:
        spans = [b'{"type":"text","text":"[thinking that could not be verified was left out]"}']
    return raw[: span.start] + b"[" + b",".join(spans) + b"]" + raw[span.end :]
