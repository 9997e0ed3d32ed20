"""An arm: one strategy with its options, its size and its summariser, run at a boundary."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from ..budget import Budget, Occupancy
from ..projection.render import project
from ..projection.repair import repair
from ..strategies.contract import CompactionRequest, Decision, DueState, NeedsSummary, Plan, Refused, Strategy, Summary
from ..tokens import Counter, total_cost
from ..transcript import Entry, View
from .summarisers import Summariser, summariser

__all__ = ["Arm", "Projected", "run_arm", "size_of"]

_ROUNDS = 4


@dataclass(frozen=True, slots=True)
class Arm:
    """What is compared with what."""

    strategy: str
    target: int | None = None
    summariser: str = "none"
    rival: str = ""
    """Whose size it gets, or is: the label of a rival; empty outside of comparisons at equal size."""
    tail: str = ""
    """`own` for the rival itself, `free` at its size, `forced` at its size with its tail; empty outside of comparisons."""


@dataclass(frozen=True, slots=True)
class Projected:
    """What an arm made of a view."""

    entries: tuple[Entry, ...]
    plan: Plan | None
    outcome: str
    """`compacted`, `whole`, `refused`, `over` (it cannot be brought down to the size), `no-summary` (a model gave none that could be used);
    `none` where the strategy does not apply."""
    milliseconds: float
    asked: bool
    """Whether it wanted a summary."""
    cold: float = 0.0
    """Milliseconds without stored features."""


def run_arm(
    arm: Arm,
    strategy: Strategy,
    view: View,
    budget: Budget,
    previous: Plan | None,
    mode: str,
    counter: Counter,
    *,
    tail: Sequence[Entry] = (),
    timed: bool = True,
    summarise: Summariser | None = None,
) -> Projected:
    """One decision, carried out.

    Args:
        arm: names the summariser.
        strategy: with the options of its size.
        view: the entries before the boundary, with the strategy's stored features.
        budget: of the next request.
        previous: the arm's own newest plan, where it carries its state on.
        mode: `forced` compacts whatever the size; `deployed` asks the strategy whether a compaction is due.
        counter: counts the stand-in summariser's cap.
        tail: entries that stand behind the projection whatever the strategy decides.
        summarise: writes the summaries; by default what the arm names.
        timed: also time the plan without stored features, where there are any.
    """
    before = repair(project(view, previous)).entries if previous is not None else view.entries
    if mode == "deployed":
        size = total_cost(before, budget.counter) + budget.fixed
        if strategy.due(Occupancy(size), budget, DueState(previous=previous)) is None:
            return Projected((*before, *tail), previous, "whole" if previous is None else "compacted", 0.0, False)
    request = CompactionRequest(
        trigger="automatic" if mode == "deployed" else "manual",
        phase="pre_turn" if mode == "deployed" else "standalone",
    )
    summaries: dict[str, Summary] | None = None
    spent = 0.0
    decision: Decision
    for _ in range(_ROUNDS):
        start = time.perf_counter()
        decision = strategy.plan(view, budget, request, previous, summaries)
        spent += time.perf_counter() - start
        if not isinstance(decision, NeedsSummary):
            break
        answer = summarise or summariser(arm.summariser, counter)
        summaries = {**(summaries or {}), **{one.id: answer(one, view) for one in decision.requests}}
    cold = spent
    if timed and view.features:
        bare = View(view.entries, pins=view.pins, markers=view.markers)
        start = time.perf_counter()
        strategy.plan(bare, budget, request, previous, summaries)
        cold = time.perf_counter() - start
    made = Projected((), previous, "refused", round(spent * 1_000, 1), summaries is not None, round(cold * 1_000, 1))
    failed = any(summary.failure is not None for summary in (summaries or {}).values())
    if isinstance(decision, Plan):
        outcome = "no-summary" if failed else "compacted"
        return _with(made, repair((*project(view, decision), *tail)).entries, decision, outcome)
    if isinstance(decision, (Refused, NeedsSummary)):
        return _with(made, (), previous, "no-summary") if failed else made
    outcome = "none" if arm.strategy == "recorded" else "whole" if previous is None else "compacted"
    return _with(made, (*before, *tail), previous, outcome)


def _with(made: Projected, entries: Sequence[Entry], plan: Plan | None, outcome: str) -> Projected:
    return Projected(tuple(entries), plan, outcome, made.milliseconds, made.asked, made.cold)


def size_of(entries: Sequence[Entry], counter: Counter) -> int:
    """Tokens of a projection; system prompt excluded, where it stands among the messages."""
    return total_cost((entry for entry in entries if entry.role not in ("system", "developer")), counter)
