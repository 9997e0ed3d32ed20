"""Taking in transcripts, again and again: what is new, what is known, what changed, and real sessions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from real_sessions import shared

from firsthand.errors import EntryNotFoundError, JournalError
from firsthand.formats.files.base import Input
from firsthand.formats.files.claude_code.reader import ClaudeCodeReader
from firsthand.journal import Imported, Journal
from firsthand.testing.builders import call, result, said, session, summary, used, user
from firsthand.testing.random_entries import trees
from firsthand.transcript import Damage, Entry, Marker, Source, Transcript


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with Journal.open(tmp_path / "journal.db") as opened:
        yield opened


def transcript(entries: tuple[Entry, ...], **fields: Any) -> Transcript:
    leaf = entries[-1].id if entries else None
    return Transcript(**{"id": "t", "format": "test", "entries": entries, "leaf": leaf, **fields})


def marked() -> Transcript:
    """A session with one recorded marker that shows an original and a summary."""
    entries = session(user("a"), said("b"), user("c"))
    marker = Marker(id="m1", after="e2", shown=("e1", summary("so far", id="sum")), tokens_before=10)
    return transcript(entries, id="m", markers=(marker,))


def counts(imported: Imported) -> tuple[int, int, tuple[str, ...], int, int]:
    return imported.new, imported.known, imported.revised, imported.moved, imported.markers


def path_ids(journal: Journal, session_id: str = "t") -> list[str]:
    return [entry.id for entry in journal.entries(session_id)]


FULL = transcript(
    session(user("a"), said("b", call("run")), result("c1", "x"), said("d")),
    title="T\ud83d",
    cwd="/w",
    model="m",
    client="1.0",
    time="2026-01-01T00:00:00Z",
    window=200_000,
    system="be brief",
    tools=(),
    parent_session="p",
    forked_from="f",
    damaged=(Damage(3, "broken"),),
    warnings=("odd",),
    extra={"k": [1]},
)


@pytest.mark.parametrize("given", [FULL, marked(), transcript(()), msgspec.structs.replace(FULL, leaf="e2")])
def test_what_was_imported_comes_back(journal: Journal, given: Transcript) -> None:
    imported = journal.import_transcript(given)
    assert (imported.created, imported.new, imported.changed) == (True, len(given.entries), True)
    assert journal.transcript(given.id) == given
    assert journal.view(given.id) == given.view()
    again = journal.import_transcript(given)
    assert (again.created, again.changed, again.known) == (False, False, len(given.entries))
    assert journal.transcript(given.id) == given


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(entries=trees())
def test_any_tree_comes_back(journal: Journal, entries: tuple[Entry, ...]) -> None:
    """IM-06: entries off the active path are stored; every one of them can be the end of a path."""
    name = f"s{len(journal.sessions())}"
    renamed = tuple(
        msgspec.structs.replace(e, id=f"{name}-{e.id}", parent=None if e.parent is None else f"{name}-{e.parent}")
        for e in entries
    )
    tree = transcript(renamed, id=name)
    journal.import_transcript(tree)
    assert journal.transcript(name) == tree
    for entry in renamed:
        expected = msgspec.structs.replace(tree, leaf=entry.id).path()
        assert tuple(journal.entries(name, upto=entry.id)) == expected
    assert not journal.import_transcript(tree).changed
    assert journal.verify(name).problems == ()


def test_a_file_that_grew(journal: Journal) -> None:
    long = session(user("a"), said("b"), user("c"), said("d"))
    journal.import_transcript(transcript(long[:2]))
    assert counts(journal.import_transcript(transcript(long))) == (2, 2, (), 0, 0)
    assert journal.transcript("t") == transcript(long)


def test_a_last_response_that_grew_is_a_revision(journal: Journal) -> None:
    first = session(user("a"), said("b"))
    journal.import_transcript(transcript(first))
    old = journal.entry("e2")
    grown = session(user("a"), said("b", call("run"), usage=used(9)), result("c1", "x"))
    assert counts(journal.import_transcript(transcript(grown))) == (1, 1, ("e2",), 0, 0)
    assert path_ids(journal) == ["e1", "e2.r2", "e3"]
    assert journal.entry("e2") == old
    assert journal.entry("e2.r2").blocks == grown[1].blocks
    assert journal.entry("e3").parent == "e2.r2"
    assert [entry.id for entry in journal.transcript("t").entries] == ["e1", "e2", "e2.r2", "e3"]
    info = journal.session("t")
    assert (info.entries, info.revised, info.assistant_texts, info.tool_calls) == (3, 1, 1, 1)
    assert not journal.import_transcript(transcript(grown)).changed
    assert journal.verify().problems == ()
    # And once more, in the middle of a live response.
    again = session(user("a"), said("b!", call("run"), usage=used(9)), result("c1", "x"))
    assert counts(journal.import_transcript(transcript(again))) == (0, 1, ("e2",), 1, 0)
    assert path_ids(journal) == ["e1", "e2.r3", "e3.r2"]


def test_what_stood_behind_a_changed_entry_follows_it(journal: Journal) -> None:
    """Parallel calls of a live response: the first result was there before the second call (IM-04)."""
    early = session(user("a"), said(call("x", id="cx")), result("cx", "1"))
    late = session(user("a"), said(call("x", id="cx"), call("y", id="cy")), result("cx", "1"), result("cy", "2"))
    journal.import_transcript(transcript(early))
    assert counts(journal.import_transcript(transcript(late))) == (1, 1, ("e2",), 1, 0)
    assert path_ids(journal) == ["e1", "e2.r2", "e3.r2", "e4"]
    info = journal.session("t")
    assert (info.entries, info.revised, info.tool_calls, info.tool_results) == (4, 2, 2, 2)


def test_where_it_was_read_from_does_not_count(journal: Journal) -> None:
    entries = session(user("a", source=Source("test", 1)), said("b", source=Source("test", 2)))
    journal.import_transcript(transcript(entries))
    shifted = tuple(msgspec.structs.replace(e, source=Source("test", 9), sequence=e.sequence + 5) for e in entries)
    assert not journal.import_transcript(transcript(shifted)).changed
    assert journal.transcript("t").entries == entries


def test_a_file_that_went_back_to_an_older_version(journal: Journal) -> None:
    one, two = session(user("a"), said("b")), session(user("a"), said("c"))
    journal.import_transcript(transcript(one))
    journal.import_transcript(transcript(two))
    assert counts(journal.import_transcript(transcript(one))) == (0, 2, (), 0, 0)
    assert path_ids(journal) == ["e1", "e2"]


def test_another_branch_became_the_active_one(journal: Journal) -> None:
    entries = (*session(user("a"), said("b")), said("c", id="e3", parent="e1"))
    journal.import_transcript(transcript(entries))
    assert path_ids(journal) == ["e1", "e3"]
    assert not journal.import_transcript(transcript(entries, leaf="e2")).changed
    assert path_ids(journal) == ["e1", "e2"]


def test_an_unchanged_file_does_not_take_back_what_was_appended(journal: Journal) -> None:
    entries = session(user("a"), said("b"))
    journal.import_transcript(transcript(entries))
    journal.append("t", [user("later", id="mine")])
    journal.import_transcript(transcript(entries))
    assert path_ids(journal) == ["e1", "e2", "mine"]
    # But what is new in the file counts: both lines are kept, the file's is the active one.
    journal.import_transcript(transcript(session(user("a"), said("b"), user("c"))))
    assert path_ids(journal) == ["e1", "e2", "e3"]
    sequences = [entry.sequence for entry in journal.transcript("t").entries]
    assert sequences == sorted(set(sequences))


def test_markers_are_stored_once_and_follow_revisions(journal: Journal) -> None:
    given = marked()
    assert journal.import_transcript(given).markers == 1
    assert journal.import_transcript(given).markers == 0
    changed = session(user("a"), said("b2"), user("c"))
    assert journal.import_transcript(msgspec.structs.replace(given, entries=changed)).markers == 1
    [marker] = journal.view("m").markers
    assert (marker.after, marker.shown[0]) == ("e2.r2", "e1")
    assert journal.session("m").markers == 2


def test_a_marker_off_the_active_path_is_not_in_the_view(journal: Journal) -> None:
    entries = (*session(user("a"), said("b")), said("c", id="e3", parent="e1"))
    markers = tuple(Marker(id=f"m{n}", after=after) for n, after in enumerate((None, "e1", "e2", "nowhere")))
    journal.import_transcript(transcript(entries, markers=markers))
    assert journal.view("t") == transcript(entries, markers=markers).view()
    assert [marker.id for marker in journal.view("t").markers] == ["m0", "m1"]
    assert journal.transcript("t").markers == markers


def test_metadata_of_a_newer_file_wins_and_forgets_nothing(journal: Journal) -> None:
    journal.import_transcript(FULL)
    journal.import_transcript(msgspec.structs.replace(FULL, title="New", cwd=None, damaged=(), warnings=()))
    meta = journal.meta("t")
    assert (meta.title, meta.cwd, meta.system, meta.damaged, meta.warnings) == ("New", "/w", "be brief", (), ())


@pytest.mark.parametrize(
    ("given", "error", "says"),
    [
        (transcript((user("a", id="e1"), user("b", id="e1"))), JournalError, "two entries with the id 'e1'"),
        (transcript((user("a", id="e1", parent="e0"),)), EntryNotFoundError, "names the parent 'e0'"),
        (transcript((user("a", id="e1"),), leaf="e9"), EntryNotFoundError, "names the leaf 'e9'"),
        (transcript((), id=""), JournalError, "session id of 0"),
    ],
)
def test_a_refused_import_leaves_nothing(
    journal: Journal, given: Transcript, error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        journal.import_transcript(given)
    assert journal.sessions() == []


def test_an_id_that_another_session_has(journal: Journal) -> None:
    """Wire messages and builders number their entries; nothing is lost and nothing is mixed up."""
    journal.import_transcript(transcript(session(user("a"), said("b")), id="one"))
    imported = journal.import_transcript(transcript(session(user("x"), said("y")), id="two"))
    assert counts(imported) == (2, 0, (), 0, 0)
    assert path_ids(journal, "one") == ["e1", "e2"]
    assert path_ids(journal, "two") == ["e1.r2", "e2.r2"]
    assert not journal.import_transcript(transcript(session(user("x"), said("y")), id="two")).changed
    assert journal.session("two").revised == 0


def test_the_same_entries_in_two_sessions_are_stored_once(journal: Journal) -> None:
    entries = session(user("a"), said("b"), user("c"))
    journal.import_transcript(transcript(entries[:2], id="one"))
    assert counts(journal.import_transcript(transcript(entries, id="two"))) == (3, 0, (), 0, 0)
    assert journal.transcript("two") == transcript(entries, id="two")
    assert journal.session("two").entries == 3
    assert not journal.import_transcript(transcript(entries, id="two")).changed
    with journal.read() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM entries").scalar() == 3
    assert journal.verify().problems == ()


def test_several_transcripts_are_taken_in_together_or_not_at_all(journal: Journal) -> None:
    good = [
        transcript(session(user("a")), id="one"),
        msgspec.structs.replace(marked(), entries=(), leaf=None, markers=()),
    ]
    assert [imported.session for imported in journal.import_transcripts(good)] == ["one", "m"]
    bad = [transcript((user("b", id="b1"),), id="two"), transcript((), id="three", leaf="e9")]
    with pytest.raises(EntryNotFoundError):
        journal.import_transcripts(bad)
    assert {info.id for info in journal.sessions()} == {"one", "m"}


def test_sub_agents_stay_apart(journal: Journal) -> None:
    """IM-05."""
    path = shared("claude-code/viewer-sidechain-small.jsonl")
    found = ClaudeCodeReader().read(Input.open(path))
    for one in found:
        journal.import_transcript(one)
    parent = found[0].id
    assert len(found) == 3
    assert {info.id for info in journal.sessions(parent_session=parent)} == {one.id for one in found[1:]}
    assert [journal.transcript(one.id) for one in found] == found
    assert not any(journal.import_transcript(one).changed for one in found)


@pytest.mark.parametrize("cut", [0.3, 0.66, 0.97])
def test_a_real_session_imported_while_it_grows(journal: Journal, cut: float) -> None:
    data = Input.open(shared("claude-code/entire-cli-compact3.jsonl.gz"))
    lines = data.data.splitlines(keepends=True)
    part = b"".join(lines[: int(len(lines) * cut)])
    [early] = ClaudeCodeReader().read(Input("part", part))
    [whole] = ClaudeCodeReader().read(data)
    journal.import_transcript(early)
    grown = journal.import_transcript(whole)
    assert grown.new + grown.known + len(grown.revised) + grown.moved == len(whole.entries)
    shown = [(entry.role, entry.blocks) for entry in journal.entries(whole.id)]
    assert shown == [(entry.role, entry.blocks) for entry in whole.path()]
    assert not journal.import_transcript(whole).changed
    for entry in early.entries:
        assert journal.entry(entry.id).blocks == entry.blocks
    assert journal.verify().problems == ()
