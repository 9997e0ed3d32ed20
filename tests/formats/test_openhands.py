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
from firsthand.formats.files.openhands.reader import OpenHandsReader
from firsthand.transcript import Text, ToolCall, ToolResult, Transcript, Usage

from .reading import blocks, check, counts, one, opened, raw, shape, shapes, subset

READER = OpenHandsReader()
FILE = "openhands/multi-swe-bench-3runs.jsonl"
Object = dict[str, Any]


def event(number: int, **more: Any) -> Object:
    return {"id": number, "timestamp": f"2026-01-01T00:00:{number:02}", "source": "agent", "message": "SHOWN", **more}


def task(number: int = 1, text: str = "the task", **args: Any) -> Object:
    return event(number, source="user", action="message", args={"content": text, **args})


def response(name: str, text: str | None, *calls: str, **more: Any) -> Object:
    made = [
        {"id": c, "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}} for c in calls
    ]
    message = {"role": "assistant", "content": text, "tool_calls": made, **more}
    usage = {"prompt_tokens": 50, "completion_tokens": 5}
    return {"id": name, "model": "m", "choices": [{"finish_reason": "stop", "message": message}], "usage": usage}


def acts(number: int, call: str, given: Object, action: str = "run") -> Object:
    about = {"function_name": "bash", "tool_call_id": call, "model_response": given}
    return event(number, action=action, args={"command": "ls", "thought": "t"}, tool_call_metadata=about)


def sees(number: int, cause: int, content: str, kind: str = "run", **more: Any) -> Object:
    return event(number, observation=kind, cause=cause, content=content, **more)


def run(*events: Any, name: str = "task-1", **more: Any) -> bytes:
    return json.dumps(
        {"instance_id": name, "instruction": "i", "metadata": {}, "history": events, "metrics": {}, **more}
    ).encode()


def read(data: bytes) -> Transcript:
    found = one(READER, opened(data))
    check(found)
    assert "SHOWN" not in repr(found)
    return found


def test_a_run() -> None:
    tools = [{"type": "function", "function": {"name": "bash"}}]
    found = read(
        run(
            event(0, action="system", args={"content": "rules", "tools": tools}),
            task(),
            acts(2, "c1", response("r1", "look", "c1", reasoning_content="hm")),
            sees(3, 2, "a.py", extras={"metadata": {"exit_code": 0, "prefix": "[cut]\n", "suffix": "\n[exit 0]"}}),
            event(4, action="finish", args={"final_thought": "all done", "thought": ""}),
            error="stopped",
        )
    )
    assert shapes(found) == [
        ("system", "injected: rules"),
        ("user", "the task"),
        ("assistant", "thinks: hm", "look", ("call", "c1", "bash", '{"command": "ls"}')),
        ("tool", ("result", "c1", "[cut]\na.py\n[exit 0]")),
        ("assistant", ("call", "event-4", "finish", '{"final_thought":"all done"}')),
    ]
    assert found.entries[2].usage == Usage(input_tokens=50, output_tokens=5)
    assert (found.entries[2].group, found.entries[2].model, found.entries[2].time) == ("r1", "m", "2026-01-01T00:00:02")
    assert (found.title, found.model, found.tools) == ("task-1", "m", tuple(tools))
    assert found.extra == {"instance_id": "task-1", "error": "stopped"}


def test_parallel_calls_share_one_response() -> None:
    both = response("r1", "look", "c1", "c2")
    found = read(run(task(), acts(2, "c1", both), sees(3, 2, "one"), acts(4, "c2", both), sees(5, 4, "two")))
    assert shapes(found)[1:] == [
        ("assistant", "look", ("call", "c1", "bash", '{"command": "ls"}'), ("call", "c2", "bash", '{"command": "ls"}')),
        ("tool", ("result", "c1", "one")),
        ("tool", ("result", "c2", "two")),
    ]
    assert len([e for e in found.entries if e.usage]) == 1


def test_pairs_without_responses_as_early_versions_stored_them() -> None:
    action = event(2, action="run", args={"command": "ls", "thought": "look", "confirmation_state": "confirmed"})
    found = read(run([task(), event(1, observation="null", content="")], [action, sees(3, 2, "a.py")]))
    assert shapes(found)[1:] == [
        ("assistant", "look", ("call", "event-2", "run", '{"command":"ls"}')),
        ("tool", ("result", "event-2", "a.py")),
    ]


@pytest.mark.parametrize(
    ("more", "failed"),
    [
        ({"kind": "error"}, True),
        ({"kind": "user_rejected"}, True),
        ({"content": "ERROR:\nno"}, True),
        ({"extras": {"metadata": {"exit_code": 1}}}, True),
        ({"extras": {"metadata": {"exit_code": -1}}}, False),
        ({"extras": {"metadata": {"exit_code": 0}}}, False),
        ({}, False),
    ],
)
def test_what_counts_as_an_error(more: Object, failed: bool) -> None:
    found = read(run(task(), acts(2, "c1", response("r1", "x", "c1")), sees(3, 2, **{"content": "x", **more})))
    assert [b.is_error for b in blocks([found], ToolResult)] == [failed]


def test_an_error_that_answers_no_call_is_injected() -> None:
    found = read(run(task(), event(2, observation="error", content="no such tool")))
    assert shapes(found)[1:] == [("user", "injected: no such tool")]


def test_what_a_recall_found_is_injected() -> None:
    extras = {
        "repo_instructions": "be kind",
        "microagent_knowledge": [{"name": "git", "content": "use git"}],
        "runtime_hosts": {"http://localhost": 1},
    }
    found = read(
        run(
            task(),
            event(2, source="user", action="recall", args={"query": "the task"}),
            event(3, source="environment", observation="recall", cause=2, content="Added", extras=extras),
            event(4, source="environment", observation="recall", cause=2, content="Added", extras={}),
        )
    )
    assert shapes(found) == [("user", "the task"), ("user", "injected: be kind", "injected: use git")]
    assert found.extra == {"instance_id": "task-1", "left_out": {"action recall": 1}}


def test_images() -> None:
    found = read(run(task(image_urls=["data:image/png;base64,QQ=="])))
    assert shapes(found) == [("user", "the task", ("image", "image/png", "QQ=="))]


def test_condensations_are_markers_and_what_they_forgot_stays_forgotten() -> None:
    first, second = response("r1", "one", "c1"), response("r2", "two", "c2")
    found = read(
        run(
            task(),
            acts(2, "c1", first),
            sees(3, 2, "x"),
            event(4, action="condensation", args={"forgotten_event_ids": [2, 3], "summary": "S", "summary_offset": 1}),
            acts(5, "c2", second),
            sees(6, 5, "y"),
            event(7, action="condensation", args={"forgotten_events_start_id": 5, "forgotten_events_end_id": 5}),
            event(8, action="message", args={"content": "end"}),
        )
    )
    assert [s[0] for s in shapes(found)] == ["user", "assistant", "tool", "assistant", "tool", "assistant"]
    ids = [e.id for e in found.entries]
    assert [m.after for m in found.markers] == [ids[2], ids[4]]
    assert [x if isinstance(x, str) else shape(x) for x in found.markers[0].shown] == [ids[0], ("user", "summary: S")]
    assert list(found.markers[1].shown) == [ids[0], ids[4]]


def test_a_trajectory_is_an_array_of_events() -> None:
    given = json.dumps([task(0), acts(1, "c1", response("r1", "x", "c1")), sees(2, 1, "y")]).encode()
    assert READER.sniff(opened(given))
    assert [s[0] for s in shapes(read(given))] == ["user", "assistant", "tool"]


def test_several_runs_and_damaged_lines() -> None:
    lines = [run(task(), name="a"), b'{"instance_id": "b", "his', b'{"instance_id": "c"}', run(task(), name="d")]
    found = READER.read(opened(b"\n".join(lines)))
    assert [t.title for t in found] == ["a", "d"]
    assert [d.line for d in found[0].damaged] == [2]
    assert found[0].warnings == ("1 record of unknown type 'record without a history'",)
    assert len({e.id for t in found for e in t.entries}) == 2


@given(st.data())
@settings(max_examples=60)
def test_a_cut_run_gives_the_events_before_the_cut(data: st.DataObject) -> None:
    whole = run(task(), acts(2, "c1", response("r1", "x", "c1")), sees(3, 2, "y"), task(4, "more"))
    cut = whole[: data.draw(st.integers(1, len(whole) - 1))]
    try:
        found = READER.read(opened(cut))
    except EmptySessionError:
        return
    assert found[0].damaged
    subset(found[0], read(whole)) if len(found[0].entries) > 1 else None


def test_a_cut_run_by_example() -> None:
    whole = run(task(), acts(2, "c1", response("r1", "x", "c1")), sees(3, 2, "y"), task(4, "more"))
    assert [s[0] for s in shapes(read(whole[: whole.index(b'"more"') + 2]))] == ["user", "assistant", "tool"]


@pytest.mark.parametrize(
    "data",
    [
        run(),
        run(event(1, action="null")),
        run(event(1, observation="agent_state_changed", content="x")),
        run({"id": 1}),
    ],
)
def test_nothing_is_never_a_success(data: bytes) -> None:
    """IM-09."""
    assert READER.sniff(opened(data))
    with pytest.raises(EmptySessionError, match="no entry could be read"):
        READER.read(opened(data))


@pytest.mark.parametrize("text", ["", "{}", '{"instance_id": 1}', '[{"role": "user"}]', '{"history": []}'])
def test_what_is_not_recognised(text: str) -> None:
    assert not READER.sniff(opened(text))


def real() -> list[Transcript]:
    source = Input.open(shared(FILE))
    assert READER.sniff(source)
    return READER.read(source)


def test_the_real_runs_by_numbers() -> None:
    """The sessions' README counts 108 calls and 108 results, which are the events.

    Of both, three are recalls, which are the harness's own: one of them found two texts, injected here. Two results are errors that
    answer no call (injected here, as the model saw them), so 103 results remain; the two runs that ended with `finish` have no result
    for it. 16,806 injected characters are the three system prompts.
    """
    found = real()
    assert [(t.title, len(t.entries)) for t in found] == [
        ("ponylang__ponyc-4595", 48),
        ("ponylang__ponyc-4593", 68),
        ("ponylang__ponyc-4588", 101),
    ]
    assert counts(found) == Counter(
        {
            "system injected": 3,
            "user typed": 3,
            "user injected": 4,
            "assistant typed": 105,
            "ToolCall": 105,
            "ToolResult": 103,
        }
    )
    assert (
        sum(
            len(b.text) for t in found for e in t.entries if e.role == "system" for b in e.blocks if isinstance(b, Text)
        )
        == 16_806
    )
    for transcript in found:
        check(transcript)
        assert transcript.tools is not None
        assert len(transcript.tools) == 4


def test_every_text_of_the_real_runs_is_there_byte_for_byte() -> None:
    found = real()
    events = [e for line in raw(shared(FILE)).splitlines() for e in json.loads(line)["history"]]
    acted = [
        e["tool_call_metadata"]["model_response"]["choices"][0]["message"]
        for e in events
        if "action" in e and "tool_call_metadata" in e
    ]
    said = [b.text for t in found for e in t.entries if e.role == "assistant" for b in e.blocks if isinstance(b, Text)]
    assert said == [m["content"] for m in acted if m["content"]]
    calls = [c for m in acted for c in m["tool_calls"]]
    assert [(b.id, b.name, b.arguments) for b in blocks(found, ToolCall)] == [
        (c["id"], c["function"]["name"], c["function"]["arguments"]) for c in calls
    ]
    seen = [e for e in events if "observation" in e and "tool_call_metadata" in e]
    for event_, block in zip(seen, blocks(found, ToolResult), strict=True):
        assert event_["content"] in block.text
        assert block.text.endswith((event_["extras"].get("metadata") or {}).get("suffix", ""))
    texts = Counter(b.text for b in blocks(found, Text))
    for event_ in events:
        if event_.get("action") in ("message", "system"):
            assert texts[event_["args"]["content"]] >= 1
        if event_.get("observation") == "error":
            assert texts[event_["content"]] >= 1
        for knowledge in (event_.get("extras") or {}).get("microagent_knowledge") or []:
            assert texts[knowledge["content"]] == 1


def test_usage_of_the_real_runs() -> None:
    found = real()
    for line, transcript in zip(raw(shared(FILE)).splitlines(), found, strict=True):
        by_response = {u["response_id"]: u for u in json.loads(line)["metrics"]["token_usages"]}
        used = [e for e in transcript.entries if e.usage]
        assert len(used) == len([e for e in transcript.entries if e.role == "assistant"])
        for entry in used:
            assert entry.usage is not None
            assert entry.usage.input_tokens == by_response[entry.group]["prompt_tokens"]
