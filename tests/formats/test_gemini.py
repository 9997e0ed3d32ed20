from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from real_sessions import shared

from firsthand.errors import EmptySessionError
from firsthand.formats.files.base import Input
from firsthand.formats.files.gemini.reader import GeminiReader
from firsthand.transcript import Reasoning, Text, ToolCall, ToolResult, Transcript, Usage

from .reading import blocks, check, counts, one, opened, raw, shape, shapes, subset

READER = GeminiReader()
Object = dict[str, Any]

HEAD: Object = {"sessionId": "s1", "projectHash": "h", "startTime": "2026-01-01T00:00:00.000Z", "kind": "main"}
CONTEXT: Object = {"id": "ctx", "type": "user", "content": [{"text": "<session_context>\nenv"}]}


def user(name: str, text: Any = None, **more: Any) -> Object:
    return {"id": name, "timestamp": "2026-01-01T00:00:01.000Z", "type": "user", "content": text or name, **more}


def said(name: str, text: Any = "", *calls: Object, **more: Any) -> Object:
    called = {"toolCalls": list(calls)} if calls else {}
    return {"id": name, "timestamp": "2026-01-01T00:00:02.000Z", "type": "gemini", "content": text, **called, **more}


def call(name: str, output: str | None = None, status: str = "success", **more: Any) -> Object:
    made = {"id": name, "name": "read_file", "args": {"p": 1}, "status": status, **more}
    return made | ({"result": [answer(name, output)]} if output is not None else {})


def answer(name: str, output: str, key: str = "output") -> Object:
    return {"functionResponse": {"id": name, "name": "read_file", "response": {key: output}}}


def history(*messages: Object) -> Object:
    return {"$set": {"messages": list(messages), "lastUpdated": "2026-01-02T00:00:00.000Z"}}


def document(*messages: Object, indent: int | None = 2) -> bytes:
    return json.dumps({**HEAD, "messages": list(messages)}, indent=indent).encode()


def log(*records: Object) -> bytes:
    return b"\n".join(json.dumps(r).encode() for r in (HEAD, *records)) + b"\n"


def read(data: bytes) -> Transcript:
    transcript = one(READER, opened(data))
    check(transcript)
    return transcript


# ---------------------------------------------------------------- messages


def test_a_document() -> None:
    thoughts = [{"subject": "Plan", "description": "to look"}, {"description": "no subject"}]
    tokens = {"input": 100, "output": 20, "cached": 60, "thoughts": 5, "tool": 3, "total": 128}
    found = read(
        document(
            user("q"),
            said("a", "", call("c1", "one"), call("c2", "two"), thoughts=thoughts, tokens=tokens, model="m"),
            said("b", "done"),
        )
    )
    assert shapes(found) == [
        ("user", "q"),
        (
            "assistant",
            "thinks: **Plan** to look",
            "thinks: no subject",
            ("call", "c1", "read_file", '{"p":1}'),
            ("call", "c2", "read_file", '{"p":1}'),
        ),
        ("tool", ("result", "c1", "one"), ("result", "c2", "two")),
        ("assistant", "done"),
    ]
    assert found.entries[1].usage == Usage(input_tokens=103, output_tokens=25, cache_read=60, reasoning=5)
    assert (found.id, found.model, found.time) == ("s1", "m", "2026-01-01T00:00:00.000Z")


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (call("c", None, "cancelled"), None),
        (call("c", None) | {"result": [answer("c", "no such file", "error")]}, ("failed", "c", "no such file")),
        (call("c", "stopped by the person", "cancelled"), ("failed", "c", "stopped by the person")),
        (call("c", None) | {"result": "plain"}, ("result", "c", "plain")),
        (call("c", "") | {}, ("result", "c")),
        (
            call("c", None) | {"result": [{"functionResponse": {"id": "c", "response": {"a": 1, "b": [2]}}}]},
            ("result", "c", '{"a":1,"b":[2]}'),
        ),
        (
            call("c", "see")
            | {"result": [answer("c", "see"), {"inlineData": {"mimeType": "image/png", "data": "QQ=="}}]},
            ("result", "c", "see", ("image", "image/png", "QQ==")),
        ),
        # After a resume each call of a response may carry the answers to all of them.
        (call("c", None) | {"result": [answer("other", "x"), answer("c", "mine")]}, ("result", "c", "mine")),
    ],
)
def test_results(made: Object, expected: tuple[Any, ...] | None) -> None:
    found = read(document(user("q"), said("a", "t", made)))
    assert shapes(found)[2:] == ([("tool", expected)] if expected else [])


