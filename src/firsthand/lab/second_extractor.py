"""A second, simpler way to find values, run beside the first so that a gain that depends on the patterns shows (measures.md, "Values").

It knows no patterns at all: whatever stands between spaces, has a digit or punctuation inside, and is rare.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..transcript import Entry
from .values import Value, around, pieces, shows

__all__ = ["MOST_ENTRIES", "RareTokens", "rare_tokens"]

MOST_ENTRIES = 3
"""A token that occurs in more entries than this is part of the session's vocabulary, not a value."""

_EDGES = "\"'`()[]{}<>,;:.!?*=#|\\…“”‘’«»「」『』、。，：；"
_LEAST = 3
_MOST = 200


class RareTokens:
    """The rare tokens of a session at any position: each text is looked at once, however many positions are asked.

    Args:
        entries: the whole sequence, oldest first.
    """

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._entries = entries
        self._read = 0
        self._found: dict[str, Value] = {}
        # Positions of the entries that hold a token; those beyond the first that make it too common are not kept.
        self._places: dict[str, list[int]] = {}

    def before(self, position: int) -> dict[str, Value]:
        """Tokens between spaces, without the punctuation at their edges, with a digit or punctuation inside, in at most three entries.

        Returns:
            Each with its home, in order of first occurrence; the shape is always `quoted`, since none is known.
        """
        for place in range(self._read, position):
            self._add(place, self._entries[place])
        self._read = max(self._read, position)
        return {
            token: value
            for token, value in self._found.items()
            if value.position < position
            and (len(places := self._places[token]) <= MOST_ENTRIES or places[MOST_ENTRIES] >= position)
        }

    def _add(self, position: int, entry: Entry) -> None:
        seen: set[str] = set()
        for kind, text in pieces(entry):
            at = 0
            for word in text.split():
                start = text.index(word, at)
                at = start + len(word)
                token = word.strip(_EDGES)
                if token in seen or not _LEAST <= len(token) <= _MOST or not _telling(token):
                    continue
                seen.add(token)
                if token in self._found:
                    continue
                first = start + word.index(token)
                line = around(text, first, first + len(token))
                if shows(line, token):
                    self._found[token] = Value(token, "quoted", kind, entry.id, position, line)
        for token in seen:
            places = self._places.setdefault(token, [])
            if len(places) <= MOST_ENTRIES:
                places.append(position)


def rare_tokens(entries: Sequence[Entry]) -> dict[str, Value]:
    """The rare tokens of these entries, as `RareTokens.before` gives them."""
    return RareTokens(entries).before(len(entries))


def _telling(token: str) -> bool:
    return token.isdecimal() or not token.isalpha()
