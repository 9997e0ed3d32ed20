"""The units of many entries side by side, the blocks they belong to, and where the terms of each begin.

Within a pool the terms are counted from 0 in order of first mention, so that whatever is said of them stands in lists. Hashes are looked up
once, here; a term that nobody mentioned before a unit is told by its number.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import accumulate, count

import msgspec

from ...errors import JournalDamagedError
from ..features.rows import Row
from ..features.units import Source

__all__ = ["Pool", "Run"]


class Run(msgspec.Struct, frozen=True, gc=False):
    """The units of one block: those from `first` to `end`."""

    entry: int
    """Position of the entry."""
    block: int
    source: Source
    first: int
    end: int


@dataclass
class Pool:
    """Units in original order. Unit `u` has the terms `terms[offsets[u]:offsets[u + 1]]`, which are places in `vocabulary`.

    Lists where numbers are looked at one by one, so that none is made anew at each look.
    """

    starts: array[int] = field(default_factory=lambda: array("I"))
    ends: array[int] = field(default_factory=lambda: array("I"))
    sizes: list[int] = field(default_factory=list)
    terms: list[int] = field(default_factory=list)
    vocabulary: list[int] = field(default_factory=list)
    """The different terms as `features.terms` numbers them, in order of first mention."""
    offsets: list[int] = field(default_factory=lambda: [0])
    runs: list[Run] = field(default_factory=list)
    """In original order."""
    run_of: list[int] = field(default_factory=list)
    """Number of each unit's run."""
    known: list[int] = field(default_factory=list)
    """How many terms were mentioned before each run: those from there on are new in it."""

    @classmethod
    def of(cls, rows: Iterable[Row]) -> Pool:
        """The pool of these rows; the position of a row is the position of its entry.

        Raises:
            JournalDamagedError: the rows name more or fewer terms than they have.
        """
        pool = cls()
        starts, ends, sizes, counts, terms = columns = [list[bytes]() for _ in range(5)]
        runs, run_of = pool.runs, pool.run_of
        at = 0
        for position, row in enumerate(rows):
            starts.append(row.starts)
            ends.append(row.ends)
            sizes.append(row.sizes)
            counts.append(row.counts)
            terms.append(row.terms)
            for block, source, length in row.blocks():
                run_of += [len(runs)] * length
                runs.append(Run(position, block, source, at, at + length))
                at += length
        pool.starts, pool.ends, of_sizes, of_counts, of_terms = (array("I", b"".join(column)) for column in columns)
        pool.sizes = of_sizes.tolist()
        pool.offsets = list(accumulate(of_counts, initial=0))
        if pool.offsets[-1] != len(of_terms) or at != len(of_sizes):
            raise JournalDamagedError(
                f"stored rows name {pool.offsets[-1]} terms of {at} units and hold {len(of_terms)} of {len(of_sizes)}"
            )
        numbers: defaultdict[int, int] = defaultdict(count().__next__)
        number, offsets, all_terms, known = numbers.__getitem__, pool.offsets, pool.terms, pool.known
        for run in runs:
            known.append(len(numbers))
            all_terms += map(number, of_terms[offsets[run.first] : offsets[run.end]])
        pool.vocabulary = list(numbers)
        return pool

    def __len__(self) -> int:
        return len(self.sizes)

    def run(self, unit: int) -> Run:
        """The run that a unit belongs to."""
        return self.runs[self.run_of[unit]]

    def terms_of(self, unit: int) -> list[int]:
        """The terms of one unit, each once, as places in `vocabulary`."""
        return self.terms[self.offsets[unit] : self.offsets[unit + 1]]
