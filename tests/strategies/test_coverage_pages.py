"""What the page on `coverage` shows is what the strategy does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from firsthand.strategies import strategy_by_name

ROOT = Path(__file__).resolve().parents[2]


def test_samples_and_figure_are_up_to_date(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    from coverage_pages import FIGURE, SAMPLES, figure, samples

    assert SAMPLES.read_text() == samples(), "stale: run python scripts/coverage_pages.py"
    assert FIGURE.read_text() == figure(), "stale: run python scripts/coverage_pages.py"


def test_every_option_has_its_row() -> None:
    page = (ROOT / "docs" / "strategies" / "coverage.md").read_text()
    for name, default in strategy_by_name("coverage+summary").options().items():
        shown = {True: "on", False: "off", None: "none"}.get(default, f"{default:,}" if default else "none")
        assert f"| `{name}` | {shown} |" in page


def test_the_worked_example_comes_out_as_shown() -> None:
    page = (ROOT / "docs" / "strategies" / "coverage.md").read_text()
    names: dict[str, Any] = {}
    exec(page.split("```python\n")[1].split("```")[0], names)
    done = names["done"]
    assert f"from {done.report.tokens_before:,} tokens to {done.report.tokens_after:,}" in page
    shown = page.split("```text\n")[1].split("```")[0]
    assert [line[11:] for line in shown.splitlines()] == "\n".join(m["content"] for m in done.messages).splitlines()
