"""Codex's rollout files: hand-built lines for each rule, then the real ones."""

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
from firsthand.formats.files.codex.reader import CodexReader
from firsthand.formats.wire import wire_by_name
from firsthand.transcript import Entry, Media, Reasoning, Text, ToolCall, ToolResult, Unknown, Usage

from .lines import all_texts, as_bytes, check_whole, counted, read, records_of, shape, texts

READER = CodexReader()
FILES = {
    "mise-compact3.jsonl.gz": {
        "entries": 1642,
        "markers": 3,
        "user typed": 10,
        "user injected": 2,
        "developer injected": 7,
        "assistant typed": 271,
        "Reasoning": 278,
        "calls": 540,
        "ToolResult": 540,
    },
    "hk-compact2.jsonl.gz": {
        "entries": 1148,
        "markers": 2,
        "user typed": 13,
        "user injected": 2,
        "developer injected": 8,
        "assistant typed": 51,
        "Reasoning": 298,
        "calls": 391,
        "ToolResult": 391,
    },
}
META = {
    "type": "session_meta",
    "timestamp": "t0",
    "payload": {"id": "th1", "timestamp": "t0", "cwd": "/w", "cli_version": "0.142.5"},
}


def item(kind: str, /, **fields: Any) -> dict[str, Any]:
    return {"timestamp": "t1", "type": "response_item", "payload": {"type": kind, **fields}}


def message(role: str, *parts: Any, **fields: Any) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    content = [{"type": kind, "text": part} if isinstance(part, str) else part for part in parts]
    return item("message", role=role, content=content, **fields)


def event(kind: str, /, **fields: Any) -> dict[str, Any]:
    return {"timestamp": "t1", "type": "event_msg", "payload": {"type": kind, **fields}}


def typed(*parts: Any, text: str | None = None) -> list[dict[str, Any]]:
    """A message that a person typed: the item, and the event that tells."""
    spoken = "".join(part for part in parts if isinstance(part, str))
    return [message("user", *parts), event("user_message", message=spoken if text is None else text)]


def call(call_id: str, name: str = "exec_command", arguments: str = "{}", **fields: Any) -> dict[str, Any]:
    return item("function_call", name=name, arguments=arguments, call_id=call_id, **fields)


def output(call_id: str, value: Any) -> dict[str, Any]:
    return item("function_call_output", call_id=call_id, output=value)


def usage(total: int, **last: int) -> dict[str, Any]:
    return event(
        "token_count",
        info={"total_token_usage": {"total_tokens": total}, "last_token_usage": last, "model_context_window": 258_400},
    )


def compacted(*history: dict[str, Any], text: str = "", **fields: Any) -> dict[str, Any]:
    payload = {"message": text, "replacement_history": [line["payload"] for line in history], **fields}
    return {"timestamp": "t2", "type": "compacted", "payload": payload}


# --- items ------------------------------------------------------------------------------------------------------------


def test_one_item_is_one_entry_and_keeps_what_the_provider_wants_back() -> None:
    t = read(
        READER,
        META,
        item("reasoning", id="rs_1", summary=[{"type": "summary_text", "text": "**Plan**"}], encrypted_content="gAAA"),
        message("assistant", "I look.", id="msg_1", phase="commentary"),
        call("c1", arguments='{"cmd": "ls"}', id="fc_1", namespace="shell"),
        item("custom_tool_call", id="ctc_1", call_id="c2", name="apply_patch", input="*** Begin\n", status="completed"),
        output("c1", "Output:\na"),
        item(
            "custom_tool_call_output",
            call_id="c2",
            output=[{"type": "input_text", "text": "ok"}, {"type": "input_text", "text": "2"}],
        ),
    )
    assert texts(t) == [
        "? **Plan**",
        "I look.",
        'exec_command({"cmd": "ls"})',
        "apply_patch(*** Begin\n)",
        "c1 = Output:\na",
        "c2 = ok\n2",
    ]
    assert t.entries[0].blocks == (Reasoning("**Plan**", {"id": "rs_1", "encrypted_content": "gAAA"}),)
    assert t.entries[1].extra == {"id": "msg_1", "phase": "commentary"}
    assert t.entries[2].blocks == (
        ToolCall("c1", "exec_command", '{"cmd": "ls"}', extra={"id": "fc_1", "namespace": "shell"}),
    )
    assert t.entries[3].blocks == (
        ToolCall("c2", "apply_patch", "*** Begin\n", "custom", {"id": "ctc_1", "status": "completed"}),
    )
    assert {entry.wire for entry in t.entries} == {"openai-responses"}
    assert [entry.role for entry in t.entries[-2:]] == ["tool", "tool"]
    check_whole(t)


