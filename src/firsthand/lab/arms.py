"""An arm: one strategy with its options, its size and its summariser, run at a boundary."""

from __future__ import annotations

import time
from dataclasses import dataclass

from ..budget import Budget, Occupancy
from ..projection.render import project
from ..projection.repair import repair
from ..strategies import strategy_by_name
from ..strategies.contract import CompactionRequest, DueState, NeedsSummary, Plan, Refused, Strategy, Summary
from ..tokens import Counter, total_cost
from ..transcript import Entry, View
from .summarisers import summariser

__all__ = ["Arm", "Projected", "run_arm", "size_of"]

_ROUNDS = 4


@dataclass(frozen=True, slots=True)
class Arm:
    """What is compared with what."""

    strategy: str
    target: int | None = None
    summariser: str = "none"

    def made(self) -> Strategy | None:
        """The strategy, at the wanted size; None when it has no knob for its size."""
        strategy = strategy_by_name(self.strategy)
        return strategy if self.target is None else strategy.at_size(self.target)


@dataclass(frozen=True, slots=True)
class Projected:
    """What an arm made of a view."""

    entries: tuple[Entry, ...]
    plan: Plan | None
    outcome: str
    """`compacted`, `whole`, `refused`; `none` where the strategy does not apply (nothing recorded)."""
    milliseconds: float
    asked: bool
    """Whether it wanted a summary."""


def run_arm(
    arm: Arm, strategy: Strategy, view: View, budget: Budget, previous: Plan | None, mode: str, counter: Counter
) -> Projected:
    """One decision, carried out.

    Args:
        arm: names the summariser.
        strategy: as `arm.made()` gave it.
        view: the entries before the boundary.
        budget: of the next request.
        previous: the arm's own newest plan, where it carries its state on.
        mode: `forced` compacts whatever the size; `deployed` asks the strategy whether a compaction is due.
        counter: counts the stand-in summariser's cap.
    """
    before = repair(project(view, previous)).entries if previous is not None else view.entries
    if mode == "deployed":
        size = total_cost(before, budget.counter) + budget.fixed
        if strategy.due(Occupancy(size), budget, DueState(previous=previous)) is None:
            return Projected(before, previous, "whole" if previous is None else "compacted", 0.0, False)
    request = CompactionRequest(
        trigger="automatic" if mode == "deployed" else "manual",
        phase="pre_turn" if mode == "deployed" else "standalone",
    )
    summaries: dict[str, Summary] | None = None
    spent = 0.0
    for _ in range(_ROUNDS):
        start = time.perf_counter()
        decision = strategy.plan(view, budget, request, previous, summaries)
        spent += time.perf_counter() - start
        if not isinstance(decision, NeedsSummary):
            break
        answer = summariser(arm.summariser, counter)
        summaries = {**(summaries or {}), **{one.id: answer(one, view) for one in decision.requests}}
    milliseconds = round(spent * 1_000, 1)
    asked = summaries is not None
    if isinstance(decision, Plan):
        return Projected(repair(project(view, decision)).entries, decision, "compacted", milliseconds, asked)
    if isinstance(decision, (Refused, NeedsSummary)):
        return Projected((), previous, "refused", milliseconds, asked)
    outcome = "none" if arm.strategy == "recorded" else "whole" if previous is None else "compacted"
    return Projected(tuple(before), previous, outcome, milliseconds, asked)


def size_of(entries: tuple[Entry, ...], counter: Counter) -> int:
    """Tokens of a projection; system prompt excluded, where it stands among the messages."""
    return total_cost((entry for entry in entries if entry.role not in ("system", "developer")), counter)
