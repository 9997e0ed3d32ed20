"""What recall asks a journal: which entries of a path hold a word; and derived rows: which entries have none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from firsthand.errors import EntryNotFoundError, JournalError, SessionNotFoundError
from firsthand.journal import Journal
from firsthand.journal.features import Rows
from firsthand.testing.builders import call, result, said, user
from firsthand.transcript import Entry


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with Journal.open(tmp_path / "journal.db") as opened:
        opened.create("s")
        opened.append(
            "s",
            [
                user("the Lease of worker seven", id="e1"),
                Entry(id="e2", role="assistant", blocks=call("run", id="c1", cmd="grep lease").blocks),
                result("c1", "releases.txt\n租约已经过期", id="e3"),
                said("no more of it", id="e4"),
                user("the lease again", id="e5"),
            ],
        )
        yield opened


def found(journal: Journal, word: str, upto: str = "e4", session: str = "s") -> list[str]:
    with journal.path_upto(session, upto) as path:
        keys = path.holding(word)
        read = path.read(keys)
        assert all(position < path.entries for _, position in read.values())
        return [read[key][0].id for key in keys]


@pytest.mark.parametrize(
    ("word", "ids"),
    [
        ("lease", ["e3", "e2", "e1"]),  # a part of `releases`, an argument, in other case
        ("worker", ["e1"]),
        ("租约", ["e3"]),
        ("租约已经", ["e3"]),
        ("nobody", []),
        ("of", []),  # too short to be looked up
        ('a"b', []),
        ("", []),
    ],
)
def test_entries_of_the_path_that_hold_a_word(journal: Journal, word: str, ids: list[str]) -> None:
    assert found(journal, word) == ids


def test_other_branches_and_sessions_are_not_searched(journal: Journal) -> None:
    fork = journal.fork("s", "e1")
    journal.append(fork, [said("a lease of the fork", id="f1")])
    journal.create("other")
    journal.append("other", [said("a lease of another session", id="o1")])
    assert found(journal, "lease", "f1", fork) == ["f1", "e1"]
    assert "f1" not in found(journal, "lease")
    assert found(journal, "lease", "e1") == ["e1"]
    with pytest.raises(EntryNotFoundError):
        found(journal, "lease", "o1")
    with pytest.raises(SessionNotFoundError):
        found(journal, "lease", "e1", "nowhere")


def test_several_words_at_once(journal: Journal) -> None:
    with journal.path_upto("s", "e5") as path:
        assert [entry.id for entry, _ in path.read(path.holding_all(["lease", "again", "of"])).values()] == ["e5"]
        assert path.holding_all(["of"]) == []


def test_rows_are_stored_with_what_is_appended_or_not_at_all(journal: Journal) -> None:
    journal.append("s", [said("new", id="e6")], features=Rows("x/1", {"e6": b"row", "gone": b"?"}))
    assert journal.features("s", "x/1") == {"e6": b"row"}
    with pytest.raises(JournalError):
        journal.append("s", [said("new", id="e7"), said("again", id="e6")], features=Rows("x/1", {"e7": b"row"}))
    assert journal.features("s", "x/1") == {"e6": b"row"}


def test_entries_without_rows_are_named(journal: Journal) -> None:
    journal.put_features("x/1", {"e1": b"1", "e4": b"4"})
    journal.put_features("y/1", {"e5": b"5"})
    assert [entry.id for entry in journal.lacking_features("s", "x/1")] == ["e2", "e3", "e5"]
    with pytest.raises(SessionNotFoundError):
        journal.lacking_features("nowhere", "x/1")