def test_calls_of_other_kinds_images_and_items_without_a_word_are_kept() -> None:
    t = read(
        READER,
        META,
        item("local_shell_call", call_id="c1", action={"type": "exec", "command": ["ls"]}, status="completed"),
        output("c1", {"content": "a", "success": False}),
        item("web_search_call", id="ws_1", action={"type": "search", "query": "q"}, status="completed"),
        message("user", "look", {"type": "input_image", "image_url": "data:image/png;base64,QUJD"}),
        item("hologram", beam="blue"),
        item("ghost_snapshot", ghost_commit={}),
    )
    shell, search, beam = [entry.blocks[0] for entry in t.entries if entry.role == "assistant"]
    assert isinstance(shell, ToolCall)
    assert (shell.id, shell.name, shell.arguments) == ("c1", "local_shell", '{"type":"exec","command":["ls"]}')
    assert isinstance(search, Unknown)
    assert beam == Unknown({"type": "hologram", "beam": "blue"})
    assert t.entries[1].blocks == (ToolResult("c1", (Text("a"),), is_error=True),)
    assert t.entries[3].blocks == (Text("look"), Media("image", "image/png", "QUJD"))
    assert t.extra == {"left_out": {"response_item/ghost_snapshot": 1, "session_meta": 1}}


def test_parallel_results_keep_their_ids_whatever_their_order() -> None:
    """IM-10."""
    t = read(READER, META, call("c1"), call("c2"), output("c2", "two"), output("c1", "one"))
    assert texts(t) == ["exec_command({})", "exec_command({})", "c2 = two", "c1 = one"]
    assert [block.id for entry in t.entries for block in entry.blocks if isinstance(block, ToolCall)] == ["c1", "c2"]


def test_usage_stands_at_the_last_item_of_its_response_and_once() -> None:
    t = read(
        READER,
        META,
        *typed("go"),
        call("c1"),
        output("c1", "x"),
        usage(110, input_tokens=100, cached_input_tokens=40, output_tokens=10, reasoning_output_tokens=4),
        usage(110, input_tokens=100, cached_input_tokens=40, output_tokens=10, reasoning_output_tokens=4),
        message("assistant", "Done."),
        usage(110, input_tokens=0, output_tokens=0),
        usage(260, input_tokens=140, output_tokens=10),
    )
    assert [entry.usage for entry in t.entries] == [
        None,
        Usage(input_tokens=100, output_tokens=10, cache_read=40, reasoning=4),
        None,
        Usage(input_tokens=140, output_tokens=10),
    ]
    assert t.window == 258_400


# --- who wrote a text -------------------------------------------------------------------------------------------------


def test_the_same_text_as_event_and_as_item_counts_once_and_honest_repeats_stay() -> None:
    """IM-07."""
    t = read(
        READER,
        META,
        message("developer", "<permissions>all</permissions>"),
        message("user", "# AGENTS.md instructions for /w\n\nrules", "<environment_context>\n</environment_context>"),
        *typed("go on"),
        message("assistant", "Going."),
        event("agent_message", message="Going."),
        *typed("go on"),
        message("user", "go on"),
    )
    assert [entry.role for entry in t.entries] == ["developer", "user", "user", "assistant", "user", "user"]
    assert texts(t)[2:] == ["go on", "Going.", "go on", "injected: go on"]
    assert all(
        block.origin == "injected" for entry in t.entries[:2] for block in entry.blocks if isinstance(block, Text)
    )


