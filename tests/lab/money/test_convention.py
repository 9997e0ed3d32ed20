"""The published figures, from the published token counts, in the published convention; and the same for a single compaction."""

from __future__ import annotations

from decimal import Decimal

import pytest

from firsthand.lab.money.convention import Published, published, rounded, single
from firsthand.lab.money.prices import picos, price_given

FOUND = {one.arm.name: one for one in published()}

PRINTED = {
    # arm: cold, cached, per turn, break-even, per point
    "summarized": ("7.98", "0.53", "0.000480", "61", "0.0070"),
    "opencode": ("0.99", "0.99", "0.000204", "110", "0.0217"),
    "main": ("0.83", "0.83", "0.000135", "91", "0.0221"),
    "codex": ("7.64", "0.42", "0.000068", "46", "0.0112"),
    "deterministic": ("0.00", "0.00", "0.000394", None, "0.0006"),
}
SINGLE = {
    # arm: cold, cached, break-even, per point
    "summarized": ("0.33", "0.022", "2.5", "0.00085"),
    "codex": ("0.32", "0.018", "1.9", "0.00064"),
    "opencode": ("0.041", "0.041", "4.6", "0.0013"),
    "main": ("0.035", "0.035", "3.8", "0.0013"),
    "deterministic": ("0", "0", None, "0.00055"),
}


def places(text: str) -> int:
    return len(text.partition(".")[2])


@pytest.mark.parametrize("arm", PRINTED)
def test_the_published_figures_come_out_of_the_published_tokens(arm: str) -> None:
    found = FOUND[arm]
    got = (found.cold, found.cached, found.per_turn, found.break_even, found.per_point)
    for value, printed in zip(got, PRINTED[arm], strict=True):
        assert (value is None) == (printed is None)
        if value is not None and printed is not None:
            assert f"{rounded(value, places(printed))}" == printed
    assert f"{rounded(found.baseline, 6)}" == "0.009219"


@pytest.mark.parametrize("arm", PRINTED)
def test_what_is_printed_beside_them_is_what_was_published(arm: str) -> None:
    printed = FOUND[arm].arm.printed
    for name, value in zip(("cold", "cached", "per_turn"), PRINTED[arm], strict=False):
        assert Decimal(printed[name]) == Decimal(value or 0)


@pytest.mark.parametrize("arm", SINGLE)
def test_the_same_for_a_single_compaction(arm: str) -> None:
    found = FOUND[arm]
    got = (found.single_cold, found.single_cached, found.single_break_even, found.single_per_point)
    for value, expected in zip(got, SINGLE[arm], strict=True):
        assert (value is None) == (expected is None)
        if value is not None and expected is not None:
            assert rounded(value, places(expected)) == Decimal(expected)


def test_the_convention_turns_the_order_around() -> None:
    def order(key: str) -> list[str]:
        return sorted(("summarized", "codex"), key=lambda arm: getattr(FOUND[arm], key))

    assert order("per_point") == ["summarized", "codex"]
    assert order("single_per_point") == ["codex", "summarized"]


def test_a_cold_first_turn_costs_something_even_without_a_summary() -> None:
    found: Published = FOUND["deterministic"]
    assert found.with_first_turn is not None
    assert 1 < found.with_first_turn < 2
    assert found.with_first_turn_per_point > found.single_per_point


PRICE = price_given("m", "1,4,0.02", "CNY")


def test_a_single_compaction_by_hand() -> None:
    costs = single(PRICE, [(100_000, 1_000, 99_000)], 8_000, 100_000, fixed=2_000)
    assert costs.cold == picos("0.104")
    # 97,020 tokens cached at 0.02, 2,980 read, 1,000 written.
    assert costs.cached == picos("0.0089204")
    # 2,000 of 10,000 tokens are system prompt and tools, which the cache still has.
    assert costs.first_turn == picos("0.00804")
    assert costs.turn_cold == picos("0.01")
    assert costs.turn == picos("0.000396")
    assert costs.baseline == picos("0.0040392")
    assert costs.break_even is not None
    assert rounded(costs.break_even, 2) == Decimal("2.45")
    assert costs.break_even_with_first_turn is not None
    assert costs.break_even_with_first_turn > costs.break_even


def test_where_nothing_is_saved_nothing_breaks_even() -> None:
    costs = single(PRICE, [(1_000, 10, 0)], 5_000, 4_000)
    assert costs.saved < 0
    assert costs.break_even is None
    assert costs.break_even_with_first_turn is None
    assert costs.per_point(0.0) is None
