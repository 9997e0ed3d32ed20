"""A second, simpler way to find values, run beside the first so that a gain that depends on the patterns shows (measures.md, "Values").

It knows no patterns at all: whatever stands between spaces, has a digit or punctuation inside, and is rare.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ..transcript import Entry
from .values import Value, around, pieces, shows

__all__ = ["MOST_ENTRIES", "rare_tokens"]

MOST_ENTRIES = 3
"""A token that occurs in more entries than this is part of the session's vocabulary, not a value."""

_EDGES = "\"'`()[]{}<>,;:.!?*=#|\\…“”‘’«»「」『』、。，：；"
_LEAST = 3
_MOST = 200


def rare_tokens(entries: Sequence[Entry]) -> dict[str, Value]:
    """Tokens between spaces, without the punctuation at their edges, with a digit or punctuation inside, in at most three entries.

    Returns:
        Each with its home, in order of first occurrence; the shape is always `quoted`, since none is known.
    """
    found: dict[str, Value] = {}
    times: Counter[str] = Counter()
    for position, entry in enumerate(entries):
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
                if token in found:
                    continue
                first = start + word.index(token)
                line = around(text, first, first + len(token))
                if shows(line, token):
                    found[token] = Value(token, "quoted", kind, entry.id, position, line)
        times.update(seen)
    return {token: value for token, value in found.items() if times[token] <= MOST_ENTRIES}


def _telling(token: str) -> bool:
    return token.isdecimal() or any(not char.isalpha() for char in token)
