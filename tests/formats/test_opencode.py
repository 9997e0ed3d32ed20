from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from real_sessions import shared

from firsthand.formats.files.base import Input, entry_id
from firsthand.transcript import Entry, Reasoning, Text, ToolCall, ToolResult, Transcript, Usage

from .opencode_layouts import (
    READER,
    START,
    Builder,
    Object,
    compacted,
    dump,
    export,
    finish,
    real_sessions,
    text,
    tool,
)
from .reading import blocks, check, counts, one, opened, raw, shapes, values_in


def ids(transcript: Transcript, *names: str) -> list[str]:
    return [entry_id(transcript.id, name) for name in names]


# ---------------------------------------------------------------- messages


def test_a_response_is_an_entry_and_its_results_another() -> None:
    made = Builder().user("do it")
    made.assistant(START, text("first"), tool("c1"), tool("c2", "two"), text("then"), finish(input=5, output=3))
    made.assistant("done")
    transcript = made.read()
    assert shapes(transcript) == [
        ("user", "do it"),
        ("assistant", "first", ("call", "c1", "bash", '{"a":1}'), ("call", "c2", "bash", '{"a":1}'), "then"),
        ("tool", ("result", "c1", "out"), ("result", "c2", "two")),
        ("assistant", "done"),
    ]
    assert [e.id for e in transcript.entries] == ids(transcript, "msg_001", "msg_002", "msg_002:results", "msg_003")
    assert (transcript.title, transcript.cwd, transcript.client, transcript.model) == ("T", "/w", "1.18.31", "m")
    assert transcript.entries[2].time == "2026-02-02T02:40:00.000Z"
    check(transcript)


def test_steps_inside_one_message_alternate() -> None:
    made = Builder().user("go")
    made.assistant(
        START, tool("c1"), finish(input=10, output=2), START, tool("c2"), finish(input=20, output=3), START, "end"
    )
    transcript = made.read()
    assert [s[0] for s in shapes(transcript)] == ["user", "assistant", "tool", "assistant", "tool", "assistant"]
    assert [e.usage.total for e in transcript.entries if e.usage] == [12, 23]
    check(transcript)


def test_calls_that_have_no_result_yet() -> None:
    made = Builder().user("go")
    made.assistant(
        tool("c1", None, status="running"),
        tool("c2", None, status="pending", input={}, raw='{"comm'),
        finish=None,
        time={"created": 3_000},
    )
    transcript = made.read()
    assert shapes(transcript)[1:] == [
        ("assistant", ("call", "c1", "bash", '{"a":1}'), ("call", "c2", "bash", '{"comm'))
    ]
    assert transcript.entries[1].status == "incomplete"


def test_an_output_is_taken_whatever_the_status_says() -> None:
    made = Builder().user("go").assistant(tool("c1", "so far", status="hovering"), tool("c2", None, status="hovering"))
    assert shapes(made.read())[2] == ("tool", ("result", "c1", "so far"))


def test_failed_and_stopped_calls() -> None:
    made = Builder().user("go")
    stopped = {"interrupted": True, "output": "so far"}
    made.assistant(
        tool("c1", None, status="error", error="no such file"),
        tool("c2", None, status="error", error="aborted", metadata=stopped),
    )
    assert shapes(made.read())[2] == ("tool", ("failed", "c1", "no such file"), ("failed", "c2", "so far"))


def test_an_output_that_the_client_pruned_is_the_original() -> None:
    """IM-12."""
    made = Builder().user("go").assistant(tool("c1", "the whole output", time={"start": 1, "compacted": 9_000}))
    transcript = made.read()
    (result,) = blocks([transcript], ToolResult)
    assert result.text == "the whole output"
    assert result.extra == {"compacted": 9_000}


def test_what_the_client_added_is_injected() -> None:
    made = Builder().user("mine", text("file content", synthetic=True), text("only shown", ignored=True), text(""))
    assert shapes(made.read()) == [("user", "mine", "injected: file content")]


