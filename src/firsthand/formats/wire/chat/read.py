"""Chat Completions messages to entries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ....codec import compact_json
from ....errors import FormatError
from ....transcript import Block, Entry, Extra, Media, Reasoning, Role, Source, Text, ToolCall, ToolResult, chained
from ...files.base import entry_id
from ..origin import origin_in_messages
from ..shape import difference
from .parts import read_content
from .write import own_call, own_message

__all__ = ["read_messages"]

NAME = "openai-chat"
_REASONING_FIELDS = ("reasoning_content", "reasoning")


def read_messages(messages: Sequence[dict[str, Any]], session: str) -> tuple[Entry, ...]:
    """The messages as a path of entries.

    Raises:
        FormatError: a message is not of this wire's shape; names its index.
    """
    entries: list[Entry] = []
    legacy: str | None = None
    for index, raw in enumerate(messages):
        where = f"message {index}"
        role = raw.get("role")
        hints: Extra = {}
        blocks: tuple[Block, ...]
        as_role: Role
        match role:
            case "system" | "developer" | "user":
                as_role = role
                blocks = read_content(raw.get("content"), where)
                if role == "user":
                    blocks = tuple(_with_origin(block) for block in blocks)
                hints = _list_hint(raw, blocks)
            case "assistant":
                as_role = "assistant"
                blocks, hints = _assistant(raw, index, where)
                calls = [b for b in blocks if isinstance(b, ToolCall) and b.extra and b.extra.get("~at")]
                legacy = calls[0].id if calls else legacy
            case "tool" | "function":
                as_role = "tool"
                blocks = (_result(raw, role, legacy or f"function_call_before_{index}", where),)
                if role == "function":
                    legacy = None
            case _:
                raise FormatError(f"{where} has the role {role!r}; Chat Completions knows no such role")
        entry = Entry(
            id=entry_id(session, index),
            role=as_role,
            blocks=blocks,
            wire=NAME,
            source=Source(NAME, index),
            extra=hints or None,
        )
        extra = difference(raw, own_message(entry, exact=True), where, hints)
        entries.append(msgspec.structs.replace(entry, extra=extra))
    return chained(entries)


def _with_origin(block: Block) -> Block:
    if isinstance(block, Text) and (origin := origin_in_messages(block.text)) != "typed":
        return Text(block.text, origin, block.extra)
    return block


def _list_hint(raw: dict[str, Any], blocks: Sequence[Block]) -> Extra:
    """Remembers that the content was a list where it looks as if it could have been a string or nothing."""
    alone = len(blocks) == 1 and isinstance(blocks[0], Text) and not blocks[0].extra
    return {"~content": "list"} if isinstance(raw.get("content"), list) and (alone or not blocks) else {}


def _assistant(raw: dict[str, Any], index: int, where: str) -> tuple[tuple[Block, ...], Extra]:
    content = read_content(raw.get("content"), where)
    blocks: list[Block] = []
    for name in _REASONING_FIELDS:
        if isinstance(raw.get(name), str) and raw[name]:
            blocks.append(Reasoning(raw[name], extra={"~at": name}))
            break
    blocks += content
    if isinstance(raw.get("refusal"), str) and raw["refusal"]:
        blocks.append(Text(raw["refusal"], extra={"~at": "refusal"}))
    if isinstance(raw.get("audio"), dict):
        blocks.append(Media("audio", extra={"~at": "audio", "audio": raw["audio"]}))
    calls = raw.get("tool_calls")
    if calls is not None and not (isinstance(calls, list) and all(isinstance(call, dict) for call in calls)):
        raise FormatError(f"{where}: tool_calls must be a list of objects")
    blocks += [_call(call, f"{where}, tool call {number}") for number, call in enumerate(calls or ())]
    if isinstance(raw.get("function_call"), dict):
        blocks.append(_legacy_call(raw["function_call"], index, where))
    return tuple(blocks), _list_hint(raw, content)


def _call(raw: dict[str, Any], where: str) -> ToolCall:
    kind = "custom" if raw.get("type") == "custom" else "function"
    body, field = raw.get(kind), "input" if kind == "custom" else "arguments"
    if (
        not isinstance(raw.get("id"), str)
        or not raw["id"]
        or not isinstance(body, dict)
        or not isinstance(body.get("name"), str)
    ):
        raise FormatError(f"{where} needs an id, and a {kind} with a name")
    call, hints = _with_arguments(raw["id"], body, field, kind)
    return msgspec.structs.replace(call, extra=difference(raw, own_call(call), where, hints))


def _legacy_call(raw: dict[str, Any], index: int, where: str) -> ToolCall:
    if not isinstance(raw.get("name"), str):
        raise FormatError(f"{where}: the function_call needs a name")
    call, hints = _with_arguments(f"function_call_{index}", raw, "arguments", "function")
    hints["~at"] = "function_call"
    call = msgspec.structs.replace(call, extra=hints)
    return msgspec.structs.replace(call, extra=difference(raw, own_call(call), where, hints))


def _with_arguments(call_id: str, body: dict[str, Any], field: str, kind: str) -> tuple[ToolCall, Extra]:
    """Some servers give arguments as an object; its JSON text is stored and the object is written again."""
    given = body.get(field)
    if given is None or isinstance(given, str):
        return ToolCall(call_id, body["name"], given or "", kind), {}
    hints: Extra = {"~arguments": "object"}
    return ToolCall(call_id, body["name"], compact_json(given), kind, hints), hints


def _result(raw: dict[str, Any], role: str, legacy: str, where: str) -> ToolResult:
    call_id = legacy if role == "function" else raw.get("tool_call_id")
    if not isinstance(call_id, str) or not call_id:
        raise FormatError(f"{where} is a tool message without a tool_call_id")
    content = read_content(raw.get("content"), where)
    name = raw.get("name")
    hints = _list_hint(raw, content)
    if role == "function":
        hints["~at"] = "function"
    return ToolResult(call_id, content, name=name if isinstance(name, str) and name else None, extra=hints or None)
