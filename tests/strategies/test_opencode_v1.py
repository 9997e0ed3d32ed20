"""`opencode-v1`: the vectors of opencode.md 8, and its rules one by one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import pytest

from firsthand.budget import Budget, Occupancy
from firsthand.codec import decode_as, encode
from firsthand.errors import ConfigError
from firsthand.projection.fates import fates
from firsthand.projection.render import project
from firsthand.strategies import strategy_by_name
from firsthand.strategies.contract import (
    CompactionRequest,
    Decision,
    DueState,
    Kept,
    NeedsSummary,
    Plan,
    Refused,
    Summary,
    Synthetic,
    Unchanged,
)
from firsthand.strategies.opencode.prompts import CONTINUE, MEDIA_REMOVED, QUESTION
from firsthand.strategies.opencode.size import CLEARED
from firsthand.strategies.opencode.v1 import OpencodeV1
from firsthand.testing.builders import (
    call,
    developer,
    image,
    injected,
    result,
    said,
    session,
    system,
    user,
    view,
)
from firsthand.tokens import EstimateCounter
from firsthand.transcript import Entry, Media, Text, View

BUDGET = Budget.of(40_000, 8_000, counter=EstimateCounter())
AUTOMATIC = CompactionRequest(trigger="automatic", phase="mid_turn")
MANUAL = CompactionRequest(trigger="manual", phase="standalone")
OVERFLOW = CompactionRequest(trigger="provider_context_limit", phase="mid_turn")


def q(mark: str, size: int = 4_003) -> Entry:
    return user((f"Q{mark} " * size)[:size])


def a(mark: str, size: int = 8_003) -> Entry:
    return said((f"A{mark} " * size)[:size])


def turns(*marks: str) -> list[Entry]:
    return [part for mark in marks for part in (q(mark), a(mark))]


def asked(strategy: OpencodeV1, history: View, request: CompactionRequest = MANUAL, **more: Any) -> str:
    """The text of the request for a summary."""
    decision = strategy.plan(history, BUDGET, request, **more)
    assert isinstance(decision, NeedsSummary), decision
    (made,) = decision.requests
    assert made.id == "summary"
    return made.instruction


def decided(
    strategy: OpencodeV1,
    history: View,
    request: CompactionRequest = MANUAL,
    previous: Plan | None = None,
    summary: Summary | str = "SUMMARY",
    count: int = 33_000,
    budget: Budget = BUDGET,
) -> Decision:
    answers = {"summary": Summary(summary) if isinstance(summary, str) else summary}
    return strategy.plan(history, budget, request, previous, answers, Occupancy(count, count))


def planned(*args: Any, **options: Any) -> Plan:
    decision = decided(*args, **options)
    assert isinstance(decision, Plan), decision
    assert decode_as(encode(decision), Plan) == decision
    return decision


def outline(history: View, plan: Plan) -> list[str]:
    """What the projection shows: ids of originals, and the beginnings of our texts."""
    originals = {entry.id for entry in history.entries}
    return [e.id if e.id in originals else e.blocks[0].text[:8] for e in project(history, plan)]  # type: ignore[union-attr]


PAIR = [QUESTION[:8], "SUMMARY"]


# --- Vectors (opencode.md 8) ---------------------------------------------------------------------------------------------------------


def test_vector_1_two_turns_fit_and_the_third_has_no_suffix_that_does() -> None:
    history = view(*turns("1", "2", "3"))
    plan = planned(OpencodeV1(), history, AUTOMATIC, count=32_009)
    assert outline(history, plan) == [*PAIR, "e3", "e4", "e5", "e6"]
    assert plan.cutoff == "e2"
    assert [item.text for item in plan.follow_up] == [CONTINUE]
    text = asked(OpencodeV1(), history, AUTOMATIC, occupancy=Occupancy(32_009, 32_009))
    conversation = text[text.index("<conversation>\n") + 15 : text.index("\n</conversation>")]
    assert conversation == f"[User]: {q('1').blocks[0].text}\n\n[Assistant]: {a('1').blocks[0].text}"  # type: ignore[union-attr]


def second_round(**options: Any) -> tuple[View, Plan]:
    """Vector 2: one compaction, its continue message with a short answer, and a long turn."""
    strategy = OpencodeV1(**options)
    first = planned(strategy, view(*turns("1", "2", "3")), AUTOMATIC, summary="SUMMARY1", count=32_009)
    history = view(*turns("1", "2", "3"), injected(CONTINUE), said("CONT1"), q("4", 8_003), a("4", 8))
    return history, planned(strategy, history, AUTOMATIC, first, "SUMMARY2", count=33_010)


def test_vector_2_the_tail_reaches_back_before_the_first_pair() -> None:
    history, plan = second_round()
    assert outline(history, plan) == [QUESTION[:8], "SUMMARY2", "e4", "e5", "e6", "e7", "e8", "e9", "e10"]
    first = planned(OpencodeV1(), view(*turns("1", "2", "3")), AUTOMATIC, summary="SUMMARY1", count=32_009)
    text = asked(OpencodeV1(), history, AUTOMATIC, previous=first, occupancy=Occupancy(33_010, 33_010))
    assert "[User]: Q2 Q2" in text
    assert "Q1" not in text
    assert "<prior-summary>\nSUMMARY1\n</prior-summary>" in text
    assert text.index("</conversation>") < text.index("<prior-summary>")


def test_vector_2_as_the_original_has_it_shows_the_first_summary_again() -> None:
    history, plan = second_round(resurface_old_pairs=True)
    assert outline(history, plan) == [
        *(QUESTION[:8], "SUMMARY2", "e4", "e5", "e6"),
        *(QUESTION[:8], "SUMMARY1", "e7", "e8", "e9", "e10"),
    ]
    assert plan.notes["defects"] == "resurface_old_pairs"


def test_vector_3_the_newest_step_alone_is_the_tail() -> None:
    # Two steps of that many characters exceed the budget of 8,000 only because line ends count twice in JSON.
    output = (("r" * 29 + "\n") * 600)[:15_541]
    history = view(
        user("read both"),
        said(call("read", path="a")),
        result("c1", output),
        said(call("read", path="b")),
        result("c2", output),
    )
    plan = planned(OpencodeV1(), history, AUTOMATIC, count=32_000)
    assert outline(history, plan) == [*PAIR, "e4", "e5"]
    text = asked(OpencodeV1(), history, AUTOMATIC, occupancy=Occupancy(32_000, 32_000))
    assert (
        '[User]: read both\n\n[Assistant tool call]: read({"path":"a"})\n[Tool result]: '
        + output[:2_000]
        + "\n[truncated]\n</conversation>"
    ) in text


@pytest.mark.parametrize(("tail_turns", "tail"), [(None, []), (1, ["e3", "e4"]), (0, [])])
def test_vector_4_a_short_session_by_hand(tail_turns: int | None, tail: list[str]) -> None:
    history = view(user("one"), said("two"), user("three"), said("four"))
    plan = planned(OpencodeV1(tail_turns=tail_turns), history)
    assert outline(history, plan) == [*PAIR, *tail]
    assert plan.follow_up == ()


def test_vector_5_overflow_with_all_before_fitting_leaves_the_replay_alone() -> None:
    history = view(q("1", 400), a("1", 400), q("2", 400), a("2", 400), q("3"))
    plan = planned(OpencodeV1(), history, OVERFLOW)
    assert outline(history, plan) == [*PAIR, "e5"]
    assert plan.follow_up == ()


def test_vector_5_overflow_with_a_tail_and_the_failed_turn_twice_as_the_original() -> None:
    history = view(*turns("1", "2", "3"), q("4", 10_000))
    plan = planned(OpencodeV1(duplicate_replayed=True), history, OVERFLOW)
    assert outline(history, plan) == [*PAIR, "e3", "e4", "e5", "e6", "e7"]
    (copy,) = plan.follow_up
    assert (copy.text, copy.origin, copy.sources) == (q("4", 10_000).blocks[0].text, "typed", ("e7",))  # type: ignore[union-attr]
    once = planned(OpencodeV1(), history, OVERFLOW)
    assert outline(history, once) == [*PAIR, "e3", "e4", "e5", "e6", "e7"]
    assert once.follow_up == ()


# --- The window and the trigger ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("context", "limit_input", "output", "usable", "tail"),
    [
        (200_000, None, 64_000, 168_000, 15_000),
        (400_000, 272_000, 128_000, 252_000, 15_000),
        (128_000, None, 8_192, 119_808, 15_000),
        (40_000, None, 8_000, 32_000, 8_000),
        (32_000, None, 32_000, 0, 2_000),
    ],
)
def test_usable_window(context: int, limit_input: int | None, output: int, usable: int, tail: int) -> None:
    budget = Budget.of(context, output, profile="futureos-e2")
    strategy = OpencodeV1(limit_input=limit_input)
    assert (strategy.usable(budget), strategy.tail_budget(budget)) == (usable, tail)


def test_reserved_counts_only_with_an_input_limit() -> None:
    assert OpencodeV1(reserved=1_000).usable(BUDGET) == 32_000
    assert OpencodeV1(reserved=1_000, limit_input=36_000).usable(BUDGET) == 35_000
    assert OpencodeV1(limit_input=36_000).usable(BUDGET) == 28_000


def test_another_maximum_of_output_moves_the_trigger_and_not_the_tail() -> None:
    strategy = OpencodeV1(output_token_max=4_000)
    assert (strategy.usable(BUDGET), strategy.tail_budget(BUDGET)) == (36_000, 8_000)
    decision = strategy.plan(view(*turns("1", "2", "3")), BUDGET, MANUAL)
    assert isinstance(decision, NeedsSummary)
    assert decision.requests[0].max_output == 4_000


@pytest.mark.parametrize(
    ("reported", "state", "trigger"),
    [
        (31_999, DueState(), None),
        (32_000, DueState(), "automatic"),
        (32_000, DueState(phase="mid_turn"), "automatic"),
        (32_000, DueState(previous_window=200_000), "model_context_downshift"),
        (32_000, DueState(auto=False), None),
        (32_000, DueState(auto=False, previous_window=200_000), None),
    ],
)
def test_due(reported: int, state: DueState, trigger: str | None) -> None:
    assert OpencodeV1().due(Occupancy(29_000, reported), BUDGET, state) == trigger


def test_the_input_limit_stands_for_the_refusal_and_a_threshold_for_the_window() -> None:
    assert OpencodeV1().due(Occupancy(29_952, 100), BUDGET, DueState()) is None
    assert OpencodeV1().due(Occupancy(29_953, 100), BUDGET, DueState()) == "automatic"
    assert OpencodeV1().due(Occupancy(29_953, 100), BUDGET, DueState(auto=False)) is None
    early = Budget.of(40_000, 8_000, counter=EstimateCounter(), threshold=0.5)
    assert OpencodeV1().due(Occupancy(19_999), early, DueState()) is None
    assert OpencodeV1().due(Occupancy(20_000), early, DueState()) == "automatic"
    assert OpencodeV1().tail_budget(early) == 8_000


def test_what_the_provider_counted_goes_before_the_estimate() -> None:
    history = view(*turns("1", "2", "3"))
    assert isinstance(OpencodeV1().plan(history, BUDGET, AUTOMATIC, None, None, Occupancy(29_000, 31_999)), Unchanged)
    assert OpencodeV1().due(Occupancy(32_000), BUDGET, DueState()) == "automatic"


@pytest.mark.parametrize(
    ("request_", "kind"),
    [
        (CompactionRequest(trigger="automatic", auto=False), Unchanged),
        (CompactionRequest(trigger="model_context_downshift", auto=False), Unchanged),
        (CompactionRequest(trigger="provider_context_limit", auto=False), Refused),
        (CompactionRequest(trigger="manual", auto=False), NeedsSummary),
    ],
)
def test_automatic_compaction_switched_off(request_: CompactionRequest, kind: type) -> None:
    decision = OpencodeV1().plan(view(*turns("1", "2", "3")), BUDGET, request_, None, None, Occupancy(39_000, 39_000))
    assert isinstance(decision, kind)


def test_no_automatic_compaction_before_a_step_was_made() -> None:
    strategy = OpencodeV1()
    first = planned(strategy, view(*turns("1", "2", "3")), AUTOMATIC)
    waiting = view(*turns("1", "2", "3"), injected(CONTINUE))
    assert isinstance(decided(strategy, waiting, AUTOMATIC, first), Unchanged)
    answered = view(*turns("1", "2", "3"), injected(CONTINUE), a("4"))
    assert isinstance(decided(strategy, answered, AUTOMATIC, first), Plan)


# --- The tail ------------------------------------------------------------------------------------------------------------------------


def tail_of(strategy: OpencodeV1, *entries: Entry) -> list[str]:
    history = view(*entries)
    return outline(history, planned(strategy, history))[2:]


def test_the_walk_stops_at_the_first_turn_that_does_not_fit() -> None:
    entries = [q("1", 40), a("1", 40), q("2", 4_003), a("2", 33_003), q("3", 40), a("3", 40)]
    assert tail_of(OpencodeV1(), *entries) == ["e5", "e6"]


def test_the_suffix_of_a_turn_begins_after_its_user_message_at_the_earliest_message_that_fits() -> None:
    steps = [said(f"step {number} " + "s" * 7_000) for number in range(6)]
    assert tail_of(OpencodeV1(), q("1", 40), *steps) == ["e4", "e5", "e6", "e7"]


def test_a_budget_is_used_as_it_is_given() -> None:
    entries = turns("1", "2", "3")
    assert tail_of(OpencodeV1(preserve_recent_tokens=0), *entries) == []
    assert tail_of(OpencodeV1(preserve_recent_tokens=3_030), *entries) == ["e5", "e6"]
    assert tail_of(OpencodeV1(preserve_recent_tokens=3_029), *entries) == ["e6"]
    assert tail_of(OpencodeV1(preserve_recent_tokens=10**9), *entries) == []


@pytest.mark.parametrize("follows", ["V1-b", "V1-c"])
def test_the_older_generations_keep_two_turns_and_8000_tokens(follows: Literal["V1-b", "V1-c"]) -> None:
    entries = [q(str(n), 400) for n in range(3)]
    paired = [part for entry in entries for part in (entry, a("x", 400))]
    assert tail_of(OpencodeV1(follows=follows), *paired) == ["e3", "e4", "e5", "e6"]
    large = Budget.of(200_000, 8_000, counter=EstimateCounter())
    assert OpencodeV1(follows=follows).tail_budget(large) == 8_000


def test_messages_before_the_first_prompt_belong_to_no_turn() -> None:
    assert tail_of(OpencodeV1(), said("welcome " * 6_000), user("hi"), said("yes")) == ["e2", "e3"]
    assert tail_of(OpencodeV1(), said("only"), said("answers")) == []


def test_a_call_that_waits_for_its_result_stays() -> None:
    history = view(q("1"), a("1"), said(call("run", command="make")))
    plan = planned(OpencodeV1(tail_turns=0), history)
    assert outline(history, plan) == [*PAIR, "e3"]
    assert isinstance(decided(OpencodeV1(), view(said(call("run", command="make")))), Unchanged)


def test_instructions_stay_in_place_once() -> None:
    history = view(system("be good"), injected("rules"), *turns("1", "2"), developer("new rule"), *turns("3"))
    plan = planned(OpencodeV1(), history)
    assert outline(history, plan) == ["e1", "e2", *PAIR, "e5", "e6", "e7", "e8", "e9"]
    plan = planned(OpencodeV1(tail_turns=0), history)
    assert outline(history, plan) == ["e1", "e2", "e7", *PAIR]


def test_a_late_result_is_shown_with_its_call_only() -> None:
    history = view(q("1"), said(call("run", command="a")), q("2"), result("c1", "late"), a("2"), q("3"), a("3"))
    plan = planned(OpencodeV1(tail_turns=2), history)
    assert outline(history, plan) == [*PAIR, "e3", "e5", "e6", "e7"]
    assert plan.cutoff == "e4"


def test_what_was_typed_beside_a_result_begins_a_turn() -> None:
    both = user(result("c1", "out").blocks[0], "and now this")
    history = view(q("1"), said(call("run", command="a")), both, a("2"))
    plan = planned(OpencodeV1(tail_turns=1), history)
    assert [item for item in plan.items if isinstance(item, Kept)] == [Kept("e3", (1,))]
    assert outline(history, plan) == [*PAIR, "e3", "e4"]


# --- The request for a summary ---------------------------------------------------------------------------------------------------------


def test_the_request_stands_alone() -> None:
    decision = OpencodeV1().plan(view(*turns("1", "2", "3")), BUDGET, MANUAL)
    assert isinstance(decision, NeedsSummary)
    (made,) = decision.requests
    assert (made.items, made.tools, made.max_output, made.requires) == ((), "none", 8_000, ())
    assert made.system is not None
    assert "Write nothing but the summary" in made.system


def test_the_order_of_the_request() -> None:
    strategy = OpencodeV1(context=("FIRST", "SECOND"))
    text = asked(strategy, view(user("hi"), said("yes")), CompactionRequest(trigger="manual", instructions="MY NOTE"))
    assert text.startswith("<conversation>\n[User]: hi\n\n[Assistant]: yes\n</conversation>\n\n")
    assert text.endswith("\n\nFIRST\n\nSECOND\n\nMY NOTE")
    for heading in (
        "## Objective",
        "## Important Details",
        "## Work State",
        "### Completed",
        "### Active",
        "### Blocked",
        "## Next Move",
        "## Relevant Files",
    ):
        assert f"\n{heading}\n" in text
    assert "prior" not in text


def test_prompts_given_by_the_user() -> None:
    history = view(user("hi"), said("yes"))
    first = planned(OpencodeV1(), history, summary="OLD")
    more = view(user("hi"), said("yes"), user("more"), said("of it"))
    strategy = OpencodeV1(prompt="WRITE A POEM", system_prompt="YOU ARE A POET")
    decision = strategy.plan(more, BUDGET, MANUAL, first)
    assert isinstance(decision, NeedsSummary)
    text = decision.requests[0].instruction
    assert decision.requests[0].system == "YOU ARE A POET"
    assert "<prior-summary>\nOLD\n</prior-summary>" in text
    assert text.endswith("\n\nWRITE A POEM")
    assert "## Objective" not in text
    hooked = asked(OpencodeV1(hook_prompt="HOOKED", context=("LOST",)), more, previous=first)
    assert hooked.startswith("HOOKED\n\n")
    assert hooked.endswith("\n\n[User]: more\n\n[Assistant]: of it")
    assert "OLD" not in hooked


def test_generation_b_sends_messages_without_media_and_with_short_outputs() -> None:
    history = view(
        user("see", image()), said(call("read", path="a")), result("c1", "r" * 3_000), q("2", 9_000), a("2", 9_000)
    )
    decision = OpencodeV1(follows="V1-b", tail_turns=1).plan(history, BUDGET, MANUAL)
    assert isinstance(decision, NeedsSummary)
    (made,) = decision.requests
    assert made.items == (
        Kept("e1", None, {1: "[Attached image/png: file]"}),
        Kept("e2"),
        Kept("e3", None, {0: "r" * 2_000 + "\n[truncated]"}),
    )
    assert "<conversation>" not in made.instruction


def test_nothing_to_summarise() -> None:
    assert isinstance(OpencodeV1().plan(view(), BUDGET, MANUAL), Unchanged)
    assert isinstance(OpencodeV1().plan(view(system("s"), injected("rules")), BUDGET, MANUAL), Unchanged)
    assert isinstance(OpencodeV1().plan(view(user("")), BUDGET, MANUAL), Unchanged)
    history = view(user("hi"), said("yes"))
    assert isinstance(OpencodeV1().plan(history, BUDGET, MANUAL, planned(OpencodeV1(), history)), Unchanged)


# --- What follows a summary ------------------------------------------------------------------------------------------------------------


def test_the_pair() -> None:
    history = view(*turns("1", "2", "3"))
    plan = planned(OpencodeV1(), history, summary=" text \n")
    assert plan.items == (
        Synthetic("notice", QUESTION),
        Synthetic("summary", " text \n", role="assistant", origin="summary"),
    )
    assert (plan.summary, plan.rest) == ("text", "summarised")


@pytest.mark.parametrize(
    ("request_", "texts"),
    [
        (MANUAL, []),
        (AUTOMATIC, [CONTINUE]),
        (CompactionRequest(trigger="model_context_downshift"), [CONTINUE]),
        (OVERFLOW, [f"{MEDIA_REMOVED}\n\n{CONTINUE}"]),
    ],
)
def test_the_continue_message(request_: CompactionRequest, texts: list[str]) -> None:
    history = view(q("1", 20_000), a("1"), a("2"), a("3"))
    plan = planned(OpencodeV1(), history, request_)
    assert [(item.text, item.role, item.origin) for item in plan.follow_up] == [
        (text, "user", "injected") for text in texts
    ]
    assert planned(OpencodeV1(autocontinue=False), history, request_).follow_up == ()


def test_the_replay_loses_media_and_the_steps_that_were_made() -> None:
    pdf = Media("document", "application/pdf", "aGk=", extra={"filename": "spec.pdf"})
    sound = Media("audio", "audio/wav", "aGk=")
    asking = user("look", image(), pdf, sound)
    history = view(*turns("1", "2", "3"), asking, said(call("read", path="a")), result("c1", "x" * 9_000))
    plan = planned(OpencodeV1(), history, OVERFLOW)
    assert outline(history, plan) == [*PAIR, "e3", "e4", "e5", "e6", "e7"]
    assert plan.items[-1] == Kept(
        "e7", None, {1: "[Attached image/png: file]", 2: "[Attached application/pdf: spec.pdf]"}
    )
    assert project(history, plan)[-1].blocks[3] == sound
    assert [(ref.entry, ref.block) for ref in plan.omitted] == [("e8", 0), ("e9", 0)]
    found = {(fate.entry.id, fate.number): fate.fate for fate in fates(history, plan)}
    assert (found["e1", 0], found["e7", 0], found["e7", 1], found["e8", 0]) == (
        "summarised",
        "kept",
        "excerpted",
        "omitted",
    )
    later = view(
        *(*turns("1", "2", "3"), asking, said(call("read", path="a")), result("c1", "x" * 9_000)),
        *(said("answer"), user("more " * 7_000), said("done " * 300)),
    )
    text = asked(OpencodeV1(), later, previous=plan)
    assert "[User]: look\n[Attached image/png: file]\n" in text
    assert "xxxx" not in text
    again = planned(OpencodeV1(), later, previous=plan)
    assert again.omitted == plan.omitted


def test_without_an_earlier_prompt_there_is_no_replay() -> None:
    history = view(q("1", 40_000), said(call("read", path="a")), result("c1", "x" * 90_000))
    plan = planned(OpencodeV1(), history, OVERFLOW)
    assert outline(history, plan) == PAIR
    assert plan.follow_up[0].text.endswith(CONTINUE)


def test_the_replayed_message_is_a_turn_of_the_next_round() -> None:
    history = view(*turns("1", "2", "3"), q("4", 400), a("4", 9_000))
    plan = planned(OpencodeV1(), history, OVERFLOW)
    later = view(*turns("1", "2", "3"), q("4", 400), a("4", 9_000), said("real"), q("5", 400), a("5", 400))
    again = planned(OpencodeV1(preserve_recent_tokens=600), later, previous=plan)
    assert outline(later, again) == [*PAIR, "e7", "e9", "e10", "e11"]
    assert "e8" in {ref.entry for ref in again.omitted}


# --- Failures ----------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("summary", [Summary(failure="the provider is away"), Summary(" \n"), Summary()])
def test_without_a_summary_nothing_changes(summary: Summary) -> None:
    decision = decided(OpencodeV1(), view(*turns("1", "2", "3")), summary=summary)
    assert isinstance(decision, Refused)
    assert decision.reason == "invalid-summary"


def test_the_head_is_lost_where_the_original_loses_it() -> None:
    history = view(*turns("1", "2", "3"))
    strategy = OpencodeV1(lose_head_on_failure=True)
    plan = planned(strategy, history, summary=Summary(failure="boom"))
    assert outline(history, plan) == [QUESTION[:8], "e3", "e4", "e5", "e6"]
    assert (plan.rest, plan.summary, plan.notes["failure"]) == ("omitted", None, "boom")
    assert isinstance(decided(strategy, history, summary=Summary(failure="context overflow")), Refused)
    no_tail = OpencodeV1(lose_head_on_failure=True, tail_turns=0)
    assert isinstance(decided(no_tail, history, summary=Summary(failure="boom")), Refused)


def test_an_empty_summary_counts_where_the_original_counts_it() -> None:
    history = view(*turns("1", "2", "3"))
    plan = planned(OpencodeV1(accept_empty_summary=True), history, AUTOMATIC, summary=" ")
    assert outline(history, plan) == [QUESTION[:8], "e3", "e4", "e5", "e6"]
    assert (plan.rest, plan.summary) == ("omitted", None)


def test_strict_is_all_defects() -> None:
    on = {name for name, value in OpencodeV1(strict_bugs=True).options().items() if value is True}
    assert on == {
        "autocontinue",
        "lose_head_on_failure",
        "accept_empty_summary",
        "resurface_old_pairs",
        "duplicate_replayed",
    }


def test_a_duplicate_without_a_tail_is_a_copy_only() -> None:
    history = view(q("1", 400), a("1", 400), user("look", image()), a("2", 9_000))
    plan = planned(OpencodeV1(strict_bugs=True), history, OVERFLOW)
    assert outline(history, plan) == PAIR
    assert plan.follow_up[0].text == "look\n[Attached image/png: file]"
    assert {ref.entry for ref in plan.omitted} == {"e3", "e4"}


@pytest.mark.parametrize(
    ("history", "request_", "budget", "summary", "reason"),
    [
        (view(*turns("1", "2", "3")), AUTOMATIC, BUDGET, "s" * 30_000, "no-progress"),
        (
            view(*turns("1", "2", "3")),
            MANUAL,
            Budget.of(9_000, 1_000, counter=EstimateCounter()),
            "s" * 30_000,
            "budget-exceeded",
        ),
    ],
)
def test_refusals(history: View, request_: CompactionRequest, budget: Budget, summary: str, reason: str) -> None:
    decision = decided(OpencodeV1(), history, request_, summary=summary, budget=budget)
    assert isinstance(decision, Refused)
    assert decision.reason == reason
    assert decision.sizes


def test_a_plan_of_another_strategy_or_of_another_history_is_ignored() -> None:
    history = view(*turns("1", "2", "3"))
    plan = planned(OpencodeV1(), history)
    other = Plan(strategy="futureos-deterministic", version="1", covered_from="e1", cutoff="e2")
    assert asked(OpencodeV1(), history, previous=other) == asked(OpencodeV1(), history)
    stranger = View(session(user("x", id="x1"), said("y", id="x2")))
    assert asked(OpencodeV1(), stranger, previous=plan) == asked(OpencodeV1(), stranger)


def test_pruned_outputs_stay_cleared_and_are_summarised_as_such() -> None:
    reads = [part for n in range(5) for part in (said(call("read", n=n)), result(f"c{n + 1}", f"{n}" * 49_922))]
    history = view(q("0"), *reads, q("1"), a("1"), q("2"), a("2"))
    budget = Budget.of(200_000, 8_000, counter=EstimateCounter())
    strategy = OpencodeV1(prune=True, tail_turns=1)
    assert strategy.due(Occupancy(70_000), budget, DueState()) == "automatic"
    assert strategy.due(Occupancy(70_000), budget, DueState(phase="mid_turn")) is None
    assert OpencodeV1().due(Occupancy(70_000), budget, DueState()) is None
    pruned = strategy.plan(history, budget, CompactionRequest(), None, None, Occupancy(70_000))
    assert isinstance(pruned, Plan)
    assert [item.entry for item in pruned.items if isinstance(item, Kept) and item.replaced] == ["e3", "e5"]
    assert pruned.summary is None
    decision = strategy.plan(history, budget, MANUAL, pruned)
    assert isinstance(decision, NeedsSummary)
    assert decision.requests[0].instruction.count(f"[Tool result]: {CLEARED}") == 2
    plan = planned(strategy, history, MANUAL, pruned, budget=budget)
    assert plan.state["pruned"] == pruned.state["pruned"]
    assert strategy.plan(history, budget, CompactionRequest(auto=False), None, None, Occupancy(70_000)) == (
        strategy.plan(history, budget, CompactionRequest(auto=False), None, None, Occupancy(1))
    )


# --- Options -----------------------------------------------------------------------------------------------------------------------------


def test_options_round_trip_by_name() -> None:
    strategy = strategy_by_name("opencode-v1", tail_turns=1, strict_bugs=True, prune_protected_tools=["x"])
    assert isinstance(strategy, OpencodeV1)
    assert OpencodeV1(**strategy.options()).options() == strategy.options()


def test_lists_may_come_from_a_command_line() -> None:
    options = OpencodeV1(prune_protected_tools="skill, note", context="ONE").options()
    assert (options["prune_protected_tools"], options["context"]) == (("skill", "note"), ("ONE",))
    with pytest.raises(ConfigError):
        strategy_by_name("opencode-v1", tail_turns="many")


@pytest.mark.parametrize(
    "options",
    [
        {"follows": "V1-a"},
        {"tail_turns": -1},
        {"preserve_recent_tokens": -5},
        {"reserved": -1},
        {"prune_protect": -1},
        {"tool_output_max_chars": -1},
        {"output_token_max": 0},
    ],
)
def test_options_that_cannot_work(options: Mapping[str, Any]) -> None:
    with pytest.raises(ConfigError):
        OpencodeV1(**options)


def test_at_size_comes_out_near_that_size() -> None:
    history = view(*[part for n in range(30) for part in (q(str(n), 900), a(str(n), 900))])
    budget = Budget.of(200_000, counter=EstimateCounter())
    plan = planned(OpencodeV1().at_size(8_000), history, budget=budget, summary="s" * 4_000)
    assert 7_000 < plan.tokens_after < 8_500


def test_sizes_are_those_of_the_projection() -> None:
    history = view(*turns("1", "2", "3"))
    budget = Budget.of(40_000, 8_000, counter=EstimateCounter(), fixed=500)
    plan = planned(OpencodeV1(), history, budget=budget)
    texts = [block.text for entry in project(history, plan) for block in entry.blocks if isinstance(block, Text)]
    assert plan.tokens_after == sum(6 + EstimateCounter().count(text) for text in texts) + 500
    assert plan.tokens_before == 3 * (6 + 1_001 + 6 + 2_001) + 500
