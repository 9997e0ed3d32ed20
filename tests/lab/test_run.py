from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import typer
from real_sessions import shared
from typer.testing import CliRunner

from firsthand.budget import Budget
from firsthand.cli.lab_run import register
from firsthand.codec import encode
from firsthand.errors import ConfigError, ProviderError
from firsthand.formats import read_sessions
from firsthand.formats.wire import wire_by_name
from firsthand.lab.arms import Arm, run_arm, size_of
from firsthand.lab.boundaries import Boundary
from firsthand.lab.comparisons import comparisons
from firsthand.lab.loaded import loaded
from firsthand.lab.measuring import Bench, Task
from firsthand.lab.results import Cache, Row, as_csv, scores
from firsthand.lab.runner import Origin, Rival, Setup, replay, run, run_together
from firsthand.lab.summarisers import CAP, extract, label, summariser
from firsthand.lab.survival import survive
from firsthand.strategies import strategy_by_name
from firsthand.testing.builders import call, filler, result, said, session, user
from firsthand.testing.server import Failure, FakeServer, Reply
from firsthand.tokens import EstimateCounter, O200kCounter

STRATEGIES = ("futureos-deterministic", "opencode-v1")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    turns = []
    for number in range(1, 31):
        turns += [
            user(f"Look at src/mod_{number}.py. Never touch port {5000 + number}."),
            said(f"I read src/mod_{number}.py for task-{number:02d}b.", call("read", path=f"src/mod_{number}.py")),
            result(f"c{number}", f"retry_limit_{number} = {number * 111}\n{filler(1_000, f'log{number:03d}')}"),
            said(f"The limit retry_limit_{max(1, number - 12)} stays."),
        ]
    path = tmp_path / "session.json"
    path.write_bytes(encode(wire_by_name("openai-chat").write(session(*turns)).messages))
    return path


def measured(file: Path, cache: Cache, **changes: object) -> list[Row]:
    return run([Origin(str(file))], Setup(STRATEGIES, **changes), cache, workers=1)  # type: ignore[arg-type]


def key(row: Row) -> tuple[object, ...]:
    arm = (row.strategy, row.target, row.rival, row.tail, row.summariser)
    return (row.session, row.boundary, arm, row.exam, row.recall, row.reader, row.source)


def test_one_row_per_measurement_and_source(file: Path) -> None:
    rows = measured(file, Cache(None))
    assert len({key(row) for row in rows}) == len(rows)
    assert {row.strategy for row in rows} == set(STRATEGIES)
    assert {(row.strategy, row.summariser) for row in rows} == {
        ("futureos-deterministic", "-"), ("opencode-v1", "none"), ("opencode-v1", "extractive"),
    }  # fmt: skip
    assert {row.boundary for row in rows} == {"40%", "70%", "90%", "100%"}
    assert {row.exam for row in rows if row.boundary in ("90%", "100%")} >= {"continuation", "recognition"}
    assert all(row.exam == "continuation" for row in rows if row.boundary == "90%")
    assert not any(row.exam == "continuation" for row in rows if row.boundary == "100%")
    assert all(0 <= row.hits <= row.of and row.values <= row.of for row in rows)
    kept = {
        row.strategy: row.hits / row.of for row in rows if row.exam == "constraints" and row.summariser != "extractive"
    }
    assert kept["futureos-deterministic"] == 1  # user text is whole


def test_an_interrupted_run_goes_on(file: Path, tmp_path: Path) -> None:
    store = tmp_path / "cache.jsonl"
    rows = measured(file, Cache(store))
    lines = store.read_bytes().splitlines(keepends=True)
    store.write_bytes(b"".join(lines[:3]) + lines[3][:20])
    seen: list[tuple[int, int]] = []
    again = run(
        [Origin(str(file))],
        Setup(STRATEGIES),
        Cache(store),
        workers=1,
        progress=lambda done, of: seen.append((done, of)),
    )
    assert seen[0][0] > 0  # what was finished was not measured again
    assert plain(again) == plain(rows)
    assert as_csv(again).splitlines()[0].startswith("session,format,boundary")


def plain(rows: list[Row]) -> list[dict[str, object]]:
    """Rows without times, which no two measurements share."""
    names = [name for name in Row.__struct_fields__ if not name.startswith("milliseconds")]
    return [{name: getattr(row, name) for name in names} for row in rows]


