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
from firsthand.formats.files.swe_agent.reader import SweAgentReader
from firsthand.transcript import Entry, Reasoning, Text, ToolCall, ToolResult, Transcript, Usage

from .reading import blocks, check, counts, one, opened, raw, shapes, subset

READER = SweAgentReader()
FILE = "swe-agent/pydicom-1458.traj"
Object = dict[str, Any]


def system(text: str = "rules") -> Object:
    return {"role": "system", "content": text, "agent": "primary"}


def user(text: str, **more: Any) -> Object:
    return {"role": "user", "content": text, "agent": "primary", **more}


def acts(thought: str, action: str, tag: str = "", after: str = "") -> Object:
    content = f"{thought}```{tag}\n{action}```{after}"
    return {"role": "assistant", "content": content, "thought": thought, "action": action, "agent": "primary"}


def step(message: Object, observation: str) -> Object:
    return {
        "action": message["action"],
        "observation": observation,
        "response": message["content"],
        "thought": "",
        "state": "{}",
    }


def encoded(history: list[Object], steps: list[Object] | None = None, **info: Any) -> bytes:
    return json.dumps(
        {
            "environment": "env",
            "trajectory": steps or [],
            "history": history,
            "info": {"exit_status": "submitted", **info},
        }
    ).encode()


def read(data: bytes, name: str = "task-1.traj") -> Transcript:
    found = one(READER, opened(data, name))
    check(found)
    return found


def prose_of(entry: Entry) -> str:
    """A response in text mode as it was, put together again from its blocks."""
    out = ""
    for block in entry.blocks:
        if isinstance(block, Text):
            out += block.text
        elif isinstance(block, ToolCall):
            extra = block.extra or {}
            out += extra["opener"] + block.arguments + extra["closer"]
    return out


# ---------------------------------------------------------------- text mode


def test_a_run_in_text_mode() -> None:
    history = [
        system(),
        user("Here is a demonstration of it"),
        user("other example", is_demo=True),
        user("the task"),
        acts("look\n\n", "ls -l\n"),
        user("a.py"),
        acts("done\n", "submit\n"),
    ]
    found = read(encoded(history, model_stats={"api_calls": 2}, submission="SECRET"))
    assert shapes(found) == [
        ("system", "injected: rules"),
        ("user", "injected: Here is a demonstration of it"),
        ("user", "injected: other example"),
        ("user", "the task"),
        ("assistant", "look\n\n", ("call", "action-4", "bash", "ls -l\n")),
        ("tool", ("result", "action-4", "a.py")),
        ("assistant", "done\n", ("call", "action-6", "bash", "submit\n")),
    ]
    assert found.entries[5].extra == {"role": "user"}
    assert found.extra == {"exit_status": "submitted", "model_stats": {"api_calls": 2}, "environment": "env"}
    assert "SECRET" not in repr(found)


@given(
    st.text(st.characters(exclude_characters="`", exclude_categories=("Cs",)), max_size=30),
    st.text(st.characters(exclude_characters="`", exclude_categories=("Cs",)), min_size=1, max_size=30),
    st.sampled_from(["", "bash", "python"]),
    st.sampled_from(["", "\n", "\nand then I wait", "  \n\n"]),
)
def test_a_response_can_be_put_together_again(thought: str, action: str, tag: str, after: str) -> None:
    message = acts(thought, action, tag, after)
    found = read(encoded([user("task"), message]))
    (call,) = blocks([found], ToolCall)
    assert call.arguments == action
    if "in_text" not in (call.extra or {}):
        assert prose_of(found.entries[1]) == message["content"]
    else:
        assert blocks([found], Text)[1].text == message["content"]


def test_an_action_that_is_not_in_the_prose_as_it_was_noted_down() -> None:
    message = {"role": "assistant", "content": "```\nls\n```", "action": "ls -a"}
    found = read(encoded([user("task"), message, user("out")]))
    assert shapes(found)[1] == ("assistant", "```\nls\n```", ("call", "action-1", "bash", "ls -a"))
    assert blocks([found], ToolCall)[0].extra == {"in_text": True}


def test_what_follows_a_response_without_an_action_is_injected() -> None:
    history = [user("task"), {"role": "assistant", "content": "I forgot", "action": ""}, user("your format is wrong")]
    assert shapes(read(encoded(history)))[1:] == [("assistant", "I forgot"), ("user", "injected: your format is wrong")]


def test_an_interruption_is_no_observation() -> None:
    history = [user("task"), acts("a", "ls\n"), user("out of time", extra={"interrupt_type": "TimeExceeded"})]
    assert shapes(read(encoded(history)))[2] == ("user", "injected: out of time")


