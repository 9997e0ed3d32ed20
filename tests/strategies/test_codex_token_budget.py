from __future__ import annotations

from typing import Any

import pytest
from codex_cases import TURNS, asked, budget, shown

from firsthand.budget import Budget, Occupancy
from firsthand.errors import ConfigError
from firsthand.projection.render import project
from firsthand.strategies import strategy_by_name
from firsthand.strategies.codex.local import CodexLocal
from firsthand.strategies.codex.texts import REMINDER
from firsthand.strategies.codex.token_budget import CodexTokenBudget
from firsthand.strategies.contract import CompactionRequest, DueState, Kept, Plan, Unchanged
from firsthand.testing.builders import call, developer, injected, said, system, user, view
from firsthand.transcript import Text, View


def switched(
    history: View,
    request: CompactionRequest | None = None,
    *,
    previous: Plan | None = None,
    limits: Budget | None = None,
    **options: Any,
) -> Plan:
    decision = CodexTokenBudget(**options).plan(
        history, limits or budget(), request or asked(trigger="new_context"), previous
    )
    assert isinstance(decision, Plan), decision
    return decision


def notices(tokens: int, strategy: CodexTokenBudget, prefix: int = 0, **state: Any) -> list[tuple[str, str]]:
    found = strategy.notices(Occupancy(tokens, prefix=prefix), budget(), DueState(phase="mid_turn", **state))
    assert all(notice.item.role == "developer" for notice in found)
    return [(notice.id, notice.item.text) for notice in found]


RULE = developer(Text("<permissions instructions>p</permissions instructions>", "injected"))
ENVIRONMENT = injected("<environment_context>e</environment_context>")


def test_the_new_window_holds_neither_the_prompt_nor_the_tool_output() -> None:
    history = view(system("base"), RULE, ENVIRONMENT, *TURNS)
    plan = switched(history)
    assert shown(history, plan) == [
        "base",
        "<permissions instructions>p</permissions instructions>",
        "[Context window of /root: first e1:0, previous e1:0, current e1:1. Earlier windows are not shown and were not summarised.]",
        "<environment_context>e</environment_context>",
    ]
    assert [entry.role for entry in project(history, plan)] == ["system", "developer", "developer", "user"]
    assert (plan.rest, plan.summary, plan.state["window_number"]) == ("omitted", None, 1)


def test_the_second_window_names_the_first_and_nothing_grows() -> None:
    first = switched(view(RULE, ENVIRONMENT, *TURNS))
    history = view(RULE, ENVIRONMENT, *TURNS, said("more"), user("three"), said("b"))
    second = switched(history, previous=first)
    assert shown(history, second)[1].startswith("[Context window of /root: first e1:0, previous e1:1, current e1:2.")
    assert len(second.items) == len(first.items) == 3


def test_an_incoming_prompt_comes_after_the_switch() -> None:
    history = view(ENVIRONMENT, *TURNS, said("done"), user("new"))
    assert shown(history, switched(history, asked("pre_turn")))[-1] == "new"


def test_where_the_client_put_nothing_in_the_block_itself_is_a_user_message() -> None:
    history = view(*TURNS)
    assert [entry.role for entry in project(history, switched(history))] == ["user"]
    with_tail = view(*TURNS, said("done"), user("new"))
    assert [entry.role for entry in project(with_tail, switched(with_tail, asked("pre_turn")))] == ["developer", "user"]


def test_a_step_that_waits_for_results_stays_whole() -> None:
    history = view(ENVIRONMENT, *TURNS, call("read", path="b"))
    assert project(history, switched(history))[-1] == history.entries[-1]


def test_guidance_and_name_stand_in_the_block() -> None:
    history = view(*TURNS)
    text = shown(history, switched(history, guidance_message="Take notes.", agent_name="/root/a"))[-1]
    assert text.startswith("[Context window of /root/a:")
    assert text.endswith("\nTake notes.")


def test_developer_messages_of_the_client_s_caller() -> None:
    history = view(ENVIRONMENT, developer("by the caller"), *TURNS, developer("x" * 300_000), said("b"))
    limits = budget(2_000_000)
    assert [item.entry for item in switched(history, limits=limits).items if isinstance(item, Kept)] == [
        "e1",
        "e2",
        "e9",
    ]
    bounded = switched(history, limits=limits, retain_client_developer_messages=True)
    assert [item.entry for item in bounded.items if isinstance(item, Kept)] == ["e1", "e9"]
    assert "…11000 tokens truncated…" in shown(history, bounded)[2]


