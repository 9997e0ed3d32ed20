"""What all tests share: where the real sessions are, and the versions that a report should name."""

from __future__ import annotations

import os
import sqlite3

import msgspec
import pytest
import sqlalchemy
from hypothesis import settings
from real_sessions import SHARED

# A shared machine is slow at times, and a change must not be held up by a case that nobody asked for: new ones are looked for outside of CI.
settings.register_profile("search", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "search")


def pytest_report_header() -> str:
    sessions = "found" if (SHARED / "sessions").is_dir() else "absent (tests that need them are skipped)"
    return (
        f"msgspec {msgspec.__version__}, sqlalchemy {sqlalchemy.__version__}, "
        f"sqlite {sqlite3.sqlite_version}, real sessions {sessions}"
    )


@pytest.fixture(autouse=True)
def _home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees or touches the journal or the agents of whoever runs it."""
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_DATA_HOME", str(home / ".local" / "share"))
    for name in ("FIRSTHAND_JOURNAL", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "PI_CODING_AGENT_DIR"):
        monkeypatch.delenv(name, raising=False)