def test_without_events_the_text_has_to_tell() -> None:
    t = read(
        READER,
        META,
        message("user", "<environment_context>\n  <cwd>/w</cwd>\n</environment_context>"),
        message("user", "# AGENTS.md instructions for /w"),
        message("user", "<turn_aborted>\nstopped\n</turn_aborted>"),
        message("user", "what does <b> mean?"),
    )
    assert [line.startswith("injected: ") for line in texts(t)] == [True, True, True, False]


def test_what_the_client_wrote_before_a_typed_text_is_split_off() -> None:
    wrapped = "# Context from my editor\n\n## My request:\nfix it\n"
    t = read(READER, META, message("user", wrapped), event("user_message", message="fix it\n"))
    assert shape(t.entries) == [("user", ["injected: # Context from my editor\n\n## My request:\n", "fix it\n"])]
    assert "".join(block.text for block in t.entries[0].blocks if isinstance(block, Text)) == wrapped


def test_the_tags_around_an_image_are_the_clients() -> None:
    image = {"type": "input_image", "image_url": "https://x/y.png"}
    t = read(READER, META, *typed("why?", "<image name=[1]>", image, "</image>", text="why?"))
    assert shape(t.entries) == [("user", ["why?", "injected: <image name=[1]>", "<image>", "injected: </image>"])]


def test_events_of_old_clients_name_the_kind_of_an_injected_text() -> None:
    t = read(
        READER,
        META,
        message("user", "rules"),
        event("user_message", message="rules", kind="user_instructions"),
        *typed("go"),
    )
    assert texts(t) == ["injected: rules", "go"]


def test_a_typed_message_whose_item_is_damaged_is_read_from_its_event() -> None:
    t = read(
        READER,
        META,
        '{"timestamp":"t1","type":"response_item","payl',
        event("user_message", message="go"),
        *typed("on"),
    )
    assert texts(t) == ["go", "on"]
    assert t.warnings == ("1 typed messages stand only in events and were read from there",)
    assert [damage.line for damage in t.damaged] == [2]


def test_a_typed_message_whose_event_is_damaged_stays_typed() -> None:
    t = read(
        READER,
        META,
        *typed("one"),
        message("user", "two"),
        '{"timestamp":"t1","type":"event_m',
        message("assistant", "ok"),
    )
    assert texts(t) == ["one", "two", "ok"]


# --- compaction, going back -------------------------------------------------------------------------------------------


def test_three_hundred_originals_a_compaction_and_twenty_more() -> None:
    """IM-08."""
    before = [
        line
        for number in range(100)
        for line in (message("user", f"u{number}"), call(f"c{number}"), output(f"c{number}", "x"))
    ]
    kept = [message("user", f"u{number}") for number in range(89, 100)]
    opaque = item("compaction", id="cmp_1", encrypted_content="gAAA")
    after = [message("assistant", f"a{number}") for number in range(20)]
    t = read(READER, META, *before, compacted(*kept, opaque, window_number=1), *after)
    assert (len(t.entries), len(t.path()), len(t.markers)) == (320, 320, 1)
    (marker,) = t.markers
    assert marker.after == t.entries[299].id
    by_text = {texts_of(entry): entry.id for entry in t.entries}
    assert marker.shown[:11] == tuple(by_text[f"u{number}"] for number in range(89, 100))
    made = marker.shown[11]
    assert isinstance(made, Entry)
    assert made.blocks == (Unknown({"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAA"}),)
    assert (marker.readable, marker.extra, len(marker.shown)) == (False, {"window_number": 1}, 12)
    check_whole(t)


def texts_of(entry: Entry) -> str:
    return "".join(block.text for block in entry.blocks if isinstance(block, Text))


