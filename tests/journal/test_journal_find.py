"""Searching: literal, the newest first, every script and every hostile query, a page at a time."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from real_sessions import SHARED

from firsthand.codec import to_utf8
from firsthand.errors import ConfigError, SessionNotFoundError
from firsthand.formats.files.base import Input
from firsthand.formats.files.claude_code.reader import ClaudeCodeReader
from firsthand.formats.files.codex.reader import CodexReader
from firsthand.formats.files.pi.reader import PiReader
from firsthand.journal import Found, Journal
from firsthand.journal.candidates import is_looked_up
from firsthand.journal.readable import passages
from firsthand.testing.builders import call, image, result, said, session, thought, user
from firsthand.testing.random_entries import texts
from firsthand.transcript import Entry, Marker, Media, Transcript


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with Journal.open(tmp_path / "journal.db") as opened:
        yield opened


def fill(journal: Journal, *entries: Entry, name: str = "s") -> None:
    journal.create(name)
    journal.append(name, session(*entries))


def places(found: Found) -> list[tuple[str, int]]:
    return [(match.entry, match.block) for match in found.matches]


HOSTILE = (
    "it's a 'quoted' one",
    "a/b/c.py",
    "--flag -x",
    "one, two",
    "really?",
    "me@example.org",
    "list[0]",
    "a=b",
    "key: value",
    "100%_done%",
    'say "hi" and ""',
    "NEAR(a b)",
    "a AND b OR NOT c",
    "prefix*",
    "^start",
    "col : x",
    "{a b} + c",
    "\\u0000 \\n",
    "a\nb\r\nc\td",
    "nul\0inside",
    "half \ud83d emoji",
    "🙂🙃 two",
    "İstanbul ß ŞIŞ",
    "𠀀𠀁𠀂",
    "e\u0301 combining",
    "\u202ertl",
)


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_queries_find_their_text_and_nothing_else(journal: Journal, text: str) -> None:
    """CL-01: every substring of every hostile text is found where it is."""
    fill(journal, *(said(other) for other in HOSTILE))
    for start in range(len(text)):
        for end in range(start + 1, min(len(text), start + 12) + 1):
            query = text[start:end]
            expected = [
                f"e{n}" for n in range(len(HOSTILE), 0, -1) if to_utf8(query).lower() in to_utf8(HOSTILE[n - 1]).lower()
            ]
            assert [match.entry for match in journal.find(query, limit=200).matches] == expected, query


def test_only_ascii_case_is_folded(journal: Journal) -> None:
    fill(journal, user("Hello ÉCOLE"), user("hello école"))
    assert places(journal.find("HELLO")) == [("e2", 0), ("e1", 0)]
    assert places(journal.find("école")) == [("e2", 0)]
    assert places(journal.find("École")) == [("e1", 0)]
    assert places(journal.find("É")) == [("e1", 0)]
    assert places(journal.find("COLE")) == [("e2", 0), ("e1", 0)]


def test_cjk(journal: Journal) -> None:
    """CL-02: two and four characters, and Latin words glued to them."""
    fill(
        journal, user("请打开设置页面"), said("用Python3写的脚本"), user("東京タワーへ行く"), said("한국어 문장입니다")
    )
    expected = {
        "设置": ["e1"],
        "打开设置": ["e1"],
        "页面": ["e1"],
        "面": ["e1"],
        "Python3": ["e2"],
        "用py": ["e2"],
        "3写": ["e2"],
        "脚本": ["e2"],
        "タワ": ["e3"],
        "東": ["e3"],
        "행": [],
        "문장": ["e4"],
        "니다": ["e4"],
        "的脚本": ["e2"],
        "本请": [],
    }
    assert {query: [m.entry for m in journal.find(query).matches] for query in expected} == expected


def test_short_queries_beyond_the_newest_entries(journal: Journal) -> None:
    """What the scan of the newest entries does not reach, the index does; also at the very end of a text."""
    fill(journal, user("终点"), said("xq"), *(user(f"text {n}") for n in range(1_000)), said("Ñ"), user("end"))
    assert places(journal.find("终点")) == [("e1", 0)]
    assert places(journal.find("点")) == [("e1", 0)]
    assert places(journal.find("XQ")) == [("e2", 0)]
    assert places(journal.find("q")) == [("e2", 0)]
    assert places(journal.find("Ñ")) == [("e1003", 0)]
    assert places(journal.find("ñ")) == []
    assert places(journal.find("ØÅ")) == []
    assert len(journal.find("te", limit=200).matches) == 200


def test_every_block_kind(journal: Journal) -> None:
    fill(
        journal,
        user("needle in text", image()),
        said(thought("needle in thought", signature="needle"), "prose", call("grep", id="c1", pattern="needle", n=1)),
        result("c1", "first needle", Media("image", "image/png", "needle"), "needle again"),
        result("c1", "needle late", name="other", error=True),
    )
    found = journal.find("needle")
    assert [(m.entry, m.block, m.kind, m.tool, m.call_id) for m in found.matches] == [
        ("e4", 0, "tool_result", "other", "c1"),
        ("e3", 0, "tool_result", "grep", "c1"),
        ("e2", 2, "tool_call", "grep", "c1"),
        ("e1", 0, "text", None, None),
    ]
    assert (found.has_more, found.cursor, found.timed_out) == (False, None, False)
    assert places(journal.find("needle", kinds=["reasoning"])) == [("e2", 0)]
    assert places(journal.find("needle", kinds=["text", "reasoning"])) == [("e2", 0), ("e1", 0)]
    assert places(journal.find("needle", tool="grep")) == [("e3", 0), ("e2", 2)]
    assert places(journal.find("needle", role="tool")) == [("e4", 0), ("e3", 0)]
    assert places(journal.find('{"pattern":"needle","n":1}')) == [("e2", 2)]
    assert places(journal.find("textneedle")) == []


def test_an_exact_call_id_matches(journal: Journal) -> None:
    fill(journal, call("run", id="toolu_01"), result("toolu_01", "out"), said("about toolu_01 I say"))
    found = journal.find("toolu_01")
    assert [(m.entry, m.offset, m.hit) for m in found.matches] == [
        ("e3", 6, (6, 14)),
        ("e2", 0, (0, 0)),
        ("e1", 0, (0, 0)),
    ]
    assert places(journal.find("toolu_0")) == [("e3", 0)]


def test_one_call_id_in_two_turns(journal: Journal) -> None:
    """SE-09: a result's tool is that of the nearest call before it on its own path."""
    journal.create("s")
    journal.append(
        "s",
        [
            said(call("read", id="call_0"), id="e1"),
            result("call_0", "same", id="e2"),
            said(call("write", id="call_0"), id="e3"),
            result("call_0", "same", id="e4"),
            result("call_0", "same", id="e5", parent="e2"),
        ],
    )
    assert [(m.entry, m.tool) for m in journal.find("same").matches] == [
        ("e5", "read"),
        ("e4", "write"),
        ("e2", "read"),
    ]
    assert places(journal.find("same", tool="write")) == [("e4", 0)]


