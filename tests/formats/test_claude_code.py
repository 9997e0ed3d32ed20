"""Claude Code's session files: hand-built lines for each rule, then the real ones."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from real_sessions import shared

from firsthand.errors import EmptySessionError
from firsthand.formats.files.base import Input
from firsthand.formats.files.claude_code.reader import ClaudeCodeReader
from firsthand.transcript import Entry, Media, Reasoning, Text, ToolCall, ToolResult, Usage

from .lines import all_texts, as_bytes, check_whole, counted, read, records_of, shape, texts

READER = ClaudeCodeReader()
FILES = {
    "entire-cli-compact3.jsonl.gz": {
        "entries": 483,
        "markers": 3,
        "user typed": 42,
        "user injected": 9,
        "assistant typed": 86,
        "assistant injected": 1,
        "Reasoning": 225,
        "calls": 206,
        "ToolResult": 206,
    },
    "flutter-image-compact4.jsonl.gz": {
        "entries": 772,
        "markers": 4,
        "user typed": 28,
        "user injected": 28,
        "assistant typed": 298,
        "calls": 368,
        "ToolResult": 367,
    },
    "technocore-images.jsonl.gz": {
        "entries": 660,
        "markers": 0,
        "user typed": 30,
        "user injected": 22,
        "assistant typed": 151,
        "Reasoning": 134,
        "calls": 336,
        "server calls": 2,
        "ToolResult": 336,
        "Unknown": 2,
    },
    "entirecontext-korean.jsonl.gz": {
        "entries": 551,
        "markers": 2,
        "user typed": 15,
        "user injected": 222,
        "assistant typed": 86,
        "Reasoning": 33,
        "calls": 185,
        "server calls": 3,
        "ToolResult": 185,
        "Unknown": 3,
    },
    "viewer-sidechain-small.jsonl": {
        "entries": 45,
        "markers": 0,
        "user typed": 3,
        "user injected": 3,
        "assistant typed": 7,
        "calls": 21,
        "ToolResult": 21,
    },
}


def line(kind: str, uuid: str, parent: str | None, **fields: Any) -> dict[str, Any]:
    return {"parentUuid": parent, "isSidechain": False, "sessionId": "s1", "type": kind, "uuid": uuid, **fields}


def user(uuid: str, parent: str | None, content: Any, **fields: Any) -> dict[str, Any]:
    return line("user", uuid, parent, message={"role": "user", "content": content}, **fields)


def said(
    uuid: str, parent: str | None, response: str, *blocks: Any, usage: Any = None, **fields: Any
) -> dict[str, Any]:
    content = [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks]
    message = {
        "id": response,
        "model": "m",
        "role": "assistant",
        "content": content,
        "usage": usage or {},
        "stop_reason": None,
    }
    return line("assistant", uuid, parent, message={**message, **fields.pop("message", {})}, **fields)


def call(name: str, call_id: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def result(uuid: str, parent: str, call_id: str, text: Any, **fields: Any) -> dict[str, Any]:
    return user(uuid, parent, [{"type": "tool_result", "tool_use_id": call_id, "content": text, **fields}])


def attachment(uuid: str, parent: str | None, kind: str, **fields: Any) -> dict[str, Any]:
    return line("attachment", uuid, parent, attachment={"type": kind, **fields})


def boundary(uuid: str, logical: str | None, **details: Any) -> dict[str, Any]:
    metadata = {"trigger": "auto", "preTokens": 155_000, **details}
    return line("system", uuid, None, subtype="compact_boundary", logicalParentUuid=logical, compactMetadata=metadata)


def summary(uuid: str, parent: str | None, text: str = "so far") -> dict[str, Any]:
    return user(uuid, parent, text, isCompactSummary=True, isVisibleInTranscriptOnly=True)


# --- responses, calls, results ----------------------------------------------------------------------------------------


def test_lines_of_one_response_are_one_entry_with_its_usage_once() -> None:
    """IM-04."""
    usage = {"input_tokens": 10, "cache_creation_input_tokens": 811, "cache_read_input_tokens": 60_000}
    t = read(
        READER,
        user("u", None, "go"),
        said(
            "a1",
            "u",
            "msg_1",
            {"type": "thinking", "thinking": "hm", "signature": "S="},
            usage={**usage, "output_tokens": 1},
        ),
        said("a2", "a1", "msg_1", "I look.", usage={**usage, "output_tokens": 1}),
        said("a3", "a2", "msg_1", call("Read", "c1", path="a"), usage={**usage, "output_tokens": 1_000}),
    )
    assert shape(t.entries) == [("user", ["go"]), ("assistant", ["? hm", "I look.", 'Read({"path":"a"})'])]
    response = t.entries[1]
    assert response.blocks[0] == Reasoning("hm", {"signature": "S="})
    assert response.usage == Usage(input_tokens=60_821, output_tokens=1_000, cache_read=60_000, cache_write=811)
    assert response.usage.total == 61_821
    assert (response.group, response.source and response.source.id) == ("msg_1", "a1")
    assert sum(entry.usage.total for entry in t.entries if entry.usage) == 61_821


def test_results_of_parallel_calls_are_all_on_the_path() -> None:
    """They hang off different lines of the response, and only the newest is an ancestor of what follows."""
    t = read(
        READER,
        user("u", None, "go"),
        said("a1", "u", "m1", call("Read", "c1")),
        said("a2", "a1", "m1", call("Read", "c2")),
        result("r2", "a2", "c2", "two"),
        result("r1", "a1", "c1", "one"),
        said("b", "r1", "m2", "Done."),
    )
    assert texts(t) == ["go", "Read({})|Read({})", "c2 = two", "c1 = one", "Done."]
    check_whole(t)


def test_a_call_that_was_written_after_the_first_result_joins_its_response() -> None:
    t = read(
        READER,
        said("a1", None, "m1", call("Read", "c1")),
        result("r1", "a1", "c1", "one"),
        said("a2", "r1", "m1", call("Read", "c2")),
        result("r2", "a2", "c2", "two"),
        said("b", "r2", "m2", "Done."),
    )
    assert texts(t) == ["Read({})|Read({})", "c1 = one", "c2 = two", "Done."]


def test_two_calls_of_one_name_keep_their_ids_when_results_come_back_reversed() -> None:
    """IM-10."""
    t = read(
        READER,
        said("a", None, "m1", call("Bash", "c1", n=1), call("Bash", "c2", n=2)),
        user(
            "r",
            "a",
            [
                {"type": "tool_result", "tool_use_id": "c2", "content": "two", "is_error": True},
                {"type": "tool_result", "tool_use_id": "c1", "content": "one"},
            ],
        ),
    )
    calls = [block.id for block in t.entries[0].blocks if isinstance(block, ToolCall)]
    results = [
        (block.call_id, block.text, block.is_error) for block in t.entries[1].blocks if isinstance(block, ToolResult)
    ]
    assert (calls, results, t.entries[1].role) == (["c1", "c2"], [("c2", "two", True), ("c1", "one", False)], "tool")


def test_a_response_without_an_end_is_complete_until_the_person_stops_it() -> None:
    t = read(
        READER,
        said("a", None, "m1", "one"),
        said("b", "a", "m2", "two"),
        user("i", "b", [{"type": "text", "text": "[Request interrupted by user]"}]),
        said("c", "i", "m3", "three", message={"stop_reason": "max_tokens"}),
        said("d", "c", "m4", "four", message={"stop_reason": "end_turn"}),
        user("j", "d", [{"type": "text", "text": "[Request interrupted by user]"}], interruptedMessageId="m4"),
    )
    assert [entry.status for entry in t.entries] == [
        "complete",
        "aborted",
        "complete",
        "incomplete",
        "complete",
        "complete",
    ]
    assert texts(t)[2] == "injected: [Request interrupted by user]"


def test_what_the_client_made_up_is_an_error_and_nobodys_text() -> None:
    t = read(
        READER,
        said("a", None, "x1", "API Error: 529", message={"model": "<synthetic>"}),
        said("b", "a", "x2", "Prompt is too long", isApiErrorMessage=True),
    )
    assert shape(t.entries) == [
        ("assistant", ["injected: API Error: 529"]),
        ("assistant", ["injected: Prompt is too long"]),
    ]
    assert [(entry.status, entry.model) for entry in t.entries] == [("error", None), ("error", None)]


def test_server_calls_images_and_blocks_without_a_word_are_kept() -> None:
    answer = {"type": "advisor_tool_result", "tool_use_id": "s1", "content": {"encrypted_content": "X"}}
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"}}
    t = read(
        READER,
        said("a", None, "m1", {"type": "server_tool_use", "id": "s1", "name": "advisor", "input": {}}, answer),
        said(
            "b",
            "a",
            "m2",
            {"type": "redacted_thinking", "data": "R"},
            {**call("Shot", "c1"), "caller": {"type": "direct"}},
        ),
        result(
            "r", "b", "c1", [{"type": "text", "text": "shot"}, picture, {"type": "tool_reference", "tool_name": "T"}]
        ),
    )
    assert shape(t.entries)[0] == ("assistant", ["advisor({})", "unknown advisor_tool_result"])
    assert t.entries[1].blocks[0] == Reasoning("", {"data": "R"})
    assert t.entries[1].blocks[1] == ToolCall("c1", "Shot", "{}", extra={"caller": {"type": "direct"}})
    (shot,) = t.entries[2].blocks
    assert isinstance(shot, ToolResult)
    assert shot.content[:2] == (Text("shot"), Media("image", "image/png", "QUJD"))


# --- who wrote a text -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "fields", "expected"),
    [
        ("fix it", {}, ["fix it"]),
        ("note", {"isMeta": True}, ["injected: note"]),
        ("<ci-event>", {"origin": {"kind": "human"}}, ["<ci-event>"]),
        ("fix it", {"origin": {"kind": "task-notification"}}, ["injected: fix it"]),
        (
            "<local-command-stdout>Bye!</local-command-stdout>",
            {},
            ["injected: <local-command-stdout>Bye!</local-command-stdout>"],
        ),
        (
            "<command-name>/go</command-name>\n<command-args>to b</command-args>",
            {},
            ["injected: <command-name>/go</command-name>\n<command-args>", "to b", "injected: </command-args>"],
        ),
        (
            "<command-name>/clear</command-name>\n<command-args></command-args>",
            {},
            ["injected: <command-name>/clear</command-name>\n<command-args></command-args>"],
        ),
        ("<bash-input>ls</bash-input>", {}, ["injected: <bash-input>", "ls", "injected: </bash-input>"]),
        (
            "<system-reminder>a</system-reminder>\ngo on",
            {},
            ["injected: <system-reminder>a</system-reminder>", "\ngo on"],
        ),
        ("say <system-reminder> aloud", {}, ["say <system-reminder> aloud"]),
        (
            [{"type": "text", "text": "<ide_opened_file>a.py</ide_opened_file>"}, {"type": "text", "text": "why?"}],
            {},
            ["injected: <ide_opened_file>a.py</ide_opened_file>", "why?"],
        ),
    ],
)
def test_only_what_a_person_typed_counts_as_typed(content: Any, fields: dict[str, Any], expected: list[str]) -> None:
    t = read(READER, user("u", None, content, **fields))
    assert shape(t.entries) == [("user", expected)]
    whole = content if isinstance(content, str) else "".join(part["text"] for part in content)
    assert "".join(block.text for block in t.entries[0].blocks if isinstance(block, Text)) == whole


@given(
    st.lists(
        st.sampled_from(
            ["<system-reminder>", "</system-reminder>", "<bash-input>", "</bash-input>", "x", " ", "\n", "é\0"]
        )
    )
)
@settings(max_examples=200)
def test_splitting_by_origin_loses_no_byte(parts: list[str]) -> None:
    content = "".join(parts)
    t = read(READER, user("u", None, content))
    assert "".join(block.text for block in t.entries[0].blocks if isinstance(block, Text)) == content


def test_a_text_beside_results_keeps_the_message_a_users() -> None:
    t = read(
        READER,
        said("a", None, "m", call("Read", "c1")),
        user(
            "r", "a", [{"type": "tool_result", "tool_use_id": "c1", "content": "x"}, {"type": "text", "text": "stop"}]
        ),
    )
    assert shape(t.entries)[1] == ("user", ["c1 = x", "stop"])


def test_a_queued_message_stands_where_it_was_read_and_once() -> None:
    """Some exist only as attachments; the user line that repeats one is the same message (IM-07)."""
    t = read(
        READER,
        line("queue-operation", "q", None, operation="enqueue", content="and b"),
        user("u", None, "do a"),
        said("a", "u", "m1", call("Read", "c1")),
        attachment("k", "a", "queued_command", prompt="and b", commandMode="prompt", source_uuid="z"),
        result("r", "a", "c1", "x"),
        user("again", "r", "and b"),
        said("b", "again", "m2", "Both done."),
        user("z2", "b", "and b"),
        attachment("n", "z2", "queued_command", prompt="task 7 ended", commandMode="task-notification"),
    )
    assert texts(t) == ["do a", "Read({})", "c1 = x", "and b", "Both done.", "and b", "injected: task 7 ended"]
    check_whole(t)


def test_attachments_that_the_model_reads_are_injected_and_come_behind_the_results() -> None:
    t = read(
        READER,
        attachment("h", None, "hook_success", hookEvent="SessionStart", content="remember", stdout="remember\n"),
        user("u", "h", "go"),
        attachment("f", "u", "file", content={"type": "text", "file": {"filePath": "a", "content": "1\n2"}}),
        said("a", "f", "m1", call("Bash", "c1")),
        attachment("p", "a", "hook_additional_context", hookEvent="PreToolUse", content=["careful", "really"]),
        result("r", "p", "c1", "x"),
        attachment("q", "r", "hook_success", hookEvent="PostToolUse", content="logged only"),
        attachment("d", "q", "date_change", newDate="2026-01-01"),
        said("b", "d", "m2", "Done."),
    )
    assert texts(t) == [
        "injected: remember",
        "go",
        "injected: 1\n2",
        "Bash({})",
        "c1 = x",
        "injected: careful|injected: really",
        "Done.",
    ]
    assert t.extra == {"left_out": {"attachment/date_change": 1, "attachment/hook_success": 1}}


# --- branches and sub-agents ------------------------------------------------------------------------------------------


def test_a_prompt_that_was_edited_leaves_the_old_branch_stored_and_off_the_path() -> None:
    """IM-06."""
    t = read(
        READER,
        user("u1", None, "one"),
        said("a1", "u1", "m1", "first answer"),
        user("u2", "a1", "old question"),
        said("a2", "u2", "m2", "old answer"),
        user("u3", "a1", "new question"),
        said("a3", "u3", "m3", "new answer"),
    )
    assert texts(t) == ["one", "first answer", "new question", "new answer"]
    assert len(t.entries) == 6
    assert {entry.id for entry in t.entries} - {entry.parent for entry in t.entries} - {t.leaf} == {t.entries[3].id}
    check_whole(t)


def test_the_last_prompt_record_names_the_leaf_after_going_back() -> None:
    t = read(
        READER,
        user("u1", None, "one"),
        said("a1", "u1", "m1", "answer"),
        user("u2", "a1", "two"),
        said("a2", "u2", "m2", "second answer"),
        {"type": "last-prompt", "lastPrompt": "one", "leafUuid": "a1", "sessionId": "s1"},
    )
    assert texts(t) == ["one", "answer"]
    assert len(t.entries) == 4


def test_two_results_for_one_call_are_never_on_one_path() -> None:
    t = read(
        READER,
        said("a", None, "m1", call("Read", "c1")),
        result("r", "a", "c1", "interrupted"),
        result("s", "a", "c1", "real"),
        said("b", "s", "m2", "Done."),
    )
    assert texts(t) == ["Read({})", "c1 = real", "Done."]
    assert len(t.entries) == 4


def test_a_sub_agent_in_the_file_is_a_session_of_its_own() -> None:
    """IM-05."""
    side = {"isSidechain": True}
    data = as_bytes(
        user("u", None, "go"),
        said("a", "u", "m1", call("Task", "c1", prompt="look")),
        user("s1", None, "look", **side),
        said("s2", "s1", "x1", call("Read", "d1"), **side),
        user("s3", "s2", [{"type": "tool_result", "tool_use_id": "d1", "content": "file"}], **side),
        said("s4", "s3", "x2", "It says file.", **side),
        result("r", "a", "c1", "It says file."),
    )
    main, child = READER.read(Input("test", data))
    assert texts(main) == ["go", 'Task({"prompt":"look"})', "c1 = It says file."]
    assert texts(child) == ["look", "Read({})", "d1 = file", "It says file."]
    assert (main.id, child.id, child.parent_session, child.extra) == ("s1", "agent-s1", "s1", {"call_id": "c1"})


def test_a_sub_agent_that_replays_its_parent_repeats_nothing() -> None:
    """IM-05: a forked sub-agent's lines begin with copies of the parent's, under new line ids."""
    side = {"isSidechain": True, "agentId": "7"}
    data = as_bytes(
        user("u", None, "go"),
        said("a", "u", "m1", "Yes.", call("Task", "c1", prompt="go")),
        user("x1", None, "go", **side),
        said("x2", "x1", "m1", "Yes.", call("Task", "c1", prompt="go"), **side),
        user("x3", "x2", "now look", **side),
        said("x4", "x3", "x9", "Seen.", **side),
        result("r", "a", "c1", "Seen."),
    )
    main, child = READER.read(Input("test", data))
    assert texts(main) == ["go", 'Yes.|Task({"prompt":"go"})', "c1 = Seen."]
    assert texts(child) == ["now look", "Seen."]
    assert child.id == "agent-7-s1"
    said_all = Counter(all_texts([main, child]))
    assert (said_all["go"], said_all["Yes."]) == (1, 1)


def test_what_only_shares_an_id_with_the_parent_is_no_replay() -> None:
    """As when a damaged mark made one line of a sub-agent's response the parent's."""
    side = {"isSidechain": True}
    data = as_bytes(
        user("s1", None, "look", **side),
        said("s2", "s1", "x1", "I look."),
        said("s3", "s2", "x1", call("Read", "d1"), **side),
    )
    assert sorted(all_texts(READER.read(Input("test", data)))) == ["I look.", "look", "{}"]


def test_a_sub_agents_own_file_names_its_parent() -> None:
    side = {"isSidechain": True, "agentId": "a1b2"}
    t = read(READER, user("x1", None, "look", **side), said("x2", "x1", "m", "Seen.", **side))
    assert (t.id, t.parent_session, texts(t)) == ("agent-a1b2-s1", "s1", ["look", "Seen."])


# --- compaction -------------------------------------------------------------------------------------------------------


def test_a_compaction_is_a_marker_and_the_path_goes_on_over_it() -> None:
    t = read(
        READER,
        user("u", None, "go"),
        said("a", "u", "m1", "Going."),
        boundary("k", "a", postTokens=20_000, durationMs=5),
        summary("s", "k"),
        said("b", "s", "m2", "Gone."),
    )
    assert texts(t) == ["go", "Going.", "Gone."]
    (marker,) = t.markers
    assert (marker.after, marker.trigger, marker.tokens_before, marker.tokens_after) == (
        t.entries[1].id,
        "auto",
        155_000,
        20_000,
    )
    assert marker.extra == {"durationMs": 5}
    (shown,) = marker.shown
    assert isinstance(shown, Entry)
    assert shown.blocks == (Text("so far", "summary"),)
    check_whole(t)


def test_what_the_client_preserved_and_restored_is_shown_by_the_marker() -> None:
    t = read(
        READER,
        user("u", None, "go"),
        said("a1", "u", "m1", "I look."),
        said("a2", "a1", "m1", call("Read", "c1")),
        result("r", "a2", "c1", "x"),
        boundary("k", "r", preservedMessages={"anchorUuid": "s", "uuids": ["a2", "r"]}),
        summary("s", "k"),
        attachment("f", "s", "file", content={"type": "text", "file": {"content": "restored"}}),
        attachment("g", "f", "compact_file_reference", filename="b"),
        said("b", "g", "m2", "Done."),
        attachment("h", "b", "file", content={"type": "text", "file": {"content": "later"}}),
    )
    assert texts(t) == ["go", "I look.|Read({})", "c1 = x", "Done.", "injected: later"]
    (marker,) = t.markers
    summed, cut, kept, restored = marker.shown
    assert isinstance(summed, Entry)
    assert isinstance(cut, Entry)  # only one of the two lines of the response was preserved
    assert shape((cut,)) == [("assistant", ["Read({})"])]
    assert kept == t.entries[2].id
    assert isinstance(restored, Entry)
    assert restored.blocks == (Text("restored", "injected"),)
    check_whole(t)


def test_a_forked_session_writes_what_it_preserved_after_the_boundary() -> None:
    """As in real files of 2.1.226: the boundary's logical parent comes after it; following it blindly would go in a circle."""
    t = read(
        READER,
        user("u", None, "go"),
        boundary(
            "k",
            "a",
            preservedSegment={"headUuid": "a", "anchorUuid": "s", "tailUuid": "a"},
            preservedMessages={"uuids": ["a"]},
        ),
        summary("s", "k"),
        said("a", "s", "m1", "Going."),
        attachment("f", "a", "file", content={"type": "text", "file": {"content": "restored"}}),
        user("v", "f", "and now?"),
    )
    assert texts(t) == ["go", "Going.", "and now?"]
    (marker,) = t.markers
    assert marker.after == t.entries[1].id
    assert [entry if isinstance(entry, str) else shape((entry,))[0][1] for entry in marker.shown] == [
        ["summary: so far"],
        t.entries[1].id,
        ["injected: restored"],
    ]


