from __future__ import annotations

import msgspec
import pytest

from firsthand.budget import Budget, Occupancy
from firsthand.projection.render import project, shown
from firsthand.samples import chain
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
from firsthand.strategies.futureos.instruction import HEADINGS
from firsthand.strategies.futureos.strategies import FutureosDeterministic, FutureosSummarized
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
    user,
    view,
)
from firsthand.tokens import EstimateCounter, counter_for_model, total_cost
from firsthand.transcript import Text, View

strategy = FutureosDeterministic()
estimate = EstimateCounter()

AUTOMATIC = CompactionRequest()
MID_TURN = CompactionRequest(phase="mid_turn")
MANUAL = CompactionRequest(trigger="manual", phase="standalone")
LIMIT = CompactionRequest(trigger="provider_context_limit")


def budget(window: int = 32_000, output: int | None = None, fixed: int = 0, target: int | None = None) -> Budget:
    return Budget.of(window, output, fixed=fixed, counter=estimate, profile="futureos-e3", target=target)


def decide(
    history: View, request: CompactionRequest = AUTOMATIC, limits: Budget | None = None, previous: Plan | None = None
) -> Decision:
    return strategy.plan(history, limits or budget(), request, previous)


def planned(
    history: View, request: CompactionRequest = AUTOMATIC, limits: Budget | None = None, previous: Plan | None = None
) -> Plan:
    decision = decide(history, request, limits, previous)
    assert isinstance(decision, Plan), decision
    return decision


def projected(history: View, plan: Plan) -> list[str]:
    """Role and first words of each message of a projection."""
    return [
        f"{entry.role}: {' '.join(block.text for block in entry.blocks if isinstance(block, Text))[:24]}"
        for entry in project(history, plan)
    ]


def index_of(plan: Plan) -> str:
    (index,) = (item.text for item in plan.items if isinstance(item, Synthetic))
    return index


def loop(steps: int, tokens: int) -> list:
    return [
        part
        for number in range(steps)
        for part in (call("read", path=f"f{number}.py", id=f"x{number}"), result(f"x{number}", filler(tokens)))
    ]


