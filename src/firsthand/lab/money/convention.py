"""The two ways to count what a compaction costs: as it was published, and for a single compaction.

The published one sets the money of *all* compactions of an arm against turns after *one* of them. So its break-even and its cost per point
depend on how many boundaries the experiment happened to have. Ours divides first, and adds what the published one leaves out: the first turn
after a compaction finds no cache for the new projection and reads it cold.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal

from .prices import PICO, Price
from .published import ARMS, BASELINE_TOKENS, COMPACTIONS, PRICE, VALUES, PublishedArm

__all__ = ["CACHED_SHARE", "TURNS", "Costs", "Published", "published", "rounded", "single"]

CACHED_SHARE = Decimal("0.98")
"""Share of a prompt that a warm cache is taken to serve. The published study's stand-in for one measurement of 99.8 %; ours, as a round number
that `firsthand lab cache` bears out for requests of the session's own shape."""
TURNS = 100
"""Turns after a compaction over which the cost of a point is counted."""


@dataclass(frozen=True, slots=True)
class Costs:
    """What one compaction costs and saves. Money in picos."""

    cold: int
    """The summary calls of one compaction, nothing cached."""
    cached: int
    """The same with the session's prefix cached, where the request shares it; else as `cold`."""
    first_turn: int
    """The first request after it: the new projection has never been sent, so it is read cold."""
    turn_cold: int
    turn: int
    """A later request, its projection cached."""
    baseline: int
    """A request of the session as it was, cached."""

    @property
    def saved(self) -> int:
        """What a later turn costs less than without the compaction; negative where it costs more."""
        return self.baseline - self.turn

    @property
    def break_even(self) -> Decimal | None:
        """Turns after which the summary is paid for, as the published study asks, but for one compaction; None where nothing is saved."""
        return Decimal(self.cached) / self.saved if self.saved > 0 else None

    @property
    def break_even_with_first_turn(self) -> Decimal | None:
        """The same with what the first turn costs more for being cold."""
        return Decimal(self.cached + self.first_turn - self.turn) / self.saved if self.saved > 0 else None

    def per_point(self, share: float) -> Decimal | None:
        """Currency units for each percentage point of a score: one compaction and `TURNS` turns after it, the first one cold."""
        if share <= 0:
            return None
        spent = self.cached + self.first_turn + (TURNS - 1) * self.turn
        return Decimal(spent) / PICO / (Decimal(str(share)) * 100)


def single(price: Price, calls: list[tuple[int, int, int]], projection: int, history: int, *, fixed: int = 0) -> Costs:
    """What one compaction costs, by token counts; a model of the cost and no measurement.

    Args:
        price: of the model.
        calls: (prompt, completion, tokens of the prompt that a warm cache could serve) of each summary call.
        projection: tokens of what is shown afterwards.
        history: tokens of what would be sent without it.
        fixed: tokens of system prompt and tools, which every request has.
    """
    after, before = projection + fixed, history + fixed
    return Costs(
        cold=sum(price.bill(prompt, completion) for prompt, completion, _ in calls),
        cached=sum(price.bill(prompt, completion, _share(shared)) for prompt, completion, shared in calls),
        first_turn=price.bill(after, 0, min(fixed, after)),
        turn_cold=price.bill(after),
        turn=price.bill(after, 0, _share(after)),
        baseline=price.bill(before, 0, _share(before)),
    )


def _share(tokens: int) -> int:
    return int(CACHED_SHARE * tokens)


@dataclass(frozen=True, slots=True)
class Published:
    """One arm of the published experiment, computed anew. Currency units."""

    arm: PublishedArm
    cold: Decimal
    cached: Decimal
    """Both for all 24 compactions, as they were printed."""
    per_turn: Decimal
    baseline: Decimal
    break_even: Decimal | None
    """In the published convention: cost of all compactions over what one turn saves."""
    per_point: Decimal
    """In the published convention."""
    single_cold: Decimal
    single_cached: Decimal
    single_break_even: Decimal | None
    """In ours: of one compaction."""
    single_per_point: Decimal
    """One compaction and 100 cached turns, the only change from the published figure: the money of one compaction."""
    with_first_turn: Decimal | None
    """Break-even of one compaction with the cold first turn."""
    with_first_turn_per_point: Decimal


def published() -> list[Published]:
    """The published figures, computed from the token counts, beside the same in our convention."""
    return [_published(arm) for arm in ARMS]


def _published(arm: PublishedArm) -> Published:
    shared = _share(arm.prompt) if arm.shares else 0
    cold = _units(PRICE.bill(arm.prompt, arm.completion))
    cached = _units(PRICE.bill(arm.prompt, arm.completion, shared))
    turn, first, baseline = _turn(arm.projection), arm.projection / 10**6, _turn(BASELINE_TOKENS)
    saved = baseline - turn
    points = Decimal(arm.recalled * 100) / VALUES
    # The documents compute with the figures as they print them: 0.53 and not 0.525.
    printed = rounded(cached, 2)
    one = cached / COMPACTIONS
    return Published(
        arm=arm,
        cold=cold,
        cached=cached,
        per_turn=turn,
        baseline=baseline,
        break_even=printed / saved if cached else None,
        per_point=(printed + TURNS * turn) / points,
        single_cold=cold / COMPACTIONS,
        single_cached=one,
        single_break_even=one / saved if cached else None,
        single_per_point=(one + TURNS * turn) / points,
        with_first_turn=(one + first - turn) / saved,
        with_first_turn_per_point=(one + first + (TURNS - 1) * turn) / points,
    )


def _turn(tokens: Decimal) -> Decimal:
    """A turn as the experiment bills it: the cached part in whole tokens, the rest as it is."""
    cached = int(CACHED_SHARE * tokens)
    return ((tokens - cached) * PRICE.rates.input + cached * PRICE.rates.cache_read) / 10**6


def _units(picos: int) -> Decimal:
    return Decimal(picos) / PICO


def rounded(value: Decimal, places: int) -> Decimal:
    """Rounded as people do: halves up."""
    return value.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)
