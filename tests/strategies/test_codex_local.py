from __future__ import annotations

from typing import Any

import pytest

from firsthand.budget import Budget, Occupancy
from firsthand.errors import ConfigError
from firsthand.projection.render import project
from firsthand.strategies import strategy_by_name
from firsthand.strategies.codex_counting import text_tokens
from firsthand.strategies.codex_local import CodexLocal
from firsthand.strategies.codex_texts import COMPACTION_PROMPT, SUMMARY_PREFIX
from firsthand.strategies.contract import (
    CompactionRequest,
    Decision,
    DueState,
    Kept,
    NeedsSummary,
    Phase,
    Plan,
    Refused,
    Strategy,
    Summary,
    SummaryRequest,
    Synthetic,
    Trigger,
    Unchanged,
)
from firsthand.testing.builders import (
    call,
    developer,
    filler,
    image,
    injected,
    result,
    said,
    summary,
    system,
    thought,
    used,
    user,
    view,
)
from firsthand.tokens import EstimateCounter, total_cost
from firsthand.transcript import Entry, Text, View

estimate = EstimateCounter()
SUMMARY = f"{SUMMARY_PREFIX}\ndone: a; next: b"


def budget(window: int = 272_000, output: int = 8_000, **more: Any) -> Budget:
    return Budget.of(window, output, counter=estimate, **more)


def asked(phase: Phase = "mid_turn", trigger: Trigger = "manual", **more: Any) -> CompactionRequest:
    return CompactionRequest(trigger=trigger, phase=phase, **more)


def decide(
    history: View,
    request: CompactionRequest | None = None,
    *,
    strategy: Strategy | None = None,
    limits: Budget | None = None,
    previous: Plan | None = None,
    answer: Summary | None = None,
    occupancy: Occupancy | None = None,
) -> Decision:
    """What the strategy decides, the summary already answered."""
    chosen = strategy or CodexLocal()
    given = {"handoff": answer or Summary("done: a; next: b")}
    return chosen.plan(history, limits or budget(), request or asked(), previous, given, occupancy)


def planned(history: View, request: CompactionRequest | None = None, **more: Any) -> Plan:
    decision = decide(history, request, **more)
    assert isinstance(decision, Plan), decision
    return decision


def request_of(history: View, request: CompactionRequest | None = None, **more: Any) -> SummaryRequest:
    strategy = more.pop("strategy", None) or CodexLocal()
    decision = strategy.plan(history, more.pop("limits", None) or budget(), request or asked(), **more)
    assert isinstance(decision, NeedsSummary), decision
    return decision.requests[0]


def texts(entries: tuple[Entry, ...]) -> list[str]:
    return ["".join(block.text for block in entry.blocks if isinstance(block, Text)) for entry in entries]


def shown(history: View, plan: Plan) -> list[str]:
    return texts(project(history, plan))


TURNS = (user("one"), said("answer one"), user("two"), said("look"), call("read", path="a"), result("c1", "text"))


# --- selection --------------------------------------------------------------------------------------------------------------------------------


def test_only_user_messages_and_the_summary_are_left() -> None:
    history = view(*TURNS, said(thought("hm"), "done"))
    plan = planned(history)
    assert shown(history, plan) == ["one", "two", SUMMARY]
    assert [entry.role for entry in project(history, plan)] == ["user"] * 3
    assert plan.rest == "summarised"
    assert plan.summary == "done: a; next: b"


def test_of_two_messages_of_15000_tokens_the_older_is_cut_to_5000() -> None:
    older, newer = "o" * 60_000, "n" * 60_000
    history = view(user(older), said("a"), user(newer), said("b"))
    plan = planned(history)
    cut = "o" * 10_000 + "…10000 tokens truncated…" + "o" * 10_000
    assert plan.items[:2] == (Kept("e1", None, {0: cut}), Kept("e3"))
    assert plan.notes == {"user message cut": "e1"}


def test_one_message_of_30000_tokens_keeps_10000_at_each_end() -> None:
    text = "h" * 40_000 + "m" * 40_000 + "t" * 40_000
    history = view(user("older"), said("a"), user(text), said("b"))
    assert shown(history, planned(history)) == ["h" * 40_000 + "…10000 tokens truncated…" + "t" * 40_000, SUMMARY]


