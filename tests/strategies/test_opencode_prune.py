"""`opencode-prune`: vector 6 of opencode.md 8, and the rules of 2.11."""

from __future__ import annotations

from typing import Any

import pytest

from firsthand.budget import Budget, Occupancy
from firsthand.codec import decode_as, encode
from firsthand.errors import ConfigError
from firsthand.projection.fates import fates
from firsthand.projection.render import project
from firsthand.strategies import strategy_by_name
from firsthand.strategies.contract import CompactionRequest, DueState, Plan, Summary, Synthetic, Unchanged
from firsthand.strategies.opencode.prompts import CONTINUE, QUESTION
from firsthand.strategies.opencode.prune import OpencodePrune
from firsthand.strategies.opencode.size import CLEARED
from firsthand.strategies.opencode.v1 import OpencodeV1
from firsthand.testing.builders import call, image, injected, result, said, system, user, view
from firsthand.tokens import EstimateCounter
from firsthand.transcript import Entry, View

BUDGET = Budget.of(400_000, 8_000, counter=EstimateCounter())
REQUEST = CompactionRequest()
READ = 49_922
"""Characters of one output: 12,481 tokens."""


def turn(name: str, reads: int, tool: str = "read", error: bool = False, size: int = READ) -> list[Entry]:
    """A prompt, so many calls with their results (ids `NAME1r`, `NAME2r`, ...), and an answer."""
    made = [user(f"prompt {name}", id=f"{name}u")]
    for number in range(1, reads + 1):
        at = f"{name}{number}"
        made += [said(call(tool, id=at), id=at), result(at, "r" * size, error=error, id=f"{at}r")]
    return [*made, said(f"answer {name}", id=f"{name}a")]


def cleared(history: View, previous: Plan | None = None, **options: Any) -> list[str]:
    """Ids of the entries that are newly cleared, in order."""
    plan = OpencodePrune(**options).plan(history, BUDGET, REQUEST, previous)
    if isinstance(plan, Unchanged):
        return []
    assert isinstance(plan, Plan)
    assert decode_as(encode(plan), Plan) == plan
    before = {entry.id for entry in project(history, previous) if CLEARED in str(entry.blocks)}
    return [entry.id for entry in project(history, plan) if CLEARED in str(entry.blocks) and entry.id not in before]


FOUR = [*turn("a", 2), *turn("b", 4), *turn("c", 1), *turn("d", 1)]


def test_vector_6() -> None:
    assert cleared(view(FOUR)) == ["a1r", "a2r", "b1r"]
    first = OpencodePrune().plan(view(FOUR), BUDGET, REQUEST)
    assert isinstance(first, Plan)
    assert cleared(view(FOUR, turn("e", 1)), first) == []


def test_a_prompt_that_waits_was_not_there_when_the_agent_came_to_rest() -> None:
    assert cleared(view(FOUR, user("next"))) == ["a1r", "a2r", "b1r"]


def test_everything_else_stays_as_it_was_and_in_place() -> None:
    history = view(system("s"), FOUR)
    plan = OpencodePrune().plan(history, BUDGET, REQUEST)
    assert isinstance(plan, Plan)
    shown = project(history, plan)
    assert [entry.id for entry in shown] == [entry.id for entry in history.entries]
    changed = {"a1r", "a2r", "b1r"}
    assert all(
        after is before for before, after in zip(history.entries, shown, strict=True) if before.id not in changed
    )
    assert plan.cutoff == "b1r"
    assert (plan.summary, plan.follow_up) == (None, ())
    assert plan.tokens_before - plan.tokens_after == 3 * (EstimateCounter().count("r" * READ) - 9)
    found = {fate.entry.id: fate.fate for fate in fates(history, plan)}
    assert {found[name] for name in changed} == {"excerpted"}
    assert {fate for name, fate in found.items() if name not in changed} == {"kept"}


@pytest.mark.parametrize(
    ("entries", "names"),
    [
        # 40,000 tokens are protected, the output that crosses them is not.
        ([*turn("a", 1, size=80_004), *turn("b", 1, size=160_000), *turn("c", 0), *turn("d", 0)], ["a1r"]),
        ([*turn("a", 1, size=80_004), *turn("b", 1, size=160_004), *turn("c", 0), *turn("d", 0)], ["a1r", "b1r"]),
        # More than 20,000 must be saved.
        ([*turn("a", 1, size=80_000), *turn("b", 1, size=160_000), *turn("c", 0), *turn("d", 0)], []),
        # The newest two user messages and what followed them are left alone.
        ([*turn("a", 0), *turn("b", 9), *turn("c", 9)], []),
        ([*turn("a", 9), *turn("b", 0), *turn("c", 0)], ["a1r", "a2r", "a3r", "a4r", "a5r", "a6r"]),
        # Failed results and skills stay, and do not count.
        ([*turn("a", 4), *turn("b", 9, error=True), *turn("c", 9, "skill"), *turn("d", 0), *turn("e", 0)], []),
        ([*turn("a", 9, "skill"), *turn("b", 9), *turn("c", 0), *turn("d", 0)], [f"b{n}r" for n in range(1, 7)]),
        ([*turn("a", 0)], []),
        ([], []),
    ],
)
def test_rules(entries: list[Entry], names: list[str]) -> None:
    assert cleared(view(entries)) == names


