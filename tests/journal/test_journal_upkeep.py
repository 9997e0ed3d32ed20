"""Deleting what should go and nothing else, the index and its rebuilding, backups."""

from __future__ import annotations

import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_journal_imports import marked, transcript

from firsthand.errors import ConfigError, EntryNotFoundError, JournalError, SessionNotFoundError
from firsthand.journal import Deleted, Journal, schema
from firsthand.testing.builders import call, result, said, session, user
from firsthand.transcript import Transcript


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with Journal.open(tmp_path / "journal.db") as opened:
        yield opened


def ids(journal: Journal, session_id: str) -> list[str]:
    return [entry.id for entry in journal.transcript(session_id).entries]


def rows(journal: Journal) -> dict[str, int]:
    tables = "entries segments sessions adopted markers session_markers pins features calls erasing search_docsize search_parts"
    with journal.read() as connection:
        counted = {
            name: connection.exec_driver_sql(f"SELECT count(*) FROM {name}").scalar_one() for name in tables.split()
        }
    return {name: count for name, count in counted.items() if count}


def test_a_deleted_session_leaves_nothing(journal: Journal) -> None:
    journal.import_transcript(marked())
    journal.append("m", [said(call("run", id="c1"), id="x1"), result("c1", "the TOPSECRET value", id="x2")])
    journal.pin("m", "e1")
    journal.put_features("x/1", {"e1": b"row"})
    assert journal.delete("m") == Deleted("m", entries=5, kept=0)
    assert rows(journal) == {}
    assert journal.find("TOPSECRET").matches == ()
    assert journal.verify().ok
    with pytest.raises(SessionNotFoundError):
        journal.view("m")
    with pytest.raises(EntryNotFoundError):
        journal.entry("e1")
    journal.import_transcript(marked())
    assert journal.transcript("m") == marked()


def test_its_bytes_are_overwritten(journal: Journal) -> None:
    secret = "correct horse battery staple"
    journal.create("s")
    journal.append("s", [user(secret, id="e1")])
    journal.create("t")
    journal.append("t", [user("something else", id="e2")])

    def on_disk() -> bool:
        files = journal.path.parent.glob("journal.db*")
        return any(part in file.read_bytes() for file in files for part in (secret.encode(), b"horse battery"))

    assert on_disk()
    journal.delete("s")
    assert not on_disk()
    with journal.read() as connection:
        terms = set(connection.exec_driver_sql("SELECT DISTINCT term FROM search_terms").scalars())
    assert "hor" not in terms
    assert "els" in terms


def test_forks_keep_what_they_share(journal: Journal) -> None:
    entries = session(*(user(f"word {n}") for n in range(1, 11)))
    journal.import_transcript(transcript(entries, id="s"))
    one = journal.fork("s", at="e3")
    two = journal.fork("s", at="e7")
    journal.append(one, [user("word one", id="o1")])
    assert journal.delete("s") == Deleted("s", entries=3, kept=7)
    assert ids(journal, one) == ["e1", "e2", "e3", "o1"]
    assert ids(journal, two) == [f"e{n}" for n in range(1, 8)]
    assert [m.entry for m in journal.find("word", limit=50).matches] == ["o1", *(f"e{n}" for n in range(7, 0, -1))]
    assert journal.verify().ok
    assert journal.delete(two) == Deleted(two, entries=4, kept=3)
    assert ids(journal, one) == ["e1", "e2", "e3", "o1"]
    assert journal.verify().ok
    assert journal.delete(one) == Deleted(one, entries=4, kept=0)
    assert rows(journal) == {}


def test_a_deleted_fork_takes_only_its_own(journal: Journal) -> None:
    journal.import_transcript(transcript(session(user("a"), said("b"), user("c")), id="s"))
    child = journal.fork("s", at="e2")
    journal.append(child, [user("mine", id="m1")])
    before = journal.transcript("s")
    assert journal.delete(child) == Deleted(child, entries=1, kept=0)
    assert journal.transcript("s") == before
    assert journal.verify().ok


def test_a_branch_of_a_fork_needs_the_whole_way_to_it(journal: Journal) -> None:
    journal.import_transcript(transcript(session(*(user(str(n)) for n in range(1, 9))), id="s"))
    child = journal.fork("s", at="e6")
    journal.append(child, [user("branch", id="b1", parent="e4")])
    grandchild = journal.fork(child, at="b1")
    journal.delete("s")
    journal.delete(child)
    assert ids(journal, grandchild) == ["e1", "e2", "e3", "e4", "b1"]
    assert rows(journal)["entries"] == 5
    assert journal.verify().ok