def test_runs_that_are_measured_together_have_the_rows_of_runs_alone(file: Path) -> None:
    origins = [Origin(str(file))]
    own = Setup(("coverage", "pi"), exams=("recognition", "cloze", "continuation"), seeds=1, shares=(70, 100))
    setups = [
        own,
        replace(own, exams=("cloze",), recall=500, summarisers=("extractive",)),
        replace(own, exams=("recognition",), targets=(3_000,), timed=False),
        replace(own, rivals=(Rival("pi"), Rival("pi", 4_000)), timed=False),
    ]
    made = run_together([(origins, setup) for setup in setups], Cache(None), ())
    for (rows, seconds), setup in zip(made, setups, strict=True):
        assert plain(rows) == plain(run(origins, replace(setup, timed=True), Cache(None), workers=1))
        assert seconds > 0
    assert all(row.milliseconds == 0 for row in made[2][0])


def test_rows_without_times_are_taken_from_those_with_times_and_not_the_other_way(file: Path) -> None:
    store = Cache(None)
    timed = measured(file, store, exams=("recognition",), targets=(4_000,))
    assert measured(file, store, exams=("recognition",), targets=(4_000,), timed=False) == timed
    store = Cache(None)
    untimed = measured(file, store, exams=("recognition",), targets=(4_000,), timed=False)
    again = measured(file, store, exams=("recognition",), targets=(4_000,))
    assert plain(again) == plain(untimed)
    assert max(row.milliseconds for row in again if row.target) > 0


def test_targets(file: Path) -> None:
    rows = measured(file, Cache(None), targets=(4_000, 8_000), exams=("recognition",), summarisers=("none",))
    sizes = {row.target: row.tokens for row in rows}
    assert set(sizes) == {None, 4_000, 8_000}
    assert {row.strategy for row in rows if row.target is None} == {"futureos-deterministic"}  # no knob: a single point
    assert sizes[4_000] < sizes[8_000]


@pytest.mark.parametrize("rival", [Rival("futureos-deterministic"), Rival("pi", 6_000)])
def test_at_a_rivals_size_free_and_with_its_tail(file: Path, rival: Rival) -> None:
    exams = ("recognition", "constraints")
    rows = run(
        [Origin(str(file))],
        Setup(("opencode-v1", "codex-token-budget"), rivals=(rival,), exams=exams),
        Cache(None),
        workers=1,
    )
    assert len({key(row) for row in rows}) == len(rows)
    own = {row.position: row.tokens for row in rows if row.tail == "own"}
    assert {row.strategy for row in rows if row.tail == "own"} == {rival.strategy}
    for tail in ("free", "forced"):
        compared = [row for row in rows if row.tail == tail]
        assert {(row.strategy, row.rival) for row in compared} == {("opencode-v1", rival.label)}
        assert {row.summariser for row in compared} == {"none", "extractive"}
        assert all(row.target == own[row.position] for row in compared)
        assert all(row.tokens <= own[row.position] for row in compared if row.outcome == "compacted")
    # No knob for its size: a single point, in no comparison.
    assert {(row.target, row.rival, row.tail) for row in rows if row.strategy == "codex-token-budget"} == {
        (None, "", "")
    }
    found = comparisons(rows, 1)
    assert {(one.strategy, one.tail, one.exam) for one in found} == {
        ("opencode-v1", tail, exam) for tail in ("free", "forced") for exam in exams
    }
    assert all(one.largest <= 1 for one in found)


def test_the_rivals_tail_stands_on_both_sides(file: Path) -> None:
    rival = Rival("pi", 9_000)
    (transcript,) = read_sessions(file)
    setup = Setup(("opencode-v1",), rivals=(rival,), summarisers=("extractive",))
    at = loaded(Origin(str(file)))
    end = len(transcript.entries)
    bench = Bench(Task(Origin(str(file)), setup, Boundary(end, "100%"), (), ()), at)
    theirs = bench.projected(setup.rival_arm(rival), end)
    ours = bench.projected(Arm("opencode-v1", None, "extractive", rival.label, "forced"), end)
    assert theirs is not None
    assert ours is not None
    assert theirs.plan is not None
    tail = at.view.entries[at.view.positions[theirs.plan.cutoff] + 1 :]
    assert len(tail) > 1
    assert ours.entries[-len(tail) :] == theirs.entries[-len(tail) :] == tail
    assert size_of(ours.entries, at.counter) <= size_of(theirs.entries, at.counter)


