"""`lab run --reader`: the run's strategies and boundaries, read by a model; and what a report makes of its rows and its ledger."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import pytest
from reading_model import sees, session_file
from typer.testing import CliRunner, Result

from firsthand.cli.app import app
from firsthand.errors import FirsthandError
from firsthand.testing.server import FakeServer


def invoked(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["lab", *map(str, arguments)])


def test_a_model_reads_a_run_and_a_report_shows_it_apart(tmp_path: Path) -> None:
    file = session_file(tmp_path)
    ledger = tmp_path / "calls.db"
    common = ("--strategies", "futureos-deterministic,pi", "--at", "100", "--window", 20_000, "--exams", "recognition")
    with FakeServer(sees) as server:
        options = (
            "--reader",
            server.url + "/v1",
            "--model",
            "m",
            "--budget",
            "2 CNY",
            "--price",
            "1,4,0.02",
            "--ledger",
            ledger,
        )
        done = invoked("run", file, *common, *options, "--csv", tmp_path / "ask.csv")
    assert done.exit_code == 0, done.output
    rows = list(csv.DictReader(io.StringIO((tmp_path / "ask.csv").read_text())))
    assert {row["strategy"] for row in rows} == {"futureos-deterministic", "pi"}
    assert {row["reader"] for row in rows} == {"model:m"}
    out = tmp_path / "r.html"
    done = invoked(
        "report", file, "--out", out, "--rows", tmp_path / "ask.csv", "--ledger", ledger, "--parts", "compose"
    )
    assert done.exit_code == 0, done.output
    page = out.read_text()
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))
    assert "recognition: reported by model:m, %" in text
    assert "rows taken from ask.csv" in text
    assert "Charged: what ledgers say was paid" in text
    assert "calls.db" in text
    heads = re.findall(r"<thead><tr>(.*?)</tr></thead>", page)
    assert not any("reported %" in head and "shown %" in head for head in heads)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--reader", "http://127.0.0.1:9/v1"), "needs --model and --budget"),
        (("--budget", "1 USD"), "go with --reader"),
        (("--reader", "http://x/v1", "--model", "m", "--budget", "1 USD", "--target", "pi"), "at one size, forced"),
        (
            ("--reader", "http://x/v1", "--model", "m", "--budget", "1 USD", "--summariser", "none,extractive"),
            "one summariser at a time",
        ),
    ],
)
def test_what_cannot_work_is_said(options: tuple[str, ...], problem: str, tmp_path: Path) -> None:
    done = invoked("run", session_file(tmp_path, turns=2), *options)
    assert isinstance(done.exception, FirsthandError), done.output
    assert problem in str(done.exception)
