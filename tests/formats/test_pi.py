"""Pi's session files, lists and trees, and the fork's: hand-built lines for each rule, then the real ones."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from real_sessions import shared

from firsthand.errors import EmptySessionError
from firsthand.formats.files.base import Input
from firsthand.formats.files.pi.reader import PiReader
from firsthand.transcript import Entry, Media, Reasoning, Text, ToolCall, ToolResult, Usage

from .lines import all_texts, as_bytes, check_whole, counted, read, records_of, shape, texts

READER = PiReader()
FILES = {
    "pi-before-compaction.jsonl.gz": {
        "entries": 990,
        "markers": 2,
        "user typed": 58,
        "user injected": 3,
        "assistant typed": 253,
        "Reasoning": 49,
        "calls": 454,
        "ToolResult": 448,
    },
    "preloop-omp-thinking.jsonl.gz": {
        "entries": 92,
        "markers": 0,
        "user typed": 1,
        "assistant typed": 17,
        "Reasoning": 37,
        "calls": 50,
        "ToolResult": 50,
    },
}
HEADER = {"type": "session", "id": "s1", "timestamp": "2026-01-01T00:00:00.000Z", "cwd": "/w"}
TREE = {**HEADER, "version": 3}


def say(role: str, content: Any, *, at: str | None = None, after: Any = ..., **fields: Any) -> dict[str, Any]:
    """A message; with `at` in a tree, hanging off `after`."""
    line: dict[str, Any] = {
        "type": "message",
        "timestamp": "t",
        "message": {"role": role, "content": content, **fields},
    }
    if at is not None:
        line |= {"id": at, "parentId": None if after is ... else after}
    return line


def node(kind: str, at: str, after: str | None, **fields: Any) -> dict[str, Any]:
    return {"type": kind, "id": at, "parentId": after, "timestamp": "t", **fields}


def call(call_id: str, name: str = "bash", **arguments: Any) -> dict[str, Any]:
    return {"type": "toolCall", "id": call_id, "name": name, "arguments": arguments}


def result(call_id: str, text: str, **fields: Any) -> dict[str, Any]:
    return say("toolResult", [{"type": "text", "text": text}], toolCallId=call_id, toolName="bash", **fields)


# --- messages ---------------------------------------------------------------------------------------------------------


def test_one_message_is_one_entry() -> None:
    spent = {"input": 10, "output": 4, "cacheRead": 30, "cacheWrite": 2, "reasoningTokens": 3, "cost": {"total": 1}}
    thinking = {"type": "thinking", "thinking": "hm", "thinkingSignature": "S="}
    t = read(
        READER,
        HEADER,
        say("user", "go"),
        say(
            "assistant",
            [thinking, {"type": "text", "text": "I look."}, call("c1", n=1)],
            api="anthropic-messages",
            model="m",
            usage=spent,
        ),
        result("c1", "out", isError=True, details={"displayContent": "out"}, useless=True),
        say("user", [{"type": "text", "text": "see"}, {"type": "image", "data": "QUJD", "mimeType": "image/png"}]),
    )
    assert texts(t) == ["go", '? hm|I look.|bash({"n":1})', "c1 = out", "see|<image>"]
    response = t.entries[1]
    assert response.blocks[0] == Reasoning("hm", {"signature": "S="})
    assert response.usage == Usage(input_tokens=42, output_tokens=4, cache_read=30, cache_write=2, reasoning=3)
    assert (response.model, response.extra, response.wire) == ("m", {"api": "anthropic-messages"}, "pi")
    assert t.entries[2].blocks == (ToolResult("c1", (Text("out"),), True, "bash"),)
    assert (t.entries[2].role, t.entries[2].extra) == ("tool", {"useless": True})
    assert t.entries[3].blocks[1] == Media("image", "image/png", "QUJD")
    check_whole(t)


@pytest.mark.parametrize(
    ("reason", "status"),
    [
        ("stop", "complete"),
        ("toolUse", "complete"),
        ("length", "incomplete"),
        ("aborted", "aborted"),
        ("error", "error"),
    ],
)
def test_how_a_response_ended(reason: str, status: str) -> None:
    zero = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}
    t = read(READER, HEADER, say("assistant", [], stopReason=reason, errorMessage="why", usage=zero))
    assert [(entry.status, entry.usage, entry.extra) for entry in t.entries] == [
        (status, None, {"errorMessage": "why"})
    ]


def test_a_command_that_the_person_ran_is_typed_and_its_output_is_not() -> None:
    run = {
        "role": "bashExecution",
        "command": "ls",
        "output": "a\n",
        "exitCode": 0,
        "cancelled": False,
        "truncated": False,
    }
    hidden = {**run, "command": "cat key", "excludeFromContext": True}
    silent = {**run, "command": "true", "output": ""}
    t = read(
        READER,
        HEADER,
        *({"type": "message", "timestamp": "t", "message": message} for message in (run, hidden, silent)),
    )
    assert shape(t.entries) == [("user", ["ls", "injected: a\n"]), ("user", ["true"])]
    assert t.entries[0].extra is not None
    assert t.entries[0].extra["command"] == "ls"
    assert t.extra == {"left_out": {"bashExecution that the person kept from the model": 1, "session": 1}}


def test_texts_of_extensions_are_injected_and_their_data_is_left_out() -> None:
    t = read(
        READER,
        TREE,
        node("custom_message", "a", None, customType="memo", content="remember", display=False, details={"big": 1}),
        node("custom", "b", "a", customType="state", data={"x": 1}),
        say("custom", [{"type": "text", "text": "old form"}], at="c", after="b", customType="memo"),
        say("user", "go", at="d", after="c"),
    )
    assert texts(t) == ["injected: remember", "injected: old form", "go"]
    assert t.entries[0].extra == {"customType": "memo", "display": False}


def test_a_call_that_broke_off_keeps_its_raw_arguments() -> None:
    whole = {**call("c1", a=1), "partialJson": '{"a": 1}'}
    broken = {**call("c2", a=1), "partialJson": '{"a": 1, "b": "x'}
    t = read(READER, HEADER, say("assistant", [whole, broken], stopReason="aborted"))
    assert t.entries[0].blocks == (
        ToolCall("c1", "bash", '{"a":1}'),
        ToolCall("c2", "bash", '{"a":1}', extra={"partialJson": '{"a": 1, "b": "x'}),
    )


def test_two_results_reversed_keep_their_ids() -> None:
    """IM-10."""
    t = read(READER, HEADER, say("assistant", [call("c1"), call("c2")]), result("c2", "two"), result("c1", "one"))
    assert texts(t) == ["bash({})|bash({})", "c2 = two", "c1 = one"]


def test_times_that_are_numbers_become_iso_8601() -> None:
    line = say("user", "go", timestamp=1_787_157_648_228)
    del line["timestamp"]
    assert read(READER, HEADER, line).entries[0].time == "2026-08-19T16:40:48.228Z"


# --- trees ------------------------------------------------------------------------------------------------------------


def test_a_leaf_that_was_left_is_stored_and_off_the_path() -> None:
    """IM-06."""
    t = read(
        READER,
        TREE,
        say("user", "one", at="a"),
        say("assistant", "first", at="b", after="a"),
        say("user", "old", at="c", after="b"),
        say("assistant", "old answer", at="d", after="c"),
        node("branch_summary", "e", "b", fromId="d", summary="tried the old way"),
        say("user", "new", at="f", after="e"),
        node("label", "g", "f", targetId="a", label="start"),
    )
    assert texts(t) == ["one", "first", "summary: tried the old way", "new"]
    assert len(t.entries) == 6
    check_whole(t)


def test_lines_that_are_no_entry_stay_in_the_chain() -> None:
    t = read(
        READER,
        {"type": "title", "v": 1, "title": "Trip", "pad": "   "},
        TREE,
        node("model_change", "m", None, model="p/m"),
        node("session_init", "i", "m", systemPrompt="You are", tools=["read"], task="go"),
        say("user", "go", at="a", after="i", attribution="agent"),
        node("hologram", "x", "a"),
        node("custom", "s", "x", customType="tool_execution_start"),
        say("assistant", [call("call_1|uuid")], at="b", after="s", responseId="r1"),
    )
    assert texts(t) == ["go", "bash({})"]
    assert (t.title, t.system, t.tools, t.entries[1].group) == ("Trip", "You are", ("read",), "r1")
    assert t.warnings == ("1 record of unknown type 'hologram'",)


# --- compaction -------------------------------------------------------------------------------------------------------


def test_compactions_of_the_old_form_count_rows_and_keep_originals_once() -> None:
    """IM-13, version 1: the index counts lines from 0, the header's included; an older compaction inside the kept range shows nothing."""
    t = read(
        READER,
        HEADER,
        say("user", "one"),
        say("assistant", "two"),
        {"type": "compaction", "timestamp": "t", "summary": "so far", "firstKeptEntryIndex": 2, "tokensBefore": 9},
        say("user", "three"),
        {
            "type": "compaction",
            "timestamp": "t",
            "summary": "further",
            "firstKeptEntryIndex": 1,
            "tokensBefore": 12,
            "details": {"readFiles": []},
        },
        say("user", "four"),
    )
    assert texts(t) == ["one", "two", "three", "four"]
    ids = [entry.id for entry in t.entries]
    first, second = t.markers
    assert (first.after, first.tokens_before, first.shown[1:]) == (ids[1], 9, (ids[1],))
    assert (second.after, second.tokens_before, second.shown[1:]) == (ids[2], 12, tuple(ids[:3]))
    assert second.extra == {"details": {"readFiles": []}}
    made = first.shown[0]
    assert isinstance(made, Entry)
    assert made.blocks == (Text("so far", "summary"),)
    check_whole(t)