def test_age_and_path(journal: Journal) -> None:
    fill(journal, *(user(f"word {n}") for n in range(1, 6)))
    journal.append("s", [user("word branch", id="b1", parent="e2"), user("end", id="b2")])
    found = journal.find("word", limit=50)
    assert [(m.entry, m.position, m.age, m.on_path) for m in found.matches] == [
        ("b1", 2, 1, True),
        ("e5", 4, None, False),
        ("e4", 3, None, False),
        ("e3", 2, None, False),
        ("e2", 1, 2, True),
        ("e1", 0, 3, True),
    ]


def test_a_session_includes_what_it_shares(journal: Journal) -> None:
    fill(journal, *(user(f"word {n}") for n in range(1, 6)))
    child = journal.fork("s", at="e3")
    journal.append(child, [user("word child", id="c1")])
    journal.create("other")
    journal.append("other", [user("word elsewhere", id="o1")])
    found = journal.find("word", session=child)
    assert [(m.session, m.entry, m.age) for m in found.matches] == [
        (child, e, n) for n, e in enumerate(["c1", "e3", "e2", "e1"])
    ]
    assert [m.entry for m in journal.find("word", session="s").matches] == ["e5", "e4", "e3", "e2", "e1"]
    assert [m.session for m in journal.find("word").matches] == ["other", child, "s", "s", "s", "s", "s"]
    journal.create("empty")
    assert journal.find("word", session="empty").matches == ()
    with pytest.raises(SessionNotFoundError):
        journal.find("word", session="nothing")


