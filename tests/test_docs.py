"""Examples in README and docs run; every public name and command is mentioned."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import firsthand
from firsthand.strategies import strategy_names

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PYTHON = re.compile(r"^```python\n(.*?)^```", re.M | re.S)


def blocks() -> list[Any]:
    """Every Python example with its place; one that runs a model is marked so."""
    return [
        pytest.param(place, found[1], id=place, marks=[pytest.mark.model] if "LocalModel" in found[1] else [])
        for page in PAGES
        for text in [page.read_text()]
        for found in PYTHON.finditer(text)
        for place in [f"{page.relative_to(ROOT)}:{text[: found.start()].count(chr(10)) + 1}"]
    ]


@pytest.mark.parametrize(("place", "code"), blocks())
def test_examples_run(place: str, code: str, tmp_path: Path) -> None:
    # A reader of the pages has a session of their own at hand.
    (tmp_path / "session.jsonl").write_text(
        '{"role":"user","content":"Why?"}\n{"role":"assistant","content":"connection refused"}\n'
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, timeout=60, check=False
    )
    assert done.returncode == 0, f"{place}: {done.stderr}"


def test_public_names_are_there_and_mentioned() -> None:
    text = "".join(page.read_text() for page in PAGES)
    for name in firsthand.__all__:
        assert hasattr(firsthand, name)
        if not name.startswith("_"):
            assert name in text, f"{name} is public and nowhere in the docs"


def test_the_page_of_the_command_line_is_what_the_commands_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    from cli_page import PAGE, page

    assert PAGE.read_text() == page(), "stale: run python scripts/cli_page.py"


def test_every_strategy_has_its_place_in_the_docs() -> None:
    pages = "".join(page.read_text() for page in (ROOT / "docs" / "strategies").glob("*.md"))
    assert [name for name in strategy_names() if f"`{name}`" not in pages] == []


def test_the_project_speaks_of_itself_only() -> None:
    for page in [*PAGES, ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md"]:
        assert not re.search(r"\bshared/|/work/|/root/", page.read_text()), page
