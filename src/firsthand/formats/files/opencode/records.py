"""OpenCode's session, message and part objects, brought together from whatever they were stored in.

All layouts hold the same three kinds of object; they differ in how these are spread: nested in an export, as values in a row in a
dump, as files in the storage tree, as rows in the database. Here they become one `Records`, in which an object that comes twice
counts once, the later one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ....codec import decode
from ....transcript import Damage
from ..documents import json_values, read_document
from ..records import Tally, record_of, string_of
from ..values import items_of

__all__ = ["Object", "Records", "add_document", "add_tree", "tree_roots"]

Object = dict[str, Any]

_NAMED = re.compile(r"(ses|msg|prt)_[^/]*\.json$")


@dataclass
class Records:
    """What was found, by id."""

    only: str | None = None
    """When set, the one session that is wanted; others are passed over."""
    sessions: dict[str, Object] = field(default_factory=dict)
    messages: dict[str, dict[str, Object]] = field(default_factory=dict)
    """Message objects by session, then by id."""
    parts: dict[str, dict[str, Object]] = field(default_factory=dict)
    """Part objects by message, then by id."""
    owners: dict[str, str] = field(default_factory=dict)
    """The session of each message that has parts."""
    _orphans: dict[str, list[str]] | None = None
    damaged: list[Damage] = field(default_factory=list)
    tally: Tally = field(default_factory=Tally)

    def add(self, value: Any, session: str | None = None, message: str | None = None) -> None:
        """Takes in one JSON value of any of the kinds that OpenCode stores; `session` and `message` are what it was nested in."""
        if isinstance(value, list):
            if any("info" in record_of(item) for item in value):
                for item in value:
                    self.add(item, session)
            else:
                self.tally.left_out["list of file changes"] += 1
            return
        given = record_of(value)
        info = given.get("info")
        if isinstance(info, dict) and isinstance(given.get("messages"), list):
            self._add_session(info)
            for item in given["messages"]:
                self.add(item, string_of(info.get("id")))
        elif isinstance(info, dict):
            self._add_message(info, session)
            for part in items_of(given.get("parts")):
                self.add(part, session or string_of(info.get("sessionID")), string_of(info.get("id")))
        elif isinstance(given.get("part"), dict):
            self.add(given["part"])
        else:
            self._add_object(given, session, message)

    def _add_object(self, given: Object, session: str | None, message: str | None) -> None:
        kind = (string_of(given.get("id")) or "").partition("_")[0]
        if kind == "ses":
            self._add_session(given)
        elif kind == "msg" and "role" in given:
            self._add_message(given, session)
        elif kind == "prt" or (message is not None and "type" in given):
            self._add_part(given, session, message)
        elif "worktree" in given:
            self.tally.left_out["project"] += 1
        elif "secret" in given and "url" in given:
            self.tally.left_out["share"] += 1
        else:
            self.tally.unknown[f"object with {', '.join(sorted(given)[:4]) or 'no keys'}"] += 1

    def _add_session(self, given: Object) -> None:
        session = string_of(given.get("id"))
        if session and self.only in (None, session):
            self.sessions[session] = given

    def _add_message(self, given: Object, session: str | None = None) -> None:
        message = string_of(given.get("id"))
        session = string_of(given.get("sessionID")) or session
        if message is None or session is None:
            self.tally.unknown["message without an id or a session"] += 1
        elif self.only in (None, session):
            self._orphans = None
            self.messages.setdefault(session, {})[message] = given

    def _add_part(self, given: Object, session: str | None = None, message: str | None = None) -> None:
        message = string_of(given.get("messageID")) or message
        session = string_of(given.get("sessionID")) or session
        if message is None or session is None:
            self.tally.unknown["part without a message"] += 1
        elif self.only in (None, session):
            self._orphans = None
            parts = self.parts.setdefault(message, {})
            parts[string_of(given.get("id")) or f"prt_~{len(parts):06}"] = given
            self.owners[message] = session

    def add_row(self, table: str, given: Object) -> None:
        """Takes in one row of the database, of the table `session`, `message` or `part`."""
        {"session": self._add_session, "message": self._add_message, "part": self._add_part}[table](given)

    def ordered_parts(self, message: str) -> list[Object]:
        """The parts of a message by id, which is the order in which they were made (opencode.md 2.12)."""
        return [part for _, part in sorted(self.parts.get(message, {}).items())]

    def ordered_messages(self, session: str) -> list[Object]:
        """The messages of a session by time of creation, then id (opencode.md 2.12).

        Parts whose message is missing get one made for them: an assistant's when a model's work is among them, else a user's. It
        stands where its id would stand.
        """
        known = self.messages.get(session, {})
        if self._orphans is None:
            self._orphans = {}
            for message, owner in self.owners.items():
                if message not in self.messages.get(owner, {}):
                    self._orphans.setdefault(owner, []).append(message)
        missing = self._orphans.get(session, [])
        made = [{"id": m, "sessionID": session, "role": self._role_of(m)} for m in missing]
        if made:
            self.tally.notes.append(f"{session}: {len(made):,} message(s) are missing, only their parts were found")
        placed = []
        newest = 0.0
        for info in sorted([*known.values(), *made], key=lambda m: str(m.get("id"))):
            created = created_at(info)
            newest = newest if created is None else created
            placed.append((newest, str(info.get("id")), info))
        return [info for _, _, info in sorted(placed, key=lambda row: row[:2])]

    def _role_of(self, message: str) -> str:
        works = {"reasoning", "tool", "step-start", "step-finish", "patch"}
        return "assistant" if any(part.get("type") in works for part in self.ordered_parts(message)) else "user"

    def session_ids(self) -> list[str]:
        """All sessions, oldest first, but a parent before its sub-agents."""
        ids = {*self.sessions, *self.messages, *self.owners.values()}

        def age(session: str) -> tuple[float, str]:
            times = [
                created_at(self.sessions.get(session, {})),
                *map(created_at, self.messages.get(session, {}).values()),
            ]
            return min((time for time in times if time is not None), default=0.0), session

        out: list[str] = []
        placed: set[str] = set()
        for session in sorted(ids, key=age):
            way: list[str] = []
            at: str | None = session
            while at in ids and at not in placed and at not in way:
                way.append(at)
                at = string_of(self.sessions.get(at, {}).get("parentID"))
            out.extend(reversed(way))
            placed.update(way)
        return out


def created_at(given: Mapping[str, Any]) -> float | None:
    """`time.created` in milliseconds, where it is a number."""
    time = record_of(given.get("time")).get("created")
    return float(time) if isinstance(time, int | float) and not isinstance(time, bool) else None


def add_document(records: Records, data: bytes) -> None:
    """The objects of an export or a dump."""
    try:
        whole = decode(data)
    except (ValueError, RecursionError):
        whole = None
    if whole is not None:
        records.add(whole)
        return
    if re.match(rb'\s*\{\s*"info"\s*:', data):
        document = read_document(data, depth=4, arrays=("messages",))
        records.damaged += document.damaged
        value = record_of(document.value)
        value.setdefault("info", {})
        records.add(value)
        return
    values = json_values(data)
    for item in values:
        records.add(item.value)
    records.damaged += values.damaged


def tree_roots(path: Path) -> list[Path]:
    """The storage trees in a directory: itself, its `storage`, or those of the projects of early versions."""
    candidates = [path, path / "storage", path / "session", *sorted(path.glob("project/*/storage/session"))]
    return [root for root in candidates if (root / "message").is_dir()]


def add_tree(records: Records, root: Path) -> None:
    """The objects of one storage tree: `session/`, `message/<session>/` and `part/<message>/` below `root`.

    Links are not followed. A file that cannot be read is counted with its name and the rest is read.
    """
    sessions = "info" if root.name == "session" else "session"
    for path in _files(root / sessions):
        if records.only in (None, path.stem):
            _add_file(records, root, path)
    for folder in _folders(root / "message"):
        if records.only in (None, folder.name):
            for path in _files(folder):
                _add_file(records, root, path)
    wanted = records.messages.get(records.only, {}) if records.only else None
    for folder in _folders(root / "part"):
        if wanted is None or folder.name in wanted or folder.name == records.only:
            for path in _files(folder):
                _add_file(records, root, path)


def _folders(path: Path) -> Iterable[Path]:
    try:
        entries = sorted(os.scandir(path), key=lambda entry: entry.name)
    except OSError:
        return []
    return [Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False)]


def _files(path: Path) -> Iterable[Path]:
    for folder, inner, names in os.walk(path):
        inner.sort()
        for name in sorted(names):
            file = Path(folder, name)
            if _NAMED.match(name) and not file.is_symlink():
                yield file


def _add_file(records: Records, root: Path, path: Path) -> None:
    name = path.relative_to(root).as_posix()
    try:
        value = decode(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        records.damaged.append(Damage(line=1, reason=f"{name}: {error}"))
        return
    if isinstance(value, dict):
        records.add(value)
    else:
        records.damaged.append(Damage(line=1, reason=f"{name}: a JSON {type(value).__name__} where an object belongs"))
