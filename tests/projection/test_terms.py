"""Informative terms: what is found in a word, by class."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firsthand.projection.features.terms import TermClass, class_of, named_terms, pieces_of, unit_terms, word
from firsthand.testing.random_entries import texts

WORDS = {
    "hello": ["hello WORD"],
    "this": [],
    "cat": [],
    "über": ["über WORD"],
    "src/app.py:12": ["src/app.py PATH", "12 SMALL_NUMBER"],
    "./vendor/run": ["./vendor/run PATH"],
    "README.md": ["README.md NAME"],
    "7": [],
    "12": ["12 SMALL_NUMBER"],
    "#123": ["#123 NUMBER"],
    "3.14": ["3.14 NUMBER"],
    "v1.2.3": ["v1.2.3 NUMBER"],
    "250ms": ["250ms NUMBER"],
    "deadbeef1": ["deadbeef1 HASH"],
    "0xFF12ab": ["0xFF12ab HASH"],
    "MAX_SIZE": ["MAX_SIZE NAME"],
    "camelCase": ["camelCase NAME"],
    "kebab-case": ["kebab-case NAME"],
    "E1234": ["E1234 NAME"],
    "F10": ["F10 NAME"],
    "x1": [],
    "6개": ["6개 NUMBER"],
    "12개의": ["12 SMALL_NUMBER", "12개 NUMBER"],
    "第7章": ["7章 NUMBER"],
    "`name`": ["name QUOTED"],
    '"quoted"': ["quoted QUOTED"],
    "func()": ["func WORD"],
    "user@host.com": ["user WORD", "@host.com NAME"],
    "日本語": ["日本 WORD", "本語 WORD"],
    "한국어로": ["한국어로 WORD"],
    "🙂": [],
    "": [],
}


@pytest.mark.parametrize("text", WORDS)
def test_terms_by_class(text: str) -> None:
    found = [f"{name} {kind.name}" for name, kind in named_terms(text)]
    assert [term for term in found if not term.endswith(" WRITTEN")] == WORDS[text]


def test_the_same_word_is_the_same_term_whatever_stands_around_it() -> None:
    wanted = set(word("src/app.py")[1])
    for around in ("(src/app.py)", "src/app.py,", "src/app.py.", "'src/app.py'", "src/app.py:7"):
        assert wanted <= set(word(around)[1]), around
    assert word("Hello")[1] == word("hello")[1] == word("hello,")[1]
    assert word("MaxSize")[1] != word("maxsize")[1]


def test_a_term_carries_its_class() -> None:
    for text, expected in WORDS.items():
        assert {class_of(term).name for term in word(text)[1]} - {"WRITTEN"} == {
            name.rsplit(" ", 1)[1] for name in expected
        }


def test_a_number_and_its_unit_apart() -> None:
    assert list(unit_terms("no unit, 12 apples")) == []
    for line in ("took 250 ms to start", "at most 64 MiB", "is 40 % full", "waits 3 seconds"):
        (term,) = unit_terms(line)
        assert class_of(term) is TermClass.NUMBER


PIECES = {"hello": 1, "a" * 70: 10, "src/app.py": 5, "12345678": 3, "日本語": 3, "": 1, "🙂": 1}


@pytest.mark.parametrize("text", PIECES)
def test_pieces(text: str) -> None:
    assert pieces_of(text) == PIECES[text]


@given(st.one_of(texts(), st.text(max_size=300)))
def test_any_text_has_terms_and_a_size(text: str) -> None:
    for part in text.split():
        found = word(part)
        assert found[0] >= 1
        assert len(set(found[1])) == len(found[1])
        assert all(0 <= term < 1 << 32 for term in found[1])
        assert all(name in part for name, _ in named_terms(part))
    for term in unit_terms(text):
        class_of(term)
