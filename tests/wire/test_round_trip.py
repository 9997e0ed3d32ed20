"""Reading and writing gives the same messages again, byte for byte, for everything that is valid."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from wire_conversations import anthropic_conversations, chat_conversations, responses_conversations

from firsthand.errors import FormatError
from firsthand.formats.wire import wire_by_name
from firsthand.projection.repair import repair
from firsthand.testing.validate import assert_valid
from firsthand.transcript import Entry

EXAMPLES = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def written(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1)


def stored(entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
    """The entries as a journal gives them back."""
    return msgspec.json.decode(msgspec.json.encode(entries), type=tuple[Entry, ...])


def assert_round_trip(name: str, messages: list[Any], system: Any = None) -> None:
    wire = wire_by_name(name)
    before = written([system, messages])
    assert_valid(name, messages, system)
    entries = wire.read(messages, system=system, session="s")
    assert written([system, messages]) == before, "reading changed its input"
    for path in (entries, stored(entries)):
        out = wire.write(path)
        assert written([out.system, out.messages]) == before
    assert all(any(letter.isalpha() for letter in e.id) for e in entries)
    assert [e.sequence for e in entries] == list(range(len(entries)))
    assert [e.parent for e in entries] == [None, *(e.id for e in entries[:-1])][: len(entries)]


@EXAMPLES
@given(chat_conversations)
def test_openai_chat(messages: list[Any]) -> None:
    assert_round_trip("openai-chat", messages)


@EXAMPLES
@given(responses_conversations)
def test_openai_responses(items: list[Any]) -> None:
    assert_round_trip("openai-responses", items)


@EXAMPLES
@given(anthropic_conversations)
def test_anthropic(drawn: tuple[list[Any], Any]) -> None:
    assert_round_trip("anthropic", *drawn)


@EXAMPLES
@given(chat_conversations)
def test_chat_needs_no_repair(messages: list[Any]) -> None:
    entries = wire_by_name("openai-chat").read(messages)
    assert all(a is b for a, b in zip(repair(entries).entries, entries, strict=True))


@EXAMPLES
@given(anthropic_conversations)
def test_anthropic_needs_no_repair(drawn: tuple[list[Any], Any]) -> None:
    entries = wire_by_name("anthropic").read(drawn[0], system=drawn[1])
    assert all(a is b for a, b in zip(repair(entries).entries, entries, strict=True))


@EXAMPLES
@given(responses_conversations)
def test_responses_after_repair_are_valid(items: list[Any]) -> None:
    wire = wire_by_name("openai-responses")
    assert_valid(wire.name, wire.write(repair(wire.read(items)).entries).messages)


SOURCES = {"openai-chat": chat_conversations, "openai-responses": responses_conversations}


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("target", ["openai-chat", "openai-responses", "anthropic"])
def test_any_wire_to_any_other(source: str, target: str) -> None:
    @settings(EXAMPLES, max_examples=30)
    @given(SOURCES[source])
    def check(messages: list[Any]) -> None:
        entries = repair(wire_by_name(source).read(messages)).entries
        out = wire_by_name(target).write(entries)
        if out.messages:
            assert_valid(target, out.messages, out.system)

    check()


@pytest.mark.parametrize("target", ["openai-chat", "openai-responses"])
def test_anthropic_to_any_other(target: str) -> None:
    @settings(EXAMPLES, max_examples=30)
    @given(anthropic_conversations)
    def check(drawn: tuple[list[Any], Any]) -> None:
        entries = repair(wire_by_name("anthropic").read(drawn[0], system=drawn[1])).entries
        assert_valid(target, wire_by_name(target).write(entries).messages)

    check()


@pytest.mark.parametrize(
    ("name", "messages", "words"),
    [
        ("openai-chat", [{"role": "user", "content": "a"}, "b"], "message 1 is a str"),
        ("openai-chat", [{"role": "critic", "content": "a"}], "message 0 has the role 'critic'"),
        ("openai-chat", [{"role": "user", "content": 5}], "message 0: the content"),
        ("openai-chat", [{"role": "tool", "content": "a"}], "message 0 is a tool message without a tool_call_id"),
        ("openai-chat", [{"role": "assistant", "tool_calls": [{"id": "c"}]}], "message 0, tool call 0"),
        ("openai-responses", [{"type": "function_call", "name": "a"}], "item 0 is a function_call without a call_id"),
        ("openai-responses", [{"text": "a"}], "item 0 has neither a type nor a role"),
        ("openai-responses", [{"role": "tool", "content": "a"}], "item 0 is a message of the role 'tool'"),
        ("anthropic", [{"role": "tool", "content": "a"}], "message 0 has the role 'tool'"),
        ("anthropic", [{"role": "user", "content": None}], "message 0: the content"),
        ("anthropic", [{"role": "user", "content": [{"type": "tool_result"}]}], "message 0: a tool_result block"),
        ("text", [{"role": "user", "content": "a"}], "text is for people"),
    ],
)
def test_what_is_no_message_is_refused_by_its_index(name: str, messages: list[Any], words: str) -> None:
    with pytest.raises(FormatError, match=words):
        wire_by_name(name).read(messages)