def test_messages_older_than_the_room_are_left_out() -> None:
    history = view(user("oldest"), said("a"), user("x" * 80_000), said("b"))
    plan = planned(history)
    assert plan.items[0] == Kept("e3"), "80,000 bytes fill the room exactly"
    assert plan.notes == {"user messages left out": "1"}


def test_the_room_is_an_option_and_what_at_size_turns() -> None:
    history = view(user("oldest"), said("a"), user("x" * 80), said("b"))
    assert shown(history, planned(history, strategy=CodexLocal(user_message_tokens=20))) == ["x" * 80, SUMMARY]
    assert shown(history, planned(history, strategy=CodexLocal(user_message_tokens=0))) == [SUMMARY]
    assert (
        CodexLocal(follows="0.171").at_size(12_000).options()
        == CodexLocal(follows="0.171", user_message_tokens=10_000).options()
    )


def test_parts_of_a_message_are_one_text_and_pictures_are_dropped() -> None:
    message = user("ab", image(), "cd")
    plan = planned(view(message, said("a")))
    assert plan.items[0] == Kept("e1", (0, 2))
    cut = planned(view(message, said("a")), strategy=CodexLocal(user_message_tokens=0))
    assert cut.items[:-1] == ()
    half = planned(view(user("abcd", "efgh"), said("a")), strategy=CodexLocal(user_message_tokens=1))
    assert half.items[0] == Kept("e1", (0,), {0: "ab…1 tokens truncated…gh"})


def test_the_frame_of_a_picture_is_no_text_of_the_message() -> None:
    framed = user('<image name="a">', image(), "</image>", "look")
    assert planned(view(framed, said("a"))).items[0] == Kept("e1", (3,))


def test_a_message_of_a_picture_alone_leaves_nothing() -> None:
    history = view(user(image()), said("a"), *TURNS)
    assert shown(history, planned(history)) == ["one", "two", SUMMARY]
    assert planned(view(user(image()), said("a"))).items == (Synthetic("summary", SUMMARY, origin="summary"),)


def test_injected_messages_and_summaries_are_no_user_messages() -> None:
    history = view(user("one"), said("a"), injected("<turn_aborted>\nx\n</turn_aborted>"), summary("old"), said("b"))
    assert shown(history, planned(history)) == ["one", SUMMARY]


def test_a_reminder_beside_what_was_typed_goes_and_the_typed_text_stays() -> None:
    reminded = user(Text("<system-reminder>r</system-reminder>", "injected"), "typed")
    history = view(user("one"), said("a"), reminded, said("b"))
    assert planned(history).items[1] == Kept("e3", (1,))
    strict = planned(history, strategy=CodexLocal(strict_user_messages=True))
    assert shown(history, strict) == ["one", SUMMARY]


def test_what_the_desktop_client_wrote_into_a_prompt_stays_in_it() -> None:
    wrapped = user(Text("# Files mentioned\n", "injected"), "request", wire="openai-responses")
    history = view(user("one"), said("a"), wrapped, said("b"))
    assert planned(history).items[1] == Kept("e3")


def test_text_beside_a_tool_result_is_kept_and_the_result_is_not() -> None:
    history = view(
        user("one"), call("read", path="a"), Entry(id="", role="user", blocks=(*result("c1", "x").blocks, Text("more")))
    )
    assert planned(history).items[1] == Kept("e3", (1,))


def test_no_user_message_leaves_just_the_summary() -> None:
    history = view(said("a"), call("read", path="a"), result("c1", "x"))
    assert shown(history, planned(history)) == [SUMMARY]


# --- order ------------------------------------------------------------------------------------------------------------------------------------

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


# --- chains of compactions --------------------------------------------------------------------------------------------------------------------


def test_the_second_summary_replaces_the_first() -> None:
    first = view(*TURNS)
    plan = planned(first)
    second = view(*TURNS, said("more"), user("three"), said("b"))
    again = planned(second, previous=plan, answer=Summary("all done"))
    assert shown(second, again) == ["one", "two", "three", f"{SUMMARY_PREFIX}\nall done"]
    assert [plan.state["window_number"], again.state["window_number"]] == [1, 2]
    assert request_of(second, previous=plan).items == (*plan.items, Kept("e7"), Kept("e8"), Kept("e9"))


