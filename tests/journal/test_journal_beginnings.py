"""Short ids, as excerpts print them, lead to their entries."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from firsthand.errors import AmbiguousEntryError, EntryNotFoundError, SessionNotFoundError
from firsthand.journal import Journal
from firsthand.testing.builders import session, user


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with Journal.open(tmp_path / "journal.db") as opened:
        opened.create("one")
        opened.append("one", session(user("a", id="abcdef-1"), user("b", id="abcdeg-2"), user("c", id="äöüß日本語-3")))
        opened.create("two")
        opened.append("two", session(user("d", id="abcdef-9"), user("e", id="abc")))
        yield opened


@pytest.mark.parametrize(
    ("beginning", "where", "found"),
    [
        ("abcdeg", None, "abcdeg-2"),
        ("abcdef-1", None, "abcdef-1"),
        ("abcdef", "one", "abcdef-1"),
        ("abcdef", "two", "abcdef-9"),
        ("äöüß日本", None, "äöüß日本語-3"),
        ("abc", None, "abc"),
    ],
)
def test_a_beginning_that_only_one_entry_has(journal: Journal, beginning: str, where: str | None, found: str) -> None:
    assert journal.full_id(beginning, where) == found
    assert journal.get(beginning, session=where).entry == found


@pytest.mark.parametrize("beginning", ["abcd", "", "abcdex", "%bcdef", "_bcdef", "ABCDEG"])
def test_a_beginning_that_none_has_or_is_too_short(journal: Journal, beginning: str) -> None:
    with pytest.raises(EntryNotFoundError) as caught:
        journal.full_id(beginning)
    assert not isinstance(caught.value, AmbiguousEntryError)


def test_several_entries_are_listed(journal: Journal) -> None:
    with pytest.raises(
        AmbiguousEntryError, match=r"2 entries start with 'abcdef': abcdef-1, abcdef-9; .* name the session"
    ) as caught:
        journal.get("abcdef")
    assert caught.value.candidates == ("abcdef-1", "abcdef-9")
    journal.append("two", [user("f", id="abcdef-8")])
    with pytest.raises(AmbiguousEntryError, match=r"; give more of the id$"):
        journal.get("abcdef", session="two")
    with pytest.raises(SessionNotFoundError):
        journal.full_id("abcdef", "three")


def test_the_active_path_goes_before_other_branches(journal: Journal) -> None:
    journal.append("two", [user("g", id="abcdef-7", parent="abcdef-9")])
    journal.append("two", [user("h", id="xyz-123", parent="abcdef-9")])
    assert [entry.id for entry in journal.view("two").entries] == ["abcdef-9", "xyz-123"]
    assert journal.full_id("abcdef", "two") == "abcdef-9"


def test_around_and_session_of_take_beginnings(journal: Journal) -> None:
    assert [entry.id for entry in journal.around("one", "abcdef", 1)] == ["abcdef-1", "abcdeg-2"]
    assert journal.session_of("abcdeg") == "one"
