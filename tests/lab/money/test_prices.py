from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firsthand.errors import ConfigError
from firsthand.lab.money.prices import Price, Rates, amount, picos, price_given, price_of, read_prices
from firsthand.transcript import Usage

PRICE = price_given("m", "1,4,0.02", "CNY")
TIERED = Price(
    "m",
    "USD",
    "test",
    Rates(Decimal(3), Decimal(15), Decimal("0.3"), Decimal("3.75")),
    ((200_000, Rates(Decimal(6), Decimal("22.5"), Decimal("0.6"), Decimal("7.5"))),),
)


@pytest.mark.parametrize(
    ("price", "prompt", "output", "cached", "expected"),
    [
        (PRICE, 1_000_000, 0, 0, "1"),
        (PRICE, 1_000_000, 1_000_000, 0, "5"),
        (PRICE, 1_000_000, 0, 1_000_000, "0.02"),
        (PRICE, 10, 0, 20, "0.0000002"),
        (PRICE, 1, 0, 1, "0.00000002"),
        (TIERED, 200_000, 0, 0, "0.6"),
        (TIERED, 200_001, 0, 0, "1.200006"),
        (price_given("m", "0,0", "USD"), 10**9, 10**9, 0, "0"),
    ],
)
def test_a_bill(price: Price, prompt: int, output: int, cached: int, expected: str) -> None:
    assert price.bill(prompt, output, cached) == picos(expected)


def test_a_written_cache_has_a_price_of_its_own() -> None:
    usage = Usage(input_tokens=1_000, output_tokens=0, cache_read=600, cache_write=300)
    assert TIERED.charge(usage) == picos("0.0003") + picos("0.00018") + picos("0.001125")


@given(st.integers(0, 10**6), st.integers(0, 10**5), st.integers(0, 10**6), st.integers(0, 10**6))
def test_the_worst_case_is_never_below_a_bill(prompt: int, output: int, cached: int, written: int) -> None:
    for price in (PRICE, TIERED):
        assert price.bill(prompt, output, cached, written) <= price.worst(prompt, output)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("0", "0 CNY"),
        ("1.5", "1.500 CNY"),
        ("0.000296", "0.0002960 CNY"),
        ("1234.5", "1234.50 CNY"),
        ("0.00000002", "0.00000002 CNY"),
    ],
)
def test_amounts_for_people(value: str, expected: str) -> None:
    assert amount(picos(value), "CNY") == expected


@pytest.mark.parametrize("text", ["-1", "NaN", "Infinity", "one", "", "1e9"])
def test_what_is_no_amount(text: str) -> None:
    with pytest.raises(ConfigError, match="is no number from 0 to a million"):
        picos(text)


def test_own_prices_go_before_the_registry_s(tmp_path: Path) -> None:
    path = tmp_path / "prices.toml"
    path.write_text('["gpt-5"]\ninput = 1\noutput = 4\ncache_read = 0.02\ncurrency = "CNY"\n')
    own = read_prices(path)
    assert price_of("gpt-5", own) == own["gpt-5"]
    assert own["gpt-5"].rates == Rates(Decimal(1), Decimal(4), Decimal("0.02"), Decimal(1))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("x = [", "no TOML"),
        ("x = 1", "needs input and output"),
        ("[m]\ninput = 1", "needs input"),
        ("[m]\ninput = -1\noutput = 1", "no number"),
        ("[m]\ninput = 1\noutput = 1\nouput = 2", "nothing else"),
    ],
)
def test_a_file_of_prices_that_is_none(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "prices.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=problem):
        read_prices(path)


def test_the_registry_knows_tiers_and_says_where_a_price_comes_from() -> None:
    pytest.importorskip("genai_prices")
    price = price_of("claude-sonnet-4-5")
    assert price.currency == "USD"
    assert price.source.startswith("genai-prices ")
    assert price.at(1).input < price.at(1_000_000).input
    assert price.rates.cache_read < price.rates.input < price.rates.cache_write
    with pytest.raises(ConfigError, match="--price INPUT,OUTPUT"):
        price_of("no-such-model-of-anybody")
