from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from reading_model import SYSTEM, TOOLS, answer, asked_of, gaps_of, says, sees, session_file
from typer.testing import CliRunner

from firsthand.cli.lab_model import register
from firsthand.errors import FirsthandError, ProviderError
from firsthand.formats import read_sessions
from firsthand.lab.arms import Arm
from firsthand.lab.exams.cloze import question
from firsthand.lab.model.endpoint import Endpoint
from firsthand.lab.model.jobs import Jobs
from firsthand.lab.model.ledger import Ledger
from firsthand.lab.model.reading import Plan, Reading, places, read
from firsthand.lab.model.results import ModelRow, as_csv, model_scores, rows_of
from firsthand.lab.money.prices import picos, price_given
from firsthand.lab.values import homes
from firsthand.samples import chain
from firsthand.testing.server import Answer, Failure, FakeServer, Received, Reply

ARMS = (Arm("futureos-deterministic"), Arm("opencode-v1", summariser="extractive"))
PRICE = price_given("m", "1,4,0.02", "CNY")


def asked(
    file: Path, model: Callable[[Received], Answer], *, budget: str = "5", ledger: Path | None = None, **plan: Any
) -> tuple[Reading, FakeServer]:
    wanted = Plan(**{"arms": ARMS, "values": 12, "window": 20_000, **plan})
    sessions = read_sessions(file)
    with (
        FakeServer(model) as server,
        Ledger(ledger or file.parent / "ledger.db", currency="CNY", budget=picos(budget)) as paid,
    ):
        jobs = Jobs(Endpoint(server.url + "/v1", "m", PRICE), paid)
        return read(list(places(sessions, wanted, jobs)), wanted, jobs), server


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return session_file(tmp_path_factory.mktemp("session"))


def run(reading: Reading) -> list[ModelRow]:
    return rows_of(reading.answers, "model:m", "session", "session")


def test_a_model_that_reads_well_scores_as_the_literal_reader_and_names_no_decoy(file: Path, tmp_path: Path) -> None:
    reading, server = asked(file, sees, ledger=tmp_path / "l.db")
    rows = run(reading)
    assert (reading.asked, reading.planned, reading.unpaired) == (6, 6, 0)
    assert len(server.turns) == 6
    assert all(row.hits == row.contained for row in rows)
    assert {row.reader for row in rows} == {"model:m"}
    assert {row.replicate for row in rows} == {1, 2, 3}
    for score in model_scores(reading.answers):
        assert (score.values, score.decoys, score.false_positives, score.invalid) == (12, 36, 0, 0)
        assert score.share == score.contained == score.replicates[0]
        assert 0 < score.share <= 1
    assert as_csv(rows).splitlines()[0].startswith("session,format,boundary")


def test_the_question_follows_the_projection_in_the_session_s_own_shape(file: Path, tmp_path: Path) -> None:
    _, server = asked(file, sees, ledger=tmp_path / "l.db", replicates=1)
    for got in server.turns:
        assert got.json["messages"][0] == {"role": "system", "content": SYSTEM}
        assert [message["role"] for message in got.messages].count("system") == 1
        assert got.json["tools"] == TOOLS
        assert got.json["temperature"] == 0
        assert got.messages[-1]["role"] == "user"
        assert len(asked_of(got)) == 24
        assert got.violations == ()


def test_the_published_way_has_the_examiner_s_prompt_and_one_message(file: Path, tmp_path: Path) -> None:
    reading, server = asked(file, sees, ledger=tmp_path / "l.db", replicates=1, way="published", exams=("published",))
    for got in server.turns:
        assert [message["role"] for message in got.messages] == ["system", "user"]
        assert SYSTEM not in got.messages[0]["content"]
        assert "tools" not in got.json
    assert all(len(answer.batch.decoys) == 8 for answer in reading.answers)