def test_a_model_behind_a_url_writes_the_summaries(file: Path) -> None:
    said = "The retry limit of the sixth module is 666, in src/mod_6.py."
    arms = ("pi", "opencode-v1", "codex-local", "futureos-deterministic")
    with FakeServer(default=Reply(said)) as server:
        rows = run(
            [Origin(str(file))],
            Setup(arms, exams=("recognition",), summarisers=(server.url, "none"), model="m", shares=(100,)),
            Cache(None),
            workers=1,
        )
        assert not server.problems
        assert {request.json["model"] for request in server.requests} == {"m"}
        assert len(server.requests) in (3, 4)  # Pi asks twice where it splits a turn
    assert {(row.strategy, row.summariser) for row in rows} == {
        ("futureos-deterministic", "-"),
        *((name, by) for name in arms[:3] for by in (server.url, "none")),
    }
    assert {row.outcome for row in rows} == {"compacted"}
    sizes = {(row.strategy, row.summariser): row.tokens for row in rows}
    assert all(sizes[name, server.url] > sizes[name, "none"] for name in arms[:3])


def test_a_model_that_refuses_is_in_no_table_and_one_that_is_not_there_ends_the_run(file: Path) -> None:
    setup = Setup(("pi",), exams=("recognition",), model="m", shares=(100,))
    with FakeServer(default=Failure("rate_limit")) as server:
        rows = run([Origin(str(file))], replace(setup, summarisers=(server.url,)), Cache(None), workers=1)
        gone = server.url
    assert {row.outcome for row in rows} == {"no-summary"}
    assert scores(rows, 1) == []
    with pytest.raises(ProviderError):
        run([Origin(str(file))], replace(setup, summarisers=(gone,)), Cache(None), workers=1)


def test_addresses_in_rows_hold_no_secret() -> None:
    assert label("http://me:secret@host:1/v1") == "http://host:1/v1"
    assert label("extractive") == "extractive"
    for name, model in (("sometimes", ""), ("http://host/v1", "")):
        with pytest.raises(ConfigError):
            summariser(name, EstimateCounter(), model=model)


def test_deployed_compacts_only_where_the_trigger_fires(file: Path) -> None:
    rows = measured(file, Cache(None), mode="deployed", window=32_000, exams=("recognition",), summarisers=("none",))
    outcomes = {(row.strategy, row.boundary): (row.outcome, row.tokens, row.history) for row in rows}
    assert {outcome for outcome, _, _ in outcomes.values()} == {"whole", "compacted"}
    for outcome, tokens, history in outcomes.values():
        assert (tokens == history) is (outcome == "whole")
    assert {(one.exam, one.strategy) for one in scores(rows, 1)} == {("recognition", name) for name in STRATEGIES}


def test_recall_is_asked_beside_and_only_adds(file: Path) -> None:
    rows = measured(file, Cache(None), exams=("cloze", "published"), summarisers=("none",), shares=(100,), recall=1_000)
    assert len({key(row) for row in rows}) == len(rows)
    assert {(row.exam, row.recall) for row in rows} == {
        ("cloze", None), ("cloze", 1_000), ("published", None), ("published+recall", 1_000),
    }  # fmt: skip
    sums: dict[tuple[str, str, int | None], list[int]] = {}
    for row in rows:
        cell = sums.setdefault((row.strategy, row.exam, row.recall), [0, 0])
        cell[0] += row.hits
        cell[1] += row.of
    for strategy in STRATEGIES:
        without, brought = sums[strategy, "cloze", None], sums[strategy, "cloze", 1_000]
        assert brought[1] == without[1] > 50
        assert brought[0] > 1.3 * without[0]


def test_two_processes_give_what_one_gives(file: Path) -> None:
    setup = Setup(("futureos-deterministic",), exams=("recognition", "constraints"))
    one = run([Origin(str(file))], setup, Cache(None), workers=1)
    two = run([Origin(str(file))], setup, Cache(None), workers=2)
    assert [(key(row), row.hits, row.of, row.tokens) for row in one] == [
        (key(row), row.hits, row.of, row.tokens) for row in two
    ]


def test_few_questions_are_listed_and_not_judged(file: Path) -> None:
    rows = measured(file, Cache(None), exams=("constraints", "published"), summarisers=("none",))
    (few,) = [one for one in scores(rows, 10_000) if one.strategy == "opencode-v1" and one.exam == "constraints"]
    assert (few.mean, few.sessions, few.listed) == (None, 0, 1)