def test_what_was_typed_to_compact_is_on_the_path() -> None:
    """The command itself hangs off the last line, and the boundary names that line, not the command, as its logical parent."""
    t = read(
        READER,
        said("a", None, "m1", "Going."),
        user("c", "a", "/compact"),
        boundary("k", "a", trigger="manual"),
        summary("s", "k"),
        user("v", "s", "on"),
    )
    assert texts(t) == ["Going.", "/compact", "on"]
    assert t.markers[0].after == t.entries[1].id


def test_a_summary_of_an_old_client_has_no_boundary() -> None:
    t = read(READER, user("u", None, "go"), said("a", "u", "m", "Going."), summary("s", None), user("v", "s", "on"))
    assert texts(t) == ["go", "Going.", "on"]
    assert [(marker.after, len(marker.shown)) for marker in t.markers] == [(t.entries[1].id, 1)]


# --- damage -----------------------------------------------------------------------------------------------------------


def chain(length: int) -> list[dict[str, Any]]:
    return [user(f"u{i}", f"u{i - 1}" if i else None, f"text {i}") for i in range(length)]


def test_one_broken_line_of_a_thousand_costs_one_line() -> None:
    """IM-01."""
    lines: list[Any] = chain(1_000)
    lines[399] = json.dumps(lines[399])[:60]
    t = read(READER, *lines)
    assert len(t.entries) == 999
    assert len(t.path()) == 999
    assert [damage.line for damage in t.damaged] == [400]