def test_a_local_compaction_has_a_readable_summary_and_cut_texts_of_its_own() -> None:
    t = read(
        READER,
        META,
        *typed("long question"),
        *typed("yes"),
        message("assistant", "Fine."),
        *typed("yes"),
        usage(50, input_tokens=40, output_tokens=10),
        compacted(
            message("user", "long ques"),
            message("user", "yes"),
            message("user", "A summary follows.\nAll went well."),
            text="All went well.",
        ),
    )
    (marker,) = t.markers
    cut, kept, made = marker.shown
    assert isinstance(cut, Entry)
    assert isinstance(made, Entry)
    assert shape((cut,)) == [("user", ["long ques"])]
    assert kept == t.entries[3].id  # of two equal messages the newer one
    assert shape((made,)) == [("user", ["summary: A summary follows.\nAll went well."])]
    assert (marker.readable, marker.tokens_before) == (True, 50)


def test_an_old_compaction_without_a_history_is_rebuilt() -> None:
    t = read(
        READER,
        META,
        *typed("x" * 79_000),
        *typed("x" * 60_000),
        *typed("y" * 8_000),
        compacted_without_history("Went well."),
    )
    (marker,) = t.markers
    *kept, made = marker.shown
    assert kept == [entry.id for entry in t.entries[1:]]  # 20,000 tokens of user text
    assert isinstance(made, Entry)
    assert made.blocks == (Text("Went well.", "summary"),)


def compacted_without_history(text: str) -> dict[str, Any]:
    return {"timestamp": "t2", "type": "compacted", "payload": {"message": text}}


def test_turns_that_were_rolled_back_are_off_the_path() -> None:
    t = read(
        READER,
        META,
        *typed("one"),
        message("assistant", "first"),
        message("user", "<environment_context>x</environment_context>"),
        *typed("two"),
        message("assistant", "second"),
        *typed("three"),
        message("assistant", "third"),
        event("thread_rolled_back", num_turns=2),
        *typed("new two"),
        message("assistant", "new second"),
    )
    assert texts(t) == ["one", "first", "new two", "new second"]
    assert len(t.entries) == 9
    check_whole(t)


# --- files ------------------------------------------------------------------------------------------------------------


def test_files_of_very_old_clients_hold_bare_items() -> None:
    header = {"id": "old1", "timestamp": "2025-05-07T17:24:21.123Z", "instructions": None, "git": {}}
    bare = [message("user", "go")["payload"], {"record_type": "state"}, message("assistant", "Going.")["payload"]]
    source = Input("test", as_bytes(header, *bare))
    assert READER.sniff(source)
    (t,) = READER.read(source)
    assert (t.id, texts(t), t.warnings) == ("old1", ["go", "Going."], ())


def test_two_records_on_one_line_are_both_read() -> None:
    line = json.dumps(message("user", "one")) + json.dumps(message("user", "two"))
    t = read(READER, META, line)
    assert (texts(t), t.damaged) == (["one", "two"], ())


def test_metadata_forks_and_sub_agents() -> None:
    meta = {**META["payload"], "base_instructions": {"text": "You are"}, "dynamic_tools": [{"name": "t"}]}  # type: ignore[dict-item]
    t = read(
        READER,
        {**META, "payload": {**meta, "source": {"subagent": {"thread_spawn": {"parent_thread_id": "th0"}}}}},
        {**META, "payload": {"id": "th9"}},
        {"type": "turn_context", "timestamp": "t", "payload": {"model": "gpt-5.5"}},
        *typed("go"),
        message("assistant", "Going."),
        event("thread_name_updated", thread_name="Trip"),
    )
    assert (t.id, t.cwd, t.client, t.time, t.title, t.model) == ("th1", "/w", "0.142.5", "t0", "Trip", "gpt-5.5")
    assert (t.system, t.tools, t.parent_session, t.forked_from) == ("You are", ({"name": "t"},), "th0", "th9")
    assert [entry.model for entry in t.entries] == [None, "gpt-5.5"]


def test_one_broken_line_costs_one_line() -> None:
    """IM-01."""
    lines: list[Any] = [message("assistant", f"a{number}") for number in range(999)]
    lines[398] = json.dumps(lines[398])[:-9]
    t = read(READER, META, *lines)
    assert (len(t.entries), len(t.path()), [damage.line for damage in t.damaged]) == (998, 998, [400])


