"""Tables of a report: exact cells, and columns in which nothing is mixed."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from report_records import CACHE, at_size_of_pi, model_row, record, replayed, row

from firsthand.errors import ConfigError, FormatError
from firsthand.lab.cache.stored import keep_measurements, kept_measurements
from firsthand.lab.model.results import ModelRow
from firsthand.lab.model.results import as_csv as model_csv
from firsthand.lab.report.answers import answers
from firsthand.lab.report.given import read_rows
from firsthand.lab.report.of_models import model_tables
from firsthand.lab.report.of_money import cache_tables, published_money_tables
from firsthand.lab.report.of_rules import asked_of, chain_table, run_tables
from firsthand.lab.report.of_sessions import audit_tables
from firsthand.lab.report.of_sizes import equal_clients, equal_overview, survival_table
from firsthand.lab.report.page import sections
from firsthand.lab.report.pictures import pictures
from firsthand.lab.report.record import Record, read_record, write_record
from firsthand.lab.report.tables import Table, markdown
from firsthand.lab.results import as_csv


def test_a_table_knows_its_numbers_and_writes_itself() -> None:
    table = Table("k", "T", ("name", "score", "of"), (("a|b", "12.5", "5/8 (62.5 %)"), ("c", "-", "")), "cmd")
    assert table.numeric == (False, True, True)
    assert (
        markdown(table) == "| name | score | of |\n| --- | ---: | ---: |\n| a\\|b | 12.5 | 5/8 (62.5 %) |\n| c | - |  |"
    )
    with pytest.raises(AssertionError, match="3 columns"):
        Table("k", "T", ("a", "b", "c"), (("1", "2"),), "cmd")


def test_scores_stand_with_their_numbers_of_values() -> None:
    tables = {table.key: table for table in run_tables(record())}
    overview = tables["overview"]
    assert overview.rows[0] == ("coverage", "50.0", "50.0", "50.0", "50.0", "8,000")
    assert overview.rows[-2] == ("values asked", "180", "180", "180", "180", "")
    assert tables["source-published"].rows[1] == (
        "pi",
        "20/60 (33.3 %)",
        "20/60 (33.3 %)",
        "20/60 (33.3 %)",
        "60/180 (33.3 %)",
    )
    assert tables["ages"].rows[0] == ("coverage", *["50"] * 10)


def test_readers_never_share_a_table_with_scores() -> None:
    reported, shown = model_tables(record())
    # Means over two sessions: (30 + 28)/120 and 10/60.
    assert reported.rows[0] == ("coverage", "-", "", "32.5", "17–48", "33 47", "120", "0/36", "0", "8,000")
    assert shown.rows[0] == ("coverage", "-", "", "66.7", "120")
    assert not any("shown" in column for column in reported.columns)
    assert not any("reported" in column for column in shown.columns)
    for table in run_tables(record()):
        assert "model" not in table.title


def test_measured_and_modelled_never_share_a_table() -> None:
    measured, modelled = cache_tables(record())
    assert measured.rows == (("identical shape", "978", "947", "940", "99.3", "at least 95%", "yes"),)
    assert modelled.columns == ("request", "modelled %", "published")
    assert "NO" in cache_tables(record(cache=(msgspec.structs.replace(CACHE, holds=False),)))[0].rows[0]


def test_published_money_is_what_the_command_prints() -> None:
    convention, single = published_money_tables()
    assert convention.rows[0] == (
        "summarized",
        "7.98",
        "0.53",
        "0.000480",
        "61",
        "0.007",
        "7.98 / 0.53 / 0.000480 / 61 / 0.0070",
    )
    assert single.rows[4][:4] == ("codex", "0.3183", "0.0175", "1.9")


def test_a_compaction_that_was_not_judged_has_no_numbers() -> None:
    (table,) = audit_tables(record())
    assert table.rows[0] == ("one.jsonl", "1 of 1", "150,000", "9,000", "15,000", "61", "23", "11", "4", "4,200")
    line = msgspec.structs.replace(record().audits[0], judged=False, readable=False)
    (table,) = audit_tables(record(audits=(line,)))
    assert table.rows[0] == ("one.jsonl *", "1 of 1", "", "9,000", "", "", "", "", "", "")


def test_the_published_row_stands_beside_the_same_chains_only() -> None:
    chains = [
        row(session=name, strategy="futureos-deterministic", exam="published", hits=hits, of=of, boundary="28 records")
        for name, hits, of in (("export", 9, 16), ("analysis", 9, 16), ("pipeline", 10, 17))
    ]
    table = chain_table(record(rows={"chains": chains}))
    assert table is not None
    assert table.rows[0][1:] == table.rows[1][1:] == ("9/16", "9/16", "10/17", "28/49 (57.1 %)", "0")


def test_references_are_counted_once_for_each_boundary() -> None:
    rows = [
        row(strategy=name, exam="continuation", source="call", values=7, position=at)
        for name in ("a", "b")
        for at in (1, 2)
    ]
    assert asked_of([*rows, row(exam="recognition")], "continuation") == {"call": 14}


def test_equal_size_in_one_table_and_by_client() -> None:
    made = record(rows={"equal": at_size_of_pi()})
    whole, clients = equal_overview(made), equal_clients(made)
    assert whole is not None
    assert whole.columns == ("at the size of", "strategy, summary", "supported", "size %", "over", "sessions", "values")
    assert whole.rows == (("pi", "coverage", "+5.0 / -5.0", "99 / 100", "0 / 0", "2", "120"),)
    assert whole.numeric == (False, False, *[True] * 5)
    assert clients is not None
    assert clients.columns[2:] == ("codex", "aider")
    assert clients.rows == (("pi", "coverage", "+20.0 / +10.0", "-10.0 / -20.0"), ("sessions judged", "", "1", "1"))
    free = [one for one in at_size_of_pi() if one.tail != "forced"]
    assert [table.rows[0][2] for table in (equal_overview(record(rows={"equal": free})),) if table] == ["+5.0 / -"]
    assert equal_clients(record(rows={"equal": [one for one in at_size_of_pi() if one.format == "codex"]})) is None
    assert equal_overview(record(rows={})) is None


def test_survival_in_the_order_of_compactions_with_the_fallbacks_said() -> None:
    table = survival_table(record(rows={"survival": replayed()}))
    assert table is not None
    assert table.columns == ("strategy, summary", "compactions", "sessions", "recognition", "as at once")
    assert table.rows == (
        ("coverage", "1", "1", "40/60 (67)", "yes"),
        ("coverage", "20", "1", "30/60 (50)", "yes"),
        ("pi, extractive", "20", "2 (1)", "28/120 (23)", "-"),
    )
    at_size = [msgspec.structs.replace(one, target=4_000) for one in replayed()[:2]]
    sized = survival_table(record(rows={"survival": [*at_size, *replayed()]}))
    assert sized is not None
    assert [line[0] for line in sized.rows] == [*["coverage at 4,000"] * 2, "coverage", "coverage", "pi, extractive"]
    two = [*replayed(), row(mode="replay", exam="recognition", window=64_000, boundary="compaction 1")]
    assert survival_table(record(rows={"survival": two})).columns[1:3] == ("window", "compactions")  # type: ignore[union-attr]


def test_the_answers_repeat_numbers_of_tables() -> None:
    rows = {"equal": at_size_of_pi(), "survival": replayed()}
    equal, survival, audited = answers(record(rows=rows))
    assert "At the size of `pi`, `coverage` shows" in equal
    assert "`supported` +5.0 / -5.0 (55 % against 50 %, 1 and 1 sessions below)" in equal
    assert equal.endswith("Up to 2 judged sessions and 120 questions.")
    assert survival.endswith("still shown: `coverage` 50.0 %, `pi` 13.3 %.")
    assert "23 of 61 values that their agents used again were gone" in audited
    assert answers(record(rows={}, audits=())) == []


def test_own_sizes_by_client() -> None:
    rows = [
        row(format=client, session=client, strategy=name, hits=hits)
        for client, hits in (("codex", 30), ("aider", 6))
        for name in ("coverage", "pi")
    ]
    (table,) = [one for one in run_tables(record(rows={"run": rows})) if one.key == "clients"]
    assert table.columns == ("strategy, summary", "codex", "aider")
    assert table.rows == (
        ("coverage", "50.0", "10.0"), ("pi", "50.0", "10.0"), ("values asked", "60", "60"), ("sessions judged", "1", "1"),
    )  # fmt: skip


def test_every_table_and_figure_has_its_command() -> None:
    made = record()
    for section in sections(made, pictures(made)):
        for shown in (*section.pictures, *section.tables, *section.more):
            assert shown.command.startswith(("firsthand ", "published figures", "futureos.md"))


def test_stored_rows_come_back(tmp_path: Path) -> None:
    made, path = record(), tmp_path / "r.rows.json.gz"
    write_record(made, path)
    assert read_record(path) == made
    first = path.read_bytes()
    write_record(made, path)
    assert path.read_bytes() == first
    path.write_bytes(b"{}")
    with pytest.raises(FormatError, match="no stored rows"):
        read_record(path)
    with pytest.raises(ConfigError, match="no stored rows"):
        read_record(tmp_path / "none")


def test_a_record_of_another_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "r.gz"
    write_record(msgspec.structs.replace(record(), schema=99), path)
    with pytest.raises(FormatError, match="another version"):
        read_record(path)


def test_rows_of_files_are_told_by_what_they_are(tmp_path: Path) -> None:
    given = [
        row(),
        row(mode="replay", equal=True),
        row(boundary="28 records"),
        row(rival="pi", tail="free"),
        row(target=4_000),
        row(recall=9),
    ]
    (tmp_path / "run.csv").write_text(as_csv(given))
    (tmp_path / "ask.csv").write_text(model_csv([model_row()]))
    (tmp_path / "cache.json").write_bytes(msgspec.json.encode([CACHE]))
    (tmp_path / "open.json").write_text('[{"round": "closed", "fates": {"shown": 2}}]')
    found = read_rows(sorted(tmp_path.iterdir()))
    assert {part: len(rows) for part, rows in found.rows.items()} == dict.fromkeys(
        ("run", "survival", "chains", "equal", "curves", "recall"), 1
    )
    assert found.rows["run"] == given[:1]
    assert found.rows["survival"][0].equal is True
    assert found.model == [model_row()]
    assert isinstance(found.model[0], ModelRow)
    assert found.cache == [CACHE]
    assert found.open_book[0]["round"] == "closed"
    assert [path.name for path in found.sources["ask"]] == ["ask.csv"]


@pytest.mark.parametrize("content", ["", "a,b\n1,2\n", "[1]", "[{", '[{"strategy": 3}]'])
def test_other_files_are_refused_by_name(content: str, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text(content)
    if content == "":
        assert read_rows([path]).rows == {}
        return
    with pytest.raises(FormatError, match=r"x\.csv"):
        read_rows([path])
    with pytest.raises(ConfigError, match="no file of rows"):
        read_rows([tmp_path / "gone"])


def test_a_part_without_a_command_of_its_own_names_the_reports() -> None:
    made: Record = record(parts=())
    assert made.command_of("run") == made.command
    assert replace(run_tables(made)[0]).command == made.command


def test_the_results_page_is_written_from_rows_alone() -> None:
    script = Path(__file__).resolve().parents[3] / "scripts" / "results_page.py"
    spec = importlib.util.spec_from_file_location("results_page", script)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    told = "recognition           recorded 362/5648 = 6.4 %  extractive 640/5648 = 11.3 %"
    made = module.page(record(command="firsthand lab report /home/me/one.jsonl"), told, "/home/me/")
    assert "firsthand lab report one.jsonl" in made
    assert "| recognition | 362/5,648 (6.4 %) | 640/5,648 (11.3 %) |" in made
    assert "| coverage | 30/60 (50.0 %) | 30/60 (50.0 %) | 30/60 (50.0 %) | 90/180 (50.0 %) |" in made
    assert made.count("\n## ") >= 6
    # A table of rules has no column of a model's, and the other way round.
    for line in made.splitlines():
        if line.startswith("| ") and "reported %" in line:
            assert "shown %" not in line


def test_the_newest_cache_measurement_is_kept(tmp_path: Path) -> None:
    assert kept_measurements(tmp_path) is None
    path = keep_measurements(tmp_path / "new", [CACHE], "small.gguf", "firsthand lab cache")
    assert kept_measurements(path.parent) == ((CACHE,), "small.gguf", "firsthand lab cache")
    path.write_text("{")
    assert kept_measurements(path.parent) is None
