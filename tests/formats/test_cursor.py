from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from real_sessions import shared

from firsthand.errors import EmptySessionError
from firsthand.formats.files.base import Input
from firsthand.formats.files.cursor import CursorReader
from firsthand.transcript import Text

from .reading import blocks, check, counts, one, opened, raw, shapes

READER = CursorReader()
FILE = "cursor/gdal-opus-4-6-small.jsonl"


def line(role: str, *parts: Any) -> str:
    content = [{"type": "text", "text": part} if isinstance(part, str) else part for part in parts]
    return json.dumps({"role": role, "message": {"content": content}})


def lines(*given: str) -> str:
    return "\n".join(given)


def test_a_session() -> None:
    query = "<user_query>\nfix it\n</user_query>"
    tool = {"type": "tool_use", "name": "Read", "input": {}}
    found = one(
        READER,
        opened(lines(line("user", "<attached_files>\nx\n</attached_files>", query), line("assistant", "on it", tool))),
    )
    check(found)
    assert shapes(found) == [
        ("user", "injected: <attached_files>\nx\n</attached_files>", query),
        ("assistant", "on it", tool),
    ]


def test_a_users_own_tag_stays_typed_where_the_query_is_in_the_same_text() -> None:
    text = "<timestamp>now</timestamp>\n<user_query>\nhi\n</user_query>"
    assert shapes(one(READER, opened(line("user", text)))) == [("user", text)]


def test_a_file_that_has_grown_gives_the_same_ids() -> None:
    short = one(READER, opened(lines(line("user", "q"), line("assistant", "a"))))
    longer = one(READER, opened(lines(line("user", "q"), line("assistant", "a"), line("assistant", "b"))))
    assert longer.id == short.id
    assert longer.entries[:2] == short.entries


def test_sessions_with_the_same_opening_differ_by_name() -> None:
    text = line("user", "q")
    assert one(READER, opened(text, "a.jsonl")).id != one(READER, opened(text, "b.jsonl")).id
    assert one(READER, opened(text, "a.jsonl")).id == one(READER, opened(text, "a.jsonl.gz")).id


def test_damaged_and_unknown_lines_are_counted() -> None:
    found = one(READER, opened(lines(line("user", "q"), '{"role": "assi', line("system", "x"), line("assistant", "a"))))
    assert shapes(found) == [("user", "q"), ("assistant", "a")]
    assert [d.line for d in found.damaged] == [2]
    assert found.warnings == ("1 record of unknown type 'system'",)


@pytest.mark.parametrize("text", [line("user"), line("system", "x"), '{"role": "user", "message": {"content": null}}'])
def test_nothing_is_never_a_success(text: str) -> None:
    """IM-09."""
    assert READER.sniff(opened(text))
    with pytest.raises(EmptySessionError, match="no entry could be read"):
        READER.read(opened(text))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "text",
        '{"role": "user", "content": "x"}',
        '{"type": "user", "message": {"role": "user", "content": "x"}, "uuid": "u", "sessionId": "s"}',
        '{"type": "message", "role": "user", "message": {"content": "x"}}',
    ],
)
def test_what_is_not_recognised(text: str) -> None:
    assert not READER.sniff(opened(text))


def test_the_real_session() -> None:
    """As the sessions' README counts it, and every text byte for byte."""
    source = Input.open(shared(FILE))
    assert READER.sniff(source)
    found = one(READER, source)
    check(found)
    assert counts([found]) == Counter({"user typed": 1, "assistant typed": 78})
    given = [json.loads(text) for text in raw(shared(FILE)).splitlines() if text.strip()]
    assert [(e.role, *(b.text for b in e.blocks if isinstance(b, Text))) for e in found.entries] == [
        (g["role"], *(part["text"] for part in g["message"]["content"])) for g in given
    ]
    assert len(blocks([found], Text)) == 79