def test_an_observation_that_a_history_processor_shortened() -> None:
    """As IM-12: the full one is the original."""
    first, second = acts("a", "cat big"), acts("b", "ls")
    long = "line\n" * 50
    history = [user("task"), first, user("Old output omitted (50 lines)"), second, user("x\n(Open file: n/a)")]
    found = read(encoded(history, [step(first, long), step(second, "x")]))
    results = blocks([found], ToolResult)
    assert [r.text for r in results] == [long, "x\n(Open file: n/a)"]
    assert results[0].extra == {"shown": "Old output omitted (50 lines)"}
    assert results[1].extra is None


def test_a_file_without_history() -> None:
    first = acts("a", "ls")
    found = read(json.dumps({"trajectory": [step(first, "files")], "info": {}}).encode())
    assert [s[0] for s in shapes(found)] == ["assistant", "tool"]
    assert prose_of(found.entries[0]) == first["content"]


# ---------------------------------------------------------------- function calling


def test_a_run_with_function_calls() -> None:
    calls = [
        {"id": f"c{n}", "type": "function", "function": {"name": "bash", "arguments": '{"command":"ls"}'}}
        for n in (1, 2)
    ]
    history = [
        system(),
        {"role": "user", "content": [{"type": "text", "text": "task", "cache_control": {"type": "ephemeral"}}]},
        {
            "role": "assistant",
            "content": "look",
            "thought": "look",
            "action": "ls",
            "tool_calls": calls,
            "thinking_blocks": [{"type": "thinking", "thinking": "hm", "signature": "S"}],
        },
        {"role": "tool", "content": "a.py", "tool_call_ids": ["c1", "c2"], "message_type": "observation"},
    ]
    replay = json.dumps({"agent": {"model": {"name": "gpt-4o"}}})
    found = read(json.dumps({"trajectory": [], "history": history, "info": {}, "replay_config": replay}).encode())
    assert shapes(found) == [
        ("system", "injected: rules"),
        ("user", "task"),
        (
            "assistant",
            "thinks: hm",
            "look",
            ("call", "c1", "bash", '{"command":"ls"}'),
            ("call", "c2", "bash", '{"command":"ls"}'),
        ),
        ("tool", ("result", "c1", "a.py"), ("result", "c2")),
    ]
    assert blocks([found], Reasoning)[0].opaque == {"signature": "S"}
    assert found.model == "gpt-4o"


# ---------------------------------------------------------------- mini-swe-agent


def mini(*messages: Object, **info: Any) -> bytes:
    about = {"mini_version": "2.4.6", "config": {"model": {"model_name": "claude"}}, **info}
    return json.dumps(
        {"info": about, "messages": messages, "trajectory_format": "mini-swe-agent-1.1"}, indent=2
    ).encode()


def test_mini_swe_agent_with_tool_calls() -> None:
    usage = {"prompt_tokens": 100, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 90}}
    call = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}
    found = read(
        mini(
            {"role": "system", "content": "rules"},
            {"role": "user", "content": "task"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [call],
                "extra": {"response": {"id": "r1", "model": "claude-x", "usage": usage}, "timestamp": 1770000000.5},
            },
            {"role": "tool", "tool_call_id": "c1", "content": "failed", "extra": {"returncode": 2}},
            {"role": "user", "content": "no call", "extra": {"interrupt_type": "FormatError"}},
            {"role": "exit", "content": "Submitted", "extra": {"submission": "SECRET"}},
        ),
        "run.traj.json",
    )
    assert shapes(found) == [
        ("system", "injected: rules"),
        ("user", "task"),
        ("assistant", ("call", "c1", "bash", '{"command": "ls"}')),
        ("tool", ("failed", "c1", "failed")),
        ("user", "injected: no call"),
    ]
    assert found.entries[2].usage == Usage(input_tokens=100, output_tokens=7, cache_read=90)
    assert (found.entries[2].group, found.entries[2].time) == ("r1", "2026-02-02T02:40:00.500Z")
    assert (found.title, found.client, found.model) == ("run", "mini-swe-agent 2.4.6", "claude")
    assert "SECRET" not in repr(found)