def test_parts_of_a_users_message() -> None:
    parts = ["look at ", {"text": "this"}, {"inlineData": {"mimeType": "application/pdf", "data": "QQ=="}}, {"x": 1}]
    found = read(document(user("q", parts)))
    assert shapes(found) == [("user", "look at ", "this", ("document", "application/pdf", "QQ=="), {"x": 1})]


def test_what_the_client_says_is_injected_and_what_only_people_see_is_left_out() -> None:
    found = read(
        document(CONTEXT, user("q", displayContent="SECRET"), {"id": "i", "type": "info", "content": "SECRET"})
    )
    assert shapes(found) == [("user", "injected: <session_context>\nenv"), ("user", "q")]
    assert "SECRET" not in repr(found)
    assert found.extra == {"projectHash": "h", "kind": "main", "left_out": {"info": 1}}


def test_a_signature_is_kept() -> None:
    parts = [
        {"text": "hm", "thought": True, "thoughtSignature": "T"},
        {"text": "so", "thoughtSignature": "X"},
        {"functionCall": {"id": "c", "name": "f", "args": {}}, "thoughtSignature": "C"},
    ]
    found = read(document(user("q"), said("a", parts, thoughts=[{"subject": "S", "description": "hm"}])))
    assert found.entries[1].blocks == (
        Reasoning("hm", {"thoughtSignature": "T"}),
        Text("so", extra={"thoughtSignature": "X"}),
        ToolCall("c", "f", "{}", extra={"thoughtSignature": "C"}),
    )


# ---------------------------------------------------------------- logs of current versions


def test_a_log_gives_what_the_document_gives() -> None:
    messages = (user("q"), said("a", "t", call("c", "out")), said("b", "end"))
    assert read(log(*messages)).entries == read(document(*messages)).entries


def test_later_copies_of_a_message_add_to_it() -> None:
    found = read(
        log(
            user("q"),
            said("a", "t"),
            said("a", "t", call("c1"), call("c2"), tokens={"input": 5, "output": 1}),
            said("a", "t", call("c1", "one"), call("c2", "two")),
            # The client stores the answers as a message, too.
            user("r", [answer("c1", "one"), answer("c2", "two")]),
            said("b", "end"),
        )
    )
    assert [s[0] for s in shapes(found)] == ["user", "assistant", "tool", "assistant"]
    assert shapes(found)[2] == ("tool", ("result", "c1", "one"), ("result", "c2", "two"))
    assert found.entries[1].usage == Usage(input_tokens=5, output_tokens=1)


def test_answers_that_are_only_stored_as_a_message_find_their_calls() -> None:
    found = read(log(user("q"), said("a", "t", call("c1")), user("r", [answer("c1", "one")])))
    assert shapes(found)[2:] == [("tool", ("result", "c1", "one"))]


def test_an_output_that_a_later_copy_masks_stays() -> None:
    """As IM-12."""
    found = read(
        log(user("q"), said("a", "t", call("c", "long output")), said("a", "", call("c", "[masked]")), said("b", "e"))
    )
    assert shapes(found)[1:3] == [
        ("assistant", "t", ("call", "c", "read_file", '{"p":1}')),
        ("tool", ("result", "c", "long output")),
    ]


def test_an_output_that_a_message_masks_stays() -> None:
    found = read(
        log(user("q"), said("a", "t", call("c", "long output")), user("r", [answer("c", "[masked]")]), said("b", "e"))
    )
    assert shapes(found)[2] == ("tool", ("result", "c", "long output"))


RESUMED = (
    history(CONTEXT),
    user("q"),
    said("a", "t", call("c", "out")),
    # What the client writes when it resumes: an empty history, then the restored one, in the provider's shape.
    HEAD,
    history(CONTEXT),
    {"$set": {"sessionId": "s1"}},
    history(
        CONTEXT,
        user("q", [{"text": "q"}]),
        said("a", [{"text": "t"}, {"functionCall": {"id": "c", "name": "read_file", "args": {"p": 1}}}]),
        user("a_response", [answer("c", "out")]),
    ),
)


def test_resuming_is_no_compaction() -> None:
    found = read(log(*RESUMED, user("q2"), said("b", "end")))
    assert found.markers == ()
    assert [s[:2] for s in shapes(found)] == [
        ("user", "injected: <session_context>\nenv"),
        ("user", "q"),
        ("assistant", "t"),
        ("tool", ("result", "c", "out")),
        ("user", "q2"),
        ("assistant", "end"),
    ]


