"""Tests against the real clients run only when asked for: `pytest -m differential`."""

from __future__ import annotations

import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if "differential" in (config.option.markexpr or ""):
        return
    wanted = pytest.mark.skip(reason="compares with another client's own code; run with -m differential")
    for item in items:
        if item.get_closest_marker("differential"):
            item.add_marker(wanted)
