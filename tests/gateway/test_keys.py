"""Which two forms are one message: the table of volatile parts, row by row."""

from __future__ import annotations

from typing import Any

import pytest

from firsthand.gateway.keys import keys_of
from firsthand.gateway.wires import CHAT, MESSAGES, RESPONSES, GatewayWire

CALL = "call_0123456789abcdef"
REMINDER = "<system-reminder>9 tokens left</system-reminder>"


def chat_call(arguments: str, call_id: str = CALL, **more: Any) -> dict[str, Any]:
    call = {"id": call_id, "type": "function", "function": {"name": "bash", "arguments": arguments}}
    return {"role": "assistant", "content": None, "tool_calls": [call], **more}


def result(content: Any, call_id: str = "toolu_0123456789abcdef", **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **more}


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


TEXT = {"type": "text", "text": "go"}
ALIKE: list[tuple[str, GatewayWire, Any, Any]] = [
    ("a string is one text block", CHAT, user("go"), user([TEXT])),
    ("a string is one text block", MESSAGES, user("go"), user([TEXT])),
    ("a string is one text block", RESPONSES, user("go"), {"type": "message", **user([{"type": "input_text", "text": "go"}])}),
    ("cache marks", MESSAGES, user([TEXT]), user([{**TEXT, "cache_control": {"type": "ephemeral"}}])),
    ("item ids and status", RESPONSES, user("go"), {**user("go"), "id": "msg_1", "status": "completed"}),
    ("order of keys", CHAT, user("go"), {"content": "go", "role": "user"}),
    ("null and absent", CHAT, chat_call("{}"), {name: value for name, value in chat_call("{}").items() if value is not None}),
    ("spelling of arguments", CHAT, chat_call('{"a":1,"b":2}', "c1"), chat_call('{ "b": 2, "a": 1 }', "c1")),
    ("thinking", MESSAGES, {"role": "assistant", "content": [{"type": "thinking", "thinking": "x", "signature": "s"}, TEXT]}, {"role": "assistant", "content": [TEXT]}),
    ("reasoning beside the content", CHAT, {"role": "assistant", "content": "x"}, {"role": "assistant", "content": "x", "reasoning_content": "y"}),
    ("a reminder as a block", MESSAGES, user([{"type": "text", "text": REMINDER}, TEXT]), user([TEXT])),
    ("a reminder glued to a result", MESSAGES, user([result("out\n")]), user([result(f"out\n\n{REMINDER}{REMINDER}\n")])),
    ("a reminder glued to a weak result", CHAT, {"role": "tool", "tool_call_id": "c1", "content": "out"}, {"role": "tool", "tool_call_id": "c1", "content": f"out\n{REMINDER}"}),
]  # fmt: skip
REVISIONS: list[tuple[str, GatewayWire, Any, Any]] = [
    ("a result that was cut afterwards", MESSAGES, user([result("a long output")]), user([result("[cut]")])),
    ("a call whose arguments were changed", CHAT, chat_call('{"a":1}'), chat_call('{"a":2}')),
]
BRANCHES: list[tuple[str, GatewayWire, Any, Any]] = [
    ("another text", CHAT, user("go"), user("stop")),
    ("another role", CHAT, user("go"), {"role": "assistant", "content": "go"}),
    ("another call", CHAT, chat_call("{}"), chat_call("{}", "call_fedcba9876543210")),
    ("an id that others may have", CHAT, chat_call('{"a":1}', "call_0"), chat_call('{"a":2}', "call_0")),
    ("an id that others may have, in a result", MESSAGES, user([result("A", "toolu_1")]), user([result("B", "toolu_1")])),
    ("reminders alone", MESSAGES, user([{"type": "text", "text": REMINDER}]), user([{"type": "text", "text": REMINDER.replace("9", "8")}])),
    ("another image", MESSAGES, user([{"type": "image", "source": {"data": "A"}}]), user([{"type": "image", "source": {"data": "B"}}])),
    ("a lone surrogate", CHAT, user("\ud83d"), user("\ud83e")),
]  # fmt: skip


def named(rows: list[tuple[str, GatewayWire, Any, Any]]) -> list[Any]:
    return [pytest.param(wire, one, other, id=f"{name} ({wire.name})") for name, wire, one, other in rows]


@pytest.mark.parametrize(("wire", "one", "other"), named(ALIKE))
def test_two_forms_of_one_message(wire: GatewayWire, one: Any, other: Any) -> None:
    assert keys_of(wire.outline(one)) == keys_of(wire.outline(other))


@pytest.mark.parametrize(("wire", "one", "other"), named(REVISIONS))
def test_a_revision_says_something_else_under_the_same_key(wire: GatewayWire, one: Any, other: Any) -> None:
    first, second = keys_of(wire.outline(one)), keys_of(wire.outline(other))
    assert first.key == second.key
    assert first.content != second.content


@pytest.mark.parametrize(("wire", "one", "other"), named(BRANCHES))
def test_another_message_has_another_key(wire: GatewayWire, one: Any, other: Any) -> None:
    assert keys_of(wire.outline(one)).key != keys_of(wire.outline(other)).key
