"""Appending and reading back: order, ids, bytes, errors, and that nothing is ever changed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from sqlalchemy import delete, update
from test_journal_imports import marked

from firsthand.errors import (
    ConfigError,
    EntryNotFoundError,
    JournalError,
    SessionExistsError,
    SessionNotFoundError,
)
from firsthand.journal import Journal, schema
from firsthand.testing.builders import call, injected, result, said, session, user
from firsthand.testing.random_entries import entry_lists
from firsthand.transcript import Entry, chained


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with Journal.open(tmp_path / "journal.db") as opened:
        yield opened


def test_append_chains_and_numbers(journal: Journal) -> None:
    journal.create("s")
    first = journal.append("s", [user("a", id="e1"), said("b", id="e2")])
    second = journal.append("s", [user("c", id="e3")])
    assert [(e.id, e.parent, e.sequence) for e in (*first, *second)] == [
        ("e1", None, 0),
        ("e2", "e1", 1),
        ("e3", "e2", 2),
    ]
    assert list(journal.entries("s")) == [*first, *second]
    assert journal.view("s").entries == (*first, *second)
    assert journal.entry("e2") == first[1]
    assert journal.append("s", []) == []


def test_append_to_a_named_parent_branches(journal: Journal) -> None:
    journal.create("s")
    journal.append("s", [user("a", id="e1"), said("b", id="e2"), user("c", id="e3")])
    journal.append("s", [user("other", id="e4", parent="e1"), said("d", id="e5")])
    assert [e.id for e in journal.entries("s")] == ["e1", "e4", "e5"]
    assert [e.id for e in journal.entries("s", upto="e3")] == ["e1", "e2", "e3"]
    assert [e.id for e in journal.entries("s", after="e1")] == ["e4", "e5"]
    assert [e.id for e in journal.entries("s", after="e1", upto="e3")] == ["e2", "e3"]
    assert [e.id for e in journal.entries("s", after="e5")] == []
    with pytest.raises(EntryNotFoundError, match="'e2' does not lie on that path"):
        journal.entries("s", after="e2")
    assert [e.id for e in journal.transcript("s").entries] == ["e1", "e2", "e3", "e4", "e5"]
    assert [e.sequence for e in journal.transcript("s").entries] == [0, 1, 2, 3, 4]
    info = journal.session("s")
    assert (info.entries, info.path_entries, info.leaf) == (5, 3, "e5")


def test_sequence_alone_orders(journal: Journal) -> None:
    """JR-06: times that stand still or go back change nothing."""
    journal.create("s")
    times = ["2026-01-02T00:00:00Z", "2026-01-02T00:00:00Z", "2025-01-01T00:00:00Z", None, "not a time"]
    journal.append("s", [user(str(n), id=f"e{n}", time=time) for n, time in enumerate(times)])
    assert [entry.id for entry in journal.view("s")] == ["e0", "e1", "e2", "e3", "e4"]
    assert [entry.time for entry in journal.view("s")] == times
    info = journal.session("s")
    assert (info.first_ms, info.last_ms) == (1_735_689_600_000, 1_767_312_000_000)


def test_nul_and_its_escape_stay_different(journal: Journal) -> None:
    """JR-05."""
    journal.create("s")
    journal.append("s", session(result("c1", "a\0b"), result("c1", "a\\u0000b")))
    nul, escape = journal.view("s")
    assert nul.blocks[0].text == "a\0b"
    assert escape.blocks[0].text == "a\\u0000b"


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(entries=entry_lists())
def test_any_entry_comes_back_as_it_was(journal: Journal, entries: tuple[Entry, ...]) -> None:
    name = f"s{len(journal.sessions())}"
    journal.create(name)
    fresh = chained({e.id: e for e in entries}.values())
    mine = [renamed(entry, name) for entry in fresh]
    assert journal.append(name, mine) == mine
    assert list(journal.entries(name)) == mine
    assert journal.transcript(name).entries == tuple(mine)
    assert journal.verify(name).problems == ()


def renamed(entry: Entry, name: str) -> Entry:
    parent = None if entry.parent is None else f"{name}-{entry.parent}"
    return msgspec.structs.replace(entry, id=f"{name}-{entry.id}", parent=parent)


def test_counts(journal: Journal) -> None:
    journal.create("s")
    journal.append(
        "s", session(injected("rules"), user("do", " "), said("ok", call("run")), result("c1", "x"), result("c9", "y"))
    )
    info = journal.session("s")
    assert (info.entries, info.user_texts, info.assistant_texts, info.tool_calls, info.tool_results) == (5, 1, 1, 1, 2)


@pytest.mark.parametrize(
    ("entry", "error", "says"),
    [
        (user("x", id="e1"), JournalError, "has an entry 'e1' already"),
        (user("x", id="n1", parent="e7"), EntryNotFoundError, "no entry 'e7'"),
        (user("x", id="n1", parent="other"), EntryNotFoundError, "session 's' has no entry 'other'"),
        (user("x"), JournalError, "id of 0 characters"),
        (user("x", id="n" * 257), JournalError, "id of 257 characters"),
        (user("x", id="n\ud83d"), JournalError, "lone surrogate"),
        (user("x", id="n1", extra={"a": object()}), JournalError, "cannot be stored as JSON"),
    ],
)
def test_a_refused_batch_leaves_nothing(journal: Journal, entry: Entry, error: type[Exception], says: str) -> None:
    journal.create("s")
    journal.create("t")
    journal.append("s", [user("a", id="e1")])
    journal.append("t", [user("a", id="other")])
    with pytest.raises(error, match=says):
        journal.append("s", [user("good", id="n0"), entry])
    assert [e.id for e in journal.entries("s")] == ["e1"]
    assert journal.session("s").entries == 1


def test_two_equal_ids_in_a_batch(journal: Journal) -> None:
    journal.create("s")
    with pytest.raises(JournalError, match="two entries"):
        journal.append("s", [user("a", id="e1"), user("b", id="e1")])


def test_sessions_and_prefixes(journal: Journal) -> None:
    for name in ("abc1", "abc2", "abd", "abcd%"):
        journal.create(name)
    assert journal.session("abd").id == "abd"
    assert journal.session("abcd").id == "abcd%"
    assert journal.session("abc1").id == "abc1"
    with pytest.raises(SessionNotFoundError, match="abc1, abc2, abcd%"):
        journal.session("abc")
    with pytest.raises(SessionNotFoundError, match="'%'"):
        journal.session("%")
    with pytest.raises(SessionNotFoundError, match="firsthand sessions"):
        journal.session("")
    with pytest.raises(SessionNotFoundError, match="abc1, abc2"):
        journal.append("abc", [user("x", id="e1")])
    with pytest.raises(SessionExistsError):
        journal.create("abd")
    with pytest.raises(EntryNotFoundError):
        journal.entry("nothing")


def test_what_is_known_about_a_session(journal: Journal) -> None:
    journal.create("s", title="T\ud83d", cwd="/w", model="m", system="be brief", tools=({"name": "t"},), window=200_000)
    meta = journal.meta("s")
    assert (meta.title, meta.system, meta.tools) == ("T\ud83d", "be brief", ({"name": "t"},))
    info = journal.update("s", title="U")
    assert (info.title, info.cwd, info.window) == ("U", "/w", 200_000)
    assert journal.meta("s").system == "be brief"
    assert [found.id for found in journal.sessions(cwd="/w", model="m")] == ["s"]
    assert journal.sessions(cwd="/elsewhere") == []
    with pytest.raises(ConfigError, match="colour"):
        journal.update("s", colour="red")
    with pytest.raises(ConfigError, match="title"):
        journal.create("t", title=5)
    with pytest.raises(ConfigError, match="entries"):
        journal.sessions(entries="5")


def test_pins(journal: Journal) -> None:
    journal.create("s")
    journal.append("s", [user("a", id="e1"), said("b", id="e2"), user("c", id="e3")])
    journal.pin("s", "e1")
    journal.pin("s", "e1")
    journal.pin("s", "e3")
    assert journal.view("s").pins == {"e1", "e3"}
    assert journal.view("s", upto="e2").pins == {"e1"}
    journal.unpin("s", "e3")
    journal.unpin("s", "e3")
    assert journal.view("s").pins == {"e1"}
    with pytest.raises(EntryNotFoundError):
        journal.pin("s", "e9")


def test_features(journal: Journal) -> None:
    journal.create("s")
    journal.append("s", [user(str(n), id=f"e{n}") for n in range(1_200)])
    rows = {f"e{n}": f"row {n}".encode() for n in range(0, 1_200, 2)}
    assert journal.put_features("terms/1", rows) == 600
    assert journal.put_features("terms/2", {"e1": b"\0", "gone": b"x"}) == 1
    assert journal.put_features("terms/2", {"e1": b"\xff"}) == 1
    assert dict(journal.view("s", extractor="terms/1").features) == rows
    assert dict(journal.view("s", "e9", extractor="terms/1").features) == {
        f"e{n}": rows[f"e{n}"] for n in range(0, 10, 2)
    }
    assert journal.features("s", "terms/2") == {"e1": b"\xff"}
    assert dict(journal.view("s").features) == {}
    assert journal.forget_features("terms/1") == 600
    assert journal.features("s", "terms/1") == {}


def test_the_chain_hash_vouches_for_the_path(journal: Journal) -> None:
    for name, first in (("s", "a"), ("t", "b")):
        journal.create(name)
        journal.append(name, [user(first, id=f"{name}1"), said("same", id=f"{name}2")])
    assert len({journal.chain(name) for name in ("s1", "s2", "t1", "t2")}) == 4
    assert journal.chain(journal.entry("s2").id) == journal.chain("s2")
    assert len(journal.chain("s1")) == 32


@pytest.mark.parametrize("table", [schema.entries, schema.markers], ids=lambda table: table.name)
def test_the_database_itself_refuses_edits(journal: Journal, table: schema.Table) -> None:
    journal.import_transcript(marked())
    with pytest.raises(JournalError, match="never changed"), journal.write() as connection:
        connection.execute(update(table).values(payload=b"{}"))
    with pytest.raises(JournalError, match=r"go only through|goes only with"), journal.write() as connection:
        connection.execute(delete(table))
    assert journal.transcript("m") == marked()


def test_many_branches_in_one_batch(journal: Journal) -> None:
    """A person who retries every step: each entry has an abandoned sibling, and the path is still read whole."""
    journal.create("s")
    batch: list[Entry] = []
    parent = None
    for n in range(2_000):
        batch += [user("abandoned", id=f"a{n}", parent=parent), user("kept", id=f"k{n}", parent=parent)]
        parent = f"k{n}"
    journal.append("s", batch)
    assert [entry.id for entry in journal.entries("s")] == ["a0", *(f"k{n}" for n in range(2_000))]
    assert journal.verify().problems == ()


def test_a_full_disk_loses_nothing(journal: Journal) -> None:
    """JR-01: a write that fails half-way leaves every original readable, and the next one works."""
    journal.create("s")
    before = journal.append("s", session(user("a"), said("b" * 5_000)))
    with journal.read() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages + 5}")
    large = [user("".join(map(str, range(5_000 * n, 5_000 * (n + 1)))), id=f"n{n}") for n in range(40)]
    with pytest.raises(JournalError, match="disk is full; make room"):
        journal.append("s", large)
    assert list(journal.entries("s")) == before
    assert journal.verify().ok
    with journal.read() as connection:
        connection.exec_driver_sql("PRAGMA max_page_count = 1000000")
    assert len(journal.append("s", large)) == 40
