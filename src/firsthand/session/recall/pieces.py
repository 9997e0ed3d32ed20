"""Pieces: what a message asks for. Names, paths, numbers and quoted phrases to look up, and segments to rank lines by."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from .words import is_telling, words_of

__all__ = ["Segment", "segments"]

SEGMENT_WORDS = 48
"""Words of a segment at most; a longer one is cut."""
MOST_SEGMENTS = 24
"""Segments of a message that are looked at; of a longer one the first third and the last two thirds of so many."""

_EDGE = ".,;:!?()[]{}<>\"'`*\u201c\u201d\u2018\u2019\u00ab\u00bb\u300c\u300d\u300e\u300f\uff0c\u3002\uff1b\uff1a\uff01\uff1f\u3001"
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=\S)|(?<=[\u3002\uff01\uff1f])")
_ITEM = re.compile(r"\s*[,;\uff0c\uff1b\u3001]\s+|\s*[,;\uff0c\uff1b\u3001]\s*$|\s*[\uff0c\uff1b\u3001]\s*")
_QUOTED = re.compile(
    r"`([^`\n]{2,200})`|\"([^\"\n]{2,200})\"|\u201c([^\u201d\n]{2,200})\u201d|\u300c([^\u300d\n]{2,200})\u300d"
)
_BULLET = re.compile(r"^\s*(?:[-*\u2022]|\d{1,3}[.)])\s+")
_AMOUNT = re.compile(r"\d\s?\S{1,3}")
_PHRASE_WORDS = 6


@dataclass(frozen=True)
class Segment:
    """A sentence or line of a message."""

    words: tuple[str, ...]
    """Its words in order."""
    groups: tuple[tuple[tuple[str, ...], ...], ...]
    """What its items (parts between commas) name, a group each. A piece is a tuple of forms, raw and without the punctuation at its edges; the
    first that is found counts."""


def segments(message: str) -> list[Segment]:
    """The segments of a message, in order; those without a word are left out."""
    found: list[Segment] = []
    for line in message.splitlines():
        for sentence in _SENTENCE.split(_BULLET.sub("", line)):
            if not sentence.strip():
                continue
            words = words_of(sentence)
            if words:
                found.append(Segment(tuple(words[:SEGMENT_WORDS]), tuple(_groups(sentence))))
    if len(found) <= MOST_SEGMENTS:
        return found
    first = MOST_SEGMENTS // 3
    return found[:first] + found[first - MOST_SEGMENTS :]


def _groups(sentence: str) -> Iterator[tuple[tuple[str, ...], ...]]:
    phrases = [quoted[quoted.lastindex or 0].strip() for quoted in _QUOTED.finditer(sentence)]
    for item in _ITEM.split(sentence):
        item = item.strip()
        tokens = item.split()
        pieces = {_forms(phrase): None for phrase in phrases if phrase in item}
        if 1 < len(tokens) <= _PHRASE_WORDS and _is_name(item, tokens):
            pieces[_forms(item)] = None
        for token in tokens:
            stripped = token.strip(_EDGE)
            # A bare number says something where it is all that is asked for, and not in the middle of a sentence.
            if is_telling(stripped) and (len(tokens) == 1 or not stripped.isdecimal()):
                pieces[_forms(token)] = None
        pieces.pop((), None)
        if pieces:
            yield tuple(pieces)


def _is_name(item: str, tokens: list[str]) -> bool:
    """Whether a few words are a name or an amount (`PR #456`, `12.3 MB`), and not words with a digit beside them (`option 1`)."""
    digits = sum(map(str.isdigit, item))
    return digits > 1 or _AMOUNT.fullmatch(item) is not None or any(is_telling(token.strip(_EDGE)) for token in tokens)


def _forms(token: str) -> tuple[str, ...]:
    """Raw and without what punctuation stands at its edges."""
    stripped = token.strip(_EDGE)
    return tuple(dict.fromkeys(form for form in (token, stripped) if len(form) >= 3))
