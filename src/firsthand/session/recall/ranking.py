"""Ranking: which omitted lines a message asks for, the most wanted first.

First one look-up per piece that the message names and the projection does not show: the shortest line that holds it, the rarest piece first.
Then, segment by segment, the lines that hold most of what the segment says, words weighted by how rare they are. A line that holds little of it
is no answer and is left out, so that a message about something else brings nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, Protocol, TypeAlias

from .lines import Line, Place
from .pieces import Segment, segments
from .words import is_short, words_of

__all__ = ["Source", "Wanted", "wanted_lines"]

LEAST_SHARE = 0.65
"""Share of a segment's weight that a line must hold."""
LEAST_WEIGHT = 2.0
"""Weight that a line must hold whatever its share, and it must hold two words."""
LEAST_OF_ITEM = 0.5
LEAST_OF_SEGMENT = 0.25
"""Shares of what an item and its whole segment name that the history must know; else they are about something else that shares a name."""
COMMON = 256
"""Entries from which on a word is a common one."""
_ORDER = 0.15
"""What neighbouring words in the same order add, as a share of the whole."""
_LENGTH = 0.1
"""What a line loses for words that were not asked for."""


class Source(Protocol):
    """Omitted history, as it is searched."""

    @property
    def total(self) -> int:
        """Entries in it."""
        ...

    def frequency(self, word: str) -> int:
        """In how many of its entries a word occurs, as far as that was counted."""
        ...

    def lines(self, words: Sequence[str]) -> Iterable[Line]:
        """The lines that hold at least one of the words, given from the rarest to the most common."""
        ...


@dataclass(frozen=True)
class Wanted:
    """A line, and why it is wanted."""

    line: Line
    reason: str


def wanted_lines(message: str, source: Source, shows: Callable[[str], bool]) -> Iterator[Wanted]:
    """The omitted lines that a message asks for, the most wanted first; each text once.

    Args:
        message: what was typed, or a tool's error.
        source: the omitted history.
        shows: whether the projection shows this text literally.
    """
    if not source.total:
        return
    given: set[str] = set()
    windows: set[tuple[str, Place]] = set()

    def is_new(line: Line) -> bool:
        text, start, part = line.place
        # Half of a neighbouring window would be said twice.
        beside = ((line.entry, (text, start, part + by)) for by in (-1, 1)) if part else ()
        if line.text in given or not windows.isdisjoint(beside):
            return False
        given.add(line.text)
        if part:
            windows.add((line.entry, line.place))
        return True

    asked = segments(message)
    found = [hit for segment in asked for hit in _looked_up(segment, source, shows)]
    found.sort(key=lambda hit: (hit[0], -len(hit[1])))
    for _, piece, line in found:
        if not any(piece in text for text in given) and is_new(line):
            yield Wanted(line, f"has {piece}")
    ranked = sorted(
        (scored for segment in asked for scored in _ranked(segment, source)),
        key=lambda scored: (-scored[0], len(scored[1].text), -scored[1].order, scored[1].place),
    )
    for _, line in ranked:
        if not shows(line.text) and is_new(line):
            yield Wanted(line, "says most of it")


_Hit: TypeAlias = tuple[int, str, Line]
"""How many lines hold a piece, the form in which it was found, the shortest line that holds it."""


def _looked_up(segment: Segment, source: Source, shows: Callable[[str], bool]) -> Iterator[_Hit]:
    """What is found of the pieces that are not shown, where the history knows enough of what is named beside them."""
    known = 0
    groups: list[list[_Hit]] = []
    for group in segment.groups:
        states = [_piece(forms, source, shows) for forms in group]
        there = sum(state is not None for state in states)
        known += there
        if there >= LEAST_OF_ITEM * len(group):
            groups.append([state for state in states if isinstance(state, tuple)])
    if known >= LEAST_OF_SEGMENT * sum(map(len, segment.groups)):
        for hits in groups:
            yield from hits


def _piece(forms: Sequence[str], source: Source, shows: Callable[[str], bool]) -> _Hit | Literal["shown"] | None:
    """The best line for a piece, that it is shown, or that nobody ever said it."""
    if any(shows(form) for form in forms):
        return "shown"
    for form in forms:
        words = sorted(set(words_of(form)), key=lambda word: (source.frequency(word), word))
        if not words or not source.frequency(words[0]):
            continue
        holding = [line for line in source.lines(words[:1]) if _holds(line.text, form)]
        if holding:
            best = min(holding, key=lambda line: (len(line.text), -line.order, line.place))
            return len({line.text for line in holding}), form, best
    return None


def _holds(text: str, piece: str) -> bool:
    """Whether a piece stands in a text and is no part of a longer word or number there."""
    at = text.find(piece)
    while at >= 0:
        end = at + len(piece)
        before = at > 0 and text[at - 1].isalnum() and piece[0].isalnum()
        after = end < len(text) and text[end].isalnum() and piece[-1].isalnum()
        if not before and not after:
            return True
        at = text.find(piece, at + 1)
    return False


def _ranked(segment: Segment, source: Source) -> Iterator[tuple[float, Line]]:
    weights = {word: _weight(word, source) for word in segment.words}
    whole = sum(weights.values())
    if whole < LEAST_WEIGHT:
        return
    rarest_first = sorted(weights, key=lambda word: (-weights[word], word))
    pairs = set(pairwise(segment.words))
    for line in source.lines(_needed(rarest_first, weights, whole)):
        both = [word for word in weights if word in line.words]
        held = sum(weights[word] for word in both)
        if len(both) < 2 or held < LEAST_WEIGHT or held < LEAST_SHARE * whole:
            continue
        sequence = line.sequence
        order = sum(pair in pairs for pair in pairwise(sequence)) / max(1, len(pairs))
        more = len(line.words - weights.keys()) / len(line.words)
        yield held / whole + _ORDER * min(1.0, order) - _LENGTH * more, line


def _weight(word: str, source: Source) -> float:
    if is_short(word):
        frequency = source.total // 2 + 1
    else:
        frequency = source.frequency(word)
        if frequency >= COMMON:
            frequency = max(COMMON, source.total // 8)
    return math.log(1 + source.total / (frequency or 0.5))


def _needed(words: Sequence[str], weights: dict[str, float], whole: float) -> list[str]:
    """The fewest words, rarest first, one of which every line must hold that holds enough of the segment; short ones cannot be looked up."""
    room = (1 - LEAST_SHARE) * whole
    needed: list[str] = []
    for word in words:
        if is_short(word):
            continue
        needed.append(word)
        room -= weights[word]
        if room < 0:
            break
    return needed
