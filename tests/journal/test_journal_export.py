"""Exports: JSON lines that read back to equal sessions, also from files that are damaged."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from real_sessions import SHARED
from test_journal_imports import FULL, marked, transcript
from test_journal_store import renamed

from firsthand.errors import EmptySessionError, FormatError, SessionNotFoundError
from firsthand.formats.detect import read_sessions
from firsthand.formats.files.base import Input
from firsthand.formats.files.firsthand import FirsthandReader
from firsthand.journal import Journal
from firsthand.testing.builders import said, session, user
from firsthand.testing.random_entries import trees
from firsthand.transcript import Entry, Transcript


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with Journal.open(tmp_path / "journal.db") as opened:
        yield opened


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Journal]:
    with Journal.open(tmp_path / "other.db") as opened:
        yield opened


def read(data: bytes) -> list[Transcript]:
    source = Input("export.jsonl", data)
    assert FirsthandReader().sniff(source)
    return FirsthandReader().read(source)


def exported(journal: Journal, given: Transcript) -> list[bytes]:
    journal.import_transcript(given)
    return list(journal.export(given.id))


def ten() -> Transcript:
    return transcript(session(*(user(f"text {n}") if n % 2 else said(f"text {n}") for n in range(1, 11))))


def test_the_lines(journal: Journal) -> None:
    journal.import_transcript(marked())
    journal.pin("m", "e1")
    lines = [json.loads(line) for line in journal.export("m")]
    assert lines[0] == {
        "type": "firsthand",
        "version": 1,
        "session": {"id": "m", "format": "test", "leaf": "e3"},
    }
    assert lines[1] == {
        "type": "entry",
        "entry": {"id": "e1", "role": "user", "blocks": [{"type": "text", "text": "a"}]},
    }
    assert lines[2]["entry"]["parent"] == "e1"
    assert lines[4]["marker"]["id"] == "m1"
    assert lines[5:] == [
        {"type": "pin", "entry": "e1"},
        {"type": "end", "entries": 3, "markers": 1, "pins": 1},
    ]
    with pytest.raises(SessionNotFoundError):
        journal.export("nothing")


@pytest.mark.parametrize("given", [FULL, marked(), msgspec.structs.replace(FULL, leaf="e2"), transcript(())])
def test_round_trip(journal: Journal, other: Journal, given: Transcript) -> None:
    lines = exported(journal, given)
    assert read(b"".join(lines)) == [given]
    other.import_transcript(given)
    assert list(other.export(given.id)) == lines


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(entries=trees())
def test_any_tree_goes_round(journal: Journal, entries: tuple[Entry, ...]) -> None:
    name = f"s{len(journal.sessions())}"
    tree = transcript(tuple(renamed(entry, name) for entry in entries), id=name)
    assert read(b"".join(exported(journal, tree))) == [tree]


def test_pins_and_revisions_come_along(journal: Journal, other: Journal) -> None:
    journal.import_transcript(transcript(session(user("a"), said("b"))))
    grown = transcript(session(user("a"), said("b, and more"), user("c")))
    journal.import_transcript(grown)
    journal.pin("t", "e3")
    [given] = read(b"".join(journal.export("t")))
    other.import_transcript(given)
    assert other.view("t") == journal.view("t")
    assert other.transcript("t") == journal.transcript("t")
    assert list(other.export("t")) == list(journal.export("t"))
    # The session's own file is still recognised, and so is the export.
    assert not other.import_transcript(grown).changed
    assert not other.import_transcript(given).changed


def test_a_fork_and_its_origin_share_entries_again(journal: Journal, other: Journal) -> None:
    journal.import_transcript(ten())
    child = journal.fork("t", at="e6")
    journal.append(child, [user("mine", id="m1")])
    files = [b"".join(journal.export(name)) for name in (child, "t")]
    for data in files:
        [given] = read(data)
        other.import_transcript(given)
    for name in (child, "t"):
        assert other.transcript(name) == journal.transcript(name)
    with other.read() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM entries").scalar() == 11
    assert other.verify().problems == ()


def test_several_sessions_in_one_file(journal: Journal) -> None:
    data = b"".join(exported(journal, FULL) + exported(journal, marked()))
    assert [found.id for found in read(data)] == ["t", "m"]


def test_half_a_last_line_and_then_an_append(journal: Journal) -> None:
    """JR-03: nine load with a warning, and what was written behind the half line is read."""
    lines = exported(journal, ten())
    broken = b"".join(lines[:10]) + lines[10][:40]
    [found] = read(broken)
    assert [entry.id for entry in found.entries] == [f"e{n}" for n in range(1, 10)]
    assert [damage.line for damage in found.damaged] == [11]
    assert len(found.warnings) == 2
    assert "ends at 'e9' now" in found.warnings[0]
    assert "breaks off" in found.warnings[1]
    appended = msgspec.json.encode({"type": "entry", "entry": user("new", id="n1", parent="e9", sequence=9)})
    for glue in (b"", b"\n"):
        [found] = read(broken + glue + appended + b"\n")
        assert [entry.id for entry in found.entries] == [*(f"e{n}" for n in range(1, 10)), "n1"]
        assert len(found.damaged) == 1


@pytest.mark.parametrize("first", [b"garbage\n", b"\x00\xff\n", b'{"type":"firsthand","vers\n', b""])
def test_an_unreadable_first_line(journal: Journal, other: Journal, first: bytes) -> None:
    """JR-04: the rest is read; the loss is said."""
    lines = exported(journal, ten())
    data = first + b"".join(lines[1:])
    [found] = read(data)
    assert found.entries == ten().entries
    assert found.id == "recovered-e1"
    assert any("first line is lost" in warning for warning in found.warnings)
    assert len(found.damaged) == (1 if first else 0)
    other.import_transcript(found)
    assert [entry.id for entry in other.entries("recovered-e1")] == [f"e{n}" for n in range(1, 11)]


def test_a_lost_entry_in_the_middle(journal: Journal, other: Journal) -> None:
    lines = exported(journal, ten())
    lines[5] = b'{"type":"entry","entry":{"id":5}}\n'
    [found] = read(b"".join(lines))
    assert [entry.id for entry in found.entries] == ["e1", "e2", "e3", "e4", "e6", "e7", "e8", "e9", "e10"]
    assert found.entries[4].parent == "e4"
    assert [damage.line for damage in found.damaged] == [6]
    assert [w for w in found.warnings if "e5" in w or "10 entries" in w] == list(found.warnings)
    assert other.import_transcript(found).new == 9


def test_what_cannot_be_read(journal: Journal) -> None:
    lines = exported(journal, ten())
    newer = lines[0].replace(b'"version":1', b'"version":2')
    with pytest.raises(FormatError, match="version 2"):
        read(newer + b"".join(lines[1:]))
    with pytest.raises(EmptySessionError, match="2 damaged"):
        FirsthandReader().read(Input("x", b"a\nb\n"))
    assert not FirsthandReader().sniff(Input("x", b'{"type":"user","message":{}}\n'))


def test_unknown_lines_are_damage_and_not_silence(journal: Journal) -> None:
    lines = exported(journal, ten())
    lines.insert(3, b'{"type":"hologram"}\n')
    lines.insert(3, lines[2])
    [found] = read(b"".join(lines))
    assert found.entries == ten().entries
    assert [damage.line for damage in found.damaged] == [4, 5]


REAL = sorted(path for path in (SHARED / "sessions").glob("*/*") if path.is_file())


@pytest.mark.skipif(not REAL, reason="the real sessions are not here")
@pytest.mark.parametrize("path", REAL, ids=lambda path: path.name)
def test_real_sessions_go_round(journal: Journal, path: Path) -> None:
    """Through the journal and through an export, every session of every format is what its reader found."""
    found = read_sessions(path)
    assert [one.new for one in journal.import_transcripts(found)] == [len(one.entries) for one in found]
    lines = [line for one in found for line in journal.export(one.id)]
    assert [journal.transcript(one.id) for one in found] == found
    assert read(b"".join(lines)) == found
    assert not any(one.changed for one in journal.import_transcripts(found))
    assert journal.verify().ok
