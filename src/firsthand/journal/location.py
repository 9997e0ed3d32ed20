"""Where a journal lies when nobody says: `FIRSTHAND_JOURNAL`, else the user's data directory."""

from __future__ import annotations

import os
import sys
from pathlib import Path

__all__ = ["default_path"]


def default_path() -> Path:
    """The path that `FIRSTHAND_JOURNAL` names, else `firsthand/journal.db` in the user's data directory of this platform.

    Linux and others: `$XDG_DATA_HOME` or `~/.local/share`; macOS: `~/Library/Application Support`; Windows: `%LOCALAPPDATA%`.
    """
    named = os.environ.get("FIRSTHAND_JOURNAL")
    if named:
        return Path(named).expanduser()
    return _data_home() / "firsthand" / "journal.db"


def _data_home() -> Path:
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA")
        return Path(local) if local else Path.home() / "AppData" / "Local"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support"
    named = os.environ.get("XDG_DATA_HOME", "")
    # The XDG specification has relative values ignored.
    return Path(named) if os.path.isabs(named) else Path.home() / ".local" / "share"
