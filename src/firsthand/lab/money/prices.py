"""What a model's tokens cost: a well-kept registry, and a file or three numbers of one's own where that lacks a model or is wrong.

Amounts are whole millionths of a millionth of a currency unit (*picos*), so that a ledger adds them exactly. The smallest published rate, a
cached read at 0.02 per million tokens, is 20,000 picos a token.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import ROUND_CEILING, Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from ...errors import ConfigError, MissingExtraError
from ...transcript import Usage

__all__ = ["PICO", "Price", "Rates", "amount", "picos", "price_given", "price_of", "read_prices"]

PICO = 10**12
"""Picos of one currency unit."""
_PER_TOKEN = PICO // 10**6
_FIELDS = ("input", "output", "cache_read", "cache_write")


@dataclass(frozen=True, slots=True)
class Rates:
    """Prices of a million tokens, in the currency of the `Price` that holds them."""

    input: Decimal
    output: Decimal
    cache_read: Decimal
    cache_write: Decimal


@dataclass(frozen=True, slots=True)
class Price:
    """What one model's tokens cost."""

    model: str
    currency: str
    source: str
    """Where the rates come from, in words, for the table that shows a cost."""
    rates: Rates
    tiers: tuple[tuple[int, Rates], ...] = ()
    """(prompt tokens above which all tokens of a call cost these rates, the rates), rising."""

    def at(self, prompt: int) -> Rates:
        """The rates of a call with so many prompt tokens."""
        found = self.rates
        for start, rates in self.tiers:
            if prompt > start:
                found = rates
        return found

    def bill(self, prompt: int, output: int = 0, cached: int = 0, written: int = 0) -> int:
        """What a call costs, in picos, rounded up.

        Args:
            prompt: all tokens sent, cached ones included.
            output: tokens answered, reasoning included.
            cached: how many of `prompt` the provider read from its cache.
            written: how many of `prompt` it wrote to its cache, where that has a price of its own.
        """
        rates = self.at(prompt)
        cached = min(cached, prompt)
        written = min(written, prompt - cached)
        cost = (
            rates.input * (prompt - cached - written)
            + rates.cache_read * cached
            + rates.cache_write * written
            + rates.output * output
        )
        return int((cost * _PER_TOKEN).to_integral_value(ROUND_CEILING))

    def charge(self, usage: Usage) -> int:
        """What a call costs by the usage that the provider reported, in picos."""
        return self.bill(usage.input_tokens, usage.output_tokens, usage.cache_read, usage.cache_write)

    def worst(self, prompt_bytes: int, max_output: int) -> int:
        """The most that a call can cost, in picos, before anything is known of it.

        A token is at least a byte of the request, so its bytes bound its tokens; nothing is taken to be cached, and the dearest tier counts.

        Args:
            prompt_bytes: size of the request's body.
            max_output: the request's output cap, in tokens.
        """
        every = (self.rates, *(rates for _, rates in self.tiers))
        read = max(max(rates.input, rates.cache_write) for rates in every)
        written = max(rates.output for rates in every)
        return int(((read * prompt_bytes + written * max_output) * _PER_TOKEN).to_integral_value(ROUND_CEILING))


def picos(value: str) -> int:
    """An amount as a person writes it ("1.50"), in picos.

    Raises:
        ConfigError: it is no amount of zero or more.
    """
    return int((_decimal(value, "an amount of money") * PICO).to_integral_value(ROUND_CEILING))


def amount(value: int, currency: str) -> str:
    """An amount in picos for people: four significant digits or two decimals, whichever says more, and the currency."""
    number = Decimal(value) / PICO
    if number == 0:
        return f"0 {currency}"
    places = max(2, 3 - number.adjusted())
    return f"{number:.{min(places, 8)}f} {currency}"


def price_given(model: str, text: str, currency: str) -> Price:
    """A price from the command line: `INPUT,OUTPUT[,CACHED]` for a million tokens each.

    Raises:
        ConfigError: it is not two or three numbers of zero or more.
    """
    parts = [part.strip() for part in text.split(",")]
    if len(parts) not in (2, 3):
        raise ConfigError(f"a price is INPUT,OUTPUT or INPUT,OUTPUT,CACHED for a million tokens each, not {text!r}")
    numbers = [_decimal(part, "a price for a million tokens") for part in parts]
    read, written, cached = (*numbers, numbers[0])[:3]
    return Price(model, currency, "given on the command line", Rates(read, written, cached, read))