def test_a_line_behind_a_run_of_nulls_is_read() -> None:
    """As after a crash: the file system left NULs where lines were, and the client went on behind them."""
    t = read(READER, user("u", None, "one"), b"\x00" * 500 + as_bytes(user("v", "u", "two")))
    assert texts(t) == ["one", "two"]
    assert [(damage.line, damage.reason) for damage in t.damaged] == [(2, "500 NUL bytes stood before its object")]


def test_a_lone_surrogate_survives() -> None:
    """IM-02."""
    t = read(READER, json.dumps(user("u", None, "half \ud83d done")))
    assert t.entries[0].blocks == (Text("half \ud83d done"),)
    assert t.damaged == ()


def test_one_line_of_22_megabytes_among_36() -> None:
    """IM-03."""
    lines = chain(36)
    lines[0]["message"]["content"] = "x" * 22_000_000
    source = Input("test", as_bytes(*lines))
    assert READER.sniff(source)
    (t,) = READER.read(source)
    assert len(t.path()) == 36
    assert len(t.entries[0].blocks[0].text) == 22_000_000  # type: ignore[union-attr]


def test_a_file_of_unknown_types_is_refused_loudly() -> None:
    """IM-09."""
    data = as_bytes(
        {"type": "hologram", "sessionId": "s1", "parentUuid": None}, {"type": "hologram", "sessionId": "s1"}, "{"
    )
    with pytest.raises(EmptySessionError, match=r"2 x 'hologram', 1 damaged line\. Nothing was imported"):
        READER.read(Input("new.jsonl", data))