# The published chains: (records, tokens after, anchors, entries in the tail, evidence rows), futureos.md 12. Sizes may differ by 2 % or 60
# tokens, since the wording of requests and headers is ours.
PUBLISHED = {
    "export": [(28, 250_482, 8_058, 2, 4), (96, 631_226, 9_678, 14, 0), (112, 151_165, 9_742, 16, 0), (180, 640_633, 15_505, 26, 0), (224, 414_439, 21_692, 30, 4)],
    "analysis": [(28, 250_493, 8_071, 2, 4), (96, 631_267, 9_693, 14, 0), (112, 151_186, 9_757, 16, 0), (180, 640_677, 15_524, 26, 0), (224, 414_475, 21_712, 30, 4)],
    "pipeline": [(28, 246_477, 4_213, 2, 4), (96, 617_419, 2_617, 14, 0), (112, 141_879, 2_664, 16, 0), (180, 623_525, 3_012, 26, 0), (224, 395_637, 5_244, 30, 4)],
}  # fmt: skip


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_published_chains_come_out_as_published(name: str) -> None:
    session = chain(name)
    limits = Budget.of(1_000_000, 384_000, counter=estimate, profile="futureos-e2")
    previous = None
    for records, before, after, anchors, tail in PUBLISHED[name]:
        history = View(session.entries[:records])
        plan = planned(history, MANUAL, limits, previous)
        kept = [item for item in plan.items if isinstance(item, Kept)]
        assert len(kept) == anchors
        assert records - 1 - history.positions[plan.cutoff] == tail
        assert len(plan.indexed) == 11
        assert plan.tokens_before == pytest.approx(before, abs=max(60, before // 50))
        assert plan.tokens_after == pytest.approx(after, abs=max(60, after // 50))
        assert plan.tokens_after == total_cost(project(history, plan), estimate)
        previous = plan


# --- decision order (futureos.md 2.3) ---------------------------------------------------------------------------------------------------


def test_an_empty_session_is_unchanged() -> None:
    assert decide(view(), MANUAL) == Unchanged("the session is empty")


def test_automatic_and_switched_off_is_unchanged_at_any_size() -> None:
    history = view(user("go"), *loop(5, 20_000))
    assert decide(history, CompactionRequest(auto=False)) == Unchanged("automatic compaction is off")


def test_fixed_tokens_alone_can_be_too_many_even_under_the_threshold() -> None:
    decision = decide(view(user("hi")), AUTOMATIC, budget(fixed=22_000))
    assert isinstance(decision, Refused)
    assert (decision.reason, decision.sizes) == ("budget-exceeded", {"fixed": 22_000, "input_limit": 22_000})


def test_equality_fires_and_one_token_less_does_not() -> None:
    # W=32,000: the trigger is the input limit, 22,000. Two messages of framing 6 and a result of the rest.
    def at(size: int) -> View:
        return view(user("aaaa"), said("bbbb"), user("cccc"), said(filler(size - 4 * 6 - 3)))

    assert isinstance(decide(at(21_999)), Unchanged)
    assert isinstance(decide(at(22_000)), (Plan, Refused))


def test_reported_usage_counts_when_it_is_higher_but_not_for_provider_limits() -> None:
    history = view(user("a"), said("b"), user("c"), said("d"))
    used = Occupancy(30_000, reported=30_000)
    assert isinstance(
        strategy.plan(history, budget(), AUTOMATIC, occupancy=used), Refused
    )  # fires, but nothing shrinks
    assert isinstance(strategy.plan(history, budget(), AUTOMATIC, occupancy=Occupancy(100)), Unchanged)
    unseen = strategy.plan(view(user("a")), budget(), LIMIT, occupancy=used)
    assert isinstance(unseen, Refused)
    assert unseen.sizes["size"] < 30_000


def test_a_lone_unseen_input_is_neither_covered_nor_refused_while_it_fits() -> None:
    # The trigger of a 200k window with little output is four fifths, so there is room between trigger and limit.
    limits = budget(200_000, 1_000)
    assert limits.trigger == 160_000 < limits.input_limit
    assert decide(view(user(filler(170_000))), AUTOMATIC, limits) == Unchanged(
        "nothing older to cover, and the request still fits"
    )
    refused = decide(view(user(filler(199_000))), AUTOMATIC, limits)
    assert isinstance(refused, Refused)
    assert refused.reason == "no-valid-boundary"


def test_first_turns_on_small_windows_are_unchanged() -> None:
    for window in (4_096, 8_000, 16_384):
        assert isinstance(decide(view(system("be brief"), user("hello")), AUTOMATIC, budget(window)), Unchanged)


@pytest.mark.parametrize("window", range(1, 16))
def test_windows_of_a_few_tokens_are_refused(window: int) -> None:
    decision = decide(view(user("hello"), said("hello")), MANUAL, budget(window))
    assert isinstance(decision, Refused)
    assert decision.reason == "budget-exceeded"


def test_user_text_above_the_ceiling_is_refused_never_cut() -> None:
    decision = decide(view(user(filler(20_000)), said("ok"), user("more"), said("done")), MANUAL)
    assert isinstance(decision, Refused)
    assert decision.reason == "budget-exceeded"
    assert decision.sizes["user_text"] > decision.sizes["max_target"] == 16_500


def test_assistant_text_above_the_ceiling_is_demoted_and_noted() -> None:
    plan = planned(
        view(user("go"), said(filler(18_000)), user("more"), said("small"), user("and"), said(filler(6_000))), MANUAL
    )
    assert plan.notes == {"demoted": "1"}
    assert "1 older assistant outputs" in index_of(plan)
    assert [item.entry for item in plan.items if isinstance(item, Kept)] == ["e1"]


def test_a_projection_that_is_not_smaller_is_no_progress_unless_asked_for() -> None:
    history = view(user("a"), said("b"), user("c"), said("d"))
    refused = strategy.plan(history, budget(), AUTOMATIC, occupancy=Occupancy(25_000, reported=25_000))
    assert isinstance(refused, Refused)
    assert refused.reason == "no-progress"
    assert isinstance(decide(history, MANUAL), Plan)


# --- the cut (futureos.md 3.2) ----------------------------------------------------------------------------------------------------------


def test_whole_turns_stay_while_they_fit() -> None:
    history = view(
        user("one"), said(filler(16_000)), user("two"), said(filler(3_000)), user("three"), said(filler(3_000))
    )
    plan = planned(history, AUTOMATIC, budget(32_000, 8_000))
    assert plan.cutoff == "e2"
    assert projected(history, plan)[-4:] == [
        "user: two",
        "assistant: line 1 of plain filler t",
        "user: three",
        "assistant: line 1 of plain filler t",
    ]


def test_an_unbroken_tool_loop_is_cut_at_messages_and_keeps_pairs() -> None:
    history = view(user("go"), *loop(10, 2_500))  # SE-01, SE-03
    plan = planned(history)
    tail = [part.entry for part in shown(history, plan) if part.item is None]
    assert tail[0].role == "assistant"  # the call, not its result
    assert [entry.role for entry in tail] == ["assistant", "tool"] * (len(tail) // 2)
    assert total_cost(tail, estimate) <= 6_400 + 2_600


def test_the_cut_goes_back_to_the_call_over_parallel_results() -> None:
    history = view(
        user("go"),
        said(filler(15_000)),
        said(call("a", id="p1"), call("b", id="p2")),
        result("p1", filler(6_000)),
        result("p2", filler(3_000)),
        said("end"),
    )
    plan = planned(history)
    assert plan.cutoff == "e2"  # SE-04, SE-06: both results stay with their calls


def test_orphan_results_are_cut_at_the_message_before_them() -> None:
    history = view(
        user("go"),
        said(filler(17_000)),
        said("short"),
        result("gone", filler(3_000)),
        result("lost", filler(3_000)),
        said("end"),
    )
    plan = planned(history)
    assert plan.cutoff == "e2"  # SE-05, futureos.md 3.2


def test_mid_turn_with_an_oversized_result_the_whole_turn_is_covered() -> None:
    history = view(user("go"), call("read", path="big.log", id="b"), result("b", filler(25_000)))
    plan = planned(history, MID_TURN)
    assert projected(history, plan) == ["user: go", "user: [Compacted context: Evid"]
    before_a_turn = decide(history, AUTOMATIC)  # the newest step is never replaced there, so nothing can be done
    assert isinstance(before_a_turn, Refused)
    assert before_a_turn.sizes["tail"] > 25_000


def test_a_call_without_result_stays_until_it_is_answered() -> None:
    history = view(user("go"), said("ok"), user("on"), said("I look.", call("read", id="open")))
    plan = planned(history, MANUAL)
    assert plan.cutoff == "e3"  # SE-07
    assert project(history, plan)[-1] is history["e4"]


def test_manual_covers_a_short_conversation_whole_and_repeating_it_changes_nothing() -> None:
    history = view(user("one"), said("two"), user("three"), said("four"))
    plan = planned(history, MANUAL)
    assert [line.split(":")[0] for line in projected(history, plan)] == [
        "user",
        "assistant",
        "user",
        "assistant",
        "user",
    ]
    assert decide(history, MANUAL, previous=plan) == Unchanged("everything before the tail is covered already")


# --- originals ------------------------------------------------------------------------------------------------------------------------------


def test_originals_survive_two_compactions() -> None:
    early = [user("Only port 8123 is free."), said("I note it.", thought("hm", signature="s")), *loop(6, 4_000)]
    history = view(*early)
    first = planned(history)
    longer = view(
        *early,
        user("next"),
        *[part for number in range(6) for part in (call("run", id=f"y{number}"), result(f"y{number}", filler(4_000)))],
    )
    second = planned(longer, AUTOMATIC, previous=first)
    assert projected(longer, second)[:2] == ["user: Only port 8123 is free.", "assistant: I note it."]
    assert second.covered_from == "e1"
    assert longer.positions[second.cutoff] > longer.positions[first.cutoff]
    assert longer["e4"] == history["e4"]


def test_from_originals_the_second_plan_equals_one_made_at_once() -> None:
    recomputed = FutureosDeterministic(from_originals=True)
    early = [user("go"), said("a" * 400), *loop(6, 4_000)]
    longer = view(
        *early,
        user("next"),
        *[part for number in range(6) for part in (call("run", id=f"y{number}"), result(f"y{number}", filler(4_000)))],
    )
    first = recomputed.plan(view(*early), budget(), AUTOMATIC)
    assert isinstance(first, Plan)
    second = recomputed.plan(longer, budget(), AUTOMATIC, first)
    at_once = recomputed.plan(longer, budget(), AUTOMATIC)
    assert isinstance(second, Plan)
    assert isinstance(at_once, Plan)
    assert msgspec.structs.replace(second, tokens_before=0) == msgspec.structs.replace(at_once, tokens_before=0)


def test_instructions_stay_in_place_and_once() -> None:
    rules = "Follow the house rules."
    history = view(
        system("You are careful."), injected(rules), user("go"), said("ok"), injected("reminder"), developer("Mode: plan."), developer("Mode: plan."), summary("Earlier..."), *loop(6, 4_000)
    )  # fmt: skip
    plan = planned(history)
    assert projected(history, plan)[:5] == [
        "system: You are careful.",
        f"user: {rules}",
        "user: go",
        "assistant: ok",
        "developer: Mode: plan.",
    ]
    assert not any("reminder" in line or "Earlier" in line for line in projected(history, plan))


def test_a_user_text_beside_a_result_is_kept_and_the_result_demoted() -> None:
    mixed = user("and this:", result("m", filler(3_000)))
    history = view(user("go"), call("read", id="m"), mixed, *loop(6, 4_000))  # SE-08
    plan = planned(history)
    assert Kept("e3", (0,)) in plan.items


def test_a_target_is_held() -> None:
    history = view(user("go"), *[part for _ in range(20) for part in (said(filler(900)), user("on"))])
    plan = planned(history, MANUAL, budget(200_000, target=6_000))
    assert plan.tokens_after <= 6_000


# --- the request ----------------------------------------------------------------------------------------------------------------------------


def test_a_note_stands_verbatim_in_the_index_and_a_huge_one_is_refused() -> None:
    history = view(user("go"), *loop(6, 4_000))
    note = 'keep "the port"\nand 汉字'
    plan = planned(history, CompactionRequest(trigger="manual", instructions=note))
    assert '"keep \\"the port\\"\\nand 汉字"' in index_of(plan)
    refused = decide(history, CompactionRequest(trigger="manual", instructions="x" * 20_000))
    assert isinstance(refused, Refused)
    assert "shorten the instructions" in refused.message


@pytest.mark.parametrize(
    ("tokens", "state", "trigger"),
    [
        (21_999, DueState(), None),
        (22_000, DueState(), "automatic"),
        (22_000, DueState(auto=False), None),
        (22_000, DueState(previous_window=200_000), "model_context_downshift"),
        (22_000, DueState(previous_window=200_000, auto=False), "model_context_downshift"),
        (22_000, DueState(previous_window=8_000), "automatic"),
        (22_000, DueState(previous_window=200_000, phase="mid_turn"), "automatic"),
    ],
)
def test_when_it_is_due(tokens: int, state: DueState, trigger: str | None) -> None:
    assert strategy.due(Occupancy(tokens), budget(), state) == trigger


def test_images_of_the_covered_range_are_not_in_the_projection() -> None:
    history = view(user("look", image()), said("a cat"), *loop(6, 4_000))
    plan = planned(history)
    assert all(not hasattr(block, "media_type") for entry in project(history, plan)[:2] for block in entry.blocks)


def test_options_by_name() -> None:
    assert strategy_by_name("futureos-deterministic", from_originals=True).recomputed
    assert not strategy_by_name("futureos-deterministic").recomputed


# --- with a summary (futureos.md 5) ---------------------------------------------------------------------------------------------------------

GOOD = "\n".join([*HEADINGS, "- kept"])


def summarised(
    history: View, answer: Summary, limits: Budget | None = None, previous: Plan | None = None, **options: str
) -> Decision:
    with_summary = FutureosSummarized(**options)
    asked = with_summary.plan(history, limits or budget(200_000), MANUAL, previous)
    assert isinstance(asked, NeedsSummary)
    return with_summary.plan(history, limits or budget(200_000), MANUAL, previous, {"handoff": answer})


def test_the_summary_request_has_the_sessions_own_shape() -> None:
    history = view(user("go"), *loop(3, 2_000))
    (request,) = FutureosSummarized().plan(history, budget(200_000), MANUAL).requests  # type: ignore[union-attr]
    assert request.system is None
    assert request.tools == "session"
    assert [item.entry for item in request.items if isinstance(item, Kept)] == [entry.id for entry in history]
    assert request.max_output == 8_192
    assert "4096 tokens, about 3072 words" in request.instruction
    assert all(heading in request.instruction for heading in HEADINGS)


def test_a_summary_stands_behind_the_index_and_replaces_the_last() -> None:
    history = view(user("go"), *loop(3, 2_000))
    first = summarised(history, Summary("FIRST\n" + GOOD))
    assert isinstance(first, Plan)
    text = index_of(first)
    assert "handoff summary of the same history follows" in text
    assert text.index("sourceOrder") < text.index("Handoff summary, written by the model") < text.index("FIRST")
    assert first.rest == "summarised"
    longer = view(
        user("go"),
        *loop(3, 2_000),
        user("more"),
        *[part for n in range(3) for part in (call("run", id=f"y{n}"), result(f"y{n}", filler(2_000)))],
    )
    (again,) = FutureosSummarized().plan(longer, budget(200_000), MANUAL, first).requests  # type: ignore[union-attr]
    assert "FIRST" in again.instruction
    second = summarised(longer, Summary("SECOND\n" + GOOD), previous=first)
    assert isinstance(second, Plan)
    assert "SECOND" in index_of(second)
    assert "FIRST" not in index_of(second)


@pytest.mark.parametrize(
    ("answer", "options", "reason"),
    [
        (Summary(failure="finish reason 'length'"), {}, "finish reason 'length'"),
        (Summary("x" * 600_000), {}, "with the summary: the projection takes"),
        (Summary("x" * 4 * 4_111), {"epoch": "E2"}, "the summary exceeds its 4,096 tokens"),
    ],
)
def test_what_cannot_be_used_falls_back_to_the_rules_and_says_so(
    answer: Summary, options: dict[str, str], reason: str
) -> None:
    history = view(user("go"), *loop(3, 2_000))
    plan = summarised(history, answer, **options)
    assert isinstance(plan, Plan)
    assert plan.notes["fallback"].startswith(reason)
    assert (plan.strategy, plan.version) == ("futureos-deterministic", "deterministic-evidence-v1")
    assert "no model summary was generated" in index_of(plan)


def test_a_long_summary_is_accepted_while_the_projection_fits() -> None:
    plan = summarised(view(user("go"), *loop(3, 2_000)), Summary("x" * 4 * 4_111))
    assert isinstance(plan, Plan)
    assert "fallback" not in plan.notes


@pytest.mark.parametrize(
    ("window", "sent"),
    [(200_000, [1, 2, 3, 4, 5, 6, 7]), (14_000, [1, 2, 4, 5, 6, 7]), (6_000, [1, 2, 6, 7]), (1_000, [1, 2])],
)
def test_a_history_that_is_too_large_is_sent_with_its_head_and_its_newest_part(window: int, sent: list[int]) -> None:
    history = view(user("go"), *loop(3, 4_000))
    request = FutureosSummarized()._request(history, budget(window), MANUAL, None, window // 16)
    assert [f"e{n}" for n in sent] == [
        item.entry for item in request.items if isinstance(item, Kept)
    ] or window == 16_384


def test_the_summarised_index_is_larger_on_large_windows_and_smaller_on_small_ones() -> None:
    parts = []
    for n in range(60):
        parts += [call("read", path=f"f{n}.py", id=f"k{n}"), result(f"k{n}", f"{n} " * 400)]
    history = view(user("go"), *parts)
    rows = {}
    for window in (1_000_000, 30_000):
        rules = strategy.plan(history, budget(window), MANUAL)
        summed = summarised(history, Summary(GOOD), budget(window))
        assert isinstance(rules, Plan)
        assert isinstance(summed, Plan)
        rows[window] = (len(rules.indexed), len(summed.indexed))
    assert rows[1_000_000][1] > rows[1_000_000][0]
    assert rows[30_000][1] < rows[30_000][0]


@pytest.mark.parametrize("window", [2_000, 2_400])
def test_a_window_too_small_for_a_summary_gets_the_rules(window: int) -> None:
    history = view(user("go"), *loop(6, 300))
    limits = Budget.of(window, counter=counter_for_model(None))
    plan = FutureosSummarized().plan(history, limits, MANUAL)
    assert isinstance(plan, Plan)
    assert plan.strategy == "futureos-deterministic"
    assert "evidence index has" in plan.notes["fallback"]