def test_a_lone_surrogate_and_a_line_of_22_megabytes() -> None:
    """IM-02, IM-03."""
    source = Input(
        "test",
        as_bytes(message("assistant", "x" * 22_000_000), *[message("assistant", f"\ud83d {n}") for n in range(35)]),
    )
    assert READER.sniff(source)
    (t,) = READER.read(source)
    assert len(t.path()) == 36
    assert texts(t)[35] == "\ud83d 34"


def test_a_file_of_unknown_types_is_refused_loudly() -> None:
    """IM-09."""
    data = as_bytes(META, {"type": "hologram", "payload": {}}, {"type": "hologram", "payload": {}})
    with pytest.raises(EmptySessionError, match=r"2 x 'hologram', 1 x 'session_meta'"):
        READER.read(Input("new.jsonl", data))


def test_ids_stay_when_the_file_grows_and_doubled_ids_are_told_apart() -> None:
    lines = [
        META,
        *typed("go"),
        message("assistant", "one", id="msg_1"),
        message("assistant", "two", id="msg_1"),
        call("c1"),
    ]
    whole = [entry.id for entry in read(READER, *lines).entries]
    assert len(set(whole)) == 4
    for length in range(3, 6):
        part = [entry.id for entry in read(READER, *lines[:length]).entries]
        assert part == whole[: len(part)]


@given(
    st.lists(
        st.tuples(st.sampled_from(["user", "assistant", "developer"]), st.text(max_size=6), st.booleans()),
        min_size=1,
        max_size=12,
    )
)
@settings(max_examples=150)
def test_every_text_is_there_once_whatever_the_events_say(messages: list[tuple[str, str, bool]]) -> None:
    lines = [META]
    for role, text, told in messages:
        lines.append(message(role, text))
        if told and role == "user":
            lines.append(event("user_message", message=text))
    t = read(READER, *lines)
    assert Counter(texts_of(entry) for entry in t.entries) == Counter(text for _, text, _ in messages)
    check_whole(t)


# --- real files -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FILES)
def test_real_files_have_exactly_these_counts(name: str) -> None:
    transcripts = READER.read(Input.open(shared(f"codex/{name}")))
    assert counted(transcripts) == FILES[name]
    (t,) = transcripts
    check_whole(t)
    assert len(t.path()) == len(t.entries)
    assert (t.damaged, t.warnings) == ((), ())
    assert t.system is not None
    assert t.window == 258_400


@pytest.mark.parametrize("name", FILES)
def test_real_files_lose_no_text(name: str) -> None:
    path = shared(f"codex/{name}")
    transcripts = READER.read(Input.open(path))
    found = set(all_texts(transcripts))
    for record in records_of(path):
        payload = record["payload"]
        if record["type"] == "response_item":
            for text in _raw_texts(payload):
                assert text in found, text[:80]
        elif record["type"] == "compacted":
            for given_item in payload["replacement_history"]:
                for text in _raw_texts(given_item):
                    assert text in found, text[:80]


def _raw_texts(payload: dict[str, Any]) -> list[str]:
    out = [payload[name] for name in ("arguments", "input") if isinstance(payload.get(name), str)]
    if "summary" in payload:
        out.append("\n\n".join(part["text"] for part in payload["summary"]))
    for name in ("content", "output"):
        value = payload.get(name)
        if isinstance(value, str):
            out.append(value)
        for part in value if isinstance(value, list) else ():
            out += [part["text"]] if "text" in part else []
    return out


@pytest.mark.parametrize("name", FILES)
def test_real_files_report_the_usage_that_the_client_summed_up(name: str) -> None:
    path = shared(f"codex/{name}")
    totals = [
        record["payload"]["info"]["total_token_usage"]["total_tokens"]
        for record in records_of(path)
        if record["payload"].get("type") == "token_count" and record["payload"]["info"]
    ]
    (t,) = READER.read(Input.open(path))
    assert sum(entry.usage.total for entry in t.entries if entry.usage) == totals[-1]


