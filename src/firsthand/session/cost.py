"""What carrying a history costs, and when a compaction has paid for itself. Arithmetic over prices that the caller gives."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..transcript import Usage

__all__ = ["Carrying", "Prices", "carrying", "usage_cost"]

_MILLION = 1_000_000


@dataclass(frozen=True)
class Prices:
    """Prices per million tokens, in one currency."""

    input: float
    output: float
    cache_read: float | None = None
    """None: cached tokens cost what others do."""
    cache_write: float | None = None
    currency: str = "USD"


@dataclass(frozen=True)
class Carrying:
    """The price of going on."""

    per_turn: float
    """What sending the history once costs, with everything but the newest step served from cache."""
    per_turn_cold: float
    """The same with nothing served from cache."""
    currency: str
    saved_per_turn: float | None = None
    """What the newest checkpoint saves each turn, against the history it covered; None without a checkpoint."""
    pays_after_turns: int | None = None
    """Turns after which the newest compaction has paid for its own calls and for the cache it threw away; None without a checkpoint."""


def usage_cost(usage: Iterable[Usage], prices: Prices) -> float:
    """What these calls cost."""
    total = 0.0
    for used in usage:
        fresh = used.input_tokens - used.cache_read - used.cache_write
        total += max(0, fresh) * prices.input + used.output_tokens * prices.output
        total += used.cache_read * _or(prices.cache_read, prices.input)
        total += used.cache_write * _or(prices.cache_write, prices.input)
    return total / _MILLION


def carrying(tokens: int, prices: Prices, *, before: int | None = None, spent: float = 0.0) -> Carrying:
    """What a turn costs at this occupancy.

    Args:
        tokens: occupancy now.
        prices: per million tokens.
        before: occupancy just before the newest compaction; None without one.
        spent: what the compaction's own calls cost.
    """
    cached = _or(prices.cache_read, prices.input) / _MILLION
    cold = prices.input / _MILLION
    if before is None:
        return Carrying(tokens * cached, tokens * cold, prices.currency)
    saved = max(0, before - tokens) * cached
    # The new prefix is not in the cache: the first turn after a compaction pays for it in full.
    once = spent + tokens * (cold - cached)
    turns = None if saved <= 0 else max(0, -int(-once // saved))
    return Carrying(tokens * cached, tokens * cold, prices.currency, saved, turns)


def _or(price: float | None, other: float) -> float:
    return other if price is None else price