def test_a_cut_message_is_cut_again_from_what_is_shown() -> None:
    strategy = CodexLocal(user_message_tokens=4)
    first = planned(view(user("abcdefghijklmnopqrstuvwxyz"), said("a")), strategy=strategy)
    cut = "abcdefgh…3 tokens truncated…stuvwxyz"
    assert first.items[0] == Kept("e1", None, {0: cut})
    history = view(user("abcdefghijklmnopqrstuvwxyz"), said("a"), user("1234567"), said("b"))
    second = planned(history, strategy=strategy, previous=first)
    assert second.items[:2] == (Kept("e1", None, {0: "abcd…8 tokens truncated…wxyz"}), Kept("e3"))


def test_a_cut_message_that_fits_stays_as_it_was_cut() -> None:
    history = view(user("x" * 4_000), said("a"))
    first = planned(history, strategy=CodexLocal(user_message_tokens=100))
    longer = view(user("x" * 4_000), said("a"), said("b"))
    assert planned(longer, previous=first).items[0] == first.items[0]


def test_nothing_new_is_unchanged() -> None:
    plan = planned(view(*TURNS))
    for phase in ("mid_turn", "pre_turn", "standalone"):
        assert isinstance(decide(view(*TURNS), asked(phase), previous=plan), Unchanged)
    incoming = view(*TURNS, user("new"))
    assert isinstance(decide(incoming, asked("pre_turn"), previous=plan), Unchanged)


def test_a_plan_that_does_not_fit_the_view_is_ignored() -> None:
    foreign = planned(view(user("other", id="x1"), said("a", id="x2")))
    assert shown(view(*TURNS), planned(view(*TURNS), previous=foreign)) == ["one", "two", SUMMARY]


# --- the request ------------------------------------------------------------------------------------------------------------------------------


def test_the_request_is_the_history_without_tools_and_one_instruction() -> None:
    request = request_of(view(system("base"), *TURNS), limits=budget(output=1_000))
    assert request.items == tuple(Kept(f"e{n}") for n in range(1, 8))
    assert (request.system, request.tools, request.max_output) == (None, "none", 1_000)
    assert request.instruction == COMPACTION_PROMPT


def test_an_incoming_prompt_is_not_in_the_request() -> None:
    assert request_of(view(*TURNS, said("b"), user("new")), asked("pre_turn")).items[-1] == Kept("e7")


@pytest.mark.parametrize(
    ("prompt", "note", "instruction"),
    [
        (None, None, COMPACTION_PROMPT),
        ("  \n", None, COMPACTION_PROMPT),
        ("  Mine. ", None, "Mine."),
        ("Mine.", "keep ids\n", "Mine.\n\nThe user's note for this handoff:\nkeep ids\n"),
    ],
)
def test_the_user_s_prompt_and_note(prompt: str | None, note: str | None, instruction: str) -> None:
    request = request_of(view(*TURNS), asked(instructions=note), strategy=CodexLocal(prompt=prompt))
    assert request.instruction == instruction


def test_long_outputs_are_cut_in_the_request_as_codex_records_them() -> None:
    long = "x" * 48_004
    history = view(user("one"), call("read", path="a"), result("c1", long), said("b"))
    assert request_of(history).items[2] == Kept("e3", None, {0: "x" * 24_000 + "…1 tokens truncated…" + "x" * 24_000})
    fits = view(user("one"), call("read", path="a"), result("c1", long[4:]), said("b"))
    assert request_of(fits).items[2] == Kept("e3")
    assert request_of(history, strategy=CodexLocal(tool_output_token_limit=None)).items[2] == Kept("e3")
    # A picture has no place in a replaced output, so such an output stays whole.
    pictured = view(user("one"), call("read", path="a"), result("c1", long, image()), said("b"))
    assert request_of(pictured).items[2] == Kept("e3")


