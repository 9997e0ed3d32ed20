"""What a term is worth: its class, who used it, how often, and how long ago.

The numbers are those of a first study (`docs/strategies/coverage.md` says what each of them carries). In real sessions a term that the agent or
the user wrote is used again 10 to 40 times as often as one that only tool output shows, one that they wrote ten times 8 times as often as one that
they wrote once; what only tools repeat is not used more often for it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import accumulate, groupby
from math import log
from operator import attrgetter

from ..features.terms import CLASS_BITS
from ..features.units import Source
from .pool import Pool

__all__ = ["DEFAULT", "Weighing", "weights"]


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
    recurring: int = 50
    """Exponent, in hundredths, of 1 + ln n for a term that n entries of user or agent use."""
    everywhere: int = 20
    """What is left of the weight of a term that more than a quarter of all entries show."""


DEFAULT = Weighing()
_AGES = 64
_SPEAKERS = (Source.USER, Source.ASSISTANT, Source.CALL)
_MOST_COUNTED = 256
# Tables, so that the weights of many terms are products of whole numbers; the logarithms are rounded once, far from any tie.
_BY_ENTRIES = [round(100 * (1 + log(max(1, n))) ** 0.1) for n in range(_MOST_COUNTED)]


def weights(pool: Pool, weighing: Weighing = DEFAULT) -> dict[int, int]:
    """The weight of every term in the pool, as whole numbers of at least 1. Ages count the pieces of the entries that follow.

    Args:
        pool: the units.
        weighing: the numbers to weigh with.
    """
    last: dict[int, int] = {}
    shown: Counter[int] = Counter()
    spoken: Counter[int] = Counter()
    by_source: list[set[int]] = [set() for _ in Source]
    terms, offsets = pool.terms, pool.offsets
    before = list(accumulate(pool.sizes, initial=0))
    total = max(1, before[-1])
    for _, runs in groupby(pool.runs, key=attrgetter("entry")):
        own: dict[int, int] = {}
        for run in runs:
            age = min(_AGES - 1, (total - before[run.end]) * _AGES // total)
            its = dict.fromkeys(terms[offsets[run.first] : offsets[run.end]], age)
            by_source[run.source].update(its)
            if run.source in _SPEAKERS:
                spoken.update(its.keys())
            if own:
                own.update(its)
            else:
                own = its
        last.update(own)
        shown.update(own.keys())
    return _products(last, shown, spoken, by_source, len(pool.firsts) - 1, weighing)


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
    recurring = [round(100 * (1 + log(max(1, n))) ** (weighing.recurring / 100)) for n in range(_MOST_COUNTED)]
    mask = (1 << CLASS_BITS) - 1
    often = max(1, entries // 4)
    most = _MOST_COUNTED - 1
    said = spoken.get
    out: dict[int, int] = {}
    for term, age in last.items():
        n = shown[term]
        weight = (
            classes[term & mask]
            * best[term]
            * ages[age]
            * (_BY_ENTRIES[n] if n < most else _BY_ENTRIES[most])
            * (recurring[s] if (s := said(term, 0)) < most else recurring[most])
            // 1_000_000
        )
        out[term] = (weight * weighing.everywhere // 100 if n > often else weight) or 1
    return out
