"""How near `coverage` comes to the best choice there is: the linear relaxation of budgeted maximum coverage bounds it from above.

A unit may be chosen in part, and a term counts as far as the units that hold it are chosen; no whole choice is worth more. The greedy's proven
share is (1 - 1/e) / 2; what it reaches on real sessions has to be measured.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ..budget import Budget
from ..errors import MissingExtraError
from ..projection.coverage.problem import Problem
from ..strategies.coverage.problem import solved
from ..strategies.coverage.strategy import Coverage
from ..tokens import Counter
from ..transcript import View

__all__ = ["Bound", "bound", "upper_bound"]


class Bound(msgspec.Struct, frozen=True):
    """One comparison. Worth is in the strategy's own weights, `room` in its pieces."""

    target: int
    units: int
    """Units that could add anything."""
    room: int
    best: float
    """What no choice can exceed in this room."""
    greedy: float
    """Share of it that the greedy alone reaches."""
    plan: float
    """Share of it that the plan's excerpts reach, with the lines in them that are shown whatever they cover."""


def bound(view: View, counter: Counter, target: int, window: int = 200_000) -> Bound | None:
    """Compares the plan at a size with the upper bound; None where there is nothing to choose.

    Raises:
        MissingExtraError: scipy is not installed.
    """
    strategy = Coverage(target=target, fixed_target=True)
    found = solved(view, Budget.of(window, counter=counter), strategy)
    if found is None:
        return None
    problem, shown = found
    best = upper_bound(problem)
    greedy = problem.value(problem.greedy())
    return Bound(
        target=target,
        units=len(problem.candidates),
        room=problem.room,
        best=best,
        greedy=greedy / best if best else 1.0,
        plan=problem.value(shown) / best if best else 1.0,
    )


def upper_bound(problem: Problem) -> float:
    """The most that any choice of units in the problem's room can be worth.

    Raises:
        MissingExtraError: scipy is not installed.
    """
    np, optimize, sparse = _scipy()
    pool, units = problem.pool, problem.candidates
    if not units:
        return 0.0
    runs = sorted({pool.run_of[unit] for unit in units})
    run_at = {run: number for number, run in enumerate(runs)}
    holders: dict[int, list[int]] = {}
    for number, unit in enumerate(units):
        for term in pool.terms_of(unit):
            if problem.weights[term]:
                holders.setdefault(term, []).append(number)
    # Terms that the same units hold are one; what one unit alone holds is its own worth.
    worth = np.zeros(len(units))
    shared: dict[tuple[int, ...], int] = {}
    for term, places in holders.items():
        if len(places) == 1:
            worth[places[0]] += problem.weights[term]
        else:
            key = tuple(places)
            shared[key] = shared.get(key, 0) + problem.weights[term]
    # Variables: units, blocks, shared terms. Rows: a unit needs its block, a term the units that hold it, all of them the room.
    first_run, first_term = len(units), len(units) + len(runs)
    columns, rows, values = [], [], []

    def put(row: int, column: int, value: float) -> None:
        rows.append(row)
        columns.append(column)
        values.append(value)

    for number, unit in enumerate(units):
        put(number, number, 1)
        put(number, first_run + run_at[pool.run_of[unit]], -1)
    for number, sharing in enumerate(shared):
        put(len(units) + number, first_term + number, 1)
        for place in sharing:
            put(len(units) + number, place, -1)
    last = len(units) + len(shared)
    for number, unit in enumerate(units):
        put(last, number, problem.costs[unit])
    for number in range(len(runs)):
        put(last, first_run + number, problem.opening)
    total = first_term + len(shared)
    limits = np.zeros(last + 1)
    limits[last] = problem.room
    found = optimize.linprog(
        -np.concatenate([worth, np.zeros(len(runs)), np.array(list(shared.values()), dtype=float)]),
        A_ub=sparse.csr_matrix((values, (rows, columns)), shape=(last + 1, total)),
        b_ub=limits,
        bounds=(0, 1),
        method="highs",
    )
    if found.status != 0:
        raise ArithmeticError(f"the linear program was not solved: {found.message}")
    return float(-found.fun)


def _scipy() -> tuple[Any, Any, Any]:
    try:
        import numpy as np
        from scipy import optimize, sparse
    except ImportError:
        raise MissingExtraError("the upper bound of a choice", "lab") from None
    return np, optimize, sparse
