from __future__ import annotations

import pytest
from codex_cases import SUMMARY, TURNS, asked, budget, decide, planned, request_of, shown

from firsthand.errors import ConfigError
from firsthand.projection.render import project
from firsthand.strategies import strategy_by_name
from firsthand.strategies.codex.local import CodexLocal
from firsthand.strategies.codex.texts import COMPACTION_PROMPT, SUMMARY_PREFIX
from firsthand.strategies.contract import Kept, Plan, Refused, Summary, SummaryRequest, Synthetic, Unchanged
from firsthand.testing.builders import (
    call,
    filler,
    image,
    injected,
    result,
    said,
    summary,
    system,
    thought,
    user,
    view,
)
from firsthand.transcript import Entry, Text, View

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
