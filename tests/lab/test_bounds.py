"""The upper bound of a choice, on problems that can be solved by looking at every choice."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from firsthand.cli.app import app
from firsthand.lab.bounds import bound, upper_bound
from firsthand.projection.coverage.pool import Pool, Run
from firsthand.projection.coverage.problem import Problem
from firsthand.projection.features.units import Source
from firsthand.samples import chain
from firsthand.tokens import EstimateCounter
from firsthand.transcript import View


def problem(blocks: list[list[list[int]]], weights: list[int], costs: list[int], opening: int, room: int) -> Problem:
    pool = Pool()
    for number, units in enumerate(blocks):
        first = len(pool.sizes)
        for terms in units:
            pool.sizes.append(1)
            pool.terms += terms
            pool.offsets.append(len(pool.terms))
            pool.run_of.append(number)
        pool.runs.append(Run(number, 0, Source.RESULT, first, len(pool.sizes)))
    return Problem(pool, weights, costs[: len(pool)], opening, room)


def best(case: Problem) -> int:
    units = range(len(case.costs))
    return max(
        case.value(choice)
        for length in range(len(units) + 1)
        for choice in combinations(units, length)
        if case.cost(choice) <= case.room
    )


def test_two_units_of_which_one_and_a_half_fit() -> None:
    case = problem([[[0], [1]]], [10, 6], [2, 2], 1, 4)
    assert case.greedy() == [0]
    assert upper_bound(case) == pytest.approx(13)  # one for opening, two for the first unit, and half of the second
    assert best(case) == 10


def test_what_is_shown_twice_counts_once() -> None:
    case = problem([[[0, 1]], [[0, 1]]], [10, 5], [2, 2], 0, 10)
    assert upper_bound(case) == pytest.approx(15) == best(case)
    assert upper_bound(problem([[[0]]], [0], [1], 0, 5)) == 0


POOLS = st.lists(st.lists(st.lists(st.integers(0, 5), max_size=3, unique=True), min_size=1, max_size=3), min_size=1, max_size=3)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(
    POOLS,
    st.lists(st.integers(1, 20), min_size=6, max_size=6),
    st.lists(st.integers(1, 4), min_size=9, max_size=9),
    st.integers(0, 2),
    st.integers(0, 12),
)
def test_no_choice_is_worth_more(
    blocks: list[list[list[int]]], weights: list[int], costs: list[int], opening: int, room: int
) -> None:
    case = problem(blocks, weights, costs, opening, room)
    assert case.cost(case.greedy()) <= room
    assert case.value(case.greedy()) <= best(case) <= upper_bound(case) + 1e-6


def test_the_plan_of_a_session_stays_under_its_bound() -> None:
    view = View(chain("pipeline").entries[:56])
    found = bound(view, EstimateCounter(), 1_000)
    assert found is not None
    assert 0 < found.plan <= 1
    assert 0.8 < found.greedy <= 1
    assert found.room > 0
    assert found.units > 100


def test_the_command(tmp_path: Path) -> None:
    file = tmp_path / "session.json"
    assert CliRunner().invoke(app, ["sample", "pipeline", "--stages", "1", "--out", str(file)]).exit_code == 0
    done = CliRunner().invoke(app, ["lab", "bound", str(file), "--target", "500,2000", "--json"])
    assert done.exit_code == 0, done.output
    assert [row["target"] for row in json.loads(done.stdout)] == [500, 2_000]
    assert CliRunner().invoke(app, ["lab", "bound", str(file), "--target", "many"]).exit_code == 1
