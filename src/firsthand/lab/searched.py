"""A long text that is asked for many values: most are told by their words alone, and only the others are looked for."""

from __future__ import annotations

from functools import lru_cache

from .values import shows, word_runs

__all__ = ["Searched"]


class Searched:
    """A literal text, such as a whole projection.

    Args:
        text: the text.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._runs = frozenset(word_runs(text))

    def shows(self, value: str) -> bool:
        """What `shows` says of the text and the value."""
        return self._runs.issuperset(_runs(value)) and shows(self._text, value)


@lru_cache(maxsize=1 << 16)
def _runs(value: str) -> tuple[str, ...]:
    return tuple(word_runs(value))