def test_unknown_records_repeated_lines_and_other_sessions_are_named() -> None:
    t = read(
        READER,
        {"type": "hologram", "uuid": "h", "parentUuid": None},
        user("u", "h", "go", sessionId="s0"),
        user("u", "h", "go", sessionId="s0"),
        said("a", "u", "m", "Going."),
        {"type": "user", "uuid": "x", "parentUuid": "a", "sessionId": "s1"},
        user("v", "x", "on"),
    )
    assert texts(t) == ["go", "Going.", "on"]
    assert t.warnings == (
        "1 record of unknown type 'hologram'",
        "holds lines of other sessions too: s0 (2 lines); all were read as one",
    )
    assert t.extra == {"left_out": {"repeated line": 1}}
    assert [(damage.line, damage.reason) for damage in t.damaged] == [(5, "a line of type 'user' without its message")]
    assert t.id == "s1"


def test_one_id_for_two_different_lines_keeps_both() -> None:
    t = read(READER, user("u", None, "one"), user("u", None, "two"))
    assert sorted(text for entry in t.entries for text in [entry.blocks[0].text]) == ["one", "two"]  # type: ignore[union-attr]


def test_ids_stay_when_the_file_grows() -> None:
    lines = [
        user("u", None, "go"),
        said("a1", "u", "m1", "I look."),
        said("a2", "a1", "m1", call("Read", "c1")),
        result("r", "a2", "c1", "x"),
    ]
    grown = {entry.source.id: entry.id for entry in read(READER, *lines).entries if entry.source}
    for length in range(1, 4):
        for entry in read(READER, *lines[:length]).entries:
            assert entry.source is not None
            assert grown[entry.source.id] == entry.id


