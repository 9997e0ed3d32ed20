"""The search for a size: never above it when anything is below, and near it where the knob allows."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firsthand.lab.fitting import CLOSE, TRIES, fitted


def found(size: Callable[[int], int | None], target: int) -> tuple[int | None, bool, int]:
    tried: list[int] = []

    def run(wish: int) -> int:
        tried.append(wish)
        return wish

    wish, made, fits = fitted(run, size, target)
    assert wish == made
    assert len(tried) == len(set(tried)) <= TRIES
    return size(wish), fits, len(tried)


@pytest.mark.parametrize(
    ("size", "target", "expected"),
    [
        (lambda wish: wish, 5_000, (5_000, True)),
        (lambda wish: wish * 2, 5_000, (None, True)),
        (lambda wish: wish // 2, 5_000, (None, True)),
        (lambda wish: wish + 900, 5_000, (None, True)),
        (lambda wish: min(wish, 3_000), 5_000, (3_000, True)),  # it has no more to show
        (lambda wish: max(wish, 7_000), 5_000, (7_000, False)),  # it has a floor
        (lambda wish: None if wish < 4_000 else wish, 5_000, (5_000, True)),
        (lambda wish: None if wish < 8_000 else wish // 2, 5_000, (None, True)),  # refuses what is too small
        (lambda wish: None, 5_000, (None, True)),
        (lambda wish: None if wish < 6_000 else wish, 5_000, (6_000, False)),
    ],
)  # fmt: skip
def test_sizes(size: Callable[[int], int | None], target: int, expected: tuple[int | None, bool]) -> None:
    got, fits, _ = found(size, target)
    assert fits is expected[1]
    if got is not None and fits and expected[0] is None:
        assert CLOSE * target <= got <= target
    elif expected[0] is not None and fits:
        assert got == expected[0]


@settings(max_examples=1500)
@given(st.integers(50, 60_000), st.floats(0.3, 3), st.integers(0, 3_000), st.integers(1, 400))
def test_a_rising_knob_ends_below_and_near(target: int, slope: float, base: int, step: int) -> None:
    """A knob that rises in steps is brought below the size wherever a twentieth of it is, and near it."""

    def size(wish: int) -> int:
        return base + int(slope * wish) // step * step

    got, fits, _ = found(size, target)
    assert got is not None
    if fits:
        assert 0.95 * target - 2 * step <= got <= target
    else:
        assert size(1 + target // 20) > target