def test_parts_of_an_output_share_the_limit() -> None:
    history = view(
        user("one"), call("read", path="a"), result("c1", "abcd" * 5, "efgh" * 4, "ijkl", "", "mnop"), said("b")
    )
    items = request_of(history, strategy=CodexLocal(tool_output_token_limit=5)).items
    assert items[2] == Kept(
        "e3", None, {0: "abcd" * 5 + "\nef…3 tokens truncated…gh\n[2 more parts of this output were left out]"}
    )


def test_a_refused_request_loses_its_oldest_item_and_the_pair() -> None:
    strategy = CodexLocal()
    history = view(system("base"), user("one"), call("read", path="a"), said("b"), result("c1", "x"), said("c"))
    request: SummaryRequest | None = request_of(history)
    tries = []
    while request is not None:
        tries.append([item.entry for item in request.items if isinstance(item, Kept)])
        request = strategy.shrink(request)
    assert tries == [
        ["e1", "e2", "e3", "e4", "e5", "e6"],
        ["e1", "e3", "e4", "e5", "e6"],
        ["e1", "e4", "e6"],
        ["e1", "e6"],
        ["e1"],
    ]


def test_of_an_entry_with_several_blocks_only_the_pair_goes() -> None:
    strategy = CodexLocal()
    both = Entry(id="", role="user", blocks=(*result("c1", "x").blocks, *result("c2", "y").blocks, Text("typed")))
    history = view(said(call("read", path="a"), id="e1"), said(call("read", path="b"), id="e2"), both, said("c"))
    request = strategy.shrink(request_of(history))
    assert request is not None
    assert request.items == (Kept("e2"), Kept("e3", (1, 2)), Kept("e4"))
    request = strategy.shrink(request)
    assert request is not None
    assert request.items == (Kept("e3", (2,)), Kept("e4"))


def test_the_retained_messages_come_from_the_whole_history_after_a_shrink() -> None:
    history = view(*TURNS)
    smaller = CodexLocal().shrink(request_of(history))
    assert smaller is not None
    assert shown(history, planned(history)) == ["one", "two", SUMMARY]


# --- failures ---------------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("answer", [Summary(failure="timed out"), Summary(" \n"), Summary()])
def test_without_a_summary_nothing_is_compacted(answer: Summary) -> None:
    decision = decide(view(*TURNS), answer=answer)
    assert isinstance(decision, Refused)
    assert decision.reason == "invalid-summary"
    assert (answer.failure or "no text") in decision.message


def test_a_missing_answer_is_refused_and_not_asked_again() -> None:
    decision = CodexLocal().plan(view(*TURNS), budget(), asked(), None, {})
    assert isinstance(decision, Refused)


def test_the_stale_summary_of_the_original_is_an_option() -> None:
    strategy = CodexLocal(stale_summary=True)
    plan = planned(view(*TURNS), strategy=strategy, answer=Summary(""))
    assert plan.summary == "look"
    assert isinstance(
        decide(view(user("a"), user("b")), asked("standalone"), strategy=strategy, answer=Summary("")), Refused
    )
    failed = decide(view(*TURNS), strategy=strategy, answer=Summary(failure="cut off"))
    assert isinstance(failed, Refused), "a failed call is no empty answer"


def test_a_projection_above_the_input_limit_is_refused_before_a_model_is_asked() -> None:
    history = view(user(filler(6_000)), said("a"), user(filler(6_000)), said(filler(4_000)))
    decision = CodexLocal().plan(history, budget(14_000, 2_000), asked("standalone"))
    assert isinstance(decision, Refused)
    assert decision.reason == "budget-exceeded"
    assert decision.sizes == {"after": 12_012, "limit": 11_125}


def test_a_summary_that_makes_it_too_big_is_refused_too() -> None:
    history = view(user("one"), said(filler(9_000)))
    decision = decide(history, limits=budget(14_000, 2_000), answer=Summary(filler(12_000)))
    assert isinstance(decision, Refused)
    assert decision.reason == "budget-exceeded"


def test_a_target_is_held() -> None:
    history = view(user(filler(3_000)), said(filler(9_000)))
    assert isinstance(decide(history, limits=budget(target=4_000)), Plan)
    assert isinstance(decide(history, limits=budget(target=3_000)), Refused)