@given(st.permutations(range(6)))
@settings(max_examples=100)
def test_the_order_of_lines_changes_nothing_that_parents_tell(order: list[int]) -> None:
    lines = chain(6)
    t = read(READER, *[lines[at] for at in order], {"type": "last-prompt", "leafUuid": "u5", "sessionId": "s1"})
    assert texts(t) == [f"text {i}" for i in range(6)]
    check_whole(t)


def test_metadata() -> None:
    common = {"cwd": "/home", "version": "2.1.7", "timestamp": "2026-01-23T14:21:43.537Z"}
    t = read(
        READER,
        {"type": "summary", "summary": "another session's title", "leafUuid": "elsewhere"},
        user("u", None, "go", **common),
        said("a", "u", "m", "Going.", **common),
        {"type": "summary", "summary": "Going places", "leafUuid": "a"},
    )
    assert (t.id, t.title, t.cwd, t.client, t.time, t.model) == (
        "s1",
        "Going places",
        "/home",
        "2.1.7",
        "2026-01-23T14:21:43.537Z",
        "m",
    )
    titled = read(READER, user("u", None, "go"), {"type": "ai-title", "aiTitle": "Trip", "sessionId": "s1"})
    assert titled.title == "Trip"


# --- real files -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FILES)
def test_real_files_have_exactly_these_counts(name: str) -> None:
    transcripts = READER.read(Input.open(shared(f"claude-code/{name}")))
    assert counted(transcripts) == FILES[name]
    for t in transcripts:
        check_whole(t)
        assert len(t.path()) == len(t.entries)
        assert (t.damaged, t.warnings) == ((), ())


