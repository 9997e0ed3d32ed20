"""What the pages say of the command line is what it does: JSON fields, exit codes, the demo's output."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from running import run

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    path = tmp_path / "session.json"
    run("sample", "pipeline", "--stages", 1, "--out", path)
    return path


def documented() -> str:
    return (ROOT / "docs" / "cli.md").read_text()


def test_each_field_of_import_is_there_and_documented(sample: Path, tmp_path: Path) -> None:
    row = json.loads(run("import", sample, "--json", "--journal", tmp_path / "j.db").stdout)
    promised = {
        "session",
        "format",
        "entries",
        "user_texts",
        "assistant_texts",
        "tool_calls",
        "tool_results",
        "damaged",
        "warnings",
    }
    assert promised <= set(row)
    assert [name for name in row if f"`{name}`" not in documented()] == []


@pytest.mark.parametrize("more", [(), ("--explain",), ("--target", 20)], ids=["applied", "explained", "refused"])
def test_each_field_of_compact_is_there_and_documented(sample: Path, more: tuple[object, ...]) -> None:
    done = run("compact", sample, "--window", 100_000, "--json", *more, check=False)
    report = json.loads(done.stdout)
    promised = {"strategy", "window", "input_limit", "counter", "outcome"}
    if done.returncode == 0:
        promised |= {"tokens_before", "tokens_after", "entries", "fates"}
    assert promised <= set(report)
    assert [name for name in (*report, *report.get("blocks", [{}])[0]) if f"`{name}`" not in documented()] == []


def test_the_readme_shows_what_the_demo_prints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said = run("sample", "export", "--out", "demo/session.json").stderr
    said += run(
        "compact", "demo/session.json", "--window", 200_000, "--to", "openai-chat", "--out", "demo/projection.json"
    ).stdout
    assert f"```\n{said}```" in (ROOT / "README.md").read_text()


def test_the_demo_of_the_makefile_is_the_one_that_is_shown() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for line in (
        "sample export --out demo/session.json",
        "compact demo/session.json --window 200000 --to openai-chat --out demo/projection.json",
    ):
        assert f"-m firsthand {line}\n" in makefile