def test_no_progress_is_refused_unless_it_was_asked_for() -> None:
    history = view(user("one"), said("a"))
    long = Summary(filler(500))
    decision = decide(history, asked(trigger="provider_context_limit"), answer=long)
    assert isinstance(decision, Refused)
    assert decision.reason == "no-progress"
    assert isinstance(decide(history, asked(trigger="manual"), answer=long), Plan)


def test_a_prompt_that_alone_is_too_big_is_named() -> None:
    history = view(user(filler(20_000)))
    decision = decide(history, asked("pre_turn", "provider_context_limit"), limits=budget(16_000, 2_000))
    assert isinstance(decision, Refused)
    assert decision.reason == "no-valid-boundary"
    assert decision.sizes == {"size": 20_006, "input_limit": 13_000}


def test_an_empty_session_is_unchanged() -> None:
    for phase in ("mid_turn", "pre_turn", "standalone"):
        assert isinstance(decide(View(()), asked(phase)), Unchanged)


# --- triggers ---------------------------------------------------------------------------------------------------------------------------------


def due(
    tokens: int, strategy: Strategy | None = None, limits: Budget | None = None, prefix: int = 0, **state: Any
) -> str | None:
    return (strategy or CodexLocal()).due(Occupancy(tokens, prefix=prefix), limits or budget(), DueState(**state))


def test_it_fires_at_nine_tenths_of_the_window() -> None:
    assert [due(tokens) for tokens in (244_799, 244_800)] == [None, "automatic"]
    assert [due(tokens, phase="mid_turn") for tokens in (244_799, 244_800)] == [None, "automatic"]
    assert due(300_000, auto=False) is None


def test_it_fires_above_the_input_limit_since_nothing_above_it_may_be_sent() -> None:
    asks_much = budget(output=32_000)
    assert asks_much.input_limit == 237_952
    assert [due(tokens, limits=asks_much) for tokens in (237_952, 237_953)] == [None, "automatic"]


def test_the_user_s_limit_lowers_the_threshold() -> None:
    assert [due(tokens, CodexLocal(model_auto_compact_token_limit=20_000)) for tokens in (19_999, 20_000)] == [
        None,
        "automatic",
    ]
    assert due(244_800, CodexLocal(model_auto_compact_token_limit=250_000)) == "automatic"
    assert [due(tokens, limits=budget(threshold=20_000)) for tokens in (19_999, 20_000)] == [None, "automatic"]


def test_body_scope_does_not_count_the_prefix() -> None:
    body = CodexLocal(model_auto_compact_token_limit_scope="body_after_prefix", model_auto_compact_token_limit=10_000)
    assert [due(tokens, body, prefix=50_000) for tokens in (59_999, 60_000)] == [None, "automatic"]
    # Before the first compaction what is sent beside the messages is all that is known of the prefix.
    assert [due(tokens, body, budget(fixed=3_000)) for tokens in (12_999, 13_000)] == [None, "automatic"]


def test_a_smaller_model_is_switched_to_by_its_own_limits_strictly() -> None:
    small = budget(100_000, 1_000)
    assert [due(tokens, limits=small, previous_window=272_000) for tokens in (90_000, 90_001)] == [
        "automatic",
        "model_context_downshift",
    ]
    assert due(90_001, limits=small, previous_window=272_000, phase="mid_turn") == "automatic"
    assert due(90_001, limits=small, previous_window=100_000) == "automatic"
    assert due(80_000, limits=small, previous_window=272_000) is None
    body = CodexLocal(model_auto_compact_token_limit_scope="body_after_prefix")
    assert [due(tokens, body, small, 50_000, previous_window=272_000) for tokens in (94_999, 95_000)] == [
        None,
        "model_context_downshift",
    ]


def test_histories_that_another_model_cannot_read_are_compacted_at_any_size() -> None:
    assert due(10, previous_compatibility="a", compatibility="b") == "model_context_downshift"
    assert due(10, previous_compatibility="a", compatibility="a") is None
    assert due(10, previous_compatibility=None, compatibility="b") is None
    assert due(10, previous_compatibility="a", compatibility=None) is None
    assert due(10, previous_compatibility="a", compatibility="b", phase="mid_turn") is None
    plan = planned(view(*TURNS, said(filler(400))), asked("pre_turn", "model_context_downshift"))
    assert plan.trigger == "model_context_downshift", "the plan does not gate what `due` decided"


