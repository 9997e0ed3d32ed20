from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from real_sessions import shared

from firsthand.formats.files import reader_by_name
from firsthand.formats.files.base import Input
from firsthand.formats.files.opencode.reader import OpenCodeReader
from firsthand.formats.scan import Found, scan

from .opencode_layouts import database, tree
from .reading import raw

WHEN = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)


def put(path: Path, *records: Any, text: str | None = None) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(map(json.dumps, records)) if text is None else text)
    os.utime(path, (WHEN.timestamp(), WHEN.timestamp()))
    return path


def found(home: Path, env: dict[str, str] | None = None, **more: Any) -> list[Found]:
    return list(scan(home, env or {}, **more))


def opencode(name: str, title: str, **more: Any) -> Any:
    message = {"id": f"msg_{name}", "sessionID": name, "role": "user", "time": {"created": 5_000}}
    part = {"id": f"prt_{name}", "sessionID": name, "messageID": f"msg_{name}", "type": "text", "text": "hi"}
    info = {"id": name, "title": title, "directory": "/w", "time": {"created": 1_000, "updated": 1_772_600_767_000}}
    return info | more, [(message, [part])]


CLAUDE = [
    {"type": "summary", "summary": "of a branch", "leafUuid": "x"},
    {"type": "user", "sessionId": "s", "cwd": "/w", "message": {"role": "user", "content": "hi"}},
    {"type": "assistant", "message": {"model": "claude-1", "content": []}},
    {"type": "assistant", "message": {"model": "<synthetic>", "content": []}},
    {"type": "ai-title", "aiTitle": "Made up"},
]
CODEX_ID = "01234567-89ab-7def-8123-456789abcdef"
CODEX = [
    {"type": "session_meta", "payload": {"id": CODEX_ID, "cwd": "/w"}},
    {"type": "turn_context", "payload": {"model": "gpt-a"}},
    {"type": "turn_context", "payload": {"model": "gpt-b"}},
    {"type": "event_msg", "payload": {"type": "thread_name_updated", "thread_name": "Named"}},
]
PI = [
    {"type": "session", "version": 3, "id": "p1", "cwd": "/w"},
    {"type": "model_change", "model": "anthropic/claude-2"},
    {"type": "session_info", "name": "Called"},
]
GEMINI = [
    {"sessionId": "g1", "projectHash": "h"},
    {"id": "m", "type": "gemini", "content": '"model": "not this"', "model": "gemini-9", "summary": "not this"},
    {"$set": {"summary": "About \u00e9"}},
]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    put(home / ".claude/projects/-w/aaa.jsonl", *CLAUDE)
    put(home / ".claude/projects/-w/agent-1.jsonl", *CLAUDE[1:3])
    put(home / ".claude/settings.json", {})
    put(home / f".codex/sessions/2026/03/04/rollout-2026-03-04T05-06-07-{CODEX_ID}.jsonl", *CODEX)
    put(home / ".codex/history.jsonl", {})
    put(home / ".pi/agent/sessions/--w--/2026_p1.jsonl", *PI)
    put(home / ".gemini/tmp/w/chats/session-1.jsonl", *GEMINI)
    put(home / ".gemini/tmp/w/logs.json", [])
    put(home / ".gemini/tmp/w/.project_root", text="/w")
    return home


def test_every_place(home: Path) -> None:
    data = home / ".local/share/opencode"
    tree([opencode("ses_1", "old"), opencode("ses_2", "only here")], data / "storage")
    with closing(database([opencode("ses_1", "new")], data / "opencode.db")):
        rows = found(home)
    assert [(f.format, f.path.name, f.session, f.model, f.title, f.cwd) for f in rows] == [
        ("claude-code", "aaa.jsonl", "aaa", "claude-1", "Made up", "/w"),
        ("claude-code", "agent-1.jsonl", "agent-1", "claude-1", None, "/w"),
        ("codex", f"rollout-2026-03-04T05-06-07-{CODEX_ID}.jsonl", CODEX_ID, "gpt-b", "Named", "/w"),
        ("opencode", "opencode.db", "ses_1", None, "new", "/w"),
        ("opencode", "ses_2.json", "ses_2", None, "only here", "/w"),
        ("pi", "2026_p1.jsonl", "p1", "claude-2", "Called", "/w"),
        ("gemini-cli", "session-1.jsonl", "g1", "gemini-9", "About \u00e9", "/w"),
    ]
    assert all(f.modified == WHEN for f in rows if f.format != "opencode")
    assert rows[4].modified == datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
    assert [f.size for f in rows if f.format in ("opencode",)] == [None, None]
    assert all(f.size == f.path.stat().st_size for f in rows if f.format != "opencode")


def test_what_was_found_can_be_read(home: Path) -> None:
    tree([opencode("ses_2", "only here")], home / ".local/share/opencode/storage")
    (row,) = [f for f in found(home) if f.format == "opencode"]
    (transcript,) = OpenCodeReader().read(Input.open(row.path))
    assert transcript.id == row.session
    assert reader_by_name(row.format).name == "opencode"


@pytest.mark.parametrize(
    ("variable", "moved_to", "files", "kind"),
    [
        ("CLAUDE_CONFIG_DIR", "c", {"c/projects/p/s.jsonl": CLAUDE}, "claude-code"),
        ("CODEX_HOME", "x", {"x/archived_sessions/rollout-1.jsonl": CODEX}, "codex"),
        ("PI_CODING_AGENT_DIR", "p", {"p/sessions/w/s.jsonl": PI}, "pi"),
        ("GEMINI_CLI_HOME", "g", {"g/.gemini/tmp/w/chats/sub/s.jsonl": GEMINI}, "gemini-cli"),
    ],
)
def test_variables_move_the_places(
    home: Path, tmp_path: Path, variable: str, moved_to: str, files: dict[str, Any], kind: str
) -> None:
    for name, records in files.items():
        put(tmp_path / name, *records)
    rows = [f for f in found(home, {variable: str(tmp_path / moved_to)}) if f.format == kind]
    assert [f.path for f in rows] == [tmp_path / name for name in files]
    # A place below the home folder may be named by a tilde, or relative to it.
    for name, records in files.items():
        put(home / name, *records)
    for value in (moved_to, f"~/{moved_to}"):
        assert [f.path for f in found(home, {variable: value}) if f.format == kind] == [home / name for name in files]


