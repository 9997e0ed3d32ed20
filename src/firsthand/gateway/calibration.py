"""How far our count is off for one model at one upstream, learned from what the provider reports (design.md 6)."""

from __future__ import annotations

from ..tokens import Counter

__all__ = ["Calibration", "Scaled", "scaled"]

_LEAST, _MOST = 50, 200
_SMALL = 1_000
"""Tokens below which a report says more about framing than about the counter."""
_NOTICEABLE = 5


class Scaled:
    """A counter times a percentage, rounded up."""

    def __init__(self, counter: Counter, percent: int) -> None:
        self._counter = counter
        self._percent = percent
        self.name = f"{counter.name}*{percent}%"
        self.error = "corrected by what the provider reported"

    def count(self, text: str) -> int:
        """Tokens of `text`."""
        return scaled(self._counter.count(text), self._percent)


def scaled(tokens: int, percent: int) -> int:
    """A number of tokens times a percentage, rounded up."""
    return (tokens * percent + 99) // 100


class Calibration:
    """Percentages by upstream and model; 100 where nothing was reported yet."""

    def __init__(self) -> None:
        self._percent: dict[tuple[str, str], int] = {}

    def percent(self, upstream: str, model: str) -> int:
        """What to multiply our count by."""
        return self._percent.get((upstream, model), 100)

    def learn(self, upstream: str, model: str, *, reported: int, counted: int, window: int | None) -> None:
        """Take note of a whole request that the provider counted.

        A server that cuts a request down in silence reports less than was sent, but never less than half its window (OV-12): only smaller
        reports are believed.
        """
        if reported < _SMALL or counted < _SMALL or (window is not None and 2 * reported >= window):
            return
        found = min(_MOST, max(_LEAST, -(-100 * reported // counted)))
        if abs(found - self.percent(upstream, model)) >= _NOTICEABLE:
            self._percent[upstream, model] = found
