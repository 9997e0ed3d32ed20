from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firsthand.errors import UnknownNameError
from firsthand.tokens import (
    EstimateCounter,
    O200kCounter,
    block_cost,
    counter_by_name,
    counter_for_model,
    entry_cost,
)
from firsthand.transcript import Entry, Media, Reasoning, Text, ToolCall, ToolResult

estimate = EstimateCounter()


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("abcd", 1),
        ("abcde", 2),
        ("a" * 100, 25),
        ("汉" * 100, 150),
        ("你好", 3),
        ("Ж" * 12, 6),
        ("\u4dc0" * 4, 2),  # hexagrams are outside the wide ranges of the runtime (futureos.md 1.2)
        ("𠀀" * 2, 3),
        ("𪜀" * 2, 1),  # Extension C and later are not wide
        ("カ가豈", 5),
    ],
)
def test_the_quarter_token_rule(text: str, tokens: int) -> None:
    assert estimate.count(text) == tokens


@given(st.text(), st.text())
def test_joining_two_texts_costs_at_most_one_token_more(a: str, b: str) -> None:
    assert estimate.count(a + "\n" + b) <= estimate.count(a) + estimate.count(b) + 1


@given(st.text(alphabet="汉カ가ab "))
def test_wide_text_counts_at_least_six_tenths_of_a_token_per_character(text: str) -> None:
    wide = sum(character in "汉カ가" for character in text)
    for model in (None, "claude-opus-4-5", "gpt-5.2"):
        assert counter_for_model(model).count(text) * 10 >= wide * 6  # failure kind AC-11


@given(st.text(st.characters()))
def test_the_rule_is_that_of_each_character(text: str) -> None:
    def quarters(character: str) -> int:
        code = ord(character)
        wide = (
            (0x3040, 0x30FF),
            (0x3400, 0x4DBF),
            (0x4E00, 0x9FFF),
            (0xAC00, 0xD7AF),
            (0xF900, 0xFAFF),
            (0x20000, 0x2A6DF),
        )
        return 1 if code < 128 else 6 if any(first <= code <= last for first, last in wide) else 2

    assert EstimateCounter().count(text) == -(-sum(map(quarters, text)) // 4)


def test_cost_of_a_message() -> None:
    hello = Entry(id="e1", role="user", blocks=(Text("hello world"),))
    picture = Entry(id="e1", role="user", blocks=(Text("hello world"), Media(data="A" * 4_000_000)))
    assert entry_cost(hello, estimate) == 9
    assert entry_cost(picture, estimate) == 2_057  # a 4 MB image costs what any image costs (AC-12)


def test_cost_of_blocks() -> None:
    assert block_cost(ToolCall("call-with-a-long-id", "read", '{"path":"a"}'), estimate) == 1 + 3
    assert block_cost(ToolResult("id", (Text("abcd"), Text("ab"), Media())), estimate) == 1 + 1 + 2_048
    assert block_cost(Reasoning("abcd", opaque={"signature": "x" * 1_000}), estimate) == 1


def test_calibrated_counts_are_exact_integers() -> None:
    claude = counter_for_model("claude-opus-4-5-20251101")
    assert claude.name == "calibrated:claude"
    assert [claude.count(text) for text in ("", "abcd", "a" * 400, "汉" * 100)] == [0, 2, 170, 90]
    assert counter_for_model("some-new-model").count("a" * 400) == 150


def test_exact_counts_work_on_special_and_very_long_texts() -> None:
    exact = O200kCounter()
    assert exact.count("hello world") == 2
    assert exact.count("<|endoftext|>") > 1
    assert exact.count("\ud83d") > 0
    # One call of the encoder is limited to 200,000 tokens.
    assert 250_000 <= exact.count("a b\n" * 125_000) <= 500_000


def test_counters_by_name() -> None:
    assert counter_by_name("estimate").name == "estimate"
    assert counter_by_name("calibrated:gpt-5").name == "calibrated:openai"
    with pytest.raises(UnknownNameError, match=r"no counter named 'words'.*estimate, o200k"):
        counter_by_name("words")