def test_attachments() -> None:
    image = {"type": "file", "mime": "image/png", "filename": "a.png", "url": "data:image/png;base64,QUJD"}
    pdf = {"type": "file", "mime": "application/pdf", "url": "file:///x.pdf"}
    plain = {"type": "file", "mime": "text/plain", "filename": "a.txt", "url": "file:///a.txt"}
    made = Builder().user("look", image, pdf, plain).assistant(tool("c1", "seen", attachments=[image]))
    transcript = made.read()
    assert shapes(transcript)[0] == (
        "user",
        "look",
        ("image", "image/png", "QUJD"),
        ("document", "application/pdf", "file:///x.pdf"),
    )
    assert transcript.entries[0].extra == {"files": [{"filename": "a.txt", "url": "file:///a.txt"}]}
    assert shapes(transcript)[2] == ("tool", ("result", "c1", "seen", ("image", "image/png", "QUJD")))


def test_reasoning_keeps_its_opaque_part() -> None:
    opaque = {"openai": {"itemId": "rs_1", "reasoningEncryptedContent": "xyz"}}
    made = (
        Builder()
        .user("go")
        .assistant(
            {"type": "reasoning", "text": "hm", "metadata": opaque},
            {"type": "reasoning", "text": "", "metadata": opaque},
            {"type": "reasoning", "text": ""},
            "ok",
        )
    )
    assert blocks([made.read()], Reasoning) == [Reasoning("hm", opaque), Reasoning("", opaque)]


def test_display_copies_and_snapshots_are_not_taken() -> None:
    made = Builder(summary={"diffs": ["SECRET"]}).user("go", summary={"diffs": [{"before": "SECRET"}]})
    made.assistant(
        {"type": "snapshot", "snapshot": "SECRET"},
        {"type": "patch", "hash": "SECRET", "files": []},
        tool("c1", "fine", metadata={"diff": "SECRET"}, title="SECRET"),
    )
    assert b"SECRET" not in json.dumps(shapes(made.read())).encode()
    assert "SECRET" not in repr(made.read())


def test_a_part_of_an_unknown_type_is_kept_as_it_is() -> None:
    made = Builder().user("go").assistant({"type": "hologram", "x": [1]})
    assert shapes(made.read())[1][1]["x"] == [1]


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        # 1.1.53: output with reasoning, no total.
        (
            {"input": 10, "output": 523, "reasoning": 486, "cache": {"read": 5, "write": 2}},
            Usage(input_tokens=17, output_tokens=523, cache_read=5, cache_write=2, reasoning=486),
        ),
        # 1.18: a total, and output without reasoning.
        (
            {"total": 30, "input": 10, "output": 4, "reasoning": 6, "cache": {"read": 10, "write": 0}},
            Usage(input_tokens=20, output_tokens=10, cache_read=10, reasoning=6),
        ),
        ({"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}}, None),
    ],
)
def test_usage(tokens: Object, expected: Usage | None) -> None:
    assert Builder().user("go").assistant("hi", tokens=tokens).read().entries[1].usage == expected


@pytest.mark.parametrize(
    ("message", "status"),
    [
        ({"finish": "stop"}, "complete"),
        ({"finish": "length"}, "incomplete"),
        ({"finish": None}, "incomplete"),
        ({"finish": None, "error": {"name": "MessageAbortedError"}}, "aborted"),
        ({"finish": "error", "error": {"name": "APIError", "data": {"message": "no"}}}, "error"),
    ],
)
def test_how_a_response_ended(message: Object, status: str) -> None:
    entry = Builder().user("go").assistant("hi", **message).read().entries[1]
    assert entry.status == status
    assert (entry.extra or {}).get("error") == message.get("error")


def test_a_failed_response_without_content_stays() -> None:
    """OV-03: kept as an entry, with its error."""
    transcript = Builder().user("go").assistant(error={"name": "APIError"}, finish=None).read()
    assert [(e.role, e.status, e.blocks) for e in transcript.entries[1:]] == [("assistant", "error", ())]


