"""Pi's compaction as a strategy: compactions after one another, what it refuses, and what is ours."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from pi_plans import BUDGET, CHAT, MANUAL, SPLIT, asked, planned, small, texts

from firsthand.budget import Budget, Occupancy
from firsthand.projection.fates import fates
from firsthand.projection.render import project
from firsthand.projection.repair import repair
from firsthand.strategies.contract import (
    CompactionRequest,
    NeedsSummary,
    Plan,
    Refused,
    Summary,
    Unchanged,
)
from firsthand.strategies.pi.strategy import Pi
from firsthand.testing.builders import (
    call,
    filler,
    result,
    said,
    system,
    user,
    view,
)
from firsthand.tokens import EstimateCounter
from firsthand.transcript import Entry, ToolCall, View

# Again


def grown(*more: Entry) -> View:
    return view(*(msgspec.structs.replace(entry, id="", parent=None) for entry in CHAT), *more)


def test_the_second_compaction_updates_the_first_and_covers_what_it_kept() -> None:
    plan = planned(small(), CHAT)
    later = grown(user(filler(100, "g")), said(filler(100, "h")), user(filler(200, "i")))
    (request,) = asked(small(), later, previous=plan).requests
    assert request.instruction.count("[User]") == 2
    assert filler(100, "e") in request.instruction
    assert (
        "<previous-summary>\nWhat history was.\n</previous-summary>\n\nThe conversation above is only what happened since"
        in (request.instruction)
    )
    again = planned(small(), later, previous=plan)
    assert again.cutoff == "e8"
    assert texts(project(later, again))[0].count("<summary>") == 1


def test_mar_forgets_what_the_first_compaction_kept_and_says_so() -> None:
    plan = planned(small(follows="Mar"), CHAT)
    later = grown(user(filler(100, "g")), said(filler(200, "h")))
    again = planned(small(follows="Mar"), later, previous=plan)
    lost = [fate.entry.id for fate in fates(later, again) if fate.fate == "omitted"]
    assert lost == ["e5", "e6"]


def test_nothing_new_is_no_second_compaction() -> None:
    plan = planned(small(), CHAT)
    assert small().plan(CHAT, BUDGET, MANUAL, plan) == Unchanged("the newest entry is a checkpoint already")


LONG_TURN = (user("go"), said(call("read", path="a")), result("c1", filler(100)))
LATER = (
    said(call("read", path="b")),
    result("c2", filler(100)),
    said(call("read", path="c")),
    result("c3", filler(100)),
)


def test_a_split_turn_without_history_keeps_the_previous_summary_without_its_lists() -> None:
    first = planned(small(keep_recent_tokens=105), view(user("old"), said("done"), *LONG_TURN))
    assert first.cutoff == "e2"
    seen = view(user("old"), said("done"), *LONG_TURN, *LATER)
    strategy = small(keep_recent_tokens=150)
    with_lists = msgspec.structs.replace(first, summary="Kept.\n\n<read-files>\na\n</read-files>")
    (request,) = asked(strategy, seen, previous=with_lists).requests
    assert request.id == "prefix"
    assert "<previous-summary>" not in request.instruction
    assert planned(strategy, seen, previous=with_lists).summary == (
        "Kept.\n\n---\n\n**Turn Context (split turn):**\n\nWhat prefix was.\n\n<read-files>\na\nb\n</read-files>"
    )
    # The defect of Jul: what the previous summary said is gone, and fates say so.
    defect = planned(small(keep_recent_tokens=150, keep_previous_summary=False), seen, previous=with_lists)
    assert defect.summary is not None
    assert defect.summary.startswith("(Nothing came before this turn.)\n\n---")
    assert [fate.entry.id for fate in fates(seen, defect) if fate.fate == "omitted"] == ["e1", "e2"]


def test_older_checkpoints_are_shown_again_only_as_the_defect_of_jul() -> None:
    defect = small(silent_checkpoints=False)
    first = planned(defect, CHAT)
    later = grown(user(filler(10, "g")), said(filler(10, "h")))
    wide = small(silent_checkpoints=False, keep_recent_tokens=110)
    again = planned(wide, later, previous=first)
    shown = texts(project(later, again))
    assert [text.splitlines()[-2] if "<summary>" in text else text[:1] for text in shown] == [
        "What prefix was.",
        "f",
        "What history was.",
        "g",
        "h",
    ]
    third = grown(user(filler(10, "g")), said(filler(10, "h")), user(filler(10, "i")), said(filler(90, "j")))
    assert planned(small(silent_checkpoints=False, keep_recent_tokens=100), third, previous=again).cutoff == "e8"
    mended = planned(small(keep_recent_tokens=110), later, previous=first)
    assert sum("<summary>" in text for text in texts(project(later, mended))) == 1


def test_a_plan_of_another_strategy_or_branch_is_started_over() -> None:
    plan = planned(small(), CHAT)
    other = msgspec.structs.replace(plan, strategy="elsewhere")
    strange = msgspec.structs.replace(plan, state=["odd"])
    moved = msgspec.structs.replace(plan, cutoff="gone")
    for previous in (other, strange, moved):
        (request,) = asked(small(), CHAT, previous=previous).requests
        assert "<previous-summary>" not in request.instruction
        assert filler(100, "a") in request.instruction


# What it refuses


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (Summary(failure="the model hung"), "failed: the model hung"),
        (Summary(""), "came back without text"),
        (Summary(" \n"), "came back without text"),
        (Summary("half a", failure="length"), "failed: length"),
    ],
)
def test_a_summary_that_failed_installs_nothing(answer: Summary, expected: str) -> None:
    decision = small().plan(CHAT, BUDGET, MANUAL, summaries={"history": answer})
    assert isinstance(decision, Refused)
    assert decision.reason == "invalid-summary"
    assert expected in decision.message


def test_a_cut_off_summary_becomes_a_checkpoint_only_as_the_defect_of_jul() -> None:
    plan = small(reject_truncated=False).plan(
        CHAT, BUDGET, MANUAL, summaries={"history": Summary("half a", failure="length")}
    )
    assert isinstance(plan, Plan)
    assert plan.summary == "half a"


def test_missing_answers_are_asked_for_again() -> None:
    decision = small(keep_recent_tokens=50).plan(SPLIT, BUDGET, MANUAL, summaries={"history": Summary("x")})
    assert isinstance(decision, NeedsSummary)
    assert [request.id for request in decision.requests] == ["prefix"]


@pytest.mark.parametrize(
    ("seen", "reason"),
    [
        (view(), "the session is empty"),
        (view(system("rules")), "nothing in the session can begin a tail"),
        (view(user("hello"), said("hi")), "nothing is older than the tail"),
        (view(result("c1", "orphan")), "nothing in the session can begin a tail"),
    ],
)
def test_with_nothing_to_summarise_nothing_is_done(seen: View, reason: str) -> None:
    assert Pi().plan(seen, BUDGET, MANUAL) == Unchanged(reason)


def test_one_message_above_the_input_limit_is_refused_with_its_sizes() -> None:
    tight = Budget.of(4_000, 500, counter=EstimateCounter())
    decision = Pi().plan(view(user(filler(5_000))), tight, MANUAL)
    assert isinstance(decision, Refused)
    assert (decision.reason, decision.sizes) == ("no-valid-boundary", {"size": 5_006, "input_limit": 3_250})
    older = Pi().plan(view(user("old"), said("old"), user(filler(5_000))), tight, MANUAL)
    assert isinstance(older, Refused)
    assert (older.reason, older.sizes) == ("budget-exceeded", {"tail": 5_006, "fixed": 0, "input_limit": 3_250})


def test_a_summary_that_does_not_fit_or_does_not_help_is_refused() -> None:
    tight = Budget.of(4_000, 500, counter=EstimateCounter())
    seen = view(*(user(filler(300)) for _ in range(9)))
    long = {"history": Summary(filler(3_000))}
    too_large = Pi(keep_recent_tokens=600).plan(seen, tight, MANUAL, summaries=long)
    assert isinstance(too_large, Refused)
    assert too_large.reason == "budget-exceeded"
    due = Occupancy(195_000, reported=195_000)
    no_help = small().plan(
        CHAT, BUDGET, CompactionRequest(), summaries={"history": Summary(filler(3_000))}, occupancy=due
    )
    assert isinstance(no_help, Refused)
    assert no_help.reason == "no-progress"


# Our own additions


def test_a_tail_that_does_not_fit_is_shortened_to_the_next_legal_cut() -> None:
    seen = view(*(part for n in range(40) for part in (user(f"{n}"), said(filler(1_000)))))
    # 23,616 tokens are free under the trigger; half of them are eleven turns of 1,013.
    plan = planned(Pi(), seen, budget=Budget.of(40_000, 4_000, counter=EstimateCounter()))
    assert len(seen) - 1 - seen.positions[plan.cutoff] == 22
    assert len(planned(Pi(fit_window=False), seen).items) == 1
    tight = Budget.of(20_000, 2_000, counter=EstimateCounter())
    assert planned(Pi(), seen, budget=tight).tokens_after < 2_100
    unmended = Pi(fit_window=False).plan(seen, tight, MANUAL)
    assert isinstance(unmended, Refused)
    assert unmended.reason == "budget-exceeded"
    aimed = planned(Pi(), seen, budget=Budget.of(200_000, 2_000, counter=EstimateCounter(), target=8_000))
    assert 5_000 < aimed.tokens_after < 8_000


def test_a_large_last_result_does_not_block_a_compaction() -> None:
    seen = view(user("old"), said("done"), user("go"), said(call("read", path="a")), result("c1", filler(1_000)))
    assert planned(small(), seen).cutoff == "e3"
    assert small(fixes=False).plan(seen, BUDGET, MANUAL) == Unchanged("nothing is older than the tail")


@pytest.mark.parametrize("options", [{}, {"follows": "Mar"}, {"follows": "Nov"}])
def test_no_cut_parts_a_call_from_its_result(options: dict[str, Any]) -> None:
    """Parallel calls as items of their own, and a person who speaks between a call and its result (SE-04)."""
    item: dict[str, Any] = {"wire": "openai-responses"}

    def made(name: str) -> Entry:
        return said(ToolCall(name, "read", "{}"), **item)

    seen = view(
        user("go"),
        said("first"),
        *(made(f"p{n}") for n in range(4)),
        *(result(f"p{n}", filler(40), **item) for n in range(4)),
        said(call("wait", id="w")),
        user(filler(50)),
        result("w", filler(50)),
        said("end"),
    )
    for keep in range(1, 500, 20):
        strategy = Pi(keep_recent_tokens=keep, **options)
        decision = strategy.plan(seen, BUDGET, MANUAL)
        if isinstance(decision, NeedsSummary):
            plan = planned(strategy, seen)
            assert {done.kind for done in repair(project(seen, plan)).repairs} <= {"result-moved"}
            assert plan.cutoff not in {"e3", "e4", "e5", "e11"}


def test_an_open_call_stays_in_the_tail() -> None:
    waiting = view(user(filler(300)), said("x"), said(call("read", path="a")), user(filler(300)))
    assert planned(small(), waiting).cutoff == "e3"
    open_now = view(
        user(filler(300)),
        said("x"),
        user("go"),
        said(call("read", path="a"), call("read", path="b")),
        result("c1", filler(300)),
    )
    assert planned(small(), open_now).cutoff == "e3"