def test_tenants_and_times(journal: Journal) -> None:
    journal.create("a", tenant="one")
    journal.create("b", tenant="two")
    journal.append("a", [user("word", id="a1", time="2026-01-01T00:00:00Z"), user("word", id="a2")])
    journal.append("b", [user("word", id="b1", time="2026-02-01T00:00:00+01:00")])
    assert [m.entry for m in journal.find("word", tenant="one").matches] == ["a2", "a1"]
    assert [m.entry for m in journal.find("word", since="2026-01-15").matches] == ["b1"]
    assert [m.entry for m in journal.find("word", until="2026-01-31T23:00:00Z").matches] == ["a1"]
    assert [m.entry for m in journal.find("word", since="2026-01-31T23:00:00Z").matches] == ["b1"]
    with pytest.raises(ConfigError, match="since 'yesterday'"):
        journal.find("word", since="yesterday")


def test_cursors_reach_the_first_entry(journal: Journal) -> None:
    """CL-03: 72 entries, pages of 50, every entry once, and `has_more` tells the truth."""
    fill(journal, *(user(f"word {n}") for n in range(72)))
    first = journal.find("word", limit=50)
    assert (len(first.matches), first.has_more) == (50, True)
    second = journal.find("word", limit=50, cursor=first.cursor)
    assert (len(second.matches), second.has_more, second.cursor) == (22, False, None)
    assert [m.entry for m in (*first.matches, *second.matches)] == [f"e{n}" for n in range(72, 0, -1)]
    exact = journal.find("word", limit=72)
    assert (len(exact.matches), exact.has_more, exact.cursor) == (72, False, None)


def test_cursors_stop_between_blocks_and_survive_appends(journal: Journal) -> None:
    fill(journal, user("word", "word", "word"), user("word", "word"))
    seen: list[tuple[str, int]] = []
    cursor = None
    for page in range(5):
        found = journal.find("word", limit=1, cursor=cursor)
        seen += places(found)
        assert found.has_more == (page < 4)
        cursor = found.cursor
        journal.append("s", [user("word", id=f"late{page}")])
    assert seen == [("e2", 1), ("e2", 0), ("e1", 2), ("e1", 1), ("e1", 0)]


def test_a_search_that_takes_too_long_says_so_and_goes_on(journal: Journal) -> None:
    fill(journal, user("the needle"), *(user(f"t{n} the nee dle") for n in range(2_000)))
    cursor, pages = None, 0
    while True:
        found = journal.find("the n", tool="none", cursor=cursor, seconds=0)
        pages += 1
        assert found.matches == ()
        assert (found.timed_out, found.has_more) == (found.cursor is not None, False)
        if found.cursor is None:
            break
        cursor = found.cursor
    assert pages > 10


def test_a_match_behind_two_markers(journal: Journal) -> None:
    """CL-04: entry 3 of 5,000, and the match leads to its bytes."""
    entries = session(
        user("a"), said("b"), user("the secret is 4711 — keep it"), *(said(f"x {n}") for n in range(4_997))
    )
    markers = (Marker(id="m1", after="e1000"), Marker(id="m2", after="e4000"))
    journal.import_transcript(Transcript(id="s", format="t", entries=entries, leaf="e5000", markers=markers))
    [match] = journal.find("SECRET is 47").matches
    assert (match.entry, match.age, match.offset) == ("e3", 4_997, 4)
    assert journal.get(match.entry, offset=match.offset, limit=14).text == "secret is 4711"