@pytest.mark.parametrize(
    ("model", "hits", "false", "invalid"),
    [
        (lambda got: answer(asked_of(got)), 12, 12, 0),
        (lambda got: answer([]), 0, 0, 0),
        (says("INCORRECT"), 0, 0, 1),
        (says(""), 0, 0, 1),
        (lambda got: Reply(json.dumps({"appeared": asked_of(got)}), finish="length"), 0, 0, 1),
    ],
    ids=["names all", "abstains", "judges", "empty", "cut off"],
)
def test_what_counts(
    file: Path, tmp_path: Path, model: Callable[[Received], Answer], hits: int, false: int, invalid: int
) -> None:
    reading, _ = asked(file, model, ledger=tmp_path / "l.db", replicates=1)
    for got in reading.answers:
        keys = {one.key for one in got.batch.values}
        assert len(got.claimed & keys) == hits
        assert len(got.claimed - keys) == false
        assert bool(got.why) == bool(invalid)


def test_a_gap_is_filled_exactly_or_not_at_all(tmp_path: Path) -> None:
    sessions = [session_file(tmp_path), session_file(tmp_path, "other", tag="piece")]
    truth: dict[str, str] = {}

    def fills(got: Received) -> Reply:
        gaps = gaps_of(got)
        return Reply(json.dumps({"answers": {number: truth.get(line) for number, line in gaps.items()}}))

    plan = Plan(arms=ARMS[:1], exams=("cloze",), values=12, window=20_000, replicates=1)
    transcripts = [one for path in sessions for one in read_sessions(path)]
    own = homes(transcripts[0].view().entries)
    truth.update({question(value) or "": value.text for value in own.values()})
    with FakeServer(fills) as server, Ledger(tmp_path / "l.db", currency="CNY", budget=picos("5")) as paid:
        jobs = Jobs(Endpoint(server.url + "/v1", "m", PRICE), paid)
        reading = read(list(places(transcripts, plan)), plan, jobs)
    first, second = ([got for got in reading.answers if got.session == transcript.id] for transcript in transcripts)
    # It knows the first session by heart and fills gaps of no other one: what is wrong in the second is a decoy from the first.
    assert first
    assert all(len(got.claimed) == len(got.batch.values) == 12 for got in first)
    assert all(got.batch.decoys for got in (*first, *second))
    assert all(got.claimed == frozenset(one.key for one in got.batch.decoys) for got in second)


def test_the_same_run_again_sends_nothing_and_gives_the_same_rows(file: Path, tmp_path: Path) -> None:
    first, server = asked(file, sees, ledger=tmp_path / "l.db")
    again, other = asked(file, lambda got: pytest.fail("paid twice"), ledger=tmp_path / "l.db")
    assert len(server.turns) == 6
    assert other.turns == []
    assert run(again) == run(first)


def test_a_budget_that_runs_out_leaves_a_fair_comparison(file: Path, tmp_path: Path) -> None:
    unbilled = Reply(json.dumps({"appeared": []}), report_usage=False)
    reading, server = asked(file, lambda got: unbilled, ledger=tmp_path / "l.db", budget="0.2", values=36)
    assert reading.stopped is not None
    assert "raise --budget" in reading.stopped
    assert 0 < len(server.turns) < reading.planned
    counts = {}
    for got in reading.answers:
        counts.setdefault(got.arm, []).append(got.question)
    assert len({tuple(sorted(questions)) for questions in counts.values()}) <= 1
    with Ledger(tmp_path / "l.db", currency="CNY", budget=picos("0.2")) as paid:
        assert paid.spent().total <= picos("0.2")


def test_a_refused_key_stops_at_once(file: Path, tmp_path: Path) -> None:
    with pytest.raises(ProviderError, match="answered 401"):
        asked(file, lambda got: Failure("auth"), ledger=tmp_path / "l.db")
    with Ledger(tmp_path / "l.db", currency="CNY", budget=1) as paid:
        assert len(paid.calls()) == 1
        assert paid.spent().total == 0


def test_a_call_that_failed_is_said_and_not_sent_again(file: Path, tmp_path: Path) -> None:
    failed: list[int] = []

    def flaky(got: Received) -> Answer:
        if not failed:
            failed.append(got.number)
            return Failure("server")
        return sees(got)

    reading, _ = asked(file, flaky, ledger=tmp_path / "l.db")
    assert len(reading.unresolved) == 1
    assert (reading.asked, reading.unpaired, len(reading.answers)) == (5, 1, 4)
    again, other = asked(file, sees, ledger=tmp_path / "l.db")
    assert other.turns == []
    assert again.unresolved[0].endswith("is not sent again without --retry-unresolved")