def test_adopted_entries_stay(journal: Journal) -> None:
    entries = session(user("a"), said("b"), user("c"), said("d"))
    journal.import_transcript(transcript(entries, id="one"))
    journal.import_transcript(transcript(entries[:3], id="two"))
    assert journal.delete("one") == Deleted("one", entries=1, kept=3)
    assert journal.transcript("two") == transcript(entries[:3], id="two")
    assert journal.verify().ok
    journal.import_transcript(transcript(entries, id="two"))
    assert journal.transcript("two") == transcript(entries, id="two")


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_deleting_never_takes_from_others(journal: Journal, data: st.DataObject) -> None:
    """Random forks, appends at random entries, a session imported again; then all are deleted, one by one in any order."""
    for left_over in journal.sessions():  # of an example that was given up
        journal.delete(left_over.id)
    journal.create("s0")
    journal.append("s0", [user("root", id="e0"), user("next", id="e1")])
    names = ["s0"]
    for counter in range(2, 2 + data.draw(st.integers(2, 8))):
        name = data.draw(st.sampled_from(names))
        at = data.draw(st.sampled_from(ids(journal, name)))
        if data.draw(st.booleans()):
            names.append(journal.fork(name, at=at, new_id=f"s{counter}"))
        else:
            journal.append(name, [user(f"text {counter}", id=f"e{counter}", parent=at)])
    journal.import_transcript(msgspec.structs.replace(journal.transcript(names[-1]), id="again"))
    names.append("again")
    expected = {name: journal.transcript(name) for name in names}
    for name in data.draw(st.permutations(names)):
        journal.delete(name)
        del expected[name]
        assert {info.id for info in journal.sessions()} == set(expected)
        for other, before in expected.items():
            assert journal.transcript(other) == before
            assert journal.session(other).entries == len(before.entries)
        assert journal.verify().problems == ()
    assert rows(journal) == {}


def test_delete_before(journal: Journal) -> None:
    for name, time in (
        ("old", "2025-12-31T23:59:59Z"),
        ("new", "2026-01-01T00:00:00Z"),
        ("other", "2025-01-01T00:00:00Z"),
    ):
        journal.create(name, tenant="two" if name == "other" else "local")
        journal.append(name, [user("x", id=name, time=time)])
    journal.create("untimed")
    journal.append("untimed", [user("x", id="u")])
    assert [gone.session for gone in journal.delete_before("2026-01-01", tenant="local")] == ["old"]
    assert [gone.session for gone in journal.delete_before("2026-01-01")] == ["other"]
    assert {info.id for info in journal.sessions()} == {"new", "untimed"}
    with pytest.raises(ConfigError, match="no ISO 8601 time"):
        journal.delete_before("last week")


def test_a_damaged_entry_can_be_deleted(journal: Journal) -> None:
    journal.create("s")
    journal.append("s", session(user("healthy"), said("will be damaged")))
    journal.create("t")
    journal.append("t", [user("another one", id="t1")])
    damage(journal, "UPDATE entries SET payload = x'7B7D' WHERE id = 'e2'")
    assert journal.find("healthy").damaged == ()
    assert journal.delete("s").entries == 2
    assert rows(journal) == {"entries": 1, "segments": 1, "sessions": 1, "search_docsize": 1, "search_parts": 1}
    assert journal.find("will be").matches == ()
    assert [m.entry for m in journal.find("another").matches] == ["t1"]
    assert journal.verify().ok


def damage(journal: Journal, *statements: str) -> None:
    raw = sqlite3.connect(journal.path)
    raw.execute("DROP TRIGGER IF EXISTS entries_never_change")
    for statement in statements:
        raw.execute(statement)
    raw.commit()
    raw.close()


def test_searching_goes_on_around_a_damaged_entry(journal: Journal) -> None:
    journal.create("s")
    journal.append("s", session(user("word one"), said("word two"), user("word three")))
    damage(journal, "UPDATE entries SET payload = x'789CFF' WHERE id = 'e2'")
    found = journal.find("word")
    assert ([m.entry for m in found.matches], found.damaged) == (["e3", "e1"], ("e2",))


