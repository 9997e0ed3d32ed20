"""What holds of every plan of `pi`, whatever the entries."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from firsthand.budget import Budget
from firsthand.codec import decode, encode
from firsthand.formats.wire import wire_by_name
from firsthand.projection.fates import fates
from firsthand.projection.render import applies, project
from firsthand.projection.repair import repair
from firsthand.strategies.contract import CompactionRequest, Decision, NeedsSummary, Plan, Summary
from firsthand.strategies.pi.strategy import Pi
from firsthand.testing.random_entries import entry_lists, paired_paths
from firsthand.testing.validate import validate
from firsthand.tokens import EstimateCounter, total_cost
from firsthand.transcript import Entry, Marker, Text, View

MANUAL = CompactionRequest(trigger="manual")
BUDGET = Budget.of(200_000, 10_000, counter=EstimateCounter())
TIGHT = Budget.of(600, 100, counter=EstimateCounter())

FEW = settings(max_examples=60, deadline=None)

STRATEGIES = st.builds(
    Pi,
    follows=st.sampled_from(("Mar", "Jul", "Sep", "Nov")),
    fixes=st.booleans(),
    keep_recent_tokens=st.sampled_from((0, 1, 5, 20, 100)),
    fit_window=st.booleans(),
    silent_checkpoints=st.sampled_from((None, False)),
)


def decided(strategy: Pi, seen: View, budget: Budget = BUDGET, previous: Plan | None = None) -> Decision:
    decision = strategy.plan(seen, budget, MANUAL, previous)
    if isinstance(decision, NeedsSummary):
        answers = {request.id: Summary(f"Of {request.id}.") for request in decision.requests}
        decision = strategy.plan(seen, budget, MANUAL, previous, answers)
        assert not isinstance(decision, NeedsSummary)
    return decision


def holds(plan: Plan, seen: View, budget: Budget) -> None:
    """What every plan must be."""
    assert applies(plan, seen)
    shown = project(seen, plan)
    tail = seen.entries[seen.positions[plan.cutoff] + 1 :]
    assert all(mine is original for mine, original in zip(shown[len(plan.items) :], tail, strict=True))
    assert plan.tokens_after == total_cost(shown, budget.counter) + budget.fixed <= budget.input_limit
    assert len(list(fates(seen, plan))) == sum(len(entry.blocks) for entry in seen)
    assert decode(encode(plan.state)) == plan.state
    assert broken_rules(shown) <= broken_rules(seen.entries)


# A block that the writers have no word for is handed on to its own provider, and the validator does not know it either.
UNKNOWN_BLOCKS = ("part-type", "system")


def broken_rules(entries: tuple[Entry, ...]) -> set[str]:
    """Rules of the three providers that a request with these entries, once repaired, breaks all the same."""
    rules: set[str] = set()
    for name in ("openai-chat", "openai-responses", "anthropic"):
        written = wire_by_name(name).write(repair(entries).entries)
        found = validate(name, written.messages, written.system)
        rules.update(f"{name} {violation.rule}" for violation in found if violation.rule not in UNKNOWN_BLOCKS)
    return rules


@FEW
@given(entry_lists(), STRATEGIES, st.sampled_from((BUDGET, TIGHT)))
def test_any_entries_get_a_decision_and_the_same_one_again(
    entries: tuple[Entry, ...], strategy: Pi, budget: Budget
) -> None:
    seen = View(entries)
    decision = decided(strategy, seen, budget)
    assert decided(strategy, View(entries), budget) == decision
    if isinstance(decision, Plan):
        holds(decision, seen, budget)


@FEW
@given(st.data(), STRATEGIES)
def test_compactions_follow_one_another(data: Any, strategy: Pi) -> None:
    entries = data.draw(entry_lists(24))
    previous: Plan | None = None
    at = 0
    while at < len(entries):
        at += data.draw(st.integers(1, 8))
        seen = View(entries[:at])
        decision = decided(strategy, seen, previous=previous)
        if isinstance(decision, Plan):
            holds(decision, seen, BUDGET)
            if previous is not None and strategy.rules.silent_checkpoints:
                assert seen.positions[decision.cutoff] >= seen.positions[previous.cutoff]
            previous = decision


@FEW
@given(paired_paths(4), STRATEGIES.filter(lambda strategy: strategy.rules.keep_pairs))
def test_no_cut_parts_a_pair(entries: tuple[Entry, ...], strategy: Pi) -> None:
    before = repair(entries).repairs
    decision = decided(strategy, View(entries))
    if isinstance(decision, Plan):
        after = repair(project(View(entries), decision)).repairs
        assert {done for done in after if done.kind in ("result-orphaned", "call-answered")} <= set(before)


def recorded(plan: Plan, seen: View, number: int) -> Marker:
    """The plan as Pi's session file would record it."""
    kept = [entry.id for entry in seen.entries[seen.positions[plan.state["first_kept"]] :]]
    summary = Entry(id=f"m{number}", role="user", blocks=(Text(plan.summary or "", "summary"),))
    details = {"readFiles": plan.state.get("read_files", ()), "modifiedFiles": plan.state.get("modified_files", ())}
    extra = {"details": {name: list(files) for name, files in details.items()}}
    return Marker(id=f"m{number}", after=plan.state["after"], shown=(summary, *kept), extra=extra)


@FEW
@given(st.data(), STRATEGIES)
def test_going_on_from_a_plan_is_going_on_from_the_file(data: Any, strategy: Pi) -> None:
    """A chain of plans decides what Pi decides from the compaction entries of its session file."""
    options = strategy.options() | {"recorded": True, "silent_checkpoints": False}
    chain, file = Pi(**options | {"recorded": False}), Pi(**options)
    entries = data.draw(paired_paths(5))
    previous: Plan | None = None
    markers: list[Marker] = []
    at = 0
    while at < len(entries):
        at += data.draw(st.integers(1, 5))
        seen = View(entries[:at], markers=tuple(markers))
        decision = decided(chain, seen, previous=previous)
        from_file = decided(file, seen)
        if not isinstance(decision, Plan):
            assert type(from_file) is type(decision)
            continue
        assert isinstance(from_file, Plan)
        assert project(seen, from_file) == project(seen, decision)
        assert from_file.state == decision.state
        previous = decision
        markers.append(recorded(decision, seen, len(markers)))
