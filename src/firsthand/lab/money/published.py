"""The published experiment's token counts and money, as facts to compute with (futureos.md 8.7, 8.8, 9.1).

Its table gives money where tokens would be needed. For one arm the prompt tokens are published; for the others they follow from two figures
that were: what all compactions cost cold and cached. Where both are equal only their sum can be told, and the arm shares no prefix.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from .prices import Price, Rates

__all__ = ["ARMS", "BASELINE_TOKENS", "COMPACTIONS", "PRICE", "VALUES", "PublishedArm"]

PRICE = Price(
    "future/deepseek-flash",
    "CNY",
    "the published experiment",
    Rates(Decimal("1.0"), Decimal("4.0"), Decimal("0.02"), Decimal(0)),
)

COMPACTIONS = 24
"""Forced compactions of each arm; the published costs are totals over them."""
VALUES = 178
"""Values asked of each arm."""
BASELINE_TOKENS = Decimal("232776.5")
"""Median size of the history where nothing is compacted; printed as 232,777. A median of 24 sizes may end in a half, and here and in two
projections only the half gives the printed cost of a turn."""


@dataclass(frozen=True, slots=True)
class PublishedArm:
    """One arm: tokens that went in, values that came out, and the figures that were printed."""

    name: str
    shares: bool
    """Whether its summary request shares the session's prefix, by the experiment's own rule."""
    prompt: int
    """Prompt tokens of all its compactions."""
    completion: int
    """Completion tokens of them."""
    told: str
    """Which of the two are published, and which follow."""
    projection: Decimal
    """Median projection, in tokens."""
    recalled: int
    """Values that the reader reported."""
    printed: Mapping[str, str]
    """`cold`, `cached`, `per_turn`, `break_even` and `per_point` as published."""


ARMS = (
    PublishedArm(
        "summarized",
        True,
        7_762_538,
        54_401,
        "prompt tokens published; completion tokens published as about 54K, here the fewest that give both printed costs",
        Decimal("12113"),
        147,
        {"cold": "7.98", "cached": "0.53", "per_turn": "0.000480", "break_even": "61", "per_point": "0.0070"},
    ),
    PublishedArm(
        "deterministic",
        True,
        0,
        0,
        "no model is called",
        Decimal("9945"),
        127,
        {"cold": "0", "cached": "0", "per_turn": "0.000394", "break_even": "-", "per_point": "0.00055"},
    ),
    PublishedArm(
        "opencode",
        False,
        990_000,
        0,
        "only prompt + 4 x completion is known, from the printed cost; all of it is put on the prompt",
        Decimal("5151.5"),
        83,
        {"cold": "0.99", "cached": "0.99", "per_turn": "0.000204", "break_even": "110", "per_point": "0.0217"},
    ),
    PublishedArm(
        "main",
        False,
        830_000,
        0,
        "as for opencode",
        Decimal("3417.5"),
        68,
        {"cold": "0.83", "cached": "0.83", "per_turn": "0.000135", "break_even": "91", "per_point": "0.0221"},
    ),
    PublishedArm(
        "codex",
        True,
        7_517_701,
        30_575,
        "both follow from the two printed costs",
        Decimal("1706"),
        68,
        {"cold": "7.64", "cached": "0.42", "per_turn": "0.000068", "break_even": "46", "per_point": "0.0112"},
    ),
)