@pytest.mark.parametrize("name", FILES)
def test_real_files_lose_no_text(name: str) -> None:
    """Every text of every message, taken from the raw lines by the simplest walk, is there byte for byte."""
    path = shared(f"claude-code/{name}")
    found = set(all_texts(READER.read(Input.open(path))))
    joined = {"".join(_texts(entry)) for t in READER.read(Input.open(path)) for entry in t.entries}
    for record in records_of(path):
        if record["type"] in ("user", "assistant"):
            for text in _raw_texts(record["message"]["content"]):
                assert text in found or text in joined, text[:80]


def _texts(entry: Entry) -> list[str]:
    return [block.text for block in entry.blocks if isinstance(block, Text)]


def _raw_texts(content: Any) -> list[str]:
    if isinstance(content, str):
        return [content]
    out: list[str] = []
    for block in content:
        match block["type"]:
            case "text":
                out.append(block["text"])
            case "thinking":
                out.append(block["thinking"])
            case "tool_use" | "server_tool_use":
                out.append(json.dumps(block["input"], ensure_ascii=False, separators=(",", ":")))
            case "tool_result":
                out += _raw_texts(block["content"]) if block.get("content") else []
            case "image":
                out.append(block["source"]["data"])
    return out


@pytest.mark.parametrize("name", FILES)
def test_real_files_have_nothing_between_calls_and_results(name: str) -> None:
    """What hooks say comes behind the results, so that every request made from the path is valid."""
    for t in READER.read(Input.open(shared(f"claude-code/{name}"))):
        path = t.path()
        for at, entry in enumerate(path):
            calls = {block.id for block in entry.blocks if isinstance(block, ToolCall) and block.kind != "server"}
            behind = path[at + 1 : at + 1 + len(calls)]
            if calls and behind:
                assert {block.call_id for e in behind for block in e.blocks if isinstance(block, ToolResult)} == calls