def test_resuming_on_another_day_is_no_compaction() -> None:
    """Then the client's own text about the environment is another one; it is added where it arrived."""
    today = {"id": "ctx2", "type": "user", "content": [{"text": "<session_context>\ntoday"}]}
    found = read(
        log(
            history(CONTEXT),
            user("q"),
            said("a", "t"),
            HEAD,
            history(today),
            history(today, user("q"), said("a", "t")),
            user("q2"),
        )
    )
    assert found.markers == ()
    assert [s[1] for s in shapes(found)] == [
        "injected: <session_context>\nenv",
        "q",
        "t",
        "injected: <session_context>\ntoday",
        "q2",
    ]


def test_commands_that_a_resumed_history_leaves_out_are_no_compaction() -> None:
    found = read(
        log(
            user("h", "/help"),
            user("x", "/usr is full"),
            user("q"),
            said("a", "t"),
            history(user("q"), said("a", "t")),
            user("q2"),
        )
    )
    assert found.markers == ()
    assert [s[1] for s in shapes(found)] == ["injected: /help", "/usr is full", "q", "t", "q2"]


def test_a_session_that_was_resumed_and_then_left() -> None:
    found = read(log(*RESUMED[:5]))
    assert found.markers == ()
    assert len(found.entries) == 4


def test_a_compressed_history_is_a_marker() -> None:
    """IM-08 for this format: the originals stay, the summary stands in the marker only."""
    summary, thanks = user("s", [{"text": "SUMMARY"}]), said("k", [{"text": "Got it."}])
    found = read(log(*RESUMED, history(CONTEXT, summary, thanks), user("q2"), said("b", "end")))
    (marker,) = found.markers
    assert [s[1] for s in shapes(found)] == [
        "injected: <session_context>\nenv",
        "q",
        "t",
        ("result", "c", "out"),
        "q2",
        "end",
    ]
    assert marker.after == found.entries[3].id
    assert marker.time == "2026-01-02T00:00:00.000Z"
    assert [x if isinstance(x, str) else shape(x) for x in marker.shown] == [
        found.entries[0].id,
        ("user", "summary: SUMMARY"),
        ("assistant", "injected: Got it."),
    ]


def test_the_part_of_a_history_that_was_kept_is_shown_by_its_originals() -> None:
    kept = user("q2")
    found = read(log(user("q1"), said("a", "t"), kept, history(user("s", "SUMMARY"), kept), said("b", "end")))
    assert [x if isinstance(x, str) else shape(x) for x in found.markers[0].shown] == [
        ("user", "summary: SUMMARY"),
        found.entries[2].id,
    ]
    # Resuming it once more brings no second marker.
    again = log(
        user("q1"), said("a", "t"), kept, history(user("s", "SUMMARY"), kept), said("b", "end"), HEAD, history(CONTEXT),
        history(CONTEXT, user("s", "SUMMARY"), kept, said("b", "end")), user("q3"),
    )  # fmt: skip
    assert len(read(again).markers) == 1


def test_what_was_taken_back_leaves_the_path() -> None:
    found = read(log(user("q1"), said("a", "one"), user("q2"), said("b", "two"), {"$rewindTo": "q2"}, user("q3")))
    assert [shape(e) for e in found.path()] == [("user", "q1"), ("assistant", "one"), ("user", "q3")]
    assert len(found.entries) == 5
    assert [shape(e) for e in found.entries if e.parent == found.entries[1].id] == [("user", "q2"), ("user", "q3")]


def test_taking_everything_back() -> None:
    found = read(log(user("q1"), {"$rewindTo": "q1"}, user("q2")))
    assert [shape(e) for e in found.path()] == [("user", "q2")]
    assert len(found.entries) == 2


def test_a_sub_agents_file_names_its_parent(tmp_path: Path) -> None:
    path = tmp_path / "chats" / "parent-1" / "sub.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(log(user("q")).replace(b'"kind": "main"', b'"kind": "subagent"'))
    assert one(READER, Input.open(path)).parent_session == "parent-1"


# ---------------------------------------------------------------- damage


