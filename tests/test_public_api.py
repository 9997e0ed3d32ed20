"""`firsthand.compact` as its users call it: every wire, odd messages, and what holds for any conversation."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import firsthand
from firsthand.errors import CompactionRefusedError, ConfigError, FormatError, OutputCeilingError, UnknownNameError
from firsthand.formats.wire import wire_by_name
from firsthand.projection.repair import repair
from firsthand.strategies import strategy_by_name
from firsthand.testing.random_entries import paired_paths
from firsthand.testing.validate import validate
from firsthand.tokens import counter_by_name, total_cost
from firsthand.transcript import Entry

Message = dict[str, Any]

LOG = "worker-7 lost its lease at 12:04:33\n" * 4_000
WIRES = ("openai-chat", "openai-responses", "anthropic")


def user(content: Any) -> Message:
    return {"role": "user", "content": content}


def conversation(wire: str, result: Any = LOG) -> list[Message]:
    """A question, one call with its result, an answer, and a new question."""
    step: dict[str, list[Message]] = {
        "openai-chat": [
            {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "c1", "content": result},
        ],
        "openai-responses": [
            {"type": "function_call", "call_id": "c1", "name": "read", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": result},
        ],
        "anthropic": [
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "read", "input": {}}]},
            user([{"type": "tool_result", "tool_use_id": "c1", "content": result}]),
        ],
    }  # fmt: skip
    return [
        user("Only port 8123 is free."),
        *step[wire],
        {"role": "assistant", "content": "It lost its lease."},
        user("Fix it."),
    ]


@pytest.mark.parametrize("wire", WIRES)
def test_a_projection_is_valid_bounded_and_has_what_was_typed(wire: str) -> None:
    messages = conversation(wire)
    given = deepcopy(messages)
    result = firsthand.compact(messages, window=32_000)
    report = result.report
    assert (report.outcome, report.strategy, report.window) == ("applied", "coverage", 32_000)
    assert report.tokens_after <= report.input_limit < report.tokens_before
    assert validate(wire, result.messages, result.system) == []
    shown = json.dumps(result.messages)
    assert "Only port 8123 is free." in shown
    assert "It lost its lease." in shown
    assert LOG[:2_000] not in shown
    assert messages == given
    assert firsthand.compact(messages, window=32_000, wire=wire).messages == result.messages


@pytest.mark.parametrize("wire", WIRES)
def test_under_the_trigger_the_very_same_list_comes_back(wire: str) -> None:
    messages = conversation(wire)
    system = [{"type": "text", "text": "Be careful."}]
    result = firsthand.compact(messages, window=1_000_000, system=system)
    assert result.messages is messages
    assert result.system is system
    assert result.plan is None
    assert result.report.outcome == "unchanged"
    assert "under the trigger" in (result.report.reason or "")


def test_force_compacts_under_the_trigger_but_never_makes_it_larger() -> None:
    forced = firsthand.compact(conversation("openai-chat"), window=1_000_000, force=True)
    assert forced.report.outcome == "applied"
    short = [user("hi")]
    kept = firsthand.compact(short, window=1_000_000, force=True)
    assert kept.messages is short
    assert "nothing to cover" in (kept.report.reason or "")
    longer = [user("hi"), {"role": "assistant", "content": "hello"}, user("and?")]
    kept = firsthand.compact(longer, window=1_000_000, force=True, strategy=strategy_by_name("coverage", tail=0))
    assert kept.messages is longer
    assert (kept.report.reason or "").startswith("not beneficial")


def test_a_target_is_held() -> None:
    logs = [
        "".join(f"{part}/{chr(97 + n % 26)}{chr(97 + n // 26)}_x took {n} ms in worker {n * 7}\n" for n in range(650))
        for part in "abcdef"
    ]
    messages = [message for log in logs for message in conversation("openai-chat", log)]
    wide = firsthand.compact(messages, window=32_000).report.tokens_after
    target = firsthand.compact(messages, window=32_000, target=700).report.tokens_after
    assert target <= 700 < wide


def test_system_and_tools_count() -> None:
    messages = conversation("anthropic", "short")
    plain = firsthand.compact(messages, window=200_000).report.tokens_before
    both = firsthand.compact(
        messages, window=200_000, system="x" * 4_000, tools=[{"name": "y" * 4_000}], counter=counter_by_name("estimate")
    )
    assert both.report.tokens_before - plain > 1_900
    with pytest.raises(CompactionRefusedError, match="system prompt and tools"):
        firsthand.compact(conversation("anthropic"), window=8_000, system="x " * 40_000)


def test_user_text_that_does_not_fit_is_refused_with_the_sizes() -> None:
    with pytest.raises(CompactionRefusedError) as refused:
        firsthand.compact([user(LOG), user("Fix it.")], window=8_000, strategy="futureos-deterministic")
    assert refused.value.reason == "budget-exceeded"
    assert refused.value.sizes["max_target"] > 0


def test_user_text_that_does_not_fit_is_quoted_and_said_to_be_cut() -> None:
    result = firsthand.compact([user(LOG), user("Fix it.")], window=8_000)
    shown = json.dumps(result.messages)
    assert "Fix it." in shown
    assert "Left out, but kept in the journal: 1 of 1 texts" in shown or "Excerpts of the earlier history" in shown


@pytest.mark.parametrize(
    "odd",
    [
        user([]), user(""), user("half of an emoji: \ud83d"),
        user([{"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 4_000}}]),
        {"role": "assistant", "content": None}, {"role": "assistant", "content": "hi", "tool_calls": None},
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{"}},
        {"role": "tool", "tool_call_id": "nowhere", "content": "late"}, {"role": "developer", "content": "Rules."},
    ],
    ids=["empty list", "empty text", "surrogate", "image", "null", "null calls", "legacy call", "orphan", "developer"],
)  # fmt: skip
def test_odd_messages_of_real_clients_are_taken(odd: Message) -> None:
    messages = [
        *conversation("openai-chat")[:4],
        odd,
        user("Go on."),
        {"role": "assistant", "content": "Yes."},
        user("And now?"),
    ]
    result = firsthand.compact(messages, window=32_000)
    assert result.report.outcome == "applied"
    assert validate("openai-chat", result.messages) == []
    json.dumps(result.messages, ensure_ascii=False).encode()


@pytest.mark.parametrize(
    ("messages", "wanted"),
    [
        ("hello", "messages must be a list of messages, not a str"),
        (user("x"), "messages must be a list of messages, not a dict"),
        (None, "messages must be a list of messages, not a NoneType"),
        ([user("x"), "y"], "message 1 is a str, and a message must be a JSON object"),
        ([None], "message 0 is a NoneType, and a message must be a JSON object"),
        ([{}], "message 0 has the role None"),
        ([{"role": "wizard", "content": "x"}], "message 0 has the role 'wizard'"),
        ([user(5)], "message 0: the content must be a string or a list"),
        ([user("a"), {"role": "assistant", "tool_calls": [5]}], "message 1: tool_calls must be a list of objects"),
    ],
)
def test_what_is_no_message_is_named(messages: Any, wanted: str) -> None:
    with pytest.raises(FormatError) as refused:
        firsthand.compact(messages, window=32_000)
    assert str(refused.value).startswith(wanted)


@pytest.mark.parametrize(
    ("settings_", "kind"),
    [
        ({"window": 0}, ConfigError), ({"window": "8000"}, ConfigError), ({"window": 8_000.5}, ConfigError), ({"window": 8_000, "target": 0}, ConfigError),
        ({"window": 8_000, "output_ceiling": 8_000}, OutputCeilingError), ({"window": 8_000, "strategy": "best"}, UnknownNameError),
        ({"window": 8_000, "wire": "soap"}, UnknownNameError), ({"window": 8_000, "strategy": "pi"}, ConfigError),
    ],
)  # fmt: skip
def test_settings_that_cannot_work_are_refused(settings_: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        firsthand.compact([message for _ in range(9) for message in conversation("openai-chat")], **settings_)


def test_nothing_is_nothing() -> None:
    nothing: list[Message] = []
    assert firsthand.compact(nothing, window=8_000).messages is nothing


def test_other_sequences_are_taken() -> None:
    assert firsthand.compact(tuple(conversation("openai-chat", "short")), window=200_000).messages == conversation(
        "openai-chat", "short"
    )


@pytest.mark.parametrize("wire", WIRES)
def test_any_conversation_gives_a_valid_bounded_projection_or_a_refusal(wire: str) -> None:
    outcomes = Counter[str]()

    @settings(max_examples=60, deadline=None)
    @given(st.lists(paired_paths(), min_size=1, max_size=3), st.sampled_from((60, 600, 2_000, 20_000)), st.booleans())
    def check(paths: list[tuple[Entry, ...]], window: int, force: bool) -> None:
        written = wire_by_name(wire).write(repair([entry for path in paths for entry in path]).entries)
        counter = counter_by_name("estimate")
        try:
            result = firsthand.compact(
                written.messages, window=window, system=written.system, wire=wire, counter=counter, force=force
            )
        except CompactionRefusedError as refused:
            outcomes["refused"] += bool(refused.sizes)
            return
        outcomes[result.report.outcome] += 1
        assert result.report.tokens_after <= result.report.input_limit
        if result.report.outcome == "unchanged":
            assert result.messages is written.messages
            return
        before = total_cost(wire_by_name(wire).read(written.messages), counter)
        after = total_cost(wire_by_name(wire).read(result.messages), counter)
        assert after < before
        assert [
            found for found in validate(wire, result.messages, result.system) if "novelty" not in found.explanation
        ] == []

    check()
    # Otherwise the test would have looked at nothing.
    assert min(outcomes[name] for name in ("applied", "unchanged", "refused")) > 0, outcomes


def test_importing_the_package_brings_nothing_with_it() -> None:
    code = "import sys, firsthand; print([n for n in sys.modules if n.startswith(('firsthand.', 'msgspec', 'sqlalchemy', 'typer'))])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
