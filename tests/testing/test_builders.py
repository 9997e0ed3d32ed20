"""The builders say what they seem to say."""

from __future__ import annotations

import pytest

from firsthand.testing.builders import call, filler, image, injected, result, said, session, thought, used, user, view
from firsthand.tokens import EstimateCounter
from firsthand.transcript import Entry, Media, Reasoning, Text, ToolCall, ToolResult, Usage


def test_a_history_on_one_line() -> None:
    assert session(user("fix it"), said("I look.", call("read", path="a.py")), result("c1", "text", error=True)) == (
        Entry(id="e1", role="user", blocks=(Text("fix it"),)),
        Entry(
            id="e2",
            role="assistant",
            blocks=(Text("I look."), ToolCall("c1", "read", '{"path":"a.py"}')),
            parent="e1",
            sequence=1,
        ),
        Entry(id="e3", role="tool", blocks=(ToolResult("c1", (Text("text"),), True),), parent="e2", sequence=2),
    )


def test_the_nth_call_is_cn_and_given_ids_stay() -> None:
    path = session(
        user("go", id="first"), said(call("a"), call("b", id="mine")), call("c", "{broken", kind="custom"), user("more")
    )
    assert [e.id for e in path] == ["first", "e2", "e3", "e4"]
    assert [b.id for e in path for b in e.blocks if isinstance(b, ToolCall)] == ["c1", "mine", "c3"]
    assert path[2].blocks == (ToolCall("c3", "c", "{broken", "custom"),)


def test_fields_and_blocks_pass_through() -> None:
    made = said(thought("hm", signature="s"), image(), usage=used(10, 2, cache_read=4), status="aborted")
    assert made.blocks == (Reasoning("hm", {"signature": "s"}), Media("image", "image/png", "iVBORw0KGgo="))
    assert made.usage == Usage(input_tokens=10, output_tokens=2, cache_read=4)
    assert made.status == "aborted"
    assert injected("rules").blocks == (Text("rules", "injected"),)
    assert result("c1").blocks == (ToolResult("c1"),)


def test_views_take_entries_and_sessions() -> None:
    assert view(session(user("a")), said("b"), pins=["e1"]).entries == session(user("a"), said("b"))


def test_equal_ids_are_refused() -> None:
    with pytest.raises(ValueError, match="e2"):
        session(user("a", id="e2"), said("b"))


@pytest.mark.parametrize("tokens", [1, 2, 10, 333])
def test_filler_has_the_size_it_promises(tokens: int) -> None:
    text = filler(tokens, "disk")
    assert EstimateCounter().count(text) == tokens
    assert len(text) == 4 * tokens
    assert filler(tokens, "disk") == text
