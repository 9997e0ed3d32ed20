"""The units of many entries side by side, the blocks they belong to, and where the terms of each begin."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import accumulate
from typing import NamedTuple

from ...errors import JournalDamagedError
from ..features.rows import Row
from ..features.units import Source

__all__ = ["Pool", "Run"]


class Run(NamedTuple):
    """The units of one block: those from `first` to `end`."""

    entry: int
    """Position of the entry."""
    block: int
    source: Source
    first: int
    end: int


@dataclass
class Pool:
    """Units in original order. Unit `u` has the terms `terms[offsets[u]:offsets[u + 1]]`.

    Lists where numbers are looked at one by one, so that none is made anew at each look.
    """

    starts: array[int] = field(default_factory=lambda: array("I"))
    ends: array[int] = field(default_factory=lambda: array("I"))
    sizes: list[int] = field(default_factory=list)
    terms: list[int] = field(default_factory=list)
    offsets: list[int] = field(default_factory=lambda: [0])
    runs: list[Run] = field(default_factory=list)
    """In original order."""
    run_of: list[int] = field(default_factory=list)
    """Number of each unit's run."""

    @classmethod
    def of(cls, rows: Iterable[Row]) -> Pool:
        """The pool of these rows; the position of a row is the position of its entry.

        Raises:
            JournalDamagedError: the rows name more or fewer terms than they have.
        """
        pool = cls()
        sizes, counts, terms = array("I"), array("I"), array("I")
        at = 0
        for position, row in enumerate(rows):
            pool.starts.frombytes(row.starts)
            pool.ends.frombytes(row.ends)
            sizes.frombytes(row.sizes)
            counts.frombytes(row.counts)
            terms.frombytes(row.terms)
            for block, source, length in row.blocks():
                pool.run_of += [len(pool.runs)] * length
                pool.runs.append(Run(position, block, source, at, at + length))
                at += length
        pool.sizes = sizes.tolist()
        pool.terms = terms.tolist()
        pool.offsets = list(accumulate(counts, initial=0))
        if pool.offsets[-1] != len(terms) or at != len(sizes):
            raise JournalDamagedError(
                f"stored rows name {pool.offsets[-1]} terms of {at} units and hold {len(terms)} of {len(sizes)}"
            )
        return pool

    def __len__(self) -> int:
        return len(self.sizes)

    def run(self, unit: int) -> Run:
        """The run that a unit belongs to."""
        return self.runs[self.run_of[unit]]

    def terms_of(self, unit: int) -> list[int]:
        """The terms of one unit, each once."""
        return self.terms[self.offsets[unit] : self.offsets[unit + 1]]
