from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from real_sessions import shared
from typer.testing import CliRunner

from firsthand.cli.lab_money import register
from firsthand.errors import ConfigError
from firsthand.formats import read_sessions
from firsthand.lab.money.own import own_costs, pooled
from firsthand.lab.money.prices import price_given

PRICE = price_given("m", "1,4,0.02", "CNY")
STRATEGIES = ("futureos-deterministic", "futureos-summarized", "codex-local", "pi", "opencode-v1")


def invoked(*arguments: object) -> Any:
    app = typer.Typer()
    app.callback()(lambda: None)
    register(app)
    return CliRunner().invoke(app, ["money", *map(str, arguments)])


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    (session,) = read_sessions(shared("codex/hk-compact2.jsonl.gz"))
    return {row.strategy: row for row in own_costs(session, STRATEGIES, PRICE, exam="constraints")}


def test_one_place_where_the_window_is_nearly_full(found: dict[str, Any]) -> None:
    assert set(found) == set(STRATEGIES)
    assert {row.boundary for row in found.values()} == {"80% of window"}
    assert all(row.history + row.fixed <= 200_000 for row in found.values())
    assert len({row.history for row in found.values()}) == 1


def test_only_a_request_of_the_session_s_own_shape_is_cheap(found: dict[str, Any]) -> None:
    own = found["futureos-summarized"]
    assert own.shares
    assert own.costs.cached < own.costs.cold / 4
    for name in ("pi", "opencode-v1"):
        assert not found[name].shares
        assert found[name].costs.cached == found[name].costs.cold > 0
    free = found["futureos-deterministic"].costs
    assert (free.cold, free.cached) == (0, 0)


def test_each_turn_costs_what_its_projection_takes(found: dict[str, Any]) -> None:
    for row in found.values():
        assert row.costs.turn < row.costs.first_turn <= row.costs.turn_cold == PRICE.bill(row.projection + row.fixed)


def test_the_published_convention_grows_with_the_number_of_boundaries(found: dict[str, Any]) -> None:
    row = found["futureos-summarized"]
    one, three = pooled([row])[0], pooled([row] * 3)[0]
    assert three.total_cached == 3 * one.total_cached
    assert three.one_cached == one.one_cached
    assert three.break_even == one.break_even
    assert three.published_break_even == pytest.approx(3 * one.published_break_even)


def test_the_command_says_what_is_modelled_and_by_what_price() -> None:
    done = invoked(
        shared("claude-code/viewer-sidechain-small.jsonl"), "--model", "m", "--price", "1,4,0.02", "--currency", "CNY",
        "--window", 20_000, "--strategies", "futureos-deterministic", "--exam", "recognition",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("Modelled, CNY")
    assert "given on the command line" in done.stdout
    assert "Nothing here was charged" in " ".join(done.stdout.split())


def test_the_published_figures_as_a_table() -> None:
    text = invoked("--published").stdout
    for printed in ("7.98 / 0.53 / 0.000480 / 61 / 0.0070", "0.99 / 0.99 / 0.000204 / 110 / 0.0217", "2.5"):
        assert printed in text
    rows = json.loads(invoked("--published", "--json").stdout)
    assert [row["arm"]["name"] for row in rows] == ["summarized", "deterministic", "opencode", "main", "codex"]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((), "name session files"),
        (("x.jsonl", "--published"), "takes no files"),
        (("x.jsonl", "--model", "m", "--exam", "continuation"), "points are counted"),
    ],
)
def test_what_cannot_work(arguments: tuple[str, ...], problem: str) -> None:
    done = invoked(*arguments)
    assert isinstance(done.exception, ConfigError)
    assert problem in str(done.exception)


def test_reading_a_folder_that_does_not_exist(tmp_path: Path) -> None:
    done = invoked(tmp_path / "nothing.jsonl", "--model", "m", "--price", "1,4")
    assert "does not exist" in str(done.exception)