def test_summaries_by_the_model_are_paid_for_too(file: Path, tmp_path: Path) -> None:
    def model(got: Received) -> Answer:
        return sees(got) if "- " in str(got.messages[-1]["content"]) and asked_of(got) else Reply("The port was 5001.")

    arm = Arm("futureos-summarized", summariser="model")
    reading, server = asked(file, model, ledger=tmp_path / "l.db", arms=(arm,), replicates=1, window=40_000)
    summaries = [got for got in server.turns if not asked_of(got)]
    assert len(summaries) == 1
    assert summaries[0].json["tools"] == TOOLS
    assert summaries[0].json["messages"][0]["content"] == SYSTEM
    with Ledger(tmp_path / "l.db", currency="CNY", budget=1) as paid:
        assert next(call.identity.rsplit("/", 1)[-1] for call in paid.calls()) == "summary handoff"
        assert 0 < paid.spent().summaries < paid.spent().total
    assert reading.asked == 1


@pytest.mark.slow
def test_the_published_exam_on_a_published_chain(tmp_path: Path) -> None:
    """With a reader that reads literally it is what the experiment reports of its own deterministic arm: 10 of 17, and no decoy."""
    plan = Plan(
        arms=ARMS[:1], exams=("published",), way="published", chains=True, window=1_000_000, output_ceiling=384_000,
        profile="futureos-e2", replicates=1,
    )  # fmt: skip
    with FakeServer(sees) as server, Ledger(tmp_path / "l.db", currency="CNY", budget=picos("5")) as paid:
        jobs = Jobs(Endpoint(server.url + "/v1", "m", PRICE), paid)
        reading = read(list(places([chain("pipeline")], plan)), plan, jobs)
    (score,) = model_scores(reading.answers)
    assert [got.boundary for got in reading.answers] == ["28 records", "112 records", "224 records"]
    assert (score.values, score.decoys, score.false_positives) == (17, 24, 0)
    assert round(score.share * 17) == 10


def invoked(*arguments: object) -> Any:
    app = typer.Typer()
    app.callback()(lambda: None)
    register(app)
    return CliRunner().invoke(app, ["ask", *map(str, arguments)])


def test_the_command(file: Path, tmp_path: Path) -> None:
    common = (file, "--model", "m", "--budget", "2 CNY", "--price", "1,4,0.02", "--ledger", tmp_path / "l.db")
    common += ("--strategies", "futureos-deterministic,pi", "--values", 12, "--window", 20_000)
    with FakeServer(sees) as server:
        url = ("--reader", server.url + "/v1")
        assert "Nothing was sent" in invoked(*common, *url, "--dry-run").stdout
        assert server.turns == []
        done = invoked(*common, *url, "--csv", tmp_path / "rows.csv")
        assert done.exit_code == 0, done.output
        assert "reader: model:m" in done.stdout
        assert "(reader: literal)" in " ".join(done.stdout.split())
        assert (tmp_path / "rows.csv").read_text().count("\n") > 6
        rows = json.loads(invoked(*common, *url, "--json").stdout)
        assert {row["reader"] for row in rows} == {"model:m"}
        assert len(server.turns) == 6


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        (("--budget", "2 USD", "--prices", "own.toml"), "in one currency"),
        (("--budget", "lots"), "amount and a currency"),
        (("--exams", "supported"), "a model is not asked supported"),
        (("--price", "1"), "INPUT,OUTPUT"),
        (("--model", "no-such-model-of-anybody", "--budget", "1 USD"), "no price is known"),
    ],
)
def test_what_cannot_work_is_said_before_anything_is_sent(
    file: Path, tmp_path: Path, changed: tuple[str, ...], problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("own.toml").write_text('[m]\ninput = 1\noutput = 2\ncurrency = "CNY"\n')
    options = {"--reader": "http://127.0.0.1:9/v1", "--model": "m", "--budget": "1 CNY"}
    done = invoked(
        file,
        *(part for pair in (options | dict(zip(changed[::2], changed[1::2], strict=True))).items() for part in pair),
    )
    assert isinstance(done.exception, FirsthandError), done.output
    assert problem in str(done.exception)
