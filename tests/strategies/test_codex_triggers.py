from __future__ import annotations

from typing import Any

from codex_cases import SUMMARY, TURNS, asked, budget, decide, estimate, planned

from firsthand.budget import Budget, Occupancy
from firsthand.projection.render import project
from firsthand.strategies.codex.counting import text_tokens
from firsthand.strategies.codex.local import CodexLocal
from firsthand.strategies.contract import DueState, Plan, Strategy, Unchanged
from firsthand.testing.builders import call, filler, result, said, used, user, view
from firsthand.tokens import total_cost
from firsthand.transcript import View


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
        f"{2 + text_tokens(SUMMARY)} tokens are under the limit of 244,800"
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


def test_without_usage_the_prefix_is_an_estimate_of_what_stood_before_the_first_answer() -> None:
    body = CodexLocal(model_auto_compact_token_limit_scope="body_after_prefix", model_auto_compact_token_limit=100)
    automatic = asked(trigger="automatic")

    def history(size: int) -> View:
        return view(user("x" * 400), said("a" * size), call("read", path="a"), result("c1", ""))

    # The prompt is 100 tokens and no body; the call, of 16 bytes, and the id of its result are five.
    assert decide(history(376), automatic, strategy=body) == Unchanged("199 tokens are under the limit of 100")
    assert isinstance(decide(history(380), automatic, strategy=body), Plan)