def test_messages_go_by_time_then_id_and_parts_by_id() -> None:
    made = Builder().user("one").assistant(text("b"), text("c"))
    made.user("three")
    made.messages[1][1][0]["id"], made.messages[1][1][1]["id"] = "prt_2", "prt_1"
    made.messages[2][0]["time"]["created"] = 1
    assert shapes(made.read()) == [("user", "three"), ("user", "one"), ("assistant", "c", "b")]


def test_parts_without_their_message_are_not_lost() -> None:
    made = Builder().user("one").assistant("two", tool("c1")).user("three")
    found = [o for o in values_in(dump([made.session]).decode()) if o["id"] != "msg_002"]
    transcript = one(READER, opened("\n".join(map(json.dumps, found))))
    assert [s[0] for s in shapes(transcript)] == ["user", "assistant", "tool", "user"]
    assert "1 message(s) are missing" in transcript.warnings[0]


def test_messages_that_were_taken_back_leave_the_path() -> None:
    made = Builder(revert={"messageID": "msg_003"}).user("one").assistant("two").user("three").assistant("four")
    transcript = made.read()
    assert len(transcript.entries) == 4
    assert [e.id for e in transcript.path()] == ids(transcript, "msg_001", "msg_002")


def test_sub_agents_stand_behind_their_parents() -> None:
    child = Builder(id="ses_0", parentID="ses_9", time={"created": 1}).user("sub")
    parent = Builder(id="ses_9", time={"created": 500}).user("main")
    other = Builder(id="ses_5", time={"created": 100}).user("other")
    found = READER.read(opened(dump([child.session, parent.session, other.session])))
    assert [(t.id, t.parent_session) for t in found] == [("ses_9", None), ("ses_0", "ses_9"), ("ses_5", None)]


# ---------------------------------------------------------------- compactions


def shown(transcript: Transcript, number: int = 0) -> list[str | tuple[Any, ...]]:
    from .reading import shape

    return [x if isinstance(x, str) else shape(x) for x in transcript.markers[number].shown]


def test_a_compaction_is_a_marker_and_all_originals_stay() -> None:
    """IM-08 for this format: the pair makes no entries."""
    transcript = compacted().read()
    assert shapes(transcript) == [
        ("user", "q1"),
        ("assistant", "a1"),
        ("user", "q2"),
        ("assistant", "a2"),
        ("user", "q3"),
    ]
    (marker,) = transcript.markers
    assert (marker.after, marker.trigger) == (*ids(transcript, "msg_004"), "auto")
    assert shown(transcript) == [("assistant", "summary: S")]
    check(transcript)


def test_the_tail_stands_behind_the_summary() -> None:
    transcript = compacted(tail="msg_003").read()
    assert shown(transcript) == [("assistant", "summary: S"), *ids(transcript, "msg_003", "msg_004")]


def test_a_tail_that_reaches_behind_an_earlier_compaction_shows_its_summary_again() -> None:
    """opencode.md 2.7, "old pairs resurface"."""
    made = compacted(tail="msg_004")
    made.assistant("a3").user({"type": "compaction", "auto": False, "tail_start_id": "msg_004"})
    made.assistant("S2", summary=True, parentID="msg_009")
    transcript = made.read()
    assert shown(transcript, 1) == [
        ("assistant", "summary: S2"),
        *ids(transcript, "msg_004"),
        ("assistant", "summary: S"),
        *ids(transcript, "msg_007", "msg_008"),
    ]
    assert transcript.markers[1].trigger == "manual"
    check(transcript)


@pytest.mark.parametrize(
    ("more", "markers"),
    [
        ({"error": {"name": "ContextOverflowError"}, "finish": "error"}, 0),
        ({"finish": None}, 0),
        # Fails with its tail noted down: what is older vanishes without a summary (opencode.md 2.10).
        ({"error": {"name": "APIError"}, "finish": None, "tail": "msg_003"}, 1),
    ],
)
def test_a_compaction_that_failed(more: Object, markers: int) -> None:
    transcript = compacted(**more).read()
    assert len(transcript.markers) == markers
    assert "failed in the client" in transcript.warnings[0]
    for marker in transcript.markers:
        assert list(marker.shown) == ids(transcript, "msg_003", "msg_004")
        assert marker.extra == {"failed": {"name": "APIError"}}
    assert shapes(transcript)[-1] == ("user", "q3")


