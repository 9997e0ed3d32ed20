"""Numbers, texts and lengths as JavaScript has them; the expected forms were printed by Node 20."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firsthand.codec import decode
from firsthand.strategies.javascript import arguments_json, head, js_json, js_order, length


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1, "1"),
        (1.0, "1"),
        (-0.0, "0"),
        (0.1, "0.1"),
        (1e20, "100000000000000000000"),
        (1e21, "1e+21"),
        (1.5e300, "1.5e+300"),
        (1e-6, "0.000001"),
        (1e-7, "1e-7"),
        (-2.5e-8, "-2.5e-8"),
        (12345678901234567890, "12345678901234567000"),
        (10**400, "null"),
        (float("inf"), "null"),
        (True, "true"),
        (None, "null"),
        ('é"\\\n\x01', '"é\\"\\\\\\n\\u0001"'),
        ("\ud83d", '"\\ud83d"'),
        ({"a": [1, {}], "é": "x"}, '{"a":[1,{}],"é":"x"}'),
        (object(), "null"),
    ],
)
def test_json_as_javascript_writes_it(value: Any, expected: str) -> None:
    assert js_json(value) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": 1.0}', '{"a":1}'),
        ("", "{}"),
        ("free text", '"free text"'),
        ('{"a": "broken', '"{\\"a\\": \\"broken"'),
    ],
)
def test_arguments_of_calls(text: str, expected: str) -> None:
    assert arguments_json(text) == expected


def test_arguments_that_nest_too_deeply_are_counted_as_they_are() -> None:
    deep = "[" * 900 + "]" * 900
    assert arguments_json(deep) in (deep, js_json(deep))


@given(st.text(st.characters()), st.integers(0, 20))
def test_a_head_is_a_beginning_that_fits_and_halves_nothing(text: str, units: int) -> None:
    found = head(text, units)
    assert text.startswith(found)
    assert units - 1 <= length(found) <= units or found == text


@given(st.dictionaries(st.text(), st.integers(-(2**53), 2**53) | st.text() | st.booleans() | st.none()))
def test_json_is_read_back_as_it_was(value: dict[str, Any]) -> None:
    assert decode(js_json(value)) == value


def test_texts_are_ordered_by_code_units() -> None:
    assert sorted(["\uff5e", "😀", "a"], key=js_order) == ["a", "😀", "\uff5e"]
    assert length("a😀") == 3
