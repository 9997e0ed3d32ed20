from __future__ import annotations

from typing import Any

import pytest
from codex_cases import SUMMARY, TURNS, asked, planned, shown

from firsthand.strategies.codex.local import CodexLocal
from firsthand.strategies.contract import Kept, Phase
from firsthand.testing.builders import call, developer, filler, injected, result, said, system, user, view
from firsthand.transcript import Entry, Text

CONTEXT = (
    developer(Text("<permissions instructions>p</permissions instructions>", "injected")),
    injected("# AGENTS.md instructions for /w\nrules", "<environment_context>e</environment_context>"),
)
RULES = "# AGENTS.md instructions for /w\nrules<environment_context>e</environment_context>"
ALLOWED = "<permissions instructions>p</permissions instructions>"


@pytest.mark.parametrize(
    ("phase", "follows", "order"),
    [
        ("mid_turn", "2026-09", ["base", "one", ALLOWED, RULES, "two", SUMMARY]),
        ("pre_turn", "2026-09", ["base", "one", "two", SUMMARY, ALLOWED, RULES]),
        ("standalone", "2026-09", ["base", "one", "two", SUMMARY, ALLOWED, RULES]),
        ("mid_turn", "0.171", ["base", "one", ALLOWED, RULES, "two", SUMMARY]),
        ("pre_turn", "0.171", ["base", "one", ALLOWED, RULES, "two", SUMMARY]),
        ("standalone", "0.171", ["base", "one", ALLOWED, RULES, "two", SUMMARY]),
    ],
)
def test_where_the_client_s_context_stands(phase: Phase, follows: Any, order: list[str]) -> None:
    history = view(system("base"), *CONTEXT, *TURNS)
    assert shown(history, planned(history, asked(phase), strategy=CodexLocal(follows=follows))) == order


def test_a_switch_of_the_model_has_the_order_of_a_turn_s_start() -> None:
    history = view(*CONTEXT, *TURNS, said(filler(200)))
    plan = planned(history, asked("pre_turn", "model_context_downshift"))
    assert shown(history, plan) == ["one", "two", SUMMARY, ALLOWED, RULES]


def test_the_context_stands_before_the_summary_where_no_user_message_is() -> None:
    history = view(*CONTEXT, said("a"), call("read", path="a"), result("c1", "x" * 4_000))
    assert shown(history, planned(history)) == [ALLOWED, RULES, SUMMARY]


def test_an_incoming_prompt_is_not_covered_and_comes_last() -> None:
    history = view(*CONTEXT, *TURNS, said("done"), user("new"))
    plan = planned(history, asked("pre_turn"))
    assert plan.cutoff == "e9"
    assert shown(history, plan) == ["one", "two", SUMMARY, ALLOWED, RULES, "new"]


def test_of_several_waiting_prompts_only_the_newest_is_coming_in() -> None:
    history = view(*TURNS, user("unanswered"), injected("<turn_aborted>\nx\n</turn_aborted>"), user("new"))
    plan = planned(history, asked("pre_turn"))
    assert shown(history, plan) == ["one", "two", "unanswered", SUMMARY, "<turn_aborted>\nx\n</turn_aborted>", "new"]


def test_what_was_typed_while_tools_ran_is_taken_after_the_compaction() -> None:
    history = view(*TURNS, user("steer"), user("more"))
    plan = planned(history, asked("mid_turn"))
    assert shown(history, plan) == ["one", "two", SUMMARY, "steer", "more"]


def test_context_that_comes_in_with_the_prompt_is_not_shown_twice() -> None:
    history = view(*CONTEXT, *TURNS, said("done"), *CONTEXT, user("new"))
    assert shown(history, planned(history, asked("pre_turn"))) == ["one", "two", SUMMARY, ALLOWED, RULES, "new"]


def test_repeated_instructions_are_shown_once() -> None:
    history = view(
        system("base"), system("base"), developer("rule"), *TURNS, developer("rule"), system("late"), said("b")
    )
    assert shown(history, planned(history)) == ["base", "one", "rule", "late", "two", SUMMARY]


def test_what_the_client_tells_the_model_in_passing_is_not_sent_again() -> None:
    reminder = injected("6144 tokens left", role="developer")
    history = view(
        injected("You are /root.", role="developer"), *TURNS, reminder, developer("by the caller"), said("b")
    )
    assert shown(history, planned(history)) == ["one", "You are /root.", "by the caller", "two", SUMMARY]


def test_newer_settings_take_the_place_of_what_they_change() -> None:
    def settings(**parts: str) -> Entry:
        return injected(*(f"<{name}>{text}</{name}>" for name, text in parts.items()), role="developer")

    history = view(
        settings(mode="plan", skills="s"), *TURNS, settings(mode="default"), said("b"), settings(other="o"), said("c")
    )
    assert shown(history, planned(history)) == [
        "one",
        "<mode>default</mode><skills>s</skills>",
        "<other>o</other>",
        "two",
        SUMMARY,
    ]
    assert planned(history).items[1] == Kept("e1", None, {0: "<mode>default</mode>"})
    again = view(settings(mode="plan"), *TURNS, settings(mode="default"), said("b"))
    assert planned(again).items[1] == Kept("e8")


def test_reminders_of_one_name_are_not_taken_for_settings() -> None:
    history = view(
        injected("<note>1</note>"),
        injected("<note>2</note>"),
        user("one"),
        said("a"),
        injected("<note>3</note>"),
        said("b"),
    )
    assert shown(history, planned(history)) == ["<note>1</note>", "<note>2</note>", "one", SUMMARY]


def test_an_environment_sent_again_is_kept_where_it_first_stood() -> None:
    def environment(cwd: str) -> Entry:
        return injected(f"<environment_context>{cwd}</environment_context>")

    history = view(environment("/a"), *TURNS, environment("/b"), user("three"), said("b"))
    assert shown(history, planned(history)) == [
        "one",
        "two",
        "<environment_context>/b</environment_context>",
        "three",
        SUMMARY,
    ]


def test_what_a_client_put_beside_the_first_prompt_stays_even_without_the_prompt() -> None:
    first = user(Text("<system-reminder>r</system-reminder>", "injected"), "one")
    history = view(first, said("a"), user("two"), said("b"))
    assert planned(history).items[0] == Kept("e1")
    small = planned(history, strategy=CodexLocal(user_message_tokens=1))
    assert small.items[:2] == (Kept("e1", (0,)), Kept("e3"))


def test_a_plain_first_developer_message_is_the_base_instructions_of_0_171() -> None:
    history = view(developer(Text("You are helpful.", "injected")), *CONTEXT, *TURNS)
    order = ["You are helpful.", "one", ALLOWED, RULES, "two", SUMMARY]
    assert shown(history, planned(history, strategy=CodexLocal(follows="0.171"))) == order
    assert shown(history, planned(history))[0] == "one"


def test_a_step_that_waits_for_results_stays_whole() -> None:
    history = view(*TURNS, said("next", call("read", path="b")))
    plan = planned(history, asked("standalone"))
    assert plan.cutoff == "e6"
    assert shown(history, plan) == ["one", "two", SUMMARY, "next"]