@pytest.mark.parametrize("name", FILES)
def test_real_files_report_usage_once_for_each_response(name: str) -> None:
    path = shared(f"claude-code/{name}")
    last: dict[str, dict[str, Any]] = {}
    for record in records_of(path):
        if record["type"] == "assistant":
            last[record["message"]["id"]] = record["message"]["usage"]
    wanted = sum(
        usage["input_tokens"]
        + usage["cache_read_input_tokens"]
        + usage["cache_creation_input_tokens"]
        + usage["output_tokens"]
        for usage in last.values()
    )
    entries = [entry for t in READER.read(Input.open(path)) for entry in t.entries]
    assert sum(entry.usage.total for entry in entries if entry.usage) == wanted


def test_real_markers_stand_where_the_client_compacted() -> None:
    (t,) = READER.read(Input.open(shared("claude-code/flutter-image-compact4.jsonl.gz")))
    position = {entry.id: at for at, entry in enumerate(t.path())}
    found = [
        (
            position[m.after or ""],
            m.trigger,
            m.tokens_before,
            m.tokens_after,
            [position[s] for s in m.shown if isinstance(s, str)],
        )
        for m in t.markers
    ]
    assert found == [
        (224, "auto", 213_002, 17_692, [222, 223, 224]),
        (352, "auto", 167_009, 20_255, [351, 352]),
        (548, "auto", 166_612, 21_980, [547, 548]),
        (770, "auto", 166_907, 20_026, [769, 770]),
    ]
