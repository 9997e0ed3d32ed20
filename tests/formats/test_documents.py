from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firsthand.formats.files.documents import json_values, read_document

ELEMENTS = [{"id": f"m{n}", "text": "x" * n, "inner": [{"id": n}, {"deep": [n]}]} for n in range(6)]


def doc(indent: int | None = None, **more: Any) -> str:
    return json.dumps({"about": {"name": "s"}, "items": ELEMENTS, **more}, indent=indent)


def read(text: str | bytes, depth: int = 2) -> tuple[Any, list[tuple[int, str]]]:
    found = read_document(text.encode() if isinstance(text, str) else text, depth=depth, arrays=("items",))
    return found.value, [(d.line, d.reason) for d in found.damaged]


def test_a_whole_document_has_no_damage() -> None:
    assert read(doc()) == ({"about": {"name": "s"}, "items": ELEMENTS}, [])
    assert read("\ufeff" + doc(2)) == ({"about": {"name": "s"}, "items": ELEMENTS}, [])


@pytest.mark.parametrize("text", ["", " \n", "\ufeff"])
def test_nothing_is_nothing(text: str) -> None:
    assert read(text) == (None, [])


def test_what_stands_before_a_cut_is_read() -> None:
    text = doc(2)
    cut = text[: text.index('"m4"') + 3]
    value, damaged = read(cut)
    assert value["items"] == ELEMENTS[:4]
    ((line, reason),) = damaged
    assert line == cut.count("\n") + 1
    assert "the document breaks off" in reason


def test_only_complete_values_are_taken_below_the_depth() -> None:
    text = doc()
    cut = text[: text.index('"deep": [3') + 10]
    assert [item["id"] for item in read(cut, depth=2)[0]["items"]] == ["m0", "m1", "m2"]
    deeper = read(cut, depth=4)[0]["items"]
    assert deeper[3] == {"id": "m3", "text": "xxx", "inner": [{"id": 3}]}


@pytest.mark.parametrize("indent", [None, 1, 2])
def test_reading_goes_on_behind_a_damaged_element(indent: int | None) -> None:
    text = doc(indent)
    at = text.index('"m2"')
    value, damaged = read(text[:at] + "\x00\x01" + text[at + 3 :])
    assert [item["id"] for item in value["items"]] == ["m0", "m1", "m3", "m4", "m5"]
    ((line, reason),) = damaged
    assert line == text.count("\n", 0, at) + 1
    assert "characters were passed over" in reason


def test_an_inner_object_is_not_taken_for_the_next_element() -> None:
    # In compact JSON an element's inner objects may start as the element does; they lack its other keys.
    text = json.dumps(
        {"items": [{"id": 1, "inner": [{"id": 2}, {"id": 3}]}, {"id": 4, "inner": []}, {"id": 5, "inner": []}]}
    )
    broken = text.replace('"id": 4, "inner"', '"id": 4 "inner": [{"id": 9}], "inner"')
    assert [item["id"] for item in read(broken)[0]["items"]] == [1, 5]


def test_the_array_is_found_behind_damage_in_front_of_it() -> None:
    value, damaged = read(doc().replace('"name": "s"', '"name": s'))
    assert value["items"] == ELEMENTS
    assert len(damaged) == 1


def test_bytes_that_are_not_utf8_are_replaced_and_counted() -> None:
    data = doc().encode().replace(b"xxxx", b"xx\xffx", 1)
    value, damaged = read(data)
    assert value["items"][4]["text"] == "xx\ufffdx"
    assert len(damaged) == 1
    assert "not UTF-8" in damaged[0][1]


def test_what_follows_the_document_is_counted() -> None:
    value, damaged = read(doc() + "\n{}")
    assert value["items"] == ELEMENTS
    assert "2 characters behind the end" in damaged[0][1]


def test_raw_control_characters_in_a_text_are_no_damage() -> None:
    assert read('{"items": [{"id": "a\tb"}]}') == ({"items": [{"id": "a\tb"}]}, [])


@given(st.data(), st.sampled_from([None, 2]), st.integers(0, 4))
def test_a_cut_never_makes_anything_up(data: st.DataObject, indent: int | None, depth: int) -> None:
    text = doc(indent)
    value, damaged = read(text[: data.draw(st.integers(1, len(text) - 1))], depth)
    assert damaged
    for item, full in zip((value or {}).get("items", []), ELEMENTS, strict=False):
        assert all(
            full[key] == found or (key == "inner" and found == full[key][: len(found)]) for key, found in item.items()
        )


@given(st.data(), st.sampled_from([None, 2]), st.text(max_size=3))
def test_damage_anywhere_raises_nothing(data: st.DataObject, indent: int | None, put: str) -> None:
    text = doc(indent)
    at = data.draw(st.integers(0, len(text)))
    broken = text[:at] + put + text[at + data.draw(st.integers(0, 3)) :]
    found = read_document(broken.encode("utf-8", "surrogatepass"), depth=4, arrays=("items",))
    try:
        whole = json.loads(broken, strict=False)
    except ValueError:
        assert found.damaged or found.value is None
    else:
        assert found.value == whole


def test_values_in_a_row() -> None:
    text = '{"a": 1}\n[1,\n 2]\n\n{"b":\n {"c": 2}}{"d": 3}'
    values = json_values(text.encode())
    assert [(v.line, v.value) for v in values] == [(1, {"a": 1}), (2, [1, 2]), (5, {"b": {"c": 2}}), (6, {"d": 3})]
    assert values.damaged == []


def test_values_behind_damage_are_read() -> None:
    text = '{"a": 1}\n{\n "b": "cut\n{\n "c": 3\n}\nnonsense\n{"d": 4}'
    values = json_values(text.encode())
    assert [v.value for v in values] == [{"a": 1}, {"c": 3}, {"d": 4}]
    assert [d.line for d in values.damaged] == [2, 7]
