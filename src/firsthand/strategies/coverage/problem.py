"""The case of maximum coverage that a plan of `coverage` solved, and its choice, for whoever wants to check it."""

from __future__ import annotations

from ...budget import Budget
from ...projection.coverage.problem import Problem
from ...projection.plan import Plan
from ...tokens import total_cost
from ...transcript import View
from ..contract import CompactionRequest
from .choosing import Choice
from .dividing import Divided, divided
from .excerpts import short_ids
from .sizing import Options
from .strategy import Coverage

__all__ = ["solved"]


def solved(view: View, budget: Budget, strategy: Coverage) -> tuple[Problem, list[int]] | None:
    """The problem behind the plan that the strategy makes now, with the room that the plan's excerpts take, and the units that they show.

    None where there is no plan, or no excerpts in it. Beside what the greedy chose, the excerpts hold lines that are shown whatever they are
    worth (rules, to-do lists, introducing lines, what bridges a gap).
    """
    request = CompactionRequest(trigger="manual")
    plan = strategy.plan(view, budget, request)
    if not isinstance(plan, Plan) or not plan.excerpts:
        return None
    size = total_cost(view.entries, budget.counter) + budget.fixed
    work = divided(view, budget, request, Options(**strategy.options()), size)
    assert isinstance(work, Divided)  # there is a plan
    choice = Choice(work, short_ids(view.entries), 0)
    pool = choice.pool
    spans = {
        (view.positions[excerpt.entry], excerpt.block): [(span.start, span.end) for span in excerpt.spans]
        for excerpt in plan.excerpts
    }
    units = [
        unit
        for run in pool.runs
        for unit in range(run.first, run.end)
        if any(
            start <= pool.starts[unit] and pool.ends[unit] <= end
            for start, end in spans.get((run.entry, run.block), ())
        )
    ]
    problem = Problem(pool, choice.worths, [size + 1 for size in pool.sizes], choice.opening, 0)
    return Problem(pool, problem.weights, problem.costs, problem.opening, problem.cost(units)), units