@pytest.mark.parametrize("name", FILES)
def test_the_items_of_real_files_can_be_sent_again(name: str) -> None:
    """What the wire's writer makes of the path are the items of the file, whatever their key order."""
    path = shared(f"codex/{name}")
    items = [record["payload"] for record in records_of(path) if record["type"] == "response_item"]
    (t,) = READER.read(Input.open(path))
    assert wire_by_name("openai-responses").write(t.path()).messages == items


SHAPES = [
    item("reasoning", id="rs", summary=[], encrypted_content="x", status=None),
    item("reasoning", id="rs", summary=[{"type": "summary_text", "text": "a"}, {"type": "summary_text", "text": "b"}]),
    item("reasoning", summary=[], content=[{"type": "reasoning_text", "text": "a"}]),
    message("assistant", {"type": "output_text", "text": "a", "annotations": []}, id="m"),
    message("assistant", {"type": "refusal", "refusal": "no"}, "b", phase="final_answer"),
    message("user", "a", {"type": "input_image", "image_url": "data:image/png;base64,QUJD", "detail": "high"}),
    message("user", {"type": "input_text", "text": "a", "cache": 1}),
    message("developer", "a", {"type": "text", "text": "b"}),
    item("message", role="user", content="a"),
    call("c", id="fc", namespace="n", status="completed"),
    call("c", arguments="{broken"),
    item("custom_tool_call", call_id="c", name="n", input="", id="x"),
    item("function_call", call_id="c", name="n", arguments={"a": 1}),
    output("c", ""),
    output("c", [{"type": "input_text", "text": "a"}, {"type": "input_image", "image_url": "https://x"}]),
    item("custom_tool_call_output", call_id="c", output="x", id="o", name="n"),
    item("custom_tool_call_output", call_id="c", output=[]),
    output("c", None),
    output("c", 7),
    item("local_shell_call", call_id="c", action={"type": "exec", "command": ["ls"]}),
    item("web_search_call", id="w", action={"type": "search"}),
    item("tool_search_output", call_id="c", tools=[]),
    item("hologram", beam=1),
]


@pytest.mark.parametrize("line", SHAPES, ids=[json.dumps(line["payload"])[:60] for line in SHAPES])
def test_items_are_read_as_the_responses_wire_reads_them(line: dict[str, Any]) -> None:
    (entry,) = read(READER, META, line).entries
    (wired,) = wire_by_name("openai-responses").read([line["payload"]])
    assert entry.role == wired.role
    assert [_bare(block) for block in entry.blocks] == [_bare(block) for block in wired.blocks]
    assert _without_order(entry.extra) == _without_order(wired.extra)
    assert (entry.status, entry.wire) == (wired.status, wired.wire)


def _bare(block: Any) -> Any:
    """A block without its origin, which only a file can tell for sure, and without the order of keys."""
    fields = {name: getattr(block, name) for name in block.__struct_fields__ if name != "origin"}
    if "content" in fields:
        fields["content"] = [_bare(part) for part in fields["content"]]
    return {**fields, "extra": _without_order(fields.get("extra"))}


def _without_order(extra: dict[str, Any] | None) -> dict[str, Any]:
    return {name: value for name, value in (extra or {}).items() if name != "~order"}


def test_real_markers_name_the_messages_that_were_kept() -> None:
    (t,) = READER.read(Input.open(shared("codex/hk-compact2.jsonl.gz")))
    position = {entry.id: at for at, entry in enumerate(t.path())}
    found = [
        (
            position[m.after or ""],
            m.tokens_before,
            [position[s] for s in m.shown if isinstance(s, str)],
            m.readable,
            len(m.shown),
        )
        for m in t.markers
    ]
    assert found == [
        (377, 233_515, [4, 50, 141, 295, 305, 308, 311, 0, 1, 2, 3, 313], False, 13),
        (958, 236_346, [4, 50, 141, 295, 305, 308, 311, 313, 558, 561, 612, 0, 1, 2, 3, 619], False, 17),
    ]