@given(st.data(), st.sampled_from([None, 2]))
@settings(max_examples=60)
def test_a_cut_document_gives_what_stands_before_the_cut(data: st.DataObject, indent: int | None) -> None:
    whole = document(user("q"), said("a", "t", call("c1", "one"), call("c2", "two")), said("b", "end"), indent=indent)
    cut = whole[: data.draw(st.integers(1, len(whole) - 2))]
    try:
        found = one(READER, opened(cut))
    except EmptySessionError:
        return
    assert found.damaged
    if found.id == "s1":
        subset(found, read(whole))


def test_a_cut_document_keeps_the_calls_that_are_complete() -> None:
    whole = document(user("q"), said("a", "t", call("c1", "one"), call("c2", "two")))
    found = read(whole[: whole.index(b'"two"') + 2])
    assert shapes(found)[1:] == [
        ("assistant", "t", ("call", "c1", "read_file", '{"p":1}')),
        ("tool", ("result", "c1", "one")),
    ]
    assert "breaks off" in found.damaged[0].reason


def test_a_damaged_line_of_a_log() -> None:
    whole = log(user("q1"), user("q2"), user("q3")).replace(b'"content": "q2"', b'"content": q2')
    found = read(whole)
    assert shapes(found) == [("user", "q1"), ("user", "q3")]
    assert [d.line for d in found.damaged] == [3]


def test_a_log_whose_first_line_is_damaged() -> None:
    found = one(READER, opened(b"{" + log(user("q1"), said("a", "t"))))
    assert shapes(found) == [("user", "q1"), ("assistant", "t")]
    assert found.damaged


@pytest.mark.parametrize(
    "data",
    [document(), log(), document({"id": "x", "type": "hologram"}), log({"id": "x", "type": "info", "content": "hi"})],
)
def test_nothing_is_never_a_success(data: bytes) -> None:
    """IM-09."""
    assert READER.sniff(opened(data))
    with pytest.raises(EmptySessionError, match="no entry could be read"):
        READER.read(opened(data))


def test_unknown_types_are_counted() -> None:
    found = read(document(user("q"), {"id": "x", "type": "hologram"}, {"id": "y", "type": "hologram"}))
    assert found.warnings == ("2 records of unknown type 'hologram'",)


@pytest.mark.parametrize("text", ["", "{}", '[{"sessionId": "a"}]', '{"sessionId": "x", "parentUuid": null}'])
def test_what_is_not_recognised(text: str) -> None:
    assert not READER.sniff(opened(text))


# ---------------------------------------------------------------- the real session

FILE = "gemini-cli/c-blosc2-gemini-3-pro.json"


def test_the_real_session_by_numbers() -> None:
    """As the sessions' README counts it."""
    source = Input.open(shared(FILE))
    assert READER.sniff(source)
    found = one(READER, source)
    check(found)
    assert counts([found]) == Counter(
        {"user typed": 1, "assistant typed": 1, "Reasoning": 60, "ToolCall": 39, "ToolResult": 39}
    )
    assert Counter(e.role for e in found.entries) == Counter(assistant=23, tool=22, user=1)
    assert sum(e.role == "tool" and len(e.blocks) > 1 for e in found.entries) == 7
    assert found.damaged == found.warnings == found.markers == ()
    # Characters of reasoning as counted there, without the marks and the space that we put around the subjects.
    assert sum(len(b.text) - 5 for b in blocks([found], Reasoning)) == 26_837


def test_every_text_of_the_real_session_is_there_byte_for_byte() -> None:
    given = json.loads(raw(shared(FILE)))
    found = one(READER, Input.open(shared(FILE)))
    messages = given["messages"]
    thoughts = [t for m in messages for t in m.get("thoughts", [])]
    thinking = [b.text for b in blocks([found], Reasoning)]
    assert all(t["subject"] in b and t["description"] in b for t, b in zip(thoughts, thinking, strict=True))
    assert [b.text for b in blocks([found], Text)] == [m["content"] for m in messages if m["content"]]
    calls = [c for m in messages for c in m.get("toolCalls", [])]
    assert [(b.id, b.name, json.loads(b.arguments)) for b in blocks([found], ToolCall)] == [
        (c["id"], c["name"], c["args"]) for c in calls
    ]
    outputs = [c["result"][0]["functionResponse"]["response"]["output"] for c in calls]
    assert [b.text for b in blocks([found], ToolResult)] == outputs


def test_usage_of_the_real_session() -> None:
    found = one(READER, Input.open(shared(FILE)))
    given = [m["tokens"]["total"] for m in json.loads(raw(shared(FILE)))["messages"] if "tokens" in m]
    assert [e.usage.total for e in found.entries if e.usage] == given
