"""Rules of OpenAI's Chat Completions API."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .validate_common import Found, bad_arguments, bad_image_url, is_name, objects, word

__all__ = ["check_chat"]

_PARTS = {
    "system": {"text"},
    "developer": {"text"},
    "user": {"text", "image_url", "input_audio", "file"},
    "assistant": {"text", "refusal"},
    "tool": {"text"},
}
_LONGEST_NAME = 64


def check_chat(messages: Sequence[Any], body: Mapping[str, Any]) -> Iterator[Found]:
    """The violations in `messages`, in no particular order."""
    if body.get("system") is not None:
        yield -1, "system", "Chat Completions has no system field; the system prompt is a message"
    seen: set[str] = set()
    for index, message in enumerate(messages):
        role = word(message, "role")
        if role is None:
            yield index, "role", "a message must be an object with a role"
        elif role == "function":
            if not isinstance(message.get("content"), str):
                yield index, "content", "a function message needs its result as a string"
        elif role not in _PARTS:
            yield index, "role", f"there is no role {role!r}"
        else:
            yield from ((index, *found) for found in _content(role, message))
            if role == "assistant":
                yield from ((index, *found) for found in _calls(message, seen))
    yield from _pairs(messages)


def _pairs(messages: Sequence[Any]) -> Iterator[Found]:
    """Each call is answered once, by the tool messages that follow it directly."""
    waiting: list[str] = []
    asked_at = -1
    legacy: str | None = None
    for index, message in enumerate(messages):
        role = word(message, "role")
        if role == "tool":
            if message.get("tool_call_id") in waiting:
                waiting.remove(message["tool_call_id"])
            else:
                yield index, "orphan-result", f"no call {message.get('tool_call_id')!r} waits for a result here"
        elif waiting:
            yield asked_at, "unanswered-call", f"not answered before message {index}: {', '.join(waiting)}"
            waiting = []
        if role == "function" and (legacy is None or message.get("name") != legacy):
            yield index, "orphan-result", f"no function_call of {message.get('name')!r} stands before it"
        legacy = None
        if role == "assistant":
            waiting = [str(call.get("id")) for call in objects(message.get("tool_calls"))]
            asked_at = index
            if isinstance(message.get("function_call"), dict):
                legacy = message["function_call"].get("name")
    if waiting:
        yield asked_at, "unanswered-call", f"never answered: {', '.join(waiting)}"


def _content(role: str, message: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    content = message.get("content")
    if content is None:
        if role != "assistant":
            yield "empty-content", f"a {role} message needs content"
        elif not any(message.get(name) for name in ("tool_calls", "function_call", "audio", "refusal")):
            yield "empty-content", "an assistant message without calls needs content"
        return
    if isinstance(content, str):
        return
    if not isinstance(content, list):
        yield "content", f"content is a {type(content).__name__}"
        return
    if not content:
        yield "empty-content", "a list of parts needs at least one"
    for number, part in enumerate(content):
        kind = word(part, "type")
        if kind is None or kind not in _PARTS[role]:
            yield "part-type", f"part {number}: a {role} message cannot hold {kind!r}"
        else:
            for rule, problem in _part(kind, part):
                yield rule, f"part {number}: {problem}"


def _part(kind: str, part: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if kind in ("text", "refusal"):
        if not isinstance(part.get(kind), str):
            yield "content", "the text is missing"
        elif not part[kind]:
            yield "empty-content", "the text is empty"
    elif kind == "image_url":
        image = part.get("image_url")
        if problem := bad_image_url(image.get("url") if isinstance(image, dict) else None):
            yield "image", problem
    elif kind == "input_audio":
        audio = part.get("input_audio")
        if not isinstance(audio, dict) or not audio.get("data") or word(audio, "format") not in ("wav", "mp3"):
            yield "audio", "audio needs data and one of the formats wav and mp3"
    elif kind == "file":
        file = part.get("file")
        if not isinstance(file, dict) or not (file.get("file_id") or file.get("file_data")):
            yield "file", "a file needs its data or an id"


def _calls(message: Mapping[str, Any], seen: set[str]) -> Iterator[tuple[str, str]]:
    single = message.get("function_call")
    if isinstance(single, dict) and (problem := bad_arguments(single.get("arguments"))):
        yield "arguments", problem
    calls = message.get("tool_calls")
    if calls is None:
        return
    if not isinstance(calls, list) or not calls:
        yield "tool-calls", "tool_calls must be a list with at least one call"
        return
    for number, call in enumerate(calls):
        where = f"call {number}"
        if not isinstance(call, dict) or not isinstance(call.get("id"), str) or not call["id"]:
            yield "call-id", f"{where} has no id"
            continue
        if call["id"] in seen:
            yield "repeated-call-id", f"{where}: {call['id']!r} is the id of an earlier call"
        seen.add(call["id"])
        kind = word(call, "type")
        what = call.get(kind) if kind in ("function", "custom") else None
        if not isinstance(what, dict):
            yield "call-type", f"{where} must be of the type function or custom and hold one"
            continue
        if not is_name(what.get("name"), _LONGEST_NAME):
            yield "tool-name", f"{where}: {what.get('name')!r} is no name of a tool"
        if kind == "custom":
            if not isinstance(what.get("input"), str):
                yield "arguments", f"{where}: the input of a custom tool is text"
        elif problem := bad_arguments(what.get("arguments")):
            yield "arguments", f"{where}: {problem}"