def test_the_database_that_a_variable_names(tmp_path: Path) -> None:
    with closing(database([opencode("ses_1", "x")], tmp_path / "elsewhere.db")):
        rows = found(tmp_path, {"XDG_DATA_HOME": str(tmp_path), "OPENCODE_DB": str(tmp_path / "elsewhere.db")})
        assert [(f.session, f.path.name) for f in rows] == [("ses_1", "elsewhere.db")]
        assert found(tmp_path, {"OPENCODE_DB": ":memory:"}) == []


def test_aider_is_looked_for_in_the_given_folders_only(tmp_path: Path) -> None:
    text = "# aider chat started at 2026-01-01 10:00:00\n\n> Model: gpt-1 with diff  \n"
    path = put(tmp_path / "project/.aider.chat.history.md", text=text)
    put(tmp_path / "project/inner/.aider.chat.history.md", text=text)
    assert found(tmp_path) == []
    assert found(tmp_path, projects=[tmp_path / "project", tmp_path / "none"]) == [
        Found("aider", path, len(text), WHEN, None, "gpt-1", None, str(tmp_path / "project"))
    ]


def test_links_are_not_followed(home: Path, tmp_path: Path) -> None:
    outside = put(tmp_path / "outside/secret.jsonl", *CLAUDE)
    before = found(home)
    (home / ".claude/projects/-w/link.jsonl").symlink_to(outside)
    (home / ".claude/projects/-linked").symlink_to(outside.parent)
    (home / ".codex/sessions/2026/loop").symlink_to(home / ".codex/sessions")
    assert found(home) == before


def test_one_bad_file_hides_no_other(home: Path) -> None:
    data = home / ".local/share/opencode"
    put(data / "opencode.db", text="SQLite format 3\x00 but not really")
    tree([opencode("ses_1", "fine")], data / "storage")
    put(data / "storage/session/project/ses_0.json", text="{cut")
    put(home / ".claude/projects/-w/bad.jsonl", text='\x00\xff{"type"\n[1]\n"x"\n{"message": 3}')
    put(home / ".codex/sessions/2026/03/04/rollout-bad.jsonl", text="")
    rows = {(f.format, f.path.name): f for f in found(home)}
    assert len(rows) == 5 + 2 + 3
    assert rows["opencode", "opencode.db"].session is None
    assert rows["opencode", "ses_0.json"].session == "ses_0"
    assert rows["claude-code", "bad.jsonl"].session == "bad"
    assert rows["codex", "rollout-bad.jsonl"].size == 0


def test_an_empty_home(tmp_path: Path) -> None:
    assert found(tmp_path) == []
    assert found(tmp_path / "none") == []


def test_a_database_that_no_client_has_open_is_left_alone(tmp_path: Path) -> None:
    data = tmp_path / ".local/share/opencode"
    database([opencode("ses_1", "x")], data / "opencode.db").close()
    assert [f.title for f in found(tmp_path)] == ["x"]
    assert os.listdir(data) == ["opencode.db"]
    with closing(sqlite3.connect(data / "opencode.db")) as client:
        assert client.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_large_files_are_not_read_whole(tmp_path: Path) -> None:
    """The newest model and title stand at the end, the folder at the start; the middle is never looked at."""
    path = tmp_path / ".claude/projects/-w/s.jsonl"
    middle = [{"type": "assistant", "message": {"model": "claude-old", "content": "x" * 1_000}}] * 400
    put(path, *CLAUDE[:3], *middle, {"type": "custom-title", "customTitle": "Mine"}, CLAUDE[2])
    (row,) = found(tmp_path)
    assert (row.model, row.title, row.cwd) == ("claude-1", "Mine", "/w")


@pytest.mark.parametrize(
    ("name", "place", "expected"),
    [
        (
            "claude-code/technocore-images.jsonl.gz",
            ".claude/projects/p/s.jsonl",
            ("s", "MCP PyPI submission", True),
        ),
        (
            "codex/hk-compact2.jsonl.gz",
            ".codex/sessions/2026/07/13/rollout-2026-07-13T19-39-19-019f5cfd-b70b-73a1-ad47-32159be95bba.jsonl",
            ("019f5cfd-b70b-73a1-ad47-32159be95bba", None, True),
        ),
        (
            "pi/preloop-omp-thinking.jsonl.gz",
            ".pi/agent/sessions/w/s.jsonl",
            ("01a01ae5-8d1a-7002-afc6-4285cb4569b7", None, True),
        ),
        (
            "gemini-cli/c-blosc2-gemini-3-pro.json",
            ".gemini/tmp/79b1/chats/session-1.json",
            ("08c1f87b-ff3b-48ff-9d6f-524e2bbf89b9", None, False),
        ),
    ],
)
def test_real_files(tmp_path: Path, name: str, place: str, expected: tuple[str, str | None, bool]) -> None:
    put(tmp_path / place, text=raw(shared(name)))
    (row,) = found(tmp_path)
    assert (row.session, row.title, row.cwd is not None) == expected
    assert row.model is not None
    (transcript, *_) = reader_by_name(row.format).read(Input.open(row.path))
    assert row.model == transcript.model
