"""Fetching an entry back: pages that cut no character, blocks, and the entries around it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from firsthand.codec import to_utf8
from firsthand.errors import ConfigError, EntryNotFoundError
from firsthand.journal import Chunk, Journal, Page
from firsthand.journal.history import page
from firsthand.journal.readable import passages
from firsthand.testing.builders import call, image, result, said, session, thought, user
from firsthand.testing.random_entries import entry_lists
from firsthand.transcript import Entry, Text, Unknown


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with Journal.open(tmp_path / "journal.db") as opened:
        yield opened


def pages(entry: Entry, limit: int, block: int | None = None) -> list[Page]:
    found = [page(entry, limit=limit, block=block)]
    while found[-1].next_offset is not None:
        assert found[-1].next_offset > found[-1].offset
        found.append(page(entry, offset=found[-1].next_offset, limit=limit, block=block))
    return found


def whole(entry: Entry) -> str:
    return "".join(passage.text for passage in passages(entry))


@pytest.mark.parametrize("limit", [10, 4, 3, 2, 1])
def test_small_pages_over_wide_characters(limit: int) -> None:
    """CL-05: whole characters only, the join equals the original, and there is always progress."""
    entry = said("日本語のテキスト", "a\0é\ud83d🙂", id="e1")
    found = pages(entry, limit)
    assert "".join(part.text for part in found) == whole(entry)
    assert all(len(to_utf8(part.text)) <= max(limit, 4) for part in found)
    assert all(len(to_utf8(part.text)) <= limit or len(part.text) == 1 for part in found)
    assert {part.total for part in found} == {len(to_utf8(whole(entry)))}


def test_a_page_in_full() -> None:
    entry = said(
        thought("hm", signature="s"),
        "Text.",
        image(),
        call("run", '{"a":1}', id="c1"),
        Unknown({"type": "x"}),
        id="e1",
        time="t",
    )
    assert page(entry, offset=4, limit=6) == Page(
        entry="e1",
        role="assistant",
        time="t",
        block=None,
        offset=4,
        total=14,
        chunks=(
            Chunk(1, "text", None, None, False, 2, 5, "xt."),
            Chunk(3, "tool_call", "c1", "run", False, 0, 7, '{"a'),
        ),
        next_offset=10,
        omitted=("media", "unknown"),
    )
    last = page(entry, offset=10)
    assert (last.text, last.has_more, last.next_offset) == ('":1}', False, None)
    assert page(entry, offset=14).chunks == ()


def test_one_block() -> None:
    entry = user("first", "日本", result("c1", "out", error=True), id="e1")
    assert [part.text for part in pages(entry, 4, block=1)] == ["日", "本"]
    assert page(entry, block=2).chunks == (Chunk(2, "tool_result", "c1", None, True, 0, 3, "out"),)
    assert page(entry, block=1, offset=3).text == "本"


def test_empty_blocks_are_shown_once() -> None:
    entry = said("", "ab", call("run", "", id="c1"), "", "cd", "", id="e1")
    for limit in (1, 2, 3, 100):
        shown = [chunk.block for part in pages(entry, limit) for chunk in part.chunks if not chunk.text]
        assert shown == [0, 2, 3, 5], limit
    assert page(said(id="e2")) == Page("e2", "assistant", None, None, 0, 0, (), None, ())


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"offset": -1}, "give 0 to 6"),
        ({"offset": 7}, "give 0 to 6"),
        ({"offset": 1}, "inside a character; the one before starts at 0"),
        ({"offset": 5}, "inside a character; the one before starts at 3"),
        ({"limit": 0}, "page of 0 bytes"),
        ({"limit": 2_000_000}, "page of 2000000 bytes"),
        ({"block": 2}, "has no block 2; it has 2"),
        ({"block": -1}, "has no block -1"),
        ({"block": 1}, "block 1 of entry 'e1' is media"),
        ({"block": 0, "offset": 4}, "inside a character"),
    ],
)
def test_what_cannot_be_fetched(journal: Journal, arguments: dict[str, int], says: str) -> None:
    journal.create("s")
    journal.append("s", [user("日本", image(), id="e1")])
    with pytest.raises(ConfigError, match=says):
        journal.get("e1", **arguments)
    with pytest.raises(EntryNotFoundError):
        journal.get("e2")


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(entries=entry_lists(4), limit=st.integers(1, 9))
def test_pages_join_to_the_original(entries: tuple[Entry, ...], limit: int) -> None:
    for entry in entries:
        assert "".join(part.text for part in pages(entry, limit)) == whole(entry)


def test_a_large_entry_stays_bounded(journal: Journal) -> None:
    text = "é" * 1_000_000 + "needle" + "x" * 20_000_000
    journal.create("s")
    journal.append("s", [user(text, id="big")])
    [match] = journal.find("NEEDLE").matches
    assert match.offset == 2_000_000
    assert len(match.snippet) <= 480
    part = journal.get("big", offset=match.offset, limit=16)
    assert (part.text, part.total) == ("needlexxxxxxxxxx", 22_000_006)


def test_around(journal: Journal) -> None:
    journal.create("s")
    journal.append("s", session(*(user(str(n)) for n in range(1, 8))))
    journal.append("s", [user("branch", id="b1", parent="e3"), user("end", id="b2")])

    def ids(entry_id: str, context: int) -> list[str]:
        return [entry.id for entry in journal.around("s", entry_id, context)]

    assert ids("e2", 1) == ["e1", "e2", "e3"]
    assert ids("e1", 2) == ["e1", "e2", "e3"]
    assert ids("e3", 2) == ["e1", "e2", "e3", "b1", "b2"]
    assert ids("b2", 1) == ["b1", "b2"]
    assert ids("e5", 2) == ["e3", "e4", "e5"]
    assert ids("e3", 0) == ["e3"]
    with pytest.raises(EntryNotFoundError):
        ids("e9", 1)


def test_a_fetched_page_is_the_text_itself(journal: Journal) -> None:
    """NUL, line ends of all kinds and lone surrogates come back as they were."""
    text = "a\0b\r\nc\u2028d\ud83d\\u0000"
    journal.create("s")
    journal.append("s", [user(text, id="e1")])
    assert journal.get("e1").text == text
    assert journal.entry("e1").blocks == (Text(text),)