def test_the_numbers_are_options() -> None:
    small = [*turn("a", 3, size=400), *turn("b", 1, "note", size=400), *turn("c", 1, size=400)]
    assert cleared(view(small), protect=100, minimum=0, turns=1, protected_tools=("note",)) == ["a1r", "a2r"]
    assert cleared(view(small), protect=0, minimum=0, turns=0) == ["a1r", "a2r", "a3r", "b1r", "c1r"]
    with pytest.raises(ConfigError):
        OpencodePrune(turns=-1)


def test_the_walk_ends_at_an_output_that_is_cleared_already() -> None:
    first = OpencodePrune().plan(view(FOUR), BUDGET, REQUEST)
    assert isinstance(first, Plan)
    later = view(FOUR, turn("e", 3), turn("f", 0), turn("g", 0))
    # The three outputs of e are protected; b1r is cleared, so a1r and a2r are not even looked at.
    assert cleared(later, first) == ["b2r", "b3r", "b4r", "c1r", "d1r"]


def test_attachments_go_with_their_output() -> None:
    entries = [
        user("p"),
        said(call("shot", id="s")),
        result("s", "r" * 400_000, image(), id="sr"),
        *turn("b", 0),
        *turn("c", 0),
    ]
    history = view(entries)
    plan = OpencodePrune(protect=10).plan(history, BUDGET, REQUEST)
    assert isinstance(plan, Plan)
    assert project(history, plan)[2].blocks[0].content == result("s", CLEARED).blocks[0].content  # type: ignore[union-attr]


def test_the_newest_summary_ends_the_walk() -> None:
    strategy = OpencodeV1(prune=True)
    manual = CompactionRequest(trigger="manual")
    history = view(FOUR)
    compacted = strategy.plan(history, BUDGET, manual, None, {"summary": Summary("S")})
    assert isinstance(compacted, Plan)
    later = view(FOUR, turn("e", 6), turn("f", 0), turn("g", 0))
    plan = strategy.plan(later, BUDGET, REQUEST, compacted, None, Occupancy(80_000))
    assert isinstance(plan, Plan)
    shown = project(later, plan)
    assert [entry.id for entry in shown if CLEARED in str(entry.blocks)] == ["e1r", "e2r", "e3r"]
    assert isinstance(plan.items[0], Synthetic)
    assert plan.items[0].text == QUESTION
    assert plan.summary == "S"


def test_within_the_protected_turns_the_question_counts_and_the_summary_does_not_stop() -> None:
    strategy = OpencodeV1(prune=True, preserve_recent_tokens=100_000)
    entries = [*turn("a", 1), *turn("b", 8)]
    compacted = strategy.plan(
        view(entries), BUDGET, CompactionRequest(trigger="manual"), None, {"summary": Summary("S")}
    )
    assert isinstance(compacted, Plan)
    kept = [entry.id for entry in project(view(entries), compacted)]
    assert "b2r" in kept
    later = view(entries, injected(CONTINUE), said("went on"))
    plan = strategy.plan(later, BUDGET, REQUEST, compacted, None, Occupancy(120_000))
    assert isinstance(plan, Plan)
    shown = [entry.id for entry in project(later, plan) if CLEARED in str(entry.blocks)]
    # Eight outputs of b: three are protected; those that the tail does not show cannot be cleared.
    assert shown == [name for name in ("b1r", "b2r", "b3r", "b4r", "b5r") if name in kept]


def test_due_between_turns_when_there_may_be_enough() -> None:
    strategy = strategy_by_name("opencode-prune")
    assert strategy.due(Occupancy(40_001), BUDGET, DueState()) == "automatic"
    assert strategy.due(Occupancy(40_000), BUDGET, DueState()) is None
    assert strategy.due(Occupancy(90_000), BUDGET, DueState(phase="mid_turn")) is None
    assert strategy.options() == {
        "protect": 40_000,
        "minimum": 20_000,
        "turns": 2,
        "protected_tools": ("skill",),
    }