def test_command(file: Path, tmp_path: Path) -> None:
    app = typer.Typer()
    app.callback()(lambda: None)
    register(app)
    base = [
        "run",
        str(file),
        "--strategies",
        "futureos-deterministic",
        "--exams",
        "recognition",
        "--no-cache",
        "--workers",
        "1",
    ]
    found = CliRunner().invoke(app, [*base, "--json", "--csv", str(tmp_path / "rows.csv"), "--at", "70"])
    assert found.exit_code == 0, found.output
    rows = json.loads(found.stdout)
    assert {row["boundary"] for row in rows} == {"70%"}
    assert (tmp_path / "rows.csv").read_text().count("\n") == len(rows) + 1
    printed = CliRunner().invoke(app, base)
    assert "recognition (reader: literal; %)" in printed.stdout
    for wrong in (
        ["--at", "0"],
        ["--mode", "sometimes"],
        ["--exams", "none"],
        ["--target", "x"],
        ["--target", "codex-token-budget:9"],
        ["--synthetic"],
    ):
        failed = CliRunner().invoke(app, [*base, *wrong])
        assert isinstance(failed.exception, ConfigError), wrong


def test_the_stand_in_quotes_and_keeps_its_cap() -> None:
    counter = EstimateCounter()
    messages = [f"line about src/mod_{number}.py and more words here" for number in range(500)]
    text = extract(messages, 200, counter)
    assert text
    assert counter.count(text) <= 200
    assert all(line in messages for line in text.splitlines())
    assert text == extract(messages, 200, counter)
    assert extract(["only plain words"], 200, counter) == ""
    assert CAP == 2_000


def test_survival_compares_with_the_plan_made_at_once(file: Path) -> None:
    (transcript,) = read_sessions(file)
    strategy = strategy_by_name("futureos-deterministic", from_originals=True)
    rows = list(survive(transcript, strategy, 16_000, EstimateCounter(), after=(1, 2)))
    assert "compaction 2" in {row.boundary for row in rows}
    assert all(row.equal for row in rows)
    assert all(row.mode == "replay" for row in rows)


def test_survival_of_the_beginning_and_of_what_was_chosen(file: Path) -> None:
    (transcript,) = read_sessions(file)
    rows = list(survive(transcript, strategy_by_name("coverage"), 16_000, EstimateCounter(), after=(1, 3)))
    assert all(row.equal for row in rows)
    first = [row for row in rows if row.exam == "earliest" and row.boundary == "compaction 3"]
    assert {row.source for row in first} >= {"user", "tool"}
    assert all(row.hits == row.of for row in first if row.source == "user")
    kept = [row for row in rows if row.exam == "lines-kept"]
    assert [(row.boundary, row.source) for row in kept] == [("compaction 3", "plan")]
    assert 0 < kept[0].hits <= kept[0].of


def test_survival_at_a_size_by_the_exact_counter(file: Path) -> None:
    setup = Setup(("coverage", "recorded"), targets=(3_000,))
    rows = replay(Origin(str(file)), setup, [16_000])
    assert {row.target for row in rows} == {3_000}
    assert 2_500 < max(row.tokens for row in rows if row.exam == "recognition") <= 3_000
    drawn = {row.source: row for row in rows if row.exam == "early-drawn" and row.boundary == "compaction 1"}
    assert drawn["user"].hits == drawn["user"].of


def test_features_are_of_the_entries_that_may_be_seen_and_change_no_plan(file: Path) -> None:
    strategy = strategy_by_name("coverage")
    at = loaded(Origin(str(file)))
    view = at.at(40, strategy)
    assert view.features == {entry.id: strategy.features(entry) for entry in view.entries}
    budget = Budget.of(16_000, counter=EstimateCounter())
    made = run_arm(Arm("coverage"), strategy, view, budget, None, "forced", EstimateCounter())
    bare = run_arm(Arm("coverage"), strategy, at.at(40), budget, None, "forced", EstimateCounter())
    assert made.plan == bare.plan
    assert made.cold > 0
    assert bare.cold == bare.milliseconds


@pytest.mark.slow
def test_a_real_session_gives_no_false_positive_in_what_was_only_quoted() -> None:
    origin = Origin(str(shared("pi/preloop-omp-thinking.jsonl.gz")))
    rows = run([origin], Setup(("futureos-deterministic",)), Cache(None), workers=1)
    assert sum(row.of for row in rows if row.exam == "recognition") > 300
    assert sum(row.false_positives for row in rows) == 0
    assert {row.tokens for row in rows} <= set(range(1, 40_000))
    assert O200kCounter().name == "o200k"
