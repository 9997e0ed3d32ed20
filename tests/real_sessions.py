"""Where the real sessions are that third parties published; they are no part of the repository."""

from __future__ import annotations

from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[2] / "shared"


def shared(path: str) -> Path:
    """A file of the real sessions, or a skip that says what is missing."""
    found = SHARED / "sessions" / path
    if not found.exists():
        pytest.skip(f"needs the real session {path}, which is not here")
    return found
