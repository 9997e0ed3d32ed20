"""Writes one OpenCode session in each of the layouts that the client has used."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any

Object = dict[str, Any]
Session = tuple[Object, list[tuple[Object, list[Object]]]]
"""The session object, then each message with its parts."""


def export(session: Session, indent: int | None = 2) -> bytes:
    info, messages = session
    return json.dumps(
        {"info": info, "messages": [{"info": m, "parts": p} for m, p in messages]}, indent=indent
    ).encode()


def objects(sessions: Iterable[Session]) -> list[Object]:
    return [o for info, messages in sessions for o in (info, *(x for m, p in messages for x in (m, *p)))]


def dump(sessions: Iterable[Session]) -> bytes:
    """Parts in front of their messages, as a dump may have them."""
    found = sorted(objects(sessions), key=lambda o: str(o["id"]), reverse=True)
    return "\n".join(json.dumps(o, indent=2) for o in found).encode()


def tree(sessions: Iterable[Session], root: Path) -> Path:
    for info, messages in sessions:
        _write(root / "session" / "project" / f"{info['id']}.json", info)
        for message, parts in messages:
            _write(root / "message" / info["id"] / f"{message['id']}.json", message)
            for part in parts:
                _write(root / "part" / message["id"] / f"{part['id']}.json", part)
    return root


def _write(path: Path, value: Object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2))


def database(sessions: Iterable[Session], path: Path) -> sqlite3.Connection:
    """The connection is left open, as the client's would be: the newest rows are in the `-wal` file only."""
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    connection.executescript(
        """
        CREATE TABLE session (id text PRIMARY KEY, parent_id text, directory text, title text, version text, revert text,
            time_created integer, time_updated integer);
        CREATE TABLE message (id text PRIMARY KEY, session_id text, time_created integer, time_updated integer, data text);
        CREATE TABLE part (id text PRIMARY KEY, message_id text, session_id text, time_created integer,
            time_updated integer, data text);
        """
    )
    for info, messages in sessions:
        time = info["time"]
        row = (info["id"], info.get("parentID"), info.get("directory"), info.get("title"), info.get("version"))
        revert = json.dumps(info["revert"]) if "revert" in info else None
        connection.execute(
            "INSERT INTO session VALUES (?,?,?,?,?,?,?,?)", (*row, revert, time["created"], time["created"])
        )
        for message, parts in messages:
            created = message["time"]["created"]
            connection.execute(
                "INSERT INTO message VALUES (?,?,?,?,?)", (message["id"], info["id"], created, created, _data(message))
            )
            for part in parts:
                connection.execute(
                    "INSERT INTO part VALUES (?,?,?,?,?,?)",
                    (part["id"], message["id"], info["id"], created, created, _data(part)),
                )
    return connection


def _data(value: Object) -> str:
    return json.dumps({k: v for k, v in value.items() if k not in ("id", "sessionID", "messageID")})