def test_snippets(journal: Journal) -> None:
    fill(journal, user("é" * 400 + "needle" + "日" * 400), said("needle" + "x" * 1_000), user("y" * 1_000 + "needle"))
    for match in journal.find("needle").matches:
        start, end = match.hit
        assert match.snippet[start:end] == "needle"
        assert len(match.snippet.encode()) <= 480
        text = journal.get(match.entry).text
        assert match.snippet in text
        assert to_utf8(text)[match.offset :].startswith(b"needle")
    [match] = journal.find("é" * 399).matches
    assert match.hit == (0, 240)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"query": ""}, "query of 0"),
        ({"query": "x" * 1_001}, "query of 1,001"),
        ({"query": "x", "limit": 0}, "page of 0"),
        ({"query": "x", "limit": 201}, "page of 201"),
        ({"query": "x", "cursor": "7"}, "no cursor"),
        ({"query": "x", "kinds": ["tool_use"]}, "no kind of block to search named 'tool_use'"),
        ({"query": "x", "kinds": ["media"]}, "choose one of: reasoning, text"),
        ({"query": "x", "role": "model"}, "no role named 'model'"),
        ({"query": "x", "cursor": "٣.٣"}, "no cursor"),
        ({"query": "x", "cursor": "9" * 50 + ".1"}, "no cursor"),
    ],
)
def test_what_cannot_be_searched(journal: Journal, arguments: dict[str, object], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        journal.find(**arguments)  # type: ignore[arg-type]


def test_cursors_beyond_the_journal(journal: Journal) -> None:
    fill(journal, user("word"))
    assert places(journal.find("word", cursor=f"{10**17}.0")) == [("e1", 0)]
    assert places(journal.find("word", cursor="0.0")) == []


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(text=st.lists(texts(), min_size=1, max_size=4).map("".join), data=st.data())
def test_any_substring_is_found(journal: Journal, text: str, data: st.DataObject) -> None:
    if not text:
        text = "x"
    name = f"s{len(journal.sessions())}"
    journal.create(name)
    journal.append(name, [user("before", id=f"{name}-0"), user(text, id=f"{name}-1"), said("after", id=f"{name}-2")])
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    found = journal.find(text[start:end], session=name)
    [match] = [match for match in found.matches if match.entry == f"{name}-1"]
    at = to_utf8(text).lower().find(to_utf8(text[start:end]).lower())
    assert match.offset == at


def test_the_index_folds_what_we_think_it_folds(journal: Journal) -> None:
    """Every character that a short query looks up by itself stands in the index as itself."""
    some = [chr(code) for code in range(1, 0x2_FFFF) if not 0xD800 <= code < 0xE000]
    fill(journal, *(user("\n\n".join(some[at : at + 20_000])) for at in range(0, len(some), 20_000)))
    with journal.read() as connection:
        terms = set(connection.exec_driver_sql("SELECT DISTINCT term FROM search_terms").scalars())
    looked_up = [c for c in some if is_looked_up(c)]
    assert len(looked_up) > 180_000
    assert [c for c in looked_up if f"{c.lower()}\n\n" not in terms] == []


READERS = {"claude-code": ClaudeCodeReader(), "codex": CodexReader(), "pi": PiReader()}
REAL = sorted(path for name in READERS for path in (SHARED / "sessions" / name).glob("*.gz"))


@pytest.mark.slow
@pytest.mark.skipif(not REAL, reason="the real sessions are not here")
def test_a_thousand_substrings_of_real_sessions(journal: Journal) -> None:
    """Issue 3: substrings of one to forty characters are found where they are; strings that are nowhere are not found."""
    everything: list[tuple[str, str, int, str]] = []
    for path in REAL:
        for one in READERS[path.parent.name].read(Input.open(path)):
            journal.import_transcript(one)
            for entry in one.entries:
                said_here = [p for p in passages(entry) if p.kind != "reasoning" and p.text]
                everything += [(one.id, entry.id, p.block, p.text) for p in said_here]
    chance = random.Random(3)
    wide = [row for row in everything if not row[3].isascii()]
    for n in range(1_000):
        session_id, entry_id, block, text = chance.choice(wide if n % 3 == 0 else everything)
        start = chance.randrange(len(text))
        query = text[start : start + chance.randint(1, 40)]
        cursor = None
        while True:
            found = journal.find(query, session=session_id, limit=200, cursor=cursor, seconds=60)
            here = [match for match in found.matches if (match.entry, match.block) == (entry_id, block)]
            if here or found.cursor is None:
                break
            cursor = found.cursor
        [match] = here
        needle = to_utf8(query).lower()
        assert match.block_offset == to_utf8(text).lower().find(needle), query
        page = journal.get(entry_id, offset=match.offset, limit=len(needle))
        assert to_utf8(page.text).lower() == needle
    haystack = to_utf8("\0".join(row[3] for row in everything)).lower()
    absent = 0
    while absent < 1_000:
        _, _, _, text = chance.choice(wide if absent % 3 == 0 else everything)
        start = chance.randrange(len(text))
        letters = list(text[start : start + chance.randint(4, 40)])
        chance.shuffle(letters)
        query = "".join(letters)
        if not query or to_utf8(query).lower() in haystack:
            continue
        absent += 1
        found = journal.find(query, seconds=60)
        assert (found.matches, found.cursor) == ((), None), query
    assert journal.verify().problems == ()
