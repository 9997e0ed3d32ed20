"""The units of many entries side by side, and where the terms of each begin."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import accumulate, chain
from operator import ne

from ..features.rows import Row, block_of, source_of_place
from ..features.units import Source

__all__ = ["Pool", "Unit"]


@dataclass(frozen=True, slots=True)
class Unit:
    """One unit, unpacked."""

    entry: int
    """Position of its entry."""
    block: int
    source: Source
    start: int
    end: int


@dataclass
class Pool:
    """Units in original order. Unit `u` has the terms `terms[offsets[u]:offsets[u + 1]]`."""

    entries: array[int] = field(default_factory=lambda: array("I"))
    """Position of each unit's entry."""
    places: array[int] = field(default_factory=lambda: array("I"))
    starts: array[int] = field(default_factory=lambda: array("I"))
    ends: array[int] = field(default_factory=lambda: array("I"))
    sizes: array[int] = field(default_factory=lambda: array("I"))
    terms: array[int] = field(default_factory=lambda: array("I"))
    offsets: list[int] = field(default_factory=lambda: [0])
    blocks: array[int] = field(default_factory=lambda: array("I"))
    """Running number of each unit's block."""
    firsts: list[int] = field(default_factory=lambda: [0])
    """Units of entry `e` are those from `firsts[e]` to `firsts[e + 1]`."""

    @classmethod
    def of(cls, rows: Iterable[Row]) -> Pool:
        """The pool of these rows; the position of a row is the position of its entry."""
        pool = cls()
        counts = array("I")
        for position, row in enumerate(rows):
            pool.entries.extend([position] * len(row.places))
            pool.places.extend(row.places)
            pool.starts.extend(row.starts)
            pool.ends.extend(row.ends)
            pool.sizes.extend(row.sizes)
            pool.terms.extend(row.terms)
            counts.extend(row.counts)
            pool.firsts.append(len(pool.places))
        pool.offsets = list(accumulate(counts, initial=0))
        pool.blocks.extend(accumulate(map(ne, zip(pool.entries, pool.places), chain([(0, 0)], zip(pool.entries, pool.places)))))
        return pool

    def __len__(self) -> int:
        return len(self.places)

    def unit(self, number: int) -> Unit:
        """One unit, unpacked."""
        place = self.places[number]
        return Unit(
            self.entries[number], block_of(place), source_of_place(place), self.starts[number], self.ends[number]
        )

    def neighbours(self, number: int) -> range:
        """The units of the same block."""
        blocks = self.blocks
        return range(bisect_left(blocks, blocks[number]), bisect_right(blocks, blocks[number]))

    def terms_of(self, number: int) -> array[int]:
        """The terms of one unit, each once."""
        return self.terms[self.offsets[number] : self.offsets[number + 1]]