def test_compactions_of_the_new_form_name_an_entry_of_their_own_path() -> None:
    """IM-13, versions 2 and 3; the id may be that of a line which is no entry, or of the compaction itself when nothing was kept."""
    t = read(
        READER,
        TREE,
        say("user", "one", at="a"),
        say("user", "other branch", at="z", after="a"),
        say("assistant", "two", at="b", after="a"),
        node("model_change", "m", "b", model="x"),
        say("user", "three", at="c", after="m"),
        node("compaction", "k", "c", summary="so far", firstKeptEntryId="m", tokensBefore=9),
        say("user", "four", at="d", after="k"),
        node("compaction", "n", "d", summary="all", firstKeptEntryId="n", tokensBefore=12),
        say("user", "five", at="e", after="n"),
        node("compaction", "p", "e", summary="lost", firstKeptEntryId="gone", tokensBefore=12),
    )
    assert texts(t) == ["one", "two", "three", "four", "five"]
    by_text = {entry.blocks[0].text: entry.id for entry in t.entries}  # type: ignore[union-attr]
    assert [marker.after for marker in t.markers] == [by_text["three"], by_text["four"], by_text["five"]]
    assert [marker.shown[1:] for marker in t.markers] == [(by_text["three"],), (), ()]
    check_whole(t)


