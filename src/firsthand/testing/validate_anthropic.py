"""Rules of Anthropic's Messages API."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from .validate_common import Found, is_name, objects, word

__all__ = ["check_anthropic"]

_GIVEN = {"text", "image", "document", "search_result"}
_USER = _GIVEN | {"tool_result", "container_upload"}
_ASSISTANT = {
    "text",
    "thinking",
    "redacted_thinking",
    "tool_use",
    "server_tool_use",
    "mcp_tool_use",
    "container_upload",
    "compaction",
}
_IN_RESULT = _GIVEN | {"tool_reference"}
_THINKING = ("thinking", "redacted_thinking")
_HOSTED_CALLS = ("server_tool_use", "mcp_tool_use")
_IMAGES = {"image/png", "image/jpeg", "image/gif", "image/webp"}
_ID = re.compile(r"[a-zA-Z0-9_-]+")
_LONGEST_NAME = 200
_MOST_MARKS = 4


def check_anthropic(messages: Sequence[Any], body: Mapping[str, Any]) -> Iterator[Found]:
    """The violations in `messages`, `system` and the cache marks, in no particular order."""
    yield from ((-1, *found) for found in _system(body.get("system")))
    marks = sum(_marks(part) for part in (body.get("system"), body.get("tools"), messages))
    if marks > _MOST_MARKS:
        yield -1, "cache-marks", f"{marks} blocks have cache_control, and at most {_MOST_MARKS} may"
    turns = [_blocks(message) for message in messages]
    for index, message in enumerate(messages):
        role = word(message, "role")
        if role not in ("user", "assistant"):
            yield index, "role", f"there is no role {role!r} in messages"
        elif role != ("user", "assistant")[index % 2]:
            yield index, "alternation", "user and assistant must alternate, the user first"
        if not turns[index]:
            yield index, "empty-content", "a message needs content"
        for number, block in enumerate(turns[index]):
            for rule, problem in _block(role, block):
                yield index, rule, f"block {number}: {problem}"
    yield from _pairs(messages, turns)
    yield from _hosted(turns)
    yield from _thinking(messages, turns)


def _blocks(message: Any) -> list[dict[str, Any]]:
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return list(objects(content))


def _system(system: Any) -> Iterator[tuple[str, str]]:
    if system is None or isinstance(system, str):
        return
    if not isinstance(system, list):
        yield "system", f"the system prompt is a {type(system).__name__}"
        return
    for number, block in enumerate(system):
        kind = block.get("type") if isinstance(block, dict) else None
        if kind != "text":
            yield "system", f"block {number} of the system prompt is {kind!r} and must be text"
        elif not str(block.get("text") or "").strip():
            yield "empty-content", f"block {number} of the system prompt is blank"


def _marks(value: Any) -> int:
    if isinstance(value, Mapping):
        inner = _marks(value.get("content")) if isinstance(value.get("content"), list) else 0
        return inner + (1 if value.get("cache_control") else 0)
    if isinstance(value, list | tuple):
        return sum(_marks(item) for item in value)
    return 0


def _block(role: Any, block: dict[str, Any]) -> Iterator[tuple[str, str]]:
    kind = word(block, "type")
    hosted_result = kind is not None and kind.endswith("_tool_result")
    if not ((role == "assistant" and (kind in _ASSISTANT or hosted_result)) or (role == "user" and kind in _USER)):
        yield "block-type", f"a message of the {role} cannot hold {kind!r}"
        return
    if kind == "text":
        if not str(block.get("text") or "").strip():
            yield "empty-content", "the text is blank"
    elif kind in ("image", "document"):
        yield from _source(kind, block.get("source"))
    elif kind == "thinking":
        if not block.get("signature") or not isinstance(block.get("thinking"), str):
            yield "signature", "thinking needs its text and its signature"
        if block.get("cache_control"):
            yield "cache-marks", "thinking cannot have a cache mark"
    elif kind == "redacted_thinking":
        if not block.get("data"):
            yield "signature", "redacted thinking needs its data"
    elif kind == "tool_use":
        if not isinstance(block.get("id"), str) or not _ID.fullmatch(block["id"]):
            yield "call-id", f"{block.get('id')!r} is no id of a call"
        if not is_name(block.get("name"), _LONGEST_NAME):
            yield "tool-name", f"{block.get('name')!r} is no name of a tool"
        if not isinstance(block.get("input"), dict):
            yield "arguments", f"the input must be an object, not a {type(block.get('input')).__name__}"
    elif kind == "tool_result":
        yield from _result(block)


def _source(kind: str, source: Any) -> Iterator[tuple[str, str]]:
    given = source if isinstance(source, dict) else {}
    match given.get("type"):
        case "base64":
            allowed = _IMAGES if kind == "image" else {"application/pdf"}
            if word(given, "media_type") not in allowed or not given.get("data"):
                yield kind, f"an embedded {kind} needs data of one of the types {', '.join(sorted(allowed))}"
        case "url":
            if not str(given.get("url") or "").startswith(("http://", "https://")):
                yield kind, "the URL must begin with http"
        case "file":
            if not given.get("file_id"):
                yield kind, "a file needs its id"
        case "text" | "content" if kind == "document":
            pass
        case other:
            yield kind, f"there is no source of the type {other!r}"


def _result(block: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    content = block.get("content")
    if block.get("is_error") and not content:
        yield "empty-content", "a failed result needs content"
    if content is None or isinstance(content, str):
        return
    if not isinstance(content, list):
        yield "content", f"the content of a result is a {type(content).__name__}"
        return
    for part in objects(content):
        kind = word(part, "type")
        if kind is None or kind not in _IN_RESULT:
            yield "block-type", f"a result cannot hold {kind!r}"
        elif kind == "text" and not str(part.get("text") or "").strip():
            yield "empty-content", "a text in the result is blank"
        elif kind in ("image", "document"):
            yield from _source(kind, part.get("source"))


def _pairs(messages: Sequence[Any], turns: Sequence[list[dict[str, Any]]]) -> Iterator[Found]:
    seen: set[str] = set()
    waiting: list[str] = []
    for index, blocks in enumerate(turns):
        results = [str(block.get("tool_use_id")) for block in blocks if block.get("type") == "tool_result"]
        for number, block in enumerate(blocks):
            if block.get("type") == "tool_result" and number >= len(results):
                yield index, "results-first", "results must stand before anything else in their message"
                break
        for call_id in results:
            if call_id in waiting:
                waiting.remove(call_id)
            else:
                yield index, "orphan-result", f"the message before has no call {call_id!r} that waits for a result"
        if waiting:
            yield index - 1, "unanswered-call", f"not answered in the next message: {', '.join(waiting)}"
        waiting = []
        for block in blocks:
            if block.get("type") == "tool_use" or block.get("type") in _HOSTED_CALLS:
                if str(block.get("id")) in seen:
                    yield index, "repeated-call-id", f"{block.get('id')!r} is the id of an earlier call"
                seen.add(str(block.get("id")))
            if block.get("type") == "tool_use":
                waiting.append(str(block.get("id")))
    if waiting:
        yield len(messages) - 1, "unanswered-call", f"never answered: {', '.join(waiting)}"


def _hosted(turns: Sequence[list[dict[str, Any]]]) -> Iterator[Found]:
    """Calls of the provider's own tools: answered, or in the last message, where the provider may still be at it."""
    waiting: dict[str, int] = {}
    for index, blocks in enumerate(turns):
        for block in blocks:
            kind = str(block.get("type"))
            if kind in _HOSTED_CALLS:
                waiting[str(block.get("id"))] = index
            elif kind.endswith("_tool_result") and waiting.pop(str(block.get("tool_use_id")), None) is None:
                yield index, "orphan-result", f"no call {block.get('tool_use_id')!r} stands before its {kind}"
    for call_id, index in waiting.items():
        if index < len(turns) - 1:
            yield index, "unanswered-call", f"the hosted call {call_id!r} has no result"


def _thinking(messages: Sequence[Any], turns: Sequence[list[dict[str, Any]]]) -> Iterator[Found]:
    """Thinking never ends a message; in the open tool loop it begins one, or follows a result of a hosted tool."""
    asked = [
        index
        for index, blocks in enumerate(turns)
        if isinstance(messages[index], dict)
        and messages[index].get("role") == "user"
        and any(block.get("type") != "tool_result" for block in blocks)
    ]
    loop = asked[-1] if asked else -1
    for index, blocks in enumerate(turns):
        kinds = [str(block.get("type")) for block in blocks]
        if kinds and kinds[-1] in _THINKING:
            yield index, "thinking-last", "thinking cannot be the last block of a message"
        if index < loop:
            continue
        for before, kind in pairwise(kinds):
            if kind in _THINKING and before not in _THINKING and not before.endswith("_tool_result"):
                yield index, "thinking-first", f"thinking in an open tool loop cannot follow {before!r}"
