"""Finds the sessions that agents keep in a user's home, without reading them whole.

Places and variables: session-formats.md, "Where the clients keep sessions"; for OpenCode also `OPENCODE_DB`, for Gemini CLI
`GEMINI_CLI_HOME`. Of a file, the first and last 128 KiB are looked at; of OpenCode's database, its table of sessions. Links inside a place
are not followed, so nothing outside of it is ever looked at. A file that cannot be read is still named; one bad file hides no other.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..codec import decode
from .files.opencode.records import tree_roots
from .files.opencode.sqlite import read_database
from .files.records import record_of, string_of
from .scan_metadata import Metadata, metadata_of

__all__ = ["Found", "scan"]


@dataclass(frozen=True)
class Found:
    """A session that was found, and what could be told of it at a glance."""

    format: str
    """Name of the format, as for `firsthand.formats.files.reader_by_name`."""
    path: Path
    """The file; for OpenCode's database, which holds many sessions, that."""
    size: int | None
    """Bytes of the file; None where a session has no file of its own."""
    modified: datetime | None
    """When the session was last written, in UTC."""
    session: str | None = None
    """The client's id of the session."""
    model: str | None = None
    title: str | None = None
    cwd: str | None = None
    """The folder that the agent worked in."""


def scan(home: Path, env: Mapping[str, str], *, projects: Iterable[Path] = ()) -> Iterator[Found]:
    """The sessions in the places where clients keep them, client by client, in order of their paths.

    Args:
        home: the user's home folder.
        env: the environment; its variables move the places.
        projects: folders in which to look for Aider's history, which has no place of its own.
    """
    claude = _moved(env, "CLAUDE_CONFIG_DIR", home, ".claude") / "projects"
    yield from _files("claude-code", claude, 4, lambda name: name.endswith(".jsonl"))
    codex = _moved(env, "CODEX_HOME", home, ".codex")
    for folder in ("sessions", "archived_sessions"):
        yield from _files("codex", codex / folder, 4, _is_rollout)
    yield from _opencode(_moved(env, "XDG_DATA_HOME", home, ".local/share") / "opencode", env)
    pi = _moved(env, "PI_CODING_AGENT_DIR", home, ".pi/agent") / "sessions"
    yield from _files("pi", pi, 3, lambda name: name.endswith(".jsonl"))
    gemini = _moved(env, "GEMINI_CLI_HOME", home, "") / ".gemini" / "tmp"
    yield from _files("gemini-cli", gemini, 4, lambda name: name.endswith((".json", ".jsonl")), inside="chats")
    for project in projects:
        yield from _files("aider", Path(project), 1, lambda name: name == ".aider.chat.history.md")


def _moved(env: Mapping[str, str], name: str, home: Path, place: str) -> Path:
    """The folder that a variable names, relative to the home folder where it is not absolute, or the usual place."""
    return home / (env.get(name) or place).removeprefix("~/")


def _is_rollout(name: str) -> bool:
    return name.startswith("rollout-") and name.endswith((".jsonl", ".json"))


def _files(
    kind: str, place: Path, depth: int, wanted: Callable[[str], bool], *, inside: str | None = None
) -> Iterator[Found]:
    """The wanted files at most `depth` levels below `place`; with `inside`, only those below a folder of that name."""
    for path in _walk(place, depth):
        if wanted(path.name) and (inside is None or inside in path.relative_to(place).parts[:-1]):
            found = _found(kind, path)
            if found is not None:
                yield found


def _walk(folder: Path, depth: int) -> Iterator[Path]:
    try:
        with os.scandir(folder) as listing:
            entries = sorted(listing, key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        try:
            if entry.is_file(follow_symlinks=False):
                yield Path(entry.path)
            elif depth > 1 and entry.is_dir(follow_symlinks=False):
                yield from _walk(Path(entry.path), depth - 1)
        except OSError:
            continue


def _found(kind: str, path: Path) -> Found | None:
    try:
        stat = path.stat()
    except OSError:
        return None
    try:
        about = metadata_of(kind, path)
    except OSError:
        about = Metadata()
    return Found(
        kind,
        path,
        stat.st_size,
        datetime.fromtimestamp(stat.st_mtime, UTC),
        about.session,
        about.model,
        about.title,
        about.cwd,
    )


def _opencode(data: Path, env: Mapping[str, str]) -> Iterator[Found]:
    """Sessions of the database, then those that are only in the storage tree of earlier versions."""
    named = env.get("OPENCODE_DB")
    databases = [data / named] if named and named != ":memory:" else sorted(data.glob("opencode*.db"))
    seen: set[str | None] = set()
    for database in databases:
        for found in _in_database(database):
            seen.add(found.session)
            yield found
    for root in tree_roots(data):
        sessions = root / ("info" if root.name == "session" else "session")
        for path in _walk(sessions, 2):
            if re.fullmatch(r"ses_\w+\.json", path.name) and path.stem not in seen:
                yield _in_tree(path)


def _in_database(path: Path) -> Iterator[Found]:
    if path.is_symlink() or not path.is_file():
        return

    def sessions(connection: sqlite3.Connection) -> list[dict[str, Any]]:
        cursor = connection.execute("SELECT * FROM session ORDER BY id")
        names = [described[0] for described in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor]

    try:
        rows = read_database(path, sessions)
    except (sqlite3.Error, OSError):
        yield Found("opencode", path, None, None)
        return
    for row in rows:
        model = string_of(row.get("model"))
        yield Found(
            "opencode",
            path,
            None,
            _moment(row.get("time_updated")),
            string_of(row.get("id")),
            string_of(_object(model.encode()).get("id")) if model else None,
            string_of(row.get("title")),
            string_of(row.get("directory")),
        )


def _in_tree(path: Path) -> Found:
    try:
        info = _object(path.read_bytes())
    except OSError:
        info = {}
    updated = _moment(record_of(info.get("time")).get("updated"))
    return Found(
        "opencode", path, None, updated, path.stem, None, string_of(info.get("title")), string_of(info.get("directory"))
    )


def _object(data: bytes) -> dict[str, Any]:
    try:
        return record_of(decode(data))
    except (ValueError, RecursionError):
        return {}


def _moment(milliseconds: Any) -> datetime | None:
    if not isinstance(milliseconds, int | float) or not 0 < milliseconds < 4e12:
        return None
    return datetime.fromtimestamp(milliseconds / 1000, UTC)