def test_a_message_that_the_client_sent_again_is_injected() -> None:
    """opencode.md 2.8: after a provider's refusal, the newest user message is sent again behind the summary."""
    made = compacted(part={"overflow": True})
    made.messages[-1][1][0]["text"] = "q2"
    made.assistant("a2 again").user("q2")
    transcript = made.read()
    assert [s[1] for s in shapes(transcript) if s[0] == "user"] == ["q1", "q2", "injected: q2", "q2"]
    assert transcript.entries[4].extra == {"replayed": True}


def test_an_order_to_carry_on_is_injected() -> None:
    made = compacted().user(text("carry on", synthetic=True, metadata={"compaction_continue": True}))
    assert shapes(made.read())[-1] == ("user", "injected: carry on")


# ---------------------------------------------------------------- the real dump


def real() -> list[Transcript]:
    source = Input.open(shared("opencode/dump4-gpt-5-2.jsonl.gz"))
    assert READER.sniff(source)
    return READER.read(source)


def test_the_real_dump_by_numbers() -> None:
    """As the sessions' README counts them; its totals are for the whole dump."""
    found = real()
    assert {
        t.title.split()[0]: sum(len(e.blocks) for e in t.entries if e.role == "tool") for t in found if t.title
    } == {
        "Harfbuzz": 80,
        "Libgit2": 8,
        "Heap-buffer-overflow": 4,
        "Mongoose": 30,
    }
    assert counts(found) == Counter(
        {"user typed": 4, "assistant typed": 12, "Reasoning": 196, "ToolCall": 122, "ToolResult": 122}
    )
    assert [len(t.entries) for t in found] == [162, 16, 10, 58]
    assert found[0].extra == {"left_out": {"list of file changes": 4, "project": 4, "share": 4}}
    assert not any(t.damaged or t.warnings for t in found)
    for transcript in found:
        check(transcript)


def test_every_text_of_the_real_dump_is_there_byte_for_byte() -> None:
    parts = [
        o for o in values_in(raw(shared("opencode/dump4-gpt-5-2.jsonl.gz"))) if isinstance(o, dict) and "type" in o
    ]
    found = real()
    of = lambda kind: [p for p in parts if p["type"] == kind]  # noqa: E731
    assert Counter(b.text for b in blocks(found, Text)) == Counter(p["text"] for p in of("text"))
    assert Counter(b.text for b in blocks(found, Reasoning)) == Counter(p["text"] for p in of("reasoning"))
    calls = {(p["callID"], p["tool"], json.dumps(p["state"]["input"])) for p in of("tool")}
    assert {(b.id, b.name, json.dumps(json.loads(b.arguments))) for b in blocks(found, ToolCall)} == calls
    outputs = {(p["callID"], p["state"]["output"]) for p in of("tool")}
    assert {(b.call_id, b.text) for b in blocks(found, ToolResult)} == outputs


def test_usage_of_the_real_dump() -> None:
    found = real()
    used = [e for e in found[0].entries if e.usage]
    assert len(used) == 81
    assert used[0].usage == Usage(input_tokens=10_838, output_tokens=523, reasoning=486)
    finished = [o for o in values_in(raw(shared("opencode/dump4-gpt-5-2.jsonl.gz"))) if "tokens" in o and "reason" in o]
    sizes = Counter(t["input"] + sum(t["cache"].values()) + t["output"] for o in finished for t in [o["tokens"]])
    assert Counter(e.usage.total for t in found for e in t.entries if e.usage) == sizes


def test_sequence_of_the_real_dump_is_stable(tmp_path: Path) -> None:
    """Ids depend on nothing but the session and the client's own ids, so a file that has grown gives the same ones."""
    session = real_sessions()[0]
    shorter = one(READER, opened(export((session[0], session[1][:20]))))
    longer = one(READER, opened(export(session)))
    assert isinstance(longer.entries[0], Entry)
    assert longer.entries[: len(shorter.entries)] == shorter.entries
