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
from firsthand.formats.files.tau_bench import TauBenchReader
from firsthand.transcript import Text, ToolCall, ToolResult

from .reading import blocks, check, counts, one, opened, raw, shapes

READER = TauBenchReader()
FILE = "tau-bench/gpt-4o-airline-tasks-a.json.gz"
Object = dict[str, Any]


def run(task: int, *messages: Object, **more: Any) -> Object:
    return {
        "task_id": task,
        "reward": 1.0,
        "info": {"task": {"instruction": "SECRET"}},
        "traj": list(messages),
        "trial": 0,
        **more,
    }


def system(text: str = "policy") -> Object:
    return {"role": "system", "content": text}


def user(text: str) -> Object:
    return {"role": "user", "content": text}


def said(text: str | None, *calls: str) -> Object:
    made = [{"id": c, "type": "function", "function": {"name": "f", "arguments": f'{{"c": "{c}"}}'}} for c in calls]
    return {"role": "assistant", "content": text, **({"tool_calls": made} if made else {})}


def result(call: str, text: str) -> Object:
    return {"role": "tool", "tool_call_id": call, "name": "f", "content": text}


RUN = run(4, system(), user("hi"), said(None, "c1"), result("c1", "Error: no such thing"), said("sorry"), user("bye"))


def encoded(*runs: Object, indent: int | None = 2) -> bytes:
    return json.dumps(runs, indent=indent).encode()


def test_a_run() -> None:
    found = one(READER, opened(encoded(RUN)))
    check(found)
    assert shapes(found) == [
        ("system", "injected: policy"),
        ("user", "hi"),
        ("assistant", ("call", "c1", "f", '{"c": "c1"}')),
        ("tool", ("failed", "c1", "Error: no such thing")),
        ("assistant", "sorry"),
        ("user", "bye"),
    ]
    assert found.title == "task 4, trial 0"
    assert found.extra == {"task_id": 4, "trial": 0, "reward": 1.0}
    assert "SECRET" not in repr(found)


def test_runs_of_one_task_are_sessions_of_their_own() -> None:
    found = READER.read(opened(encoded(RUN, {**RUN, "trial": 1}, run(5, user("x")))))
    assert len({t.id for t in found}) == 3
    assert len({e.id for t in found for e in t.entries}) == sum(len(t.entries) for t in found)


def test_runs_without_messages_are_counted() -> None:
    found = READER.read(opened(encoded(run(1), {"task_id": 2}, RUN, run(3, {"role": "judge", "content": "?"}))))
    assert len(found) == 1
    assert found[0].warnings == (
        "1 record of unknown type 'message of role judge'",
        "1 record of unknown type 'run without a list of messages'",
    )
    assert found[0].extra is not None
    assert found[0].extra["left_out"] == {"run without an entry": 2}


@pytest.mark.parametrize("indent", [None, 2])
@given(st.data())
@settings(max_examples=40)
def test_a_cut_file_gives_what_stands_before_the_cut(indent: int | None, data: st.DataObject) -> None:
    whole = encoded(RUN, {**RUN, "task_id": 5}, indent=indent)
    cut = whole[: data.draw(st.integers(1, len(whole) - 2))]
    try:
        found = READER.read(opened(cut))
    except EmptySessionError:
        return
    assert found[0].damaged
    full = READER.read(opened(whole))
    if len(found) == 2:
        assert found[0].entries == full[0].entries
    else:
        # The trial stands behind the messages, so a run that is cut has another id.
        assert all(cut == whole for cut, whole in zip(shapes(found[0]), shapes(full[0]), strict=False))


def test_damage_in_one_run_leaves_the_others() -> None:
    whole = encoded(RUN, run(5, user("a"), user("b")), run(6, user("c"))).replace(b'"b"', b'"b')
    found = READER.read(opened(whole))
    assert [t.title for t in found] == ["task 4, trial 0", "task 5, trial None", "task 6, trial 0"]
    assert shapes(found[1]) == [("user", "a")]
    assert len(found[0].damaged) == 1


@pytest.mark.parametrize("data", [b'[{"task_id": 1, "traj": []}]', encoded(run(1, {"role": "judge"}))])
def test_nothing_is_never_a_success(data: bytes) -> None:
    """IM-09."""
    assert READER.sniff(opened(data))
    with pytest.raises(EmptySessionError, match="no entry could be read"):
        READER.read(opened(data))


@pytest.mark.parametrize("text", ["", "[]", '[{"role": "user"}]', '{"traj": [], "task_id": 1}'])
def test_what_is_not_recognised(text: str) -> None:
    assert not READER.sniff(opened(text))


def test_the_real_file_by_numbers() -> None:
    """As the sessions' README counts it; the policy of every dialogue is the injected text there."""
    source = Input.open(shared(FILE))
    assert READER.sniff(source)
    found = READER.read(source)
    assert len(found) == len({t.id for t in found}) == 100
    assert counts(found) == Counter(
        {"system injected": 100, "user typed": 686, "assistant typed": 615, "ToolCall": 577, "ToolResult": 577}
    )
    assert sum(len(b.text) for b in blocks(found, Text) if b.origin == "injected") == 615_500
    assert sum(b.is_error for b in blocks(found, ToolResult)) == 21
    for transcript in found:
        check(transcript)


def test_every_text_of_the_real_file_is_there_byte_for_byte() -> None:
    given = [m for run in json.loads(raw(shared(FILE))) for m in run["traj"]]
    found = READER.read(Input.open(shared(FILE)))
    texts = [m["content"] for m in given if m["role"] != "tool" and m["content"]]
    assert [b.text for b in blocks(found, Text)] == texts
    calls = [c for m in given for c in m.get("tool_calls") or []]
    assert [(b.id, b.name, b.arguments) for b in blocks(found, ToolCall)] == [
        (c["id"], c["function"]["name"], c["function"]["arguments"]) for c in calls
    ]
    outputs = [(m["tool_call_id"], m["content"]) for m in given if m["role"] == "tool"]
    assert [(b.call_id, b.text) for b in blocks(found, ToolResult)] == outputs