def read_prices(path: Path) -> dict[str, Price]:
    """Prices of one's own, by model, from a TOML file.

    ::

        ["my-model"]
        currency = "CNY"
        input = 1.0
        output = 4.0
        cache_read = 0.02

    `currency` is USD where it is left out, `cache_read` and `cache_write` are as `input`.

    Raises:
        ConfigError: the file is not there, is no TOML, or holds something else.
    """
    try:
        found = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ConfigError(f"the prices in {path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise ConfigError(f"the prices in {path} are no TOML: {error}") from error
    return {model: _table_price(model, table, path) for model, table in found.items()}


def _table_price(model: str, table: Any, path: Path) -> Price:
    if not isinstance(table, Mapping) or not {"input", "output"} <= set(table) <= {*_FIELDS, "currency"}:
        raise ConfigError(
            f"{path}: [{model}] needs input and output, and may have cache_read, cache_write and currency; nothing else"
        )
    where = f"[{model}] in {path}"
    read = _decimal(table["input"], where)
    rates = Rates(
        read,
        _decimal(table["output"], where),
        _decimal(table.get("cache_read", read), where),
        _decimal(table.get("cache_write", read), where),
    )
    return Price(model, str(table.get("currency", "USD")), f"{path.name}", rates)


def price_of(model: str, own: Mapping[str, Price] | None = None, *, url: str | None = None) -> Price:
    """The price of a model: one's own if there is one, else the registry's, in USD.

    Args:
        model: the name under which it is called.
        own: what `read_prices` gave.
        url: the endpoint; tells providers of one model apart where the registry knows it.

    Raises:
        ConfigError: neither knows the model, or the registry has no price for its text.
        MissingExtraError: the registry is not installed.
    """
    if own and model in own:
        return own[model]
    try:
        import genai_prices
        from genai_prices.data_snapshot import get_snapshot
    except ImportError:
        raise MissingExtraError("looking up prices", "lab") from None
    registry = get_snapshot()
    for place in dict.fromkeys((url, None)):
        try:
            provider, found = registry.find_provider_model(model, None, None, place)
        except LookupError:
            continue
        # Some prices depend on the hour; nobody else in the lab asks for the time.
        prices = found.get_prices(datetime.now().astimezone())
        rates, tiers = _registry_rates(prices)
        if rates is not None:
            return Price(
                model, "USD", f"genai-prices {genai_prices.__version__}: {provider.id} {found.id}", rates, tiers
            )
    raise ConfigError(
        f"no price is known for the model {model!r}; give it with --price INPUT,OUTPUT[,CACHED] for a million tokens each "
        "(0,0 for a model of your own), or in a file with --prices"
    )


def _registry_rates(prices: Any) -> tuple[Rates | None, tuple[tuple[int, Rates], ...]]:
    named = {name: getattr(prices, f"{name}_mtok", None) for name in _FIELDS}
    if named["input"] is None or named["output"] is None:
        return None, ()
    starts = sorted({tier.start for value in named.values() for tier in getattr(value, "tiers", ())})
    at = {start: {name: _at(value, start) for name, value in named.items()} for start in (0, *starts)}
    made = [(start, _rates(found)) for start, found in at.items()]
    return made[0][1], tuple(made[1:])


def _at(value: Any, start: int) -> Decimal | None:
    """A rate, which may depend on the size of the prompt, from `start` tokens on."""
    if value is None or isinstance(value, Decimal):
        return value
    found: Decimal = value.base
    for tier in value.tiers:
        if tier.start <= start and start:
            found = tier.price
    return found


def _rates(found: Mapping[str, Decimal | None]) -> Rates:
    read, written = found["input"] or Decimal(0), found["output"] or Decimal(0)
    cached, stored = found["cache_read"], found["cache_write"]
    return Rates(read, written, read if cached is None else cached, read if stored is None else stored)


def _decimal(value: object, what: str) -> Decimal:
    try:
        number = Decimal(str(value))
    except InvalidOperation:
        number = Decimal("NaN")
    if not number.is_finite() or number < 0 or number > 10**6:
        raise ConfigError(f"{what}: {value!r} is no number from 0 to a million")
    return number
