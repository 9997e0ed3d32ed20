from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firsthand.codec import to_utf8
from firsthand.errors import ConfigError
from firsthand.strategies.codex.counting import (
    active_tokens,
    block_bytes,
    cut_middle,
    cut_to_tokens,
    entry_tokens,
    history_tokens,
    text_tokens,
)
from firsthand.strategies.codex.limits import Limits, limits_for
from firsthand.testing.builders import call, image, result, said, session, thought, user
from firsthand.transcript import Block, Media, Text, ToolCall, ToolResult, Unknown


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("é", 1), ("ééé", 2), ("日本語", 3), ("\ud83d", 1)],
)
def test_a_token_is_four_bytes(text: str, tokens: int) -> None:
    assert text_tokens(text) == tokens


@pytest.mark.parametrize(
    ("text", "size", "unit", "cut"),
    [
        ("", 0, "tokens", ""),
        ("short", 5, "tokens", "short"),
        ("abcdefgh", 0, "tokens", "…2 tokens truncated…"),
        ("abcdefghi", 4, "tokens", "ab…2 tokens truncated…hi"),
        ("abcdefghi", 5, "tokens", "ab…1 tokens truncated…ghi"),
        ("abcdefghi", 4, "chars", "ab…5 chars truncated…hi"),
        # Never inside a character: both ends shrink, and the marker's number still goes by the budget.
        ("ééééé", 6, "tokens", "é…1 tokens truncated…é"),
        ("ééééé", 6, "chars", "é…3 chars truncated…é"),
        ("a\ud83db" * 3, 6, "tokens", "a…3 tokens truncated…b"),
    ],
)
def test_middle_cut(text: str, size: int, unit: str, cut: str) -> None:
    assert cut_middle(text, size, unit) == cut  # type: ignore[arg-type]


def test_a_30000_token_text_keeps_10000_at_each_end() -> None:
    text = "h" * 40_000 + "m" * 40_000 + "t" * 40_000
    assert cut_to_tokens(text, 20_000) == "h" * 40_000 + "…10000 tokens truncated…" + "t" * 40_000


@given(st.text(st.characters(exclude_characters="…"), max_size=60), st.integers(0, 80))
def test_a_cut_keeps_whole_characters_at_both_ends(text: str, size: int) -> None:
    cut = cut_middle(text, size)
    total = len(to_utf8(text))
    if total <= size:
        assert cut == text
        return
    head, marker, tail = cut.split("…")
    assert marker == f"{-(-(total - size) // 4)} tokens truncated"
    assert text.startswith(head)
    assert text.endswith(tail)
    # At most three bytes of a character are given up at each end.
    assert size - 6 <= len(to_utf8(head)) + len(to_utf8(tail)) <= size


@pytest.mark.parametrize(
    ("block", "size"),
    [
        (Text("héllo"), 6),
        (ToolCall("c1", "read", '{"path":"a"}'), 4 + 12),
        (ToolResult("c1", (Text("output"),), name="read"), 2 + 4 + 6),
        (Media("image", data="x" * 100_000), 7_373),
        (Media("audio", data="x" * 10), 12),
        (thought("not encrypted"), 0),
        (thought("", encrypted_content="x" * 2_000), 850),
        (thought("", encrypted_content="x" * 400), 0),
        (Unknown({"type": "compaction", "encrypted_content": "x" * 2_000}), 850),
        (Unknown({"type": "compaction_trigger"}), 0),
        (Unknown({"type": "web_search_call"}), 26),
    ],
)
def test_bytes_of_a_block(block: Block, size: int) -> None:
    assert block_bytes(block) == size


def test_items_are_rounded_up_one_by_one() -> None:
    # The text and the picture are one message, 5 + 7,373 bytes; the call is an item of its own.
    assert entry_tokens(said("12345", image(), call("abc", "de"))) == 1_845 + 2
    assert history_tokens(session(user("12345"), said("1")), fixed=100) == 103


def test_what_came_after_the_newest_response_is_added_to_its_usage() -> None:
    entries = session(user("x" * 400), call("read", "y"), result("c1", "z" * 398))
    assert active_tokens(entries, reported=1_000) == 1_000 + 100
    # After a local compaction nothing in the history is the model's, so nothing is added until the first response.
    assert active_tokens(session(user("x" * 400), user("y" * 400)), reported=1_000) == 1_000
    # A compaction item of the provider counts as the model's.
    item = user(Unknown({"type": "compaction", "encrypted_content": "x"}))
    assert active_tokens(session(item, user("y" * 400)), reported=1_000) == 1_100


def test_reasoning_of_earlier_turns_is_added_where_the_provider_does_not_count_it() -> None:
    entries = session(user("a"), said(thought("", encrypted_content="x" * 2_000), "b"), user("c"), said("d"))
    assert active_tokens(entries, 1_000, 2) == 1_000
    assert active_tokens(entries, 1_000, 2, counts_reasoning=False) == 1_213


def test_limits_of_a_window_of_272000() -> None:
    limits = limits_for(272_000, 95, None, "total")
    assert limits == Limits(usable=258_400, auto=244_800)
    assert not limits.reached(244_799)
    assert limits.reached(244_800)
    assert limits.remaining(200_000) == 44_800
    # With the catalogue's buffer for a last note the hard window comes first.
    buffered = limits_for(272_000, 95, None, "total", 16_384)
    assert buffered.limit + buffered.buffer == 261_184
    assert not buffered.reached(258_399)
    assert buffered.reached(258_400)
    assert buffered.remaining(244_800) == 0


@pytest.mark.parametrize(("limit", "auto"), [(None, 90_000), (50_000, 50_000), (95_000, 90_000)])
def test_a_limit_of_the_user_can_only_lower_the_nine_tenths(limit: int | None, auto: int) -> None:
    assert limits_for(100_000, 95, limit, "total").limit == auto


def test_body_scope_counts_what_came_after_the_prefix() -> None:
    limits = limits_for(100_000, 95, 93_000, "body_after_prefix")
    assert limits.limit == 93_000
    assert not limits.reached(94_999, 20_000)
    assert limits.reached(95_000, 20_000), "the hard window counts everything"
    assert limits.reached(94_000, 1_000)
    assert limits.used(94_000, None) == 0, "no known prefix: nothing is body"
    assert not limits.reached(94_000, None)
    assert limits.remaining(94_000, 10_000) == 1_000
    assert limits_for(100_000, 95, None, "body_after_prefix").limit == 90_000


def test_only_strictly_more_than_the_limit_is_too_big_for_a_smaller_model() -> None:
    total = limits_for(100_000, 95, None, "total")
    assert [total.too_big_after_switch(size) for size in (90_000, 90_001, 95_000)] == [False, True, True]
    body = limits_for(100_000, 95, 10_000, "body_after_prefix")
    assert [body.too_big_after_switch(size) for size in (90_001, 94_999, 95_000)] == [False, False, True]


@pytest.mark.parametrize(
    ("percent", "limit", "scope", "words"),
    [
        (0, None, "total", "percent"),
        (101, None, "total", "percent"),
        (95, 0, "total", "limit"),
        (95, 1, "half", "scope"),
    ],
)
def test_limits_out_of_range(percent: int, limit: int | None, scope: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        limits_for(100, percent, limit, scope)  # type: ignore[arg-type]