# --- damage -----------------------------------------------------------------------------------------------------------


def test_one_broken_line_of_a_thousand_costs_one_line() -> None:
    """IM-01; what hung off the broken line hangs off the one before it."""
    lines: list[Any] = [
        TREE,
        *(say("user", f"u{n}", at=f"{n:x}", after=f"{n - 1:x}" if n else None) for n in range(999)),
    ]
    lines[399] = json.dumps(lines[399])[:70]
    t = read(READER, *lines)
    assert (len(t.entries), len(t.path()), [damage.line for damage in t.damaged]) == (998, 998, [400])


def test_a_lone_surrogate_and_a_line_of_22_megabytes() -> None:
    """IM-02, IM-03."""
    source = Input(
        "test",
        as_bytes(
            TREE,
            say("user", "x" * 22_000_000, at="a"),
            *[say("user", "\ud83d", at=f"b{n}", after="a") for n in range(35)],
        ),
    )
    assert READER.sniff(source)
    (t,) = READER.read(source)
    assert (len(t.entries), t.entries[1].blocks) == (36, (Text("\ud83d"),))


def test_a_file_without_its_header_is_still_read() -> None:
    source = Input("test", as_bytes("{broken", say("user", "one", at="a"), say("assistant", "two", at="b", after="a")))
    assert READER.sniff(source)
    (t,) = READER.read(source)
    assert (texts(t), t.id) == (["one", "two"], "pi-t")


