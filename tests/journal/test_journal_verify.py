"""Verification names what was tampered with, and reading a damaged entry is an error, never other text."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from firsthand.errors import JournalDamagedError
from firsthand.journal import Journal, Problem
from firsthand.testing.builders import filler, said, session, user
from firsthand.transcript import Marker, Transcript

ENTRIES = (*session(user("a"), said(filler(400)), user("c"), said("d")), user("branch", id="e5", parent="e2"))
GIVEN = Transcript(
    id="s", format="test", entries=ENTRIES, leaf="e4", markers=(Marker(id="m", after="e2", tokens_before=5),)
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A journal with a branch, a fork, a pin and a marker."""
    path = tmp_path / "journal.db"
    with Journal.open(path) as journal:
        journal.import_transcript(GIVEN)
        journal.append(journal.fork("s", at="e3"), [user("forked", id="f1")])
        journal.pin("s", "e1")
        assert journal.verify().ok
    return path


def tamper(path: Path, *statements: str) -> None:
    raw = sqlite3.connect(path)
    for name in ("entries_never_change", "entries_stay", "markers_never_change", "markers_stay"):
        raw.execute(f"DROP TRIGGER {name}")
    for statement in statements:
        assert raw.execute(statement).rowcount > 0
    raw.commit()
    raw.close()


def found(path: Path, session: str | None = None) -> set[tuple[str, str | None, str | None]]:
    before = path.read_bytes()
    with Journal.open(path) as journal:
        report = journal.verify(session)
    assert path.read_bytes() == before
    assert report.ok == (not report.problems)
    return {(problem.kind, problem.session, problem.entry) for problem in report.problems}


E2 = "WHERE id = 'e2'"


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        (f"UPDATE entries SET payload = CAST(x'7B7D' || payload AS BLOB) {E2}", {("entry", "s", "e2")}),
        (f"UPDATE entries SET payload = x'78DAFFFF' {E2}", {("entry", "s", "e2")}),
        (f"UPDATE entries SET payload = x'' {E2}", {("entry", "s", "e2")}),
        (f"UPDATE entries SET payload = (SELECT payload FROM entries WHERE id = 'e1') {E2}", {("entry", "s", "e2")}),
        (f"UPDATE entries SET content_hash = zeroblob(32) {E2}", {("entry", "s", "e2"), ("chain", "s", "e2")}),
        (
            f"UPDATE entries SET chain_hash = zeroblob(32) {E2}",
            {("chain", "s", "e2"), ("chain", "s", "e3"), ("chain", "s", "e5")},
        ),
        (f"UPDATE entries SET sequence = 7 {E2}", {("entry", "s", "e2")}),
        (f"UPDATE entries SET role = 'user' {E2}", {("entry", "s", "e2")}),
        (f"UPDATE entries SET texts = 9 {E2}", {("entry", "s", "e2")}),
        (
            f"UPDATE entries SET depth = 'deep' {E2}",
            {("entry", None, "e3"), ("place", "s", "e2"), ("entry", None, "e5")},
        ),
        (f"UPDATE entries SET depth = 5 {E2}", {("place", "s", "e2"), ("place", "s", "e3"), ("place", "s", "e5")}),
        (
            "UPDATE entries SET parent = 1 WHERE id = 'e3'",
            {("entry", "s", "e3"), ("chain", "s", "e3"), ("place", "s", "e3")},
        ),
        (
            "UPDATE entries SET id = 'x' WHERE id = 'e3'",
            {("entry", "s", "x"), ("entry", "s", "e4"), ("entry", "s.f1", "f1")},
        ),
        (
            "DELETE FROM entries WHERE id = 'e3'",
            {
                ("session", "s", None),
                ("session", "s.f1", None),
                ("entry", "s", "e4"),
                ("place", "s", "e4"),
                ("entry", "s.f1", "f1"),
                ("place", "s.f1", "f1"),
                ("search", None, None),
            },
        ),
        ("DELETE FROM segments WHERE n = 2", {("session", "s", None), ("place", None, "e5")}),
        ("UPDATE sessions SET leaf = 77 WHERE id = 's'", {("session", "s", None)}),
        ("UPDATE sessions SET entries = 4 WHERE id = 's'", {("session", "s", None)}),
        ("UPDATE sessions SET meta = x'00' WHERE id = 's'", {("session", "s", None)}),
        ("UPDATE pins SET entry = 99", {("session", "s", None)}),
        ("UPDATE markers SET payload = x'7B7D'", {("marker", "s", None), ("marker", "s.f1", None)}),
    ],
)
def test_tampering_is_named(path: Path, statement: str, expected: set[tuple[str, str | None, str | None]]) -> None:
    tamper(path, statement)
    assert found(path) == expected


def test_one_session_is_checked_with_all_its_paths(path: Path) -> None:
    tamper(path, f"UPDATE entries SET sequence = 9 {E2}")
    assert found(path, "s.f1") == {("entry", "s", "e2")}
    assert found(path, "s") == {("entry", "s", "e2")}
    tamper_f1 = "UPDATE entries SET texts = 9 WHERE id = 'f1'"
    raw = sqlite3.connect(path)
    raw.execute(tamper_f1)
    raw.commit()
    raw.close()
    assert found(path, "s") == {("entry", "s", "e2")}


@pytest.mark.parametrize(
    "read",
    [
        lambda journal: journal.entry("e2"),
        lambda journal: journal.view("s"),
        lambda journal: journal.transcript("s"),
        lambda journal: list(journal.export("s")),
        lambda journal: list(journal.entries("s.f1")),
    ],
)
def test_reading_a_damaged_entry_names_it(path: Path, read: Callable[[Journal], object]) -> None:
    tamper(path, f"UPDATE entries SET payload = CAST(x'7B7D' || payload AS BLOB) {E2}")
    with Journal.open(path) as journal:
        with pytest.raises(JournalDamagedError, match="entry 'e2' is damaged"):
            read(journal)
        assert [entry.id for entry in journal.entries("s", after="e2")] == ["e3", "e4"]


def test_a_damaged_page_is_reported_and_not_raised(path: Path) -> None:
    raw = sqlite3.connect(path)
    [(page,)] = raw.execute("SELECT rootpage FROM sqlite_master WHERE name = 'entries_by_segment'")
    raw.close()
    data = bytearray(path.read_bytes())
    data[(page - 1) * 4096 : (page - 1) * 4096 + 40] = b"\xff" * 40
    path.write_bytes(data)
    with Journal.open(path) as journal:
        report = journal.verify()
    assert not report.ok
    assert {problem.kind for problem in report.problems} >= {"file"}
    assert all(isinstance(problem, Problem) for problem in report.problems)
