"""Where values begin and end: every slice is the value, and putting the slices back gives the text."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firsthand.gateway.scan import ScanError, fields, items

SPACE = st.text(alphabet=" \n\t\r", max_size=3)
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8),
    st.sampled_from(['"', "\\", '\\"', "}", "]", ",", "[{", "\ud83d", "日本語🙂", "\x00", "</script>"]),
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=4), inner, max_size=3)),
    max_leaves=8,
)


@st.composite
def written(draw: Any, value: Any) -> str:
    """A JSON text of the value, with whitespace and escapes as any writer may put them."""
    space = lambda: draw(SPACE)  # noqa: E731
    if isinstance(value, dict):
        inner = ",".join(
            f"{space()}{json.dumps(name)}{space()}:{space()}{draw(written(each))}{space()}"
            for name, each in value.items()
        )
        return f"{{{inner or space()}}}"
    if isinstance(value, list):
        return f"[{','.join(space() + draw(written(each)) + space() for each in value) or space()}]"
    raw = not isinstance(value, str) or not any("\ud800" <= char <= "\udfff" for char in value)
    return json.dumps(value, ensure_ascii=not raw or draw(st.booleans()))


def around(draw: Any, text: str) -> bytes:
    return (draw(SPACE) + text + draw(SPACE)).encode()


@given(st.data())
def test_the_items_of_a_list_are_where_they_are_said_to_be(data: st.DataObject) -> None:
    values = data.draw(st.lists(VALUES, max_size=5))
    body = around(data.draw, data.draw(written(values)))
    spans = items(body)
    assert [json.loads(span.of(body)) for span in spans] == values
    assert [span.of(body) for span in spans] == [span.of(body).strip() for span in spans]
    rest = body
    for span in reversed(spans):
        rest = rest[: span.start] + rest[span.end :]
    assert set(rest) <= set(b" \t\n\r,[]")


@given(st.data())
def test_the_fields_of_an_object_are_where_they_are_said_to_be(data: st.DataObject) -> None:
    value = data.draw(st.dictionaries(st.text(max_size=6), VALUES, max_size=5))
    body = around(data.draw, data.draw(written(value)))
    found = fields(body)
    assert {name: json.loads(span.of(body)) for name, span in found.items()} == value
    assert list(found) == list(value)


@given(st.binary(max_size=30))
def test_any_bytes_are_scanned_or_refused(data: bytes) -> None:
    for scan in (fields, items):
        try:
            scan(data)
        except ScanError:
            continue


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b'{"a":1,"a":2}', b'{"a":1,"\\u0061":2}', b'{"a":"\\ud83d","a":2}', b'{"a":1} x', b'{"a":1', b'\xff{"a":1}', b'\xef\xbb\xbf{"a":1}'],
)  # fmt: skip
def test_what_cannot_be_placed_beyond_doubt_is_refused(body: bytes) -> None:
    with pytest.raises(ScanError):
        fields(body)