def test_mini_swe_agent_in_text_mode() -> None:
    found = read(
        mini(
            {"role": "system", "content": "rules"},
            {"role": "user", "content": "task"},
            {"role": "assistant", "content": "THOUGHT: look\n\n```bash\nls -l\n```"},
            {"role": "user", "content": "<output>\na.py</output>", "extra": {"raw_output": "a.py", "returncode": 0}},
            {"role": "assistant", "content": "two\n```bash\na\n```\nor\n```bash\nb\n```"},
            {"role": "user", "content": "one action only", "extra": {"interrupt_type": "FormatError"}},
        )
    )
    assert shapes(found)[2:] == [
        ("assistant", "THOUGHT: look\n\n", ("call", "action-2", "bash", "ls -l")),
        ("tool", ("result", "action-2", "<output>\na.py</output>")),
        ("assistant", "two\n```bash\na\n```\nor\n```bash\nb\n```"),
        ("user", "injected: one action only"),
    ]
    assert prose_of(found.entries[2]) == "THOUGHT: look\n\n```bash\nls -l\n```"


def test_mini_swe_agent_on_the_responses_api() -> None:
    output = [
        {
            "type": "reasoning",
            "id": "rs",
            "summary": [{"type": "summary_text", "text": "hm"}],
            "encrypted_content": "E",
        },
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "look", "annotations": []}],
        },
        {"type": "function_call", "call_id": "c1", "name": "bash", "arguments": '{"command": "ls"}'},
    ]
    found = read(
        mini(
            {"role": "user", "content": "task"},
            {
                "object": "response",
                "id": "r1",
                "output": output,
                "usage": {"input_tokens": 9, "output_tokens": 2},
                "extra": {},
            },
            {"type": "function_call_output", "call_id": "c1", "output": "a.py", "extra": {"returncode": 0}},
        )
    )
    assert shapes(found)[1:] == [
        ("assistant", "thinks: hm", "look", ("call", "c1", "bash", '{"command": "ls"}')),
        ("tool", ("result", "c1", "a.py")),
    ]
    assert found.entries[1].usage == Usage(input_tokens=9, output_tokens=2)


# ---------------------------------------------------------------- damage


@given(st.data())
@settings(max_examples=60)
def test_a_cut_file_gives_what_stands_before_the_cut(data: st.DataObject) -> None:
    first, second = acts("a\n", "ls\n"), acts("b\n", "pwd\n")
    whole = encoded([system(), user("task"), first, user("x"), second, user("y")])
    cut = whole[: data.draw(st.integers(1, len(whole) - 2))]
    try:
        found = one(READER, opened(cut, "t.traj"))
    except EmptySessionError:
        return
    assert found.damaged
    if len(found.entries) > 2:
        subset(found, one(READER, opened(whole, "t.traj")))


def test_damage_in_front_of_the_history() -> None:
    first = acts("a\n", "ls\n")
    whole = encoded([user("task"), first, user("x")], [step(first, "x")]).replace(b'"state": "{}"', b'"state": {')
    found = read(whole)
    assert [s[0] for s in shapes(found)] == ["user", "assistant", "tool"]
    assert found.damaged


@pytest.mark.parametrize(
    "data", [encoded([]), encoded([{"role": "judge", "content": "x"}]), mini(), mini({"role": "exit"})]
)
def test_nothing_is_never_a_success(data: bytes) -> None:
    """IM-09."""
    assert READER.sniff(opened(data))
    with pytest.raises(EmptySessionError, match="no entry could be read"):
        READER.read(opened(data))


@pytest.mark.parametrize(
    "text", ["", "{}", '{"info": {}, "messages": []}', '{"info": {"id": "ses_1"}, "messages": []}']
)
def test_what_is_not_recognised(text: str) -> None:
    assert not READER.sniff(opened(text))


# ---------------------------------------------------------------- the real trajectory


def test_the_real_trajectory_by_numbers() -> None:
    """As the sessions' README counts it; the system prompt and the demonstration are the injected text there."""
    source = Input.open(shared(FILE))
    assert READER.sniff(source)
    found = one(READER, source)
    check(found)
    assert counts([found]) == Counter(
        {
            "system injected": 1,
            "user injected": 1,
            "user typed": 1,
            "assistant typed": 12,
            "ToolCall": 12,
            "ToolResult": 11,
        }
    )
    assert sum(len(b.text) for b in blocks([found], Text) if b.origin == "injected") == 24_265
    assert not found.damaged


def test_every_text_of_the_real_trajectory_is_there_byte_for_byte() -> None:
    found = one(READER, Input.open(shared(FILE)))
    given = json.loads(raw(shared(FILE)))["history"]
    assert len(given) == len(found.entries)
    for message, entry in zip(given, found.entries, strict=True):
        if entry.role == "assistant":
            assert prose_of(entry) == message["content"]
        elif entry.role == "tool":
            assert [b.text for b in entry.blocks if isinstance(b, ToolResult)] == [message["content"]]
        else:
            assert [b.text for b in entry.blocks if isinstance(b, Text)] == [message["content"]]