def test_without_automatic_compaction_only_what_cannot_be_sent_is_switched() -> None:
    small = budget(100_000, 20_000)
    assert due(small.input_limit, limits=small, previous_window=272_000, auto=False) is None
    assert due(small.input_limit + 1, limits=small, previous_window=272_000, auto=False) == "model_context_downshift"


def test_after_a_turn_only_with_a_threshold() -> None:
    assert due(270_000, phase="standalone") is None
    half = CodexLocal(model_post_turn_compact_threshold_percent=50)
    assert [due(tokens, half, phase="standalone") for tokens in (129_199, 129_200)] == [None, "automatic"]


def test_an_automatic_plan_is_gated_like_the_trigger() -> None:
    automatic = asked(trigger="automatic")

    def history(reported: int) -> View:
        # The result, with the id of its call, is three bytes and so one token after the newest response.
        return view(user("one"), said("a" * 400, usage=used(reported, 10)), call("read", path="a"), result("c1", "x"))

    below, reached = history(244_788), history(244_789)
    assert decide(below, automatic) == Unchanged("244,799 tokens are under the limit of 244,800")
    assert isinstance(decide(reached, automatic), Plan)
    assert decide(reached, asked(trigger="automatic", auto=False)) == Unchanged("automatic compaction is off")
    assert isinstance(decide(reached, automatic, occupancy=Occupancy(244_799)), Unchanged), (
        "who knows better is believed"
    )
    assert isinstance(decide(below, automatic, occupancy=Occupancy(244_800)), Plan)


def test_after_a_compaction_the_estimate_stands_for_the_usage() -> None:
    limits = budget(output=1_000)
    first = planned(view(*TURNS), limits=limits)
    assert first.state == {"window_number": 1, "last_usage_total": 1 + 1 + text_tokens(SUMMARY)}
    automatic = asked("pre_turn", "automatic")
    grown = view(*TURNS, said("b"), user("new"))
    assert decide(grown, automatic, previous=first, limits=limits) == Unchanged(
        "122 tokens are under the limit of 244,800"
    )


def test_the_prefix_of_body_scope_is_the_input_of_the_window_s_first_response() -> None:
    body = CodexLocal(model_auto_compact_token_limit_scope="body_after_prefix", model_auto_compact_token_limit=100)
    automatic = asked(trigger="automatic")
    history = view(user("x" * 400), said("a", usage=used(60, 10)), user("b"), said("c" * 40, usage=used(140, 19)))
    assert decide(history, automatic, strategy=body) == Unchanged("159 tokens are under the limit of 100")
    more = view(user("x" * 400), said("a", usage=used(60, 10)), user("b"), said("c" * 400, usage=used(140, 20)))
    assert isinstance(decide(more, automatic, strategy=body), Plan)


def test_sizes_are_counted_by_the_budget_s_counter() -> None:
    history = view(*TURNS, said(filler(1_000)))
    plan = planned(history, limits=budget(fixed=500))
    assert plan.tokens_before == total_cost(history.entries, estimate) + 500
    assert plan.tokens_after == total_cost(project(history, plan), estimate) + 500


def test_options() -> None:
    with pytest.raises(ConfigError, match="follows"):
        CodexLocal(follows="0.1")  # type: ignore[arg-type]
    assert CodexLocal(follows=0.171).follows == "0.171"  # type: ignore[arg-type]
    for wrong in (
        {"user_message_tokens": -1},
        {"tool_output_token_limit": 0},
        {"model_post_turn_compact_threshold_percent": 101},
        {"effective_context_window_percent": 0},
        {"unknown": 1},
    ):
        with pytest.raises(ConfigError):
            strategy_by_name("codex-local", **wrong)
    assert strategy_by_name("codex-local").options() == {
        "model_auto_compact_token_limit": None,
        "model_auto_compact_token_limit_scope": "total",
        "effective_context_window_percent": 95,
        "model_post_turn_compact_threshold_percent": 0,
        "strict_user_messages": False,
        "follows": "2026-09",
        "prompt": None,
        "tool_output_token_limit": 10_000,
        "user_message_tokens": 20_000,
        "stale_summary": False,
    }
    assert CodexLocal.recomputed is False
