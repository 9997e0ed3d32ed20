"""Rules of OpenAI's Responses API."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .validate_common import Found, bad_arguments, bad_image_url, is_name, word

__all__ = ["check_responses"]

_GIVEN = {"input_text", "input_image", "input_file", "input_audio"}
_PARTS = {
    "user": _GIVEN,
    "system": _GIVEN,
    "developer": _GIVEN,
    "assistant": {"output_text", "refusal"},
}
_OUTPUT_PARTS = {"input_text", "input_image", "input_file"}
_OUTPUTS = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "computer_call": "computer_call_output",
    "local_shell_call": "local_shell_call_output",
    "shell_call": "shell_call_output",
    "apply_patch_call": "apply_patch_call_output",
}
"""Calls that the client answers, and the type of the answer."""
_HOSTED = {
    "code_interpreter_call",
    "compaction",
    "compaction_summary",
    "compaction_trigger",
    "file_search_call",
    "image_generation_call",
    "item_reference",
    "mcp_approval_request",
    "mcp_approval_response",
    "mcp_call",
    "mcp_list_tools",
    "tool_search_call",
    "tool_search_output",
    "web_search_call",
}
_LONGEST_NAME = 128


def check_responses(items: Sequence[Any], body: Mapping[str, Any]) -> Iterator[Found]:
    """The violations in `input`, in no particular order."""
    if body.get("system") is not None:
        yield -1, "system", "the Responses API has no system field; it has instructions"
    for index, item in enumerate(items):
        if not isinstance(item, dict):
            yield index, "item", "an item must be an object"
            continue
        kind = _kind(item)
        if kind == "message":
            yield from ((index, *found) for found in _message(item))
        elif kind == "reasoning":
            yield from ((index, *found) for found in _reasoning(item, items[index + 1 :][:1]))
        elif kind in _OUTPUTS:
            yield from ((index, *found) for found in _call(kind, item))
        elif kind in _OUTPUTS.values():
            yield from ((index, *found) for found in _output(kind, item))
        elif kind not in _HOSTED:
            yield index, "item-type", f"there is no item of the type {kind!r}"
    yield from _pairs(items)


def _kind(item: Mapping[str, Any]) -> str:
    return str(item.get("type", "message" if "role" in item else None))


def _pairs(items: Sequence[Any]) -> Iterator[Found]:
    """Each call is answered once, somewhere after it, by an output of its own type."""
    calls: dict[str, tuple[int, str]] = {}
    answered: set[str] = set()
    for index, item in enumerate(items):
        kind = _kind(item) if isinstance(item, dict) else ""
        if kind in _OUTPUTS:
            call_id = str(item.get("call_id"))
            if call_id in calls:
                yield index, "repeated-call-id", f"{call_id!r} is the id of the call at {calls[call_id][0]}"
            calls.setdefault(call_id, (index, kind))
        elif kind in _OUTPUTS.values():
            call_id = str(item.get("call_id") or item.get("id"))
            if call_id not in calls:
                yield index, "orphan-result", f"no call {call_id!r} stands before it"
                continue
            if call_id in answered:
                yield index, "repeated-result", f"call {call_id!r} is answered already"
            elif not _fits(calls[call_id][1], kind):
                yield index, "output-type", f"a {calls[call_id][1]} is not answered by a {kind}"
            answered.add(call_id)
    for call_id, (index, kind) in calls.items():
        if call_id not in answered:
            yield index, "unanswered-call", f"the {kind} {call_id!r} has no output"


def _fits(call: str, output: str) -> bool:
    # A local shell's output may come as a function's as well.
    return output == _OUTPUTS[call] or (call == "local_shell_call" and output == "function_call_output")


def _message(item: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    role, content = word(item, "role"), item.get("content")
    if role is None or role not in _PARTS:
        yield "role", f"there is no role {role!r}"
    elif isinstance(content, str):
        return
    elif not isinstance(content, list) or not content:
        yield "empty-content", "a message needs a string or a list with at least one part"
    else:
        yield from _parts(content, _PARTS[role])


def _parts(content: Sequence[Any], allowed: set[str]) -> Iterator[tuple[str, str]]:
    for number, part in enumerate(content):
        kind = word(part, "type")
        if kind not in allowed:
            yield "part-type", f"part {number} cannot be {kind!r} here"
        elif kind in ("input_text", "output_text", "refusal"):
            # The text may be empty: Codex sends such parts in outputs, and they are taken.
            if not isinstance(part.get("refusal" if kind == "refusal" else "text"), str):
                yield "content", f"part {number} has no text"
        elif kind == "input_image" and not part.get("file_id"):
            if problem := bad_image_url(part.get("image_url")):
                yield "image", f"part {number}: {problem}"
        elif kind == "input_file" and not any(part.get(name) for name in ("file_id", "file_data", "file_url")):
            yield "file", f"part {number}: a file needs its data, an id or a URL"


def _reasoning(item: Mapping[str, Any], following: Sequence[Any]) -> Iterator[tuple[str, str]]:
    if not isinstance(item.get("summary"), list):
        yield "reasoning", "a reasoning item needs its summary, a list that may be empty"
    if not item.get("id") and not item.get("encrypted_content"):
        yield "reasoning", "a reasoning item needs its id or its encrypted content"
    after = following[0] if following else None
    if not isinstance(after, dict) or not _made_by_model(after):
        yield "reasoning-alone", "a reasoning item must be followed by the item that it led to"


def _made_by_model(item: Mapping[str, Any]) -> bool:
    kind = _kind(item)
    if kind == "message":
        return item.get("role") == "assistant"
    return kind not in _OUTPUTS.values() and kind not in ("mcp_approval_response", "compaction_trigger")


def _call(kind: str, item: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if not isinstance(item.get("call_id"), str) or not item["call_id"]:
        yield "call-id", f"a {kind} needs a call_id"
    if kind in ("function_call", "custom_tool_call") and not is_name(item.get("name"), _LONGEST_NAME):
        yield "tool-name", f"{item.get('name')!r} is no name of a tool"
    if kind == "function_call" and (problem := bad_arguments(item.get("arguments"))):
        yield "arguments", problem
    if kind == "custom_tool_call" and not isinstance(item.get("input"), str):
        yield "arguments", "the input of a custom tool is text"


def _output(kind: str, item: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    output = item.get("output")
    if kind not in ("function_call_output", "custom_tool_call_output") or isinstance(output, str):
        return
    if not isinstance(output, list) or not output:
        yield "empty-content", "an output needs a string or a list with at least one part"
        return
    yield from _parts(output, _OUTPUT_PARTS)