@pytest.mark.parametrize(
    ("statement", "missed"),
    [
        ("INSERT INTO search (search, rowid, text) VALUES ('delete', 2, 'word two' || char(10, 10))", {"e2"}),
        ("INSERT INTO search (search) VALUES ('delete-all')", {"e1", "e2", "e3"}),
        ("INSERT INTO search (rowid, text) VALUES (99, 'word of nobody')", {None}),
        ("INSERT INTO search_parts (part, entry) VALUES (99, 77)", {None}),
        ("INSERT INTO search_parts (part, entry) VALUES (99, 4)", {"e4"}),
        ("DELETE FROM search_parts WHERE entry = 2", {"e2", None}),
    ],
)
def test_a_wrong_index_is_named_and_made_anew(journal: Journal, statement: str, missed: set[str | None]) -> None:
    journal.create("s")
    journal.append("s", session(user("word one"), said("word two"), user("word three"), said()))
    assert journal.verify().ok
    damage(journal, statement)
    problems = journal.verify().problems
    assert {problem.kind for problem in problems} == {"search"}
    assert {problem.entry for problem in problems} == missed
    assert journal.rebuild_index() == 4
    assert journal.verify().ok
    assert [m.entry for m in journal.find("word").matches] == ["e3", "e2", "e1"]


def test_an_index_with_another_text_is_named(journal: Journal) -> None:
    journal.create("s")
    journal.append("s", session(user("word one"), said("word two")))
    damage(
        journal,
        "INSERT INTO search (search, rowid, text) VALUES ('delete', 2, 'word two' || char(10, 10))",
        "INSERT INTO search (rowid, text) VALUES (2, 'something else')",
    )
    assert [problem.entry for problem in journal.verify().problems] == ["e2"]


def test_rebuilding_makes_the_calls_anew(journal: Journal) -> None:
    journal.create("s")
    journal.append("s", session(call("grep", "needle"), result("c1", "needle")))
    damage(journal, "DELETE FROM calls")
    assert [m.tool for m in journal.find("needle").matches] == [None, "grep"]
    journal.rebuild_index()
    assert [m.tool for m in journal.find("needle").matches] == ["grep", "grep"]


def test_backup(journal: Journal, tmp_path: Path) -> None:
    journal.import_transcript(marked())
    target = tmp_path / "copy.db"
    with journal.write() as connection:
        connection.exec_driver_sql("UPDATE sessions SET title = 'not committed'")
        assert journal.backup(target) == target
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert sorted(file.name for file in tmp_path.glob("copy*")) == ["copy.db"]
    journal.append("m", [user("later", id="later")])
    with Journal.open(target, create=False) as copy:
        assert copy.transcript("m") == marked()
        assert copy.verify().ok
        assert [m.entry for m in copy.find("a").matches] == ["e1"]
    with pytest.raises(JournalError, match="exists already"):
        journal.backup(target)
    with pytest.raises(JournalError, match="cannot make"):
        journal.backup(target / "deeper")


def test_unrelated_sessions_are_untouched(journal: Journal) -> None:
    given_other = Transcript(id="o", format="t", entries=(user("other", id="o1"),), leaf="o1")
    journal.import_transcript(given_other)
    journal.import_transcript(marked())
    journal.delete("m")
    assert journal.transcript("o") == given_other
    with pytest.raises(SessionNotFoundError):
        journal.delete("m")


def test_what_the_runtime_kept_goes_too(journal: Journal) -> None:
    journal.import_transcript(marked())
    damage(
        journal,
        "INSERT INTO operations (id, session, key, state, owner, \"trigger\", started_ms) VALUES ('o', 1, 'k', 'completed', 'h:1', 'manual', 1)",
        "INSERT INTO checkpoints (id, session, operation, head, cutoff, algorithm, window_number, baseline, created_ms, plan) "
        "VALUES ('c', 1, 1, 3, 2, 'a/1', 1, 5, 1, x'7B7D')",
        "INSERT INTO attachments (session, checkpoint, entry, kind, call_id, payload) VALUES (1, 'c', 'e3', 'recall', '', x'00')",
        "INSERT INTO learned (session, name, value) VALUES (1, 'window', 5)",
    )
    of_sessions = [table.name for table in schema.metadata.tables.values() if "session" in table.columns]
    assert {"checkpoints", "operations", "attachments", "learned"} <= set(of_sessions)
    journal.delete("m")
    with journal.read() as connection:
        for name in of_sessions:
            assert connection.exec_driver_sql(f"SELECT count(*) FROM {name}").scalar() == 0, name
