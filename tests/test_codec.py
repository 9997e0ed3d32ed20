from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firsthand.codec import compact_json, decode, decode_as, encode, to_utf8, wire_safe
from firsthand.transcript import Entry, Text, ToolCall, ToolResult, Unknown

any_text = st.text(st.characters(codec=None, exclude_categories=()))  # lone surrogates too


@given(any_text)
def test_every_text_survives(text: str) -> None:
    entry = Entry(
        id="e1", role="user", blocks=(Text(text), ToolResult("c", (Text(text),)), Unknown({"type": "x", "v": text}))
    )
    assert decode_as(encode(entry), Entry) == entry
    assert decode(encode({"t": text})) == {"t": text}


def test_nul_and_its_escape_stay_different() -> None:
    nul, escape = Text("\0"), Text("\\u0000")  # JR-05
    assert encode(nul) != encode(escape)
    assert [decode_as(encode(text), Text) for text in (nul, escape)] == [nul, escape]


def test_a_lone_surrogate_in_a_line_is_read() -> None:
    assert decode(b'{"t":"\\ud83d"}') == {"t": "\ud83d"}  # IM-02
    assert wire_safe("a\ud83db") == "a\ufffdb"
    assert wire_safe("😀") == "😀"
    assert to_utf8("\ud83d") == b"\xed\xa0\xbd"


def test_compact_json_keeps_order_and_script() -> None:
    assert compact_json({"b": "汉", "a": [1, None]}) == '{"b":"汉","a":[1,null]}'


def test_what_is_no_json_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="Expecting"):
        decode(b"{nope")


def test_values_are_written_without_their_defaults() -> None:
    assert encode(ToolCall("c1", "read", "{}")) == b'{"type":"tool_call","id":"c1","name":"read","arguments":"{}"}'
