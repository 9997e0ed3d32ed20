"""Forks share what came before their point, and nothing that came later reaches them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from firsthand.errors import EntryNotFoundError, SessionExistsError, SessionNotFoundError
from firsthand.journal import Journal
from firsthand.testing.builders import call, result, said, session, summary, user
from firsthand.transcript import Marker, Transcript


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with Journal.open(tmp_path / "journal.db") as opened:
        yield opened


def hundred(**fields: object) -> Transcript:
    entries = session(*(user(f"text {n}") if n % 2 else said(f"text {n}") for n in range(1, 101)))
    return Transcript(id="s", format="test", entries=entries, leaf="e100", title="T", **fields)  # type: ignore[arg-type]


def ids(journal: Journal, session_id: str) -> list[str]:
    return [entry.id for entry in journal.entries(session_id)]


def rows(journal: Journal, table: str) -> int:
    with journal.read() as connection:
        return int(connection.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar_one())


def test_a_fork_before_a_marker(journal: Journal) -> None:
    """JR-07: originals 1 to 20, no later summary; and JR-08: no original is written twice."""
    late = Marker(id="late", after="e100", shown=(summary("all of it", id="sum"),))
    early = Marker(id="early", after="e10", shown=(summary("a little", id="sum0"),))
    journal.import_transcript(hundred(markers=(early, late)))
    for pinned in ("e3", "e20", "e21"):
        journal.pin("s", pinned)
    child = journal.fork("s", at="e20")
    assert child == "s.f1"
    assert ids(journal, child) == [f"e{n}" for n in range(1, 21)]
    view = journal.view(child)
    assert [marker.id for marker in view.markers] == ["early"]
    assert view.pins == {"e3", "e20"}
    assert (rows(journal, "entries"), rows(journal, "markers")) == (100, 2)
    info = journal.session(child)
    assert (info.entries, info.user_texts, info.assistant_texts, info.markers) == (20, 10, 10, 1)
    assert (info.forked_from, info.title, info.leaf) == ("s", "T", "e20")


def test_both_go_on_apart(journal: Journal) -> None:
    journal.import_transcript(hundred())
    child = journal.fork("s", at="e98", new_id="child")
    [mine] = journal.append(child, [user("mine", id="m1")])
    [theirs] = journal.append("s", [user("theirs", id="t1")])
    assert (mine.parent, mine.sequence, theirs.sequence) == ("e98", 98, 100)
    assert ids(journal, child)[-2:] == ["e98", "m1"]
    assert ids(journal, "s")[-2:] == ["e100", "t1"]
    assert [entry.id for entry in journal.transcript(child).entries] == ids(journal, child)
    journal.pin("s", "e5")
    assert journal.view(child).pins == frozenset()
    with pytest.raises(EntryNotFoundError):
        journal.append(child, [user("x", id="x", parent="e99")])
    # A fork keeps its path when the other one moves to another branch.
    journal.append("s", [user("again", id="b1", parent="e2")])
    assert ids(journal, "s") == ["e1", "e2", "b1"]
    assert ids(journal, child)[-2:] == ["e98", "m1"]
    assert journal.verify().problems == ()


def test_a_fork_of_a_fork_at_the_leaf_and_off_the_path(journal: Journal) -> None:
    journal.import_transcript(hundred())
    one = journal.fork("s")
    assert ids(journal, one) == ids(journal, "s")
    journal.append(one, session(user("a", id="a1"), said("b", id="a2")))
    two = journal.fork(one, at="a1")
    three = journal.fork(two, at="e7")
    assert ids(journal, two) == [*ids(journal, "s"), "a1"]
    assert ids(journal, three) == [f"e{n}" for n in range(1, 8)]
    assert journal.session(two).forked_from == one
    journal.append("s", [user("branch", id="b1", parent="e2")])
    assert ids(journal, journal.fork("s", at="e50")) == [f"e{n}" for n in range(1, 51)]
    assert journal.verify().problems == ()


def test_the_first_append_of_a_fork_at_a_tail_opens_a_segment_of_its_own(journal: Journal) -> None:
    """Both sessions continue behind the same entry; each owns what it appended."""
    journal.import_transcript(hundred())
    child = journal.fork("s")
    journal.append(child, [user("child", id="c1")])
    journal.append("s", [user("parent", id="p1")])
    assert [entry.id for entry in journal.transcript("s").entries][-2:] == ["e100", "p1"]
    assert [entry.id for entry in journal.transcript(child).entries][-2:] == ["e100", "c1"]


def test_what_cannot_be_forked(journal: Journal) -> None:
    journal.import_transcript(hundred())
    journal.create("empty")
    journal.append("empty", [user("x", id="other")])
    with pytest.raises(EntryNotFoundError, match="no entry 'other' to fork at"):
        journal.fork("s", at="other")
    with pytest.raises(SessionExistsError):
        journal.fork("s", at="e5", new_id="empty")
    assert {info.id for info in journal.sessions()} == {"s", "empty"}


def test_a_fork_of_an_empty_session(journal: Journal) -> None:
    journal.create("s")
    child = journal.fork("s")
    journal.append(child, [user("x", id="e1")])
    assert (ids(journal, child), ids(journal, "s")) == (["e1"], [])


def test_a_fork_is_found_again_by_its_file(journal: Journal) -> None:
    """A fork takes imports like any session: what it shares is known."""
    journal.import_transcript(hundred())
    child = journal.fork("s", at="e20")
    given = journal.transcript(child)
    imported = journal.import_transcript(Transcript(id=child, format="test", entries=given.entries, leaf="e20"))
    assert (imported.new, imported.known, imported.changed) == (0, 20, False)


def test_ten_forks_of_a_long_session_cost_ten_rows(journal: Journal) -> None:
    entries = session(*(call("run", f"{n}") if n % 2 else result(f"c{n}", "x" * 200) for n in range(2_000)))
    journal.import_transcript(Transcript(id="s", format="test", entries=entries, leaf=entries[-1].id))
    with journal.read() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
    for n in range(10):
        journal.fork("s", at=f"e{200 * (n + 1)}")
    with journal.read() as connection:
        assert connection.exec_driver_sql("PRAGMA page_count").scalar_one() <= pages + 3
    assert rows(journal, "entries") == 2_000


def test_a_fork_does_not_make_its_sessions_beginning_ambiguous(journal: Journal) -> None:
    entry = user("go", id="u")
    journal.import_transcript(Transcript(id="abcdef-1", format="test", entries=(entry,), leaf="u"))
    assert journal.fork("abcdef-1", at="u") == "abcdef-1.f1"
    journal.fork("abcdef-1", at="u")
    assert journal.session("abc").id == "abcdef-1"
    assert journal.session("abcdef-1.f1").id == "abcdef-1.f1"
    journal.fork("abcdef-1", at="u", new_id="abcdef-2")
    with pytest.raises(SessionNotFoundError, match="ids that start with it"):
        journal.session("abc")
