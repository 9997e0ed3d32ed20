"""What a term is worth: its class, who used it, how often, and how long ago.

The numbers are those of a first study (`docs/strategies/coverage.md` says what each of them carries). In real sessions a term that the agent or
the user wrote is used again 10 to 40 times as often as one that only tool output shows, one that they wrote ten times 8 times as often as one that
they wrote once; what only tools repeat is not used more often for it.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import log

from ..features.rows import source_of_place
from ..features.terms import CLASS_BITS, TermClass
from ..features.units import Source
from .pool import Pool

__all__ = ["Weighing", "weights"]


@dataclass(frozen=True, slots=True)
class Weighing:
    """The numbers behind the weights, in hundredths."""

    classes: tuple[int, ...] = (5, 10, 70, 100, 100, 100, 100, 10)
    """By `TermClass`."""
    sources: tuple[int, ...] = (150, 200, 80, 23, 15, 30)
    """By `Source`; of several the best counts."""
    oldest: int = 55
    """What age leaves of a weight at least."""
    fading: int = 25
    """Share of the history's size after which the rest of a weight has fallen to its e-th part."""
    everywhere: int = 20
    """What is left of the weight of a term that more than a quarter of all entries show."""


_AGES = 64
_SPEAKERS = (Source.USER, Source.ASSISTANT, Source.CALL)
_MOST_COUNTED = 256
# Tables, so that the weights of many terms are products of whole numbers; the logarithms are rounded once, far from any tie.
_BY_SPEAKERS = [round(100 * (1 + log(max(1, n))) ** 0.5) for n in range(_MOST_COUNTED)]
_BY_ENTRIES = [round(100 * (1 + log(max(1, n))) ** 0.1) for n in range(_MOST_COUNTED)]


def weights(pool: Pool, sizes: Sequence[int], weighing: Weighing = Weighing()) -> dict[int, int]:
    """The weight of every term in the pool, as whole numbers of at least 1.

    Args:
        pool: the units.
        sizes: size of each entry, in any unit, for the ages.
        weighing: the numbers to weigh with.
    """
    last: dict[int, int] = {}
    shown: Counter[int] = Counter()
    spoken: Counter[int] = Counter()
    by_source: list[set[int]] = [set() for _ in Source]
    total = sum(sizes) or 1
    passed = 0
    for position, size in enumerate(sizes):
        passed += size
        first, end = pool.firsts[position], pool.firsts[position + 1]
        if first == end:
            continue
        age = min(_AGES - 1, (total - passed) * _AGES // total)
        terms = dict.fromkeys(pool.terms[pool.offsets[first] : pool.offsets[end]], age)
        last.update(terms)
        shown.update(terms.keys())
        for source, own in _by_source(pool, first, end):
            by_source[source].update(own)
            if source in _SPEAKERS:
                spoken.update(set(own))
    return _products(last, shown, spoken, by_source, len(sizes), weighing)


def _by_source(pool: Pool, first: int, end: int) -> list[tuple[Source, array[int]]]:
    """The terms of one entry's units, run by run of the same block."""
    places = pool.places
    out: list[tuple[Source, array[int]]] = []
    while first < end:
        last = first + 1
        place = places[first]
        while last < end and places[last] == place:
            last += 1
        out.append((source_of_place(place), pool.terms[pool.offsets[first] : pool.offsets[last]]))
        first = last
    return out


def _products(
    last: dict[int, int],
    shown: Counter[int],
    spoken: Counter[int],
    by_source: list[set[int]],
    entries: int,
    weighing: Weighing,
) -> dict[int, int]:
    best: dict[int, int] = {}
    for source in sorted(Source, key=lambda source: weighing.sources[source]):
        best.update(dict.fromkeys(by_source[source], weighing.sources[source]))
    fresh = 100 - weighing.oldest
    ages = [
        round(weighing.oldest + fresh * 2.718281828459045 ** (-age * 100 / _AGES / weighing.fading))
        for age in range(_AGES)
    ]
    classes = weighing.classes
    mask = (1 << CLASS_BITS) - 1
    often = max(1, entries // 4)
    most = _MOST_COUNTED - 1
    out: dict[int, int] = {}
    for term, age in last.items():
        n = shown[term]
        weight = classes[term & mask] * best[term] * ages[age] * _BY_ENTRIES[n if n < most else most] // 10_000
        said = spoken.get(term, 1)
        if said > 1:
            weight = weight * _BY_SPEAKERS[said if said < most else most] // 100
        if n > often:
            weight = weight * weighing.everywhere // 100
        out[term] = weight or 1
    return out
