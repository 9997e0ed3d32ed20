"""Brings a strategy to a size: the largest projection that is not above it.

`Strategy.at_size` is a wish in the budget's counter; what comes out is measured, and the wish is changed until the measure is right. A comparison
at equal size allows nothing above the rival's size, and a projection that stays more than a hundredth below it was not given its due.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

__all__ = ["CLOSE", "TRIES", "fitted"]

CLOSE = 0.99
"""Share of the size from which on a projection counts as of that size."""

TRIES = 9
"""Plans at most that are made to find a size."""

Made = TypeVar("Made")


def fitted(
    run: Callable[[int], Made], size: Callable[[Made], int | None], target: int, tries: int = TRIES
) -> tuple[int, Made, bool]:
    """The wish whose outcome comes nearest to a size from below.

    Args:
        run: makes the outcome of a wish, in tokens.
        size: measures it; None for an outcome that shows nothing (a refusal), which a larger wish may mend.
        target: the size, in tokens, at least 1.
        tries: outcomes at most that are looked at.

    Returns:
        The wish, its outcome, and whether that is not above the size. Where nothing is below, the outcome of the smallest wish.
    """
    wish = max(1, target)
    below: tuple[int, int, Made] | None = None  # wish, size, outcome
    above: tuple[int, int, Made] | None = None
    refused: tuple[int, Made] | None = None
    seen: set[int] = set()
    highs = 0
    for _ in range(tries):
        seen.add(wish)
        made = run(wish)
        found = size(made)
        if found is None:
            refused = (wish, made) if refused is None or wish > refused[0] else refused
        elif found > target:
            highs += 1
            floor = above is not None and 2 * wish <= above[0] and found >= above[1]
            if above is None or wish < above[0]:
                above = (wish, found, made)
            if floor and below is None and refused is None:
                # Asking for half gives no less.
                break
        else:
            ceiling = below is not None and wish > below[0] and found == below[1]
            if below is None or found > below[1] or ceiling:
                below = (wish, found, made)
            if found >= CLOSE * target or (ceiling and above is None):
                break
        wish = _next(target, below and below[:2], above and above[:2], refused and refused[0], highs)
        if wish in seen or wish < 1:
            break
    if below is not None:
        return below[0], below[2], True
    if above is not None:
        return above[0], above[2], False
    assert refused is not None
    return refused[0], refused[1], True


def _next(
    target: int, below: tuple[int, int] | None, above: tuple[int, int] | None, refused: int | None, highs: int
) -> int:
    """The wish to try after what was found below and above the target."""
    low = below[0] if below else refused
    if above is None:
        if below is None:
            return 2 * (refused or target)
        return min(4 * below[0], max(below[0] + 1, below[0] * target // max(1, below[1])))
    if low is None or low >= above[0]:
        # What does not depend on the wish is unknown, so each further step down is a longer one.
        return min(above[0] - 1, above[0] * target * 98 // (100 * above[1]) >> (highs - 1))
    if below is None:
        return (low + above[0]) // 2
    # Between the two: along the line through them, but never within a tenth of either end, so that steps cannot shrink to nothing.
    span = above[0] - low
    wish = low + span * (target - below[1]) // max(1, above[1] - below[1])
    return min(above[0] - max(1, span // 10), max(low + max(1, span // 10), wish))
