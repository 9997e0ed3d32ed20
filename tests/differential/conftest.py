"""Tests against the real clients run only when asked for: `pytest -m differential`."""

from __future__ import annotations

import pytest
from real_clients import TALLY


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if "differential" in (config.option.markexpr or ""):
        return
    wanted = pytest.mark.skip(reason="compares with another client's own code; run with -m differential")
    for item in items:
        if item.get_closest_marker("differential"):
            item.add_marker(wanted)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for client in sorted({client for client, _ in TALLY}):
        counts = ", ".join(f"{kind} {number}" for (who, kind), number in sorted(TALLY.items()) if who == client)
        terminalreporter.write_line(f"{client}: {counts}")
