"""What a term is worth: its class, who used it, how often, how long ago, and how many others came up beside it.

The numbers were chosen on ten real sessions (`docs/strategies/coverage.md`). In real sessions a term that the agent or
the user wrote is used again 10 to 40 times as often as one that only tool output shows, one that they wrote ten times 8 times as often as one that
they wrote once; what only tools repeat is not used more often for it.

Of a thousand names in one listing a budget shows a few; of the three that came up in a quiet stretch it can show all. So a term is worth less
the more terms came up first in the same sixteenth of the session from the same source, and what is chosen is spread over the session and its
sources instead of lying where most names are.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from math import exp, isqrt, log

from ..features.terms import CLASS_BITS
from ..features.units import Source
from .pool import Pool

__all__ = ["DEFAULT", "Heard", "Weighing", "heard", "weights"]


@dataclass(frozen=True, slots=True)
class Weighing:
    """The numbers behind the weights, in hundredths."""

    classes: tuple[int, ...] = (5, 6, 70, 100, 100, 100, 100, 40)
    """By `TermClass`."""
    sources: tuple[int, ...] = (400, 200, 100, 80, 60, 30)
    """By `Source`; of several the best counts, with the age of its own last mention, but for results that of the first."""
    oldest: int = 80
    """What age leaves of a weight at least."""
    fading: int = 25
    """Share of the history's size after which the rest of a weight has fallen to its e-th part."""
    recurring: int = 50
    """Exponent, in hundredths, of 1 + ln n for a term that n entries of user or agent use."""
    crowding: int = 400
    """What a weight is multiplied or divided by at most for the number of terms that came up beside it."""


DEFAULT = Weighing()
_AGES = 64
_STRETCH = 4
"""Ages that are one stretch of the session, a sixteenth of it, when the terms that came up in it are counted."""
_SPEAKERS = (Source.USER, Source.ASSISTANT, Source.CALL)
_RESULT = Source.RESULT
_MOST_COUNTED = 256
_CLASS = (1 << CLASS_BITS) - 1
# Tables, so that the weights of many terms are products of whole numbers; the logarithms are rounded once, far from any tie.


@dataclass(frozen=True)
class Heard:
    """Which terms were heard from whom, and when last. Runs and terms by their numbers in the pool."""

    ages: list[int]
    """Of each run, from 0 (the newest) to 63."""
    spoken: list[int]
    """How many texts and calls of the user and the agent hold each term."""
    recurring: list[int]
    """The terms that several of them hold."""
    told: list[int]
    """The run of the user or the agent in which each term came up first."""


def heard(pool: Pool) -> Heard:
    """Who used which terms, in one pass over the pool. Ages count the pieces of the units that follow."""
    terms, offsets = pool.terms, pool.offsets
    spoken = [0] * len(terms)
    last = [-1] * len(spoken)
    told = last.copy()
    recurring = []
    sizes = []
    for number, run in enumerate(pool.runs):
        sizes.append(sum(pool.sizes[run.first : run.end]))
        if run.source in _SPEAKERS:
            for term in terms[offsets[run.first] : offsets[run.end]]:
                if last[term] != number:
                    last[term] = number
                    n = spoken[term] = spoken[term] + 1
                    if n == 1:
                        told[term] = number
                    elif n == 2:
                        recurring.append(term)
    after = total = sum(sizes)
    ages = []
    for size in sizes:
        after -= size
        ages.append(min(_AGES - 1, after * _AGES // max(1, total)))
    return Heard(ages, spoken, recurring, told)


def weights(pool: Pool, found: Heard, weighing: Weighing = DEFAULT) -> list[int]:
    """The weight of every term of the pool, as whole numbers of at least 1; 0 at the other places of `mentions`."""
    terms, offsets, ages = pool.terms, pool.offsets, found.ages
    by_class, recurring = _tables(weighing)
    best: list[tuple[int, ...] | None] = [None] * len(terms)
    runs: tuple[list[int], ...] = tuple([] for _ in Source)
    for number, run in enumerate(pool.runs):
        runs[run.source].append(number)
    # The last mention wins, and the better source over the worse. Most mentions are those of results, which are worth least: they are passed
    # over, and a term that came up in one and nobody took up keeps the age that it had then.
    for source in sorted(set(Source) - {_RESULT}, key=weighing.sources.__getitem__):
        for number in runs[source]:
            run = pool.runs[number]
            weighed = by_class[source][ages[number]]
            for term in terms[offsets[run.first] : offsets[run.end]]:
                best[term] = weighed
    out = [0] * len(terms)
    mentions, vocabulary = pool.mentions, pool.vocabulary
    ends = [bisect_left(vocabulary, offsets[run.end]) for run in pool.runs]
    percents = _uncrowded(pool, ages, ends, weighing.crowding)
    for number, (start, end) in enumerate(zip([0, *ends], ends, strict=False)):
        if start < end:
            own, percent = by_class[pool.runs[number].source][ages[number]], percents[number]
            for term in vocabulary[start:end]:
                out[term] = (best[term] or own)[mentions[term] & _CLASS] * percent // 100 or 1
    for term in found.recurring:
        out[term] = out[term] * recurring[min(found.spoken[term], _MOST_COUNTED - 1)] // 100
    return out


def _uncrowded(pool: Pool, ages: list[int], ends: list[int], most: int) -> list[int]:
    """For each run the percentage for terms that came up in it.

    It is the mean number of terms that come up in a stretch from a source by the number that came up beside these, to the power of 3/4,
    between `most` and its inverse.
    """
    places = [(run.source, age // _STRETCH) for run, age in zip(pool.runs, ages, strict=True)]
    crowd: Counter[tuple[Source, int]] = Counter()
    for place, start, end in zip(places, [0, *ends], ends, strict=False):
        crowd[place] += end - start
    crowd = +crowd
    total, least = crowd.total(), 10_000 // most
    percents = {
        # A fourth root in whole numbers, so that it is the same on every machine.
        place: max(least, min(most, isqrt(isqrt(100**4 * total**3 // (len(crowd) * number) ** 3))))
        for place, number in crowd.items()
    }
    return [percents.get(place, 100) for place in places]


@lru_cache(maxsize=8)
def _tables(weighing: Weighing) -> tuple[tuple[tuple[tuple[int, ...], ...], ...], tuple[int, ...]]:
    """Weights by source, age and class, and the percentages for terms that recur, by how often."""
    fresh = 100 - weighing.oldest
    ages = [round(weighing.oldest + fresh * exp(-100 * age / _AGES / weighing.fading)) for age in range(_AGES)]
    by_class = tuple(
        tuple(tuple(max(1, kind * weighing.sources[source] * age // 100) for kind in weighing.classes) for age in ages)
        for source in Source
    )
    recurring = (round(100 * (1 + log(max(1, n))) ** (weighing.recurring / 100)) for n in range(_MOST_COUNTED))
    return by_class, tuple(recurring)
