from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firsthand.lab.model.parsing import ABSTAINED, Judged, Said, filled, named, said

ASKED = ("8123", "src/a.py", "ver_1234")


def completion(text: str | None, finish: str | None = "stop", **message: Any) -> dict[str, Any]:
    return {"choices": [{"finish_reason": finish, "message": {"role": "assistant", "content": text, **message}}]}


CALL = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        (completion(" yes "), Said("yes")),
        (completion('{"appeared":["8123"]}', "length"), Said(why="cut off")),
        (completion('{"appeared":["8123"]}', "content_filter"), Said(why="cut off")),
        (completion('{"appeared":["8123"]}', None), Said(why="cut off")),
        (completion('{"appeared":["8123"]}', "tool_calls", tool_calls=[CALL]), Said(why="tool call")),
        (completion(""), Said(why="empty")),
        (completion(None), Said(why="empty")),
        ({"error": {"message": "no"}}, Said(why="no response")),
        ({"choices": []}, Said(why="no response")),
        (None, Said(why="no response")),
    ],
    ids=["text", "length", "filter", "no finish", "call", "empty", "null", "error", "no choice", "nothing"],
)
def test_only_a_reply_that_ended_by_itself_is_judged(response: dict[str, Any] | None, expected: Said) -> None:
    assert said(response) == expected


@pytest.mark.parametrize(
    ("text", "strict", "published"),
    [
        ('{"appeared": ["8123", "src/a.py"]}', Judged(("8123", "src/a.py")), None),
        ('{"appeared": []}', Judged(), None),
        ('Sure.\n```json\n{"appeared": [" 8123 "]}\n```', Judged(("8123",)), None),
        ('{"appeared": ["8123", "8123"]}', Judged(("8123",)), None),
        ('{"appeared": ["81", "SRC/A.PY"]}', Judged((), 2), None),
        ('{"appeared": [8123]}', Judged(why="not as asked"), Judged()),
        ('{"appeared": "8123"}', Judged(why="no object"), None),
        ('{"Appeared": ["8123"]}', Judged(why="no object"), None),
        ('["8123"]', Judged(why="no object"), None),
        ("INCORRECT", Judged(why="no object"), None),
        ("unknown", Judged(why="no object"), None),
        ('{"appeared": ["8123"]', Judged(why="no object"), None),
        ('{"thought": {"appeared": ["8123"]}}', Judged(why="no object"), None),
        ('{"appeared": ["8123"]} or {"appeared": []}', Judged(why="several objects"), Judged(("8123",))),
        ('{"appeared": ["8123"]} {"appeared": ["8123"]}', Judged(("8123",)), None),
        ("{" * 5_000, Judged(why="no object"), None),
    ],
)
def test_what_a_reply_names(text: str, strict: Judged, published: Judged | None) -> None:
    assert named(Said(text), ASKED) == strict
    assert named(Said(text), ASKED, first=True) == (strict if published is None else published)


def test_a_reply_that_is_none_claims_nothing() -> None:
    assert named(Said(why="cut off"), ASKED) == Judged(why="cut off")
    assert filled(Said(why="cut off"), "1") == ({}, "cut off")


@pytest.mark.parametrize(
    ("text", "values", "why"),
    [
        ('{"answers": {"1": "8123", "2": null}}', {"1": "8123"}, ""),
        ('{"answers": {}}', {}, ""),
        ('{"answers": {"1": "Unknown.", "2": " none "}}', {}, ""),
        ('{"answers": {"1": 8123}}', {}, "not as asked"),
        ('{"answers": {"3": "8123"}}', {}, "not as asked"),
        ('{"answers": ["8123"]}', {}, "no object"),
        ("8123", {}, "no object"),
        ('{"answers": {"1": "a"}} {"answers": {"1": "b"}}', {}, "several objects"),
    ],
)
def test_what_a_reply_fills_in(text: str, values: dict[str, str], why: str) -> None:
    assert filled(Said(text), ("1", "2")) == (values, why)


def test_every_word_that_abstains_is_no_claim() -> None:
    for word in ABSTAINED:
        assert filled(Said('{"answers": {"1": "' + word.upper() + '"}}'), ("1",)) == ({}, "")


@given(st.text(alphabet='{}[]",:apered \\123\n', max_size=80))
def test_no_text_breaks_it_and_only_asked_values_come_out(text: str) -> None:
    judged = named(Said(text), ASKED)
    assert set(judged.values) <= set(ASKED)
    assert judged == named(Said(text), ASKED)
    assert not judged.why or not judged.values