def test_no_model_is_asked_and_nothing_new_is_unchanged() -> None:
    history = view(*TURNS)
    decision = CodexTokenBudget().plan(history, budget(), asked(trigger="new_context"), switched(history))
    assert isinstance(decision, Unchanged)


# --- triggers ---------------------------------------------------------------------------------------------------------------------------------


def due(tokens: int, strategy: CodexTokenBudget | None = None, **state: Any) -> str | None:
    return (strategy or CodexTokenBudget()).due(Occupancy(tokens), budget(), DueState(**state))


def test_the_model_s_own_wish_counts_between_two_steps_only() -> None:
    assert due(10, phase="mid_turn", new_context_requested=True) == "new_context"
    assert due(10, phase="mid_turn", new_context_requested=True, auto=False) == "new_context"
    assert due(10, phase="pre_turn", new_context_requested=True) is None
    assert due(10, phase="standalone", new_context_requested=True) is None
    assert CodexLocal().due(Occupancy(10), budget(), DueState(phase="mid_turn", new_context_requested=True)) is None


def test_the_limits_are_those_of_the_family_and_the_buffer_puts_them_off() -> None:
    assert [due(tokens) for tokens in (244_799, 244_800)] == [None, "automatic"]
    noted = CodexTokenBudget(auto_compact_fallback_prompt="last note", auto_compact_fallback_buffer_tokens=10_000)
    assert [due(tokens, noted) for tokens in (254_799, 254_800)] == [None, "automatic"]
    catalogue = CodexTokenBudget(auto_compact_fallback_prompt="last note", auto_compact_fallback_buffer_tokens=16_384)
    assert [due(tokens, catalogue) for tokens in (258_399, 258_400)] == [None, "automatic"], (
        "the hard window comes first"
    )
    unused = CodexTokenBudget(auto_compact_fallback_buffer_tokens=10_000)
    assert due(244_800, unused) == "automatic", "no prompt, no buffer"
    assert due(270_000, phase="standalone") is None
    assert due(100_000, CodexTokenBudget(model_post_turn_compact_threshold_percent=10), phase="standalone") is None


def test_the_reminder_comes_once_per_window_at_its_threshold() -> None:
    assert notices(244_799, CodexTokenBudget()) == [], "no threshold, no reminder"
    reminded = CodexTokenBudget(reminder_threshold_tokens=6_144, reminder_message_template="{n_remaining} left")
    assert notices(244_800 - 6_145, reminded) == []
    assert notices(244_800 - 6_144, reminded) == [("reminder", "6144 left")]
    assert notices(300_000, reminded) == [("reminder", "0 left")]
    assert notices(300_000, reminded, notices=frozenset({"reminder"})) == []
    assert notices(244_000, CodexTokenBudget(reminder_threshold_tokens=6_144)) == [
        ("reminder", REMINDER.replace("{n_remaining}", "800"))
    ]


def test_the_last_message_comes_in_the_buffer_only() -> None:
    strategy = CodexTokenBudget(
        reminder_threshold_tokens=1,
        reminder_message_template="{n_remaining} left",
        auto_compact_fallback_prompt="last note",
        auto_compact_fallback_buffer_tokens=10_000,
    )
    both = [("reminder", "0 left"), ("fallback", "last note")]
    assert notices(244_799, strategy) == [("reminder", "1 left")]
    assert notices(244_800, strategy) == both
    assert notices(254_799, strategy) == both
    assert notices(254_800, strategy) == both[:1], "the switch itself is due"
    assert notices(250_000, strategy, new_context_requested=True) == both[:1], "the window rolls over anyway"
    assert notices(250_000, strategy, notices=frozenset({"reminder", "fallback"})) == []


def test_other_strategies_remind_nobody() -> None:
    assert CodexLocal().notices(Occupancy(300_000), budget(), DueState()) == ()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"reminder_threshold_tokens": 0}, "reminder_threshold_tokens"),
        ({"auto_compact_fallback_buffer_tokens": 0}, "buffer"),
        ({"auto_compact_fallback_prompt": "note"}, "needs auto_compact_fallback_buffer_tokens"),
        ({"reminder_message_template": "nothing"}, "remaining"),
        ({"reminder_message_template": ""}, "remaining"),
        ({"reminder_message_template": "{n_remaining} {n_remaining}"}, "once"),
        ({"reminder_message_template": "{n_remaining}" + "é" * 994}, "2,001 bytes"),
        ({"guidance_message": "x" * 2_001}, "guidance_message takes 2,001 bytes"),
    ],
)
def test_options_out_of_range(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        strategy_by_name("codex-token-budget", **wrong)
