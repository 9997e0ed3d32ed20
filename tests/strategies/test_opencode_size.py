"""What OpenCode counts and what its summariser reads: the tables of opencode.md 2.2, 2.6 and 3.4."""

from __future__ import annotations

import pytest

from firsthand.strategies.javascript import length
from firsthand.strategies.opencode.messages import messages
from firsthand.strategies.opencode.prompts import CONTINUE, QUESTION, checkpoint
from firsthand.strategies.opencode.size import CLEARED, Sizes, estimate, json_text, model_messages
from firsthand.strategies.opencode.text import serialized
from firsthand.testing.builders import (
    call,
    developer,
    entry,
    image,
    injected,
    result,
    said,
    summary,
    system,
    thought,
    user,
    view,
)
from firsthand.transcript import Entry, Media, Source, Text, ToolResult


def length_of(*entries: Entry) -> int:
    """Characters of the JSON of all model messages, without the brackets of the list."""
    made = [part for message in messages(view(*entries)) for part in model_messages(message)]
    return length(json_text(made)) - 2


@pytest.mark.parametrize(
    ("entries", "overhead"),
    [
        ([user("Q" * 10)], 53 + 10),
        ([said("A" * 10)], 58 + 10),
        ([user("Q" * 10, "R" * 5)], 53 + 10 + 26 + 5),
        ([said(thought("T" * 10))], 33 + 30 + 10),
        # wrapper, call with its id, name and input, comma, wrapper of the result, result with its id, name and text
        ([said(call("read", "{}", id="abc")), result("abc", "out")], 33 + 59 + 3 + 4 + 2 + 1 + 28 + 88 + 3 + 4 + 3),
        (
            [said(call("read", "{}", id="abc")), result("abc", "out", error=True)],
            33 + 59 + 3 + 4 + 2 + 1 + 28 + 94 + 3 + 4 + 3,
        ),
        # file part: media type, file name, data
        (
            [user(Media("image", "image/png", url="https://e/x", extra={"filename": "a.png"}))],
            53 - 26 + 1 + 54 + 9 + 5 + 11,
        ),
        ([user('a\n"b"')], 53 + 5 + 3),
        ([user("é")], 53 + 1),
        ([user("🙂")], 53 + 2),
        ([user("\ud83d")], 53 + 6),
        ([user("")], 0),
        ([said("no", status="error")], 0),
    ],
)
def test_json_overheads(entries: list[Entry], overhead: int) -> None:
    assert length_of(*entries) == overhead


def test_file_part_overhead_by_itself() -> None:
    part = {"type": "file", "mediaType": "", "filename": "", "data": ""}
    assert len(json_text(part)) == 54


@pytest.mark.parametrize(("units", "tokens"), [(0, 0), (1, 0), (2, 1), (3, 1), (5, 1), (6, 2), (12_120, 3_030)])
def test_halves_are_rounded_up(units: int, tokens: int) -> None:
    assert estimate(units) == tokens


def test_a_turn_of_the_vectors_counts_what_the_original_counted() -> None:
    sizes = Sizes.of(messages(view(user("q" * 4_003), said("a" * 8_003))))
    assert (sizes.tokens(0, 2), sizes.tokens(1, 2)) == (3_030, 2_016)


def test_spans_are_what_their_json_is() -> None:
    history = view(user("one"), said("two", call("x", a=1)), result("c1", "three"), user("four"), said("five"))
    found = messages(history)
    sizes = Sizes.of(found)
    for start in range(len(found)):
        for end in range(start, len(found) + 1):
            made = [part for message in found[start:end] for part in model_messages(message)]
            assert sizes.tokens(start, end) == estimate(len(json_text(made)))


def test_arguments_count_as_the_json_that_javascript_writes() -> None:
    assert length_of(said(call("t", '{"a": 1.0, "b": [1, 2]}', id="i"))) == length_of(
        said(call("t", '{"a":1,"b":[1,2]}', id="i"))
    )


def test_reasoning_of_another_model_counts_as_text() -> None:
    old = said(thought("hm", signature="x" * 100), "A", model="old")
    assert 'signature":"xxx' in json_text(model_messages(messages(view(old))[0], "old"))
    made = model_messages(messages(view(old))[0], "new")
    assert made == [{"role": "assistant", "content": [{"type": "text", "text": "hm"}, {"type": "text", "text": "A"}]}]


def test_texts_of_ours_are_as_long_as_the_originals() -> None:
    assert (len(QUESTION), len(CONTINUE), len(CLEARED)) == (22, 100, 33)
    assert len(checkpoint("s", "r")) - 2 == 243


def texts(*entries: Entry, flavour: str = "V1", with_updates: bool = False) -> list[str | None]:
    found = messages(view(*entries), with_updates=with_updates)
    made = [serialized(message, flavour, 20) for message in found]  # type: ignore[arg-type]
    return [text and text.text for text in made]


DOCUMENT = Media("document", "application/pdf", "aGk=", extra={"filename": "spec.pdf"})


