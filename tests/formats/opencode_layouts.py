"""Builds OpenCode sessions on a few lines, and writes them in each of the layouts that the client has used."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from real_sessions import shared

from firsthand.formats.files.opencode.reader import OpenCodeReader
from firsthand.transcript import Transcript

from .reading import one, opened, raw, values_in

READER = OpenCodeReader()
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


SES = "ses_1"


class Builder:
    """A session on a few lines: `user(...)`, `assistant(...)` with parts from `text`, `tool` and the like."""

    def __init__(self, **info: Any) -> None:
        self.info = {
            "id": SES,
            "title": "T",
            "directory": "/w",
            "version": "1.18.31",
            "time": {"created": 1_000},
        } | info
        self.messages: list[tuple[Object, list[Object]]] = []

    @property
    def session(self) -> Session:
        return self.info, self.messages

    def _add(self, message: Object, parts: list[Object]) -> Builder:
        number = len(self.messages) + 1
        other = "" if self.info["id"] == SES else self.info["id"]
        name = f"msg_{other}{number:03}"
        base = {"id": name, "sessionID": self.info["id"], "time": {"created": 2_000 + number}}
        full = [
            {"id": f"prt_{other}{number:03}{at:02}", "sessionID": self.info["id"], "messageID": name, **part}
            for at, part in enumerate(parts)
        ]
        self.messages.append(({**base, **message}, full))
        return self

    def user(self, *parts: Object | str, **more: Any) -> Builder:
        return self._add({"role": "user", **more}, [text(p) if isinstance(p, str) else p for p in parts])

    def assistant(self, *parts: Object | str, **more: Any) -> Builder:
        message = {"role": "assistant", "modelID": "m", "finish": "stop", **more}
        return self._add(message, [text(p) if isinstance(p, str) else p for p in parts])

    def read(self) -> Transcript:
        return one(READER, opened(export(self.session)))


def text(value: str, **more: Any) -> Object:
    return {"type": "text", "text": value, **more}


def tool(call: str, output: str | None = "out", **state: Any) -> Object:
    given = {
        "status": "completed",
        "input": {"a": 1},
        "output": output,
        "time": {"start": 1, "end": 1_770_000_000_000},
    } | state
    return {"type": "tool", "callID": call, "tool": "bash", "state": given}


START: Object = {"type": "step-start"}


def finish(**tokens: int) -> Object:
    cache = {"read": tokens.pop("read", 0), "write": tokens.pop("write", 0)}
    return {"type": "step-finish", "tokens": {**tokens, "cache": cache}}


def compacted(tail: str | None = None, summary: str = "S", **more: Any) -> Builder:
    """Two turns, a compaction, and one turn more. Messages 5 and 6 are the compaction."""
    part = {"type": "compaction", "auto": True, **({"tail_start_id": tail} if tail else {}), **more.pop("part", {})}
    made = Builder().user("q1").assistant("a1").user("q2").assistant("a2").user(part)
    return made.assistant(summary, summary=True, parentID="msg_005", mode="compaction", **more).user("q3")


def real_sessions() -> list[Session]:
    found = list(values_in(raw(shared("opencode/dump4-gpt-5-2.jsonl.gz"))))
    things = [o for o in found if isinstance(o, dict)]
    of = lambda prefix: sorted((o for o in things if o["id"].startswith(prefix)), key=lambda o: o["id"])  # noqa: E731
    parts: dict[str, list[Object]] = {}
    for part in of("prt_"):
        parts.setdefault(part["messageID"], []).append(part)
    return [(info, [(m, parts[m["id"]]) for m in of("msg_") if m["sessionID"] == info["id"]]) for info in of("ses_")]
