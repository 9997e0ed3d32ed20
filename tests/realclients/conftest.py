"""Tests that run the published clients end to end, only when asked for: `pytest -m realclients`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

# Where the programs are and how they are kept from everything outside is told there.
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "differential"))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if "realclients" in (config.option.markexpr or ""):
        return
    wanted = pytest.mark.skip(reason="runs another client's program; run with -m realclients")
    for item in items:
        if item.get_closest_marker("realclients"):
            item.add_marker(wanted)