@pytest.mark.parametrize(
    ("entries", "v1", "v2"),
    [
        ([user("one", "", "two")], ["[User]: one\ntwo"], ["[User]: one\ntwo"]),
        (
            [user("see", image(), DOCUMENT)],
            ["[User]: see\n[Attached image/png: file]\n[Attached application/pdf: spec.pdf]"],
            ["[User]: see\n[Attached image/png: file]\n[Attached application/pdf: spec.pdf]"],
        ),
        (
            [user(Media("image", "image/png", url="file:///a/b.png"))],
            ["[Attached image/png: file]"],
            ["[User]: \n[Attached image/png: file:///a/b.png]"],
        ),
        ([user("")], [None], ["[User]: "]),
        (
            [said(thought("think"), "say", "")],
            ["[Assistant reasoning]: think\n[Assistant]: say"],
            ["[Assistant reasoning]: think\n[Assistant]: say\n[Assistant]: "],
        ),
        (
            [said("go", call("read", path="a b", n=1)), result("c1", "12345678901234567890")],
            ['[Assistant]: go\n[Assistant tool call]: read({"path":"a b","n":1})\n[Tool result]: 12345678901234567890'],
            ['[Assistant]: go\n[Assistant tool call]: read({"path":"a b","n":1})\n[Tool result]: 12345678901234567890'],
        ),
        (
            [said(call("read", '{"a": "' + "x" * 30 + '"}')), result("c1", "123456789012345678901")],
            ['[Assistant tool call]: read({"a":"' + "x" * 30 + '"})\n[Tool result]: 12345678901234567890\n[truncated]'],
            ['[Assistant tool call]: read({"a":"' + "x" * 30 + '"})\n[Tool result]: 12345678901234567890\n[truncated]'],
        ),
        (
            [said(call("read", "{}")), result("c1", "e" * 30, error=True)],
            ["[Assistant tool call]: read({})\n[Tool error]: " + "e" * 30],
            ["[Assistant tool call]: read({})\n[Tool error]: " + "e" * 30],
        ),
        ([said(call("read", ""))], ["[Assistant tool call]: read({})"], ["[Assistant tool call]: read({})"]),
        ([said(call("sh", "ls -l"))], ['[Assistant tool call]: sh("ls -l")'], ['[Assistant tool call]: sh("ls -l")']),
        (
            [said(call("read", "{}")), entry("tool", ToolResult("c1", (image(), Text("12345"))))],
            ["[Assistant tool call]: read({})\n[Tool result]: 12345\n[Attached imag\n[truncated]"],
            ["[Assistant tool call]: read({})\n[Tool result]: [Attached image/png:\n[truncated]"],
        ),
        (
            [user("a"), said("b"), injected("note")],
            ["[User]: a", "[Assistant]: b", "[User]: note"],
            ["[User]: a", "[Assistant]: b", "[Synthetic context]: note"],
        ),
        (
            [user("a"), developer("rule"), said("b")],
            ["[User]: a", "[Assistant]: b"],
            ["[User]: a", "[System update]: rule", "[Assistant]: b"],
        ),
        (
            [system("s"), injected("rules"), user("a"), summary("of old")],
            ["[User]: a"],
            ["[User]: a"],
        ),
    ],
)
def test_serialized(entries: list[Entry], v1: list[str | None], v2: list[str | None]) -> None:
    assert texts(*entries) == v1
    assert texts(*entries, flavour="V2", with_updates=True) == v2


def test_no_character_is_halved_where_an_output_is_cut() -> None:
    assert texts(said(call("x", "{}")), result("c1", "1234567890123456789🙂"))[0] == (
        "[Assistant tool call]: x({})\n[Tool result]: 1234567890123456789\n[truncated]"
    )


@pytest.mark.parametrize(
    ("entries", "shapes"),
    [
        # Calls of one response, their results in between: one message (session-formats.md 1).
        (
            [
                said(call("a", id="1"), group="g"),
                result("1", "x"),
                said(call("b", id="2"), group="g"),
                result("2", "y"),
                said("z", group="h"),
            ],
            [("assistant", 4), ("assistant", 1)],
        ),
        # A reminder glued to a result, and one between two steps, begin no turn; typed text does.
        (
            [
                user("q"),
                said(call("a", id="1")),
                entry("user", ToolResult("1", (Text("x"),)), Text("remember", "injected")),
                injected("hook"),
                said("done"),
            ],
            [("user", 1), ("assistant", 4), ("assistant", 1)],
        ),
        (
            [user("q"), said(call("a", id="1")), entry("user", ToolResult("1", (Text("x"),)), Text("stop"))],
            [("user", 1), ("assistant", 2), ("user", 1)],
        ),
        # Our own request to go on is a user message wherever it comes.
        (
            [user("q"), said(call("a", id="1")), result("1", "x"), injected(CONTINUE), said("on")],
            [("user", 1), ("assistant", 2), ("user", 1), ("assistant", 1)],
        ),
        # In OpenCode's own files a user message is one, whoever wrote it.
        (
            [
                user("q"),
                said(call("a", id="1")),
                result("1", "x"),
                injected("sent again", source=Source("opencode")),
                said("on"),
            ],
            [("user", 1), ("assistant", 2), ("user", 1), ("assistant", 1)],
        ),
        # A late result belongs to the message that made the call.
        ([said(call("a", id="1")), user("stop"), result("1", "x")], [("assistant", 2), ("user", 1)]),
        # An id that is used again: the newest call that waits gets the result.
        (
            [said(call("a", id="1")), result("1", "x"), user("again"), said(call("a", id="1")), result("1", "y")],
            [("assistant", 2), ("user", 1), ("assistant", 2)],
        ),
        ([result("nobody", "x"), said("a")], [("assistant", 1), ("assistant", 1)]),
        # Items of one response, as the Responses API spreads them.
        (
            [
                said(thought("t"), wire="openai-responses"),
                said("a", wire="openai-responses"),
                said(call("x", id="1"), wire="openai-responses"),
                result("1", "y", wire="openai-responses"),
            ],
            [("assistant", 4)],
        ),
    ],
)
def test_messages(entries: list[Entry], shapes: list[tuple[str, int]]) -> None:
    assert [(message.role, len(list(message.blocks()))) for message in messages(view(*entries))] == shapes