def test_a_file_of_unknown_types_is_refused_loudly() -> None:
    """IM-09."""
    with pytest.raises(EmptySessionError, match=r"1 x 'hologram', 1 x 'session', 0 damaged lines"):
        READER.read(Input("new.jsonl", as_bytes(TREE, node("hologram", "a", None))))


def test_a_message_without_what_makes_it_one_is_damage() -> None:
    t = read(READER, HEADER, say("user", "go"), say("toolResult", "x"), say("oracle", "x"))
    assert [(damage.line, damage.reason) for damage in t.damaged] == [
        (3, "a message of role 'toolResult' without what makes it one")
    ]
    assert t.warnings == ("1 record of unknown type 'message/oracle'",)


@given(st.permutations(range(6)), st.booleans())
@settings(max_examples=100)
def test_the_order_of_lines_changes_nothing_that_parents_tell(order: list[int], circle: bool) -> None:
    lines = [say("user", f"u{n}", at=f"{n}", after=f"{n - 1}" if n else ("5" if circle else None)) for n in range(6)]
    t = read(READER, TREE, *[lines[at] for at in order])
    assert sorted(texts_of(t.entries)) == [f"u{n}" for n in range(6)]
    check_whole(t)
    if not circle:
        assert texts(t) == [f"u{n}" for n in range(order[-1] + 1)]


def texts_of(entries: tuple[Entry, ...]) -> list[str]:
    return [block.text for entry in entries for block in entry.blocks if isinstance(block, Text)]


def test_ids_stay_when_the_file_grows() -> None:
    lines = [TREE, *(say("user", f"u{n}", at=f"{n:x}", after=f"{n - 1:x}" if n else None) for n in range(9))]
    whole = [entry.id for entry in read(READER, *lines).entries]
    assert [entry.id for entry in read(READER, *lines[:5]).entries] == whole[:4]


# --- real files -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FILES)
def test_real_files_have_exactly_these_counts(name: str) -> None:
    transcripts = READER.read(Input.open(shared(f"pi/{name}")))
    assert counted(transcripts) == FILES[name]
    (t,) = transcripts
    check_whole(t)
    assert len(t.path()) == len(t.entries)
    assert (t.damaged, t.warnings) == ((), ())


@pytest.mark.parametrize("name", FILES)
def test_real_files_lose_no_text(name: str) -> None:
    path = shared(f"pi/{name}")
    found = set(all_texts(READER.read(Input.open(path))))
    for record in records_of(path):
        for text in _raw_texts(record):
            assert text in found, text[:80]


def _raw_texts(record: dict[str, Any]) -> list[str]:
    if record["type"] == "compaction":
        return [record["summary"]]
    message = record.get("message", {})
    out = [message[name] for name in ("command", "output") if name in message]
    for block in message.get("content", ()):
        match block["type"]:
            case "text":
                out.append(block["text"])
            case "thinking":
                out.append(block["thinking"])
            case "toolCall":
                out.append(json.dumps(block["arguments"], ensure_ascii=False, separators=(",", ":")))
    return out


def test_the_real_compactions_kept_what_their_rows_say() -> None:
    """The two compactions of the published fixture stand at rows 359 and 628 and point at rows 293 and 551 (pi.md 2.6)."""
    (t,) = READER.read(Input.open(shared("pi/pi-before-compaction.jsonl.gz")))
    line = {entry.id: entry.source.line for entry in t.entries if entry.source}
    assert [
        (line[m.after or ""], line[str(m.shown[1])], line[str(m.shown[-1])], m.tokens_before) for m in t.markers
    ] == [
        (359, 294, 359, 175_004),
        (628, 552, 628, 185_014),
    ]
    assert t.forked_from is not None
    assert sum(entry.usage.total for entry in t.entries if entry.usage) == sum(
        usage["input"] + usage["output"] + usage["cacheRead"] + usage["cacheWrite"]
        for record in records_of(shared("pi/pi-before-compaction.jsonl.gz"))
        if (usage := record.get("message", {}).get("usage"))
    )
