"""A long text that is asked for many values: most are told by their words alone, and only the others are looked for."""

from __future__ import annotations

from functools import lru_cache

from .values import shows, word_runs

__all__ = ["Occurring", "Searched"]


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


class Occurring:
    """Whether strings occur anywhere in a text, as parts of longer ones too. Decoys are looked for again and again, each once only.

    Args:
        text: the text, such as a whole session.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        # A string without spaces occurs in the text where it occurs in one of its words, and most words come often.
        self._words = "\n".join(dict.fromkeys(text.split()))
        self._known: dict[str, bool] = {}

    def __call__(self, string: str) -> bool:
        """Whether it occurs."""
        found = self._known.get(string)
        if found is None:
            found = self._known[string] = string in (self._text if any(map(str.isspace, string)) else self._words)
        return found


@lru_cache(maxsize=1 << 16)
def _runs(value: str) -> tuple[str, ...]:
    return tuple(word_runs(value))
