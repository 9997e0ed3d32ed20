"""One small request for each rule that breaks it and no other, and requests that break none."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from firsthand.errors import UnknownNameError
from firsthand.testing.validate import Violation, assert_valid, validate

U = {"role": "user", "content": "hi"}
A = {"role": "assistant", "content": "ok"}
PNG = "data:image/png;base64,aGk="


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


# ---------------------------------------------------------------------------------------------------------------- chat


def calls(*ids: str, **more: Any) -> dict[str, Any]:
    made = [{"id": i, "type": "function", "function": {"name": "f", "arguments": "{}", **more}} for i in ids]
    return {"role": "assistant", "content": None, "tool_calls": made}


def tool(call_id: str, content: Any = "x") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


CHAT_GOOD: list[list[Any]] = [
    [U],
    [{"role": "system", "content": [text("a")]}, {"role": "developer", "content": "b"}, U, U, A, A],
    [U, calls("a", "b"), tool("b"), tool("a", ""), A],
    [U, {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}}, {"role": "function", "name": "f", "content": "x"}],
    [{"role": "user", "content": [text("a"), {"type": "image_url", "image_url": {"url": PNG}}]}],
    [U, {"role": "assistant", "content": None, "audio": {"id": "a"}}],
    [U, {"role": "assistant", "tool_calls": [{"id": "a", "type": "custom", "custom": {"name": "f", "input": "free"}}]}, tool("a")],
]  # fmt: skip

CHAT_BAD: list[tuple[list[Any], list[tuple[int, str]]]] = [
    ([U, "x"], [(1, "role")]),
    ([{"role": "critic", "content": "a"}], [(0, "role")]),
    ([{"role": "user", "content": None}], [(0, "empty-content")]),
    ([{"role": "user", "content": []}], [(0, "empty-content")]),
    ([{"role": "user", "content": [text("")]}], [(0, "empty-content")]),
    ([{"role": "user", "content": 7}], [(0, "content")]),
    ([U, {"role": "assistant"}], [(1, "empty-content")]),
    ([U, {"role": "assistant", "content": "a", "tool_calls": []}], [(1, "tool-calls")]),
    ([U, calls("a")], [(1, "unanswered-call")]),
    ([U, calls("a"), U, tool("a")], [(1, "unanswered-call"), (3, "orphan-result")]),
    ([U, calls("a", "b"), tool("a")], [(1, "unanswered-call")]),
    ([U, calls("a"), tool("a"), tool("a")], [(3, "orphan-result")]),
    ([U, tool("a")], [(1, "orphan-result")]),
    ([U, calls("a"), tool("a"), calls("a"), tool("a")], [(3, "repeated-call-id")]),
    ([U, calls("a", arguments='{"a'), tool("a")], [(1, "arguments")]),
    ([U, calls("a", arguments=""), tool("a")], [(1, "arguments")]),
    ([U, calls("a", arguments='{"a":NaN}'), tool("a")], [(1, "arguments")]),
    ([U, calls("a", arguments={}), tool("a")], [(1, "arguments")]),
    ([U, calls("a", name="a b"), tool("a")], [(1, "tool-name")]),
    ([U, {"role": "assistant", "tool_calls": [{"id": "a", "type": "magic"}]}, tool("a")], [(1, "call-type")]),
    ([U, calls("a"), tool("a", [{"type": "image_url", "image_url": {"url": PNG}}])], [(2, "part-type")]),
    ([{"role": "system", "content": [{"type": "image_url", "image_url": {"url": PNG}}]}], [(0, "part-type")]),
    ([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/svg+xml;base64,aGk="}}]}], [(0, "image")]),
    ([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "file:///a.png"}}]}], [(0, "image")]),
    ([{"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "aGk=", "format": "flac"}}]}], [(0, "audio")]),
    ([{"role": "user", "content": [{"type": "file", "file": {}}]}], [(0, "file")]),
    ([U, {"role": "function", "name": "f", "content": "x"}], [(1, "orphan-result")]),
    ([{"role": "user", "content": "a\ud83d"}], [(0, "lone-surrogate")]),
]  # fmt: skip

# ----------------------------------------------------------------------------------------------------------- responses


def call(call_id: str, **more: Any) -> dict[str, Any]:
    return {"type": "function_call", "call_id": call_id, "name": "f", "arguments": "{}", **more}


def output(call_id: str, value: Any = "x", kind: str = "function_call_output") -> dict[str, Any]:
    return {"type": kind, "call_id": call_id, "output": value}


def message(role: str, *parts: dict[str, Any]) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": list(parts)}


CUSTOM = {"type": "custom_tool_call", "call_id": "a", "name": "f", "input": "free"}
REASON = {"type": "reasoning", "id": "rs", "summary": []}
IN, OUT = {"type": "input_text", "text": "a"}, {"type": "output_text", "text": "a"}

RESPONSES_GOOD: list[Any] = [
    "hi",
    [U, A, message("developer", IN), message("assistant", OUT)],
    [U, REASON, call("a"), call("b"), output("b"), output("a", [IN])],
    [U, call("a"), U, output("a", "")],
    [CUSTOM, output("a", kind="custom_tool_call_output")],
    [REASON, REASON, A],
    [{"type": "reasoning", "summary": [], "encrypted_content": "x"}, {"type": "web_search_call", "id": "w"}],
    [{"type": "compaction", "encrypted_content": "x"}, {"type": "item_reference", "id": "m"}],
    [{"type": "local_shell_call", "call_id": "a", "action": {}}, output("a")],
    [message("user", {"type": "input_image", "image_url": PNG}, {"type": "input_image", "file_id": "f"})],
]

RESPONSES_BAD: list[tuple[list[Any], list[tuple[int, str]]]] = [
    ([{"type": "magic"}], [(0, "item-type")]),
    ([{"role": "tool", "content": "a"}], [(0, "role")]),
    ([message("user")], [(0, "empty-content")]),
    ([message("user", OUT)], [(0, "part-type")]),
    ([message("assistant", IN)], [(0, "part-type")]),
    ([message("user", {"type": "input_image", "image_url": "a.png"})], [(0, "image")]),
    ([message("user", {"type": "input_file"})], [(0, "file")]),
    ([call("a")], [(0, "unanswered-call")]),
    ([output("a")], [(0, "orphan-result")]),
    ([output("a"), call("a")], [(0, "orphan-result"), (1, "unanswered-call")]),
    ([call("a"), output("a"), output("a")], [(2, "repeated-result")]),
    ([call("a"), output("a"), call("a")], [(2, "repeated-call-id")]),
    ([CUSTOM, output("a")], [(1, "output-type")]),
    ([call("a"), output("a", kind="custom_tool_call_output")], [(1, "output-type")]),
    ([call("a"), output("a", [])], [(1, "empty-content")]),
    ([call("a"), output("a", [OUT])], [(1, "part-type")]),
    ([call("a", arguments='{"a'), output("a")], [(0, "arguments")]),
    ([call("a", name=""), output("a")], [(0, "tool-name")]),
    ([REASON, U], [(0, "reasoning-alone")]),
    ([U, REASON], [(1, "reasoning-alone")]),
    ([call("a"), REASON, output("a")], [(1, "reasoning-alone")]),
    ([{"type": "reasoning", "summary": []}, A], [(0, "reasoning")]),
    ([{"type": "reasoning", "id": "r"}, A], [(0, "reasoning")]),
]

# ----------------------------------------------------------------------------------------------------------- anthropic


def said(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def given(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def use(call_id: str, **more: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": "f", "input": {}, **more}


def answer(call_id: str, **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": "x", **more}


def image(**source: Any) -> dict[str, Any]:
    return {"type": "image", "source": source}


THINK = {"type": "thinking", "thinking": "hm", "signature": "s"}
SEARCH = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "s", "content": []}
MARK = {"cache_control": {"type": "ephemeral"}}

ANTHROPIC_GOOD: list[list[Any]] = [
    [U, A, U],
    [U, said(THINK, text("a"), use("a"), use("b")), given(answer("b"), answer("a"), text("so"))],
    [U, said(text("a"), THINK, use("a")), given(answer("a")), A, U],
    [U, said(THINK, SEARCH, FOUND, THINK, text("a"))],
    [U, said(text("a"), SEARCH)],
    [U, said(use("a")), given({"type": "tool_result", "tool_use_id": "a"}), A],
    [given(image(type="base64", media_type="image/png", data="aGk="), image(type="url", url="https://a"), image(type="file", file_id="f"))],
    [given({**text("a"), **MARK}, {**text("b"), **MARK}), A, given({**text("c"), **MARK}, {**text("d"), **MARK})],
]  # fmt: skip

ANTHROPIC_BAD: list[tuple[list[Any], list[tuple[int, str]]]] = [
    ([A], [(0, "alternation")]),
    ([U, U], [(1, "alternation")]),
    ([{"role": "system", "content": "a"}], [(0, "role"), (0, "block-type")]),
    ([{"role": "user", "content": ""}], [(0, "empty-content")]),
    ([given()], [(0, "empty-content")]),
    ([given(text(" \n"))], [(0, "empty-content")]),
    ([given(use("a"))], [(0, "block-type"), (0, "unanswered-call")]),
    ([U, said(image(type="url", url="https://a"))], [(1, "block-type")]),
    ([U, said(use("a"))], [(1, "unanswered-call")]),
    ([U, said(use("a")), U], [(1, "unanswered-call")]),
    ([U, said(use("a"), use("b")), given(answer("a"))], [(1, "unanswered-call")]),
    ([U, said(use("a")), given(text("so"), answer("a"))], [(2, "results-first")]),
    ([given(answer("a"))], [(0, "orphan-result")]),
    ([U, said(use("a")), given(answer("a"), answer("a"))], [(2, "orphan-result")]),
    ([U, said(use("a")), given(answer("a")), said(use("a")), given(answer("a"))], [(3, "repeated-call-id")]),
    ([U, said(use("a", input="{}")), given(answer("a"))], [(1, "arguments")]),
    ([U, said(use("a", name="a b")), given(answer("a"))], [(1, "tool-name")]),
    ([U, said(use("a:1")), given(answer("a:1"))], [(1, "call-id")]),
    ([U, said(use("a")), given(answer("a", content=[], is_error=True))], [(2, "empty-content")]),
    ([U, said(use("a")), given(answer("a", content=[text("")]))], [(2, "empty-content")]),
    ([U, said(use("a")), given(answer("a", content=[use("b")]))], [(2, "block-type")]),
    ([U, said(SEARCH, text("a")), U], [(1, "unanswered-call")]),
    ([U, said(FOUND, text("a"))], [(1, "orphan-result")]),
    ([U, said({"type": "thinking", "thinking": "hm"}, text("a"))], [(1, "signature")]),
    ([U, said({"type": "redacted_thinking"}, text("a"))], [(1, "signature")]),
    ([U, said({**THINK, **MARK}, text("a"))], [(1, "cache-marks")]),
    ([U, said(text("a"), THINK), U], [(1, "thinking-last")]),
    ([U, said(text("a"), THINK, use("a")), given(answer("a"))], [(1, "thinking-first")]),
    ([given(image(type="base64", media_type="image/svg+xml", data="aGk="))], [(0, "image")]),
    ([given(image(type="url", url="file:///a"))], [(0, "image")]),
    ([given({"type": "document", "source": {"type": "base64", "media_type": "image/png", "data": "a"}})], [(0, "document")]),
    ([given(*({**text(str(n)), **MARK} for n in range(5)))], [(-1, "cache-marks")]),
]  # fmt: skip

TABLES: dict[str, tuple[list[Any], list[tuple[Any, list[tuple[int, str]]]]]] = {
    "openai-chat": (CHAT_GOOD, CHAT_BAD),
    "openai-responses": (RESPONSES_GOOD, RESPONSES_BAD),
    "anthropic": (ANTHROPIC_GOOD, ANTHROPIC_BAD),
}


@pytest.mark.parametrize(("wire", "messages"), [(wire, m) for wire, (good, _) in TABLES.items() for m in good])
def test_valid(wire: str, messages: Any) -> None:
    before = copy.deepcopy(messages)
    assert validate(wire, messages) == []
    assert_valid(wire, messages)
    assert messages == before


@pytest.mark.parametrize(
    ("wire", "messages", "expected"), [(wire, m, e) for wire, (_, bad) in TABLES.items() for m, e in bad]
)
def test_invalid(wire: str, messages: Any, expected: list[tuple[int, str]]) -> None:
    assert [(v.index, v.rule) for v in validate(wire, messages)] == expected


def test_a_body_brings_its_system_prompt_and_tools() -> None:
    marked = [{**text("a"), **MARK}]
    body = {"system": marked, "tools": [{"name": "f", **MARK}], "messages": [given(*(marked * 3))]}
    assert [v.rule for v in validate("anthropic", body)] == ["cache-marks"]
    assert [v.rule for v in validate("anthropic", {"messages": [U], "system": [text(" ")]})] == ["empty-content"]
    assert [v.rule for v in validate("anthropic", [U], system=[{"type": "image"}])] == ["system"]
    assert [v.rule for v in validate("anthropic", [U], system="a\udc00")] == ["lone-surrogate"]
    assert validate("anthropic", [U], system="base") == []
    assert [v.rule for v in validate("openai-chat", [U], system="base")] == ["system"]
    assert validate("openai-responses", {"input": "hi", "instructions": "base"}) == []


@pytest.mark.parametrize("wire", TABLES)
@pytest.mark.parametrize("nothing", [[], {}, {"messages": "hi"}, {"input": None}])
def test_no_messages(wire: str, nothing: Any) -> None:
    assert [(v.index, v.rule) for v in validate(wire, nothing)] == [(-1, "messages")]


def test_the_failure_says_where_and_why() -> None:
    with pytest.raises(AssertionError, match=r"openai-chat message 1: orphan-result: no call 'a' waits"):
        assert_valid("openai-chat", [U, tool("a")])
    assert validate("openai-chat", [U, tool("a")]) == [
        Violation(1, "orphan-result", "no call 'a' waits for a result here")
    ]


def test_an_unknown_wire() -> None:
    with pytest.raises(UnknownNameError, match="anthropic, openai-chat, openai-responses"):
        validate("text", [U])
