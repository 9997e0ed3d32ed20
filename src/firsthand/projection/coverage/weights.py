"""What a term is worth: its class, who used it, how often, and how long ago.

The numbers are those of a first study (`docs/strategies/coverage.md` says what each of them carries). In real sessions a term that the agent or
the user wrote is used again 10 to 40 times as often as one that only tool output shows, one that they wrote ten times 8 times as often as one that
they wrote once; what only tools repeat is not used more often for it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import accumulate, repeat
from math import exp, log

from ..features.terms import CLASS_BITS
from ..features.units import Source
from .pool import Pool

__all__ = ["DEFAULT", "Heard", "Weighing", "heard", "weights"]


@dataclass(frozen=True, slots=True)
class Weighing:
    """The numbers behind the weights, in hundredths."""

    classes: tuple[int, ...] = (5, 10, 70, 100, 100, 100, 100, 20)
    """By `TermClass`."""
    sources: tuple[int, ...] = (150, 200, 80, 23, 15, 30)
    """By `Source`; of several the best counts, with the age of its own last mention."""
    oldest: int = 55
    """What age leaves of a weight at least."""
    fading: int = 25
    """Share of the history's size after which the rest of a weight has fallen to its e-th part."""
    recurring: int = 50
    """Exponent, in hundredths, of 1 + ln n for a term that n entries of user or agent use."""


DEFAULT = Weighing()
_AGES = 64
_SPEAKERS = (Source.USER, Source.ASSISTANT, Source.CALL)
_MOST_COUNTED = 256
# Tables, so that the weights of many terms are products of whole numbers; the logarithms are rounded once, far from any tie.


@dataclass(frozen=True)
class Heard:
    """Which terms were heard from whom, and when last."""

    ages: tuple[dict[int, int], ...]
    """By `Source`: the age of each term's last mention, from 0 (the newest) to 63."""
    spoken: Counter[int]
    """How many texts and calls of the user and the agent hold each term."""
    introduced: frozenset[tuple[int, int]]
    """Runs of the assistant's text, by number, with the terms that nobody used before."""


def heard(pool: Pool) -> Heard:
    """Who used which terms, in one pass over the pool. Ages count the pieces of the units that follow."""
    ages: tuple[dict[int, int], ...] = tuple({} for _ in Source)
    spoken: Counter[int] = Counter()
    introduced: set[tuple[int, int]] = set()
    terms, offsets = pool.terms, pool.offsets
    before = list(accumulate(pool.sizes, initial=0))
    total = max(1, before[-1])
    for number, run in enumerate(pool.runs):
        age = min(_AGES - 1, (total - before[run.end]) * _AGES // total)
        its = dict.fromkeys(terms[offsets[run.first] : offsets[run.end]], age)
        if run.source is Source.ASSISTANT:
            new = set(its)
            for known in ages:
                new = new.difference(known)
            introduced.update(zip(repeat(number), new, strict=False))
        ages[run.source].update(its)
        if run.source in _SPEAKERS:
            spoken.update(its.keys())
    return Heard(ages, spoken, frozenset(introduced))


def weights(found: Heard, weighing: Weighing = DEFAULT) -> dict[int, int]:
    """The weight of every term that was heard, as whole numbers of at least 1."""
    fresh = 100 - weighing.oldest
    ages = [round(weighing.oldest + fresh * exp(-100 * age / _AGES / weighing.fading)) for age in range(_AGES)]
    mask = (1 << CLASS_BITS) - 1
    out: dict[int, int] = {}
    for source in sorted(Source, key=weighing.sources.__getitem__):
        table = [
            [max(1, kind * weighing.sources[source] * age // 100) for age in ages] for kind in (*weighing.classes, 0)
        ]
        out.update({term: table[term & mask][age] for term, age in found.ages[source].items()})
    recurring = [round(100 * (1 + log(max(1, n))) ** (weighing.recurring / 100)) for n in range(_MOST_COUNTED)]
    for term, n in found.spoken.items():
        if n > 1:
            out[term] = out[term] * recurring[min(n, _MOST_COUNTED - 1)] // 100
    return out
