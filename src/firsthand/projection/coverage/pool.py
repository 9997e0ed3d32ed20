"""The units of many entries side by side, the blocks they belong to, and where the terms of each begin.

Within a pool a term is the place of its first mention, so that whatever is said of terms stands in lists and hashes are looked up once,
here; and a term that nobody mentioned before a unit is told by its place.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import accumulate, count

import msgspec

from ...errors import JournalDamagedError
from ..features.rows import EMPTY, Row
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
    """Units in original order. Unit `u` has the terms `terms[offsets[u]:offsets[u + 1]]`, which are places in `mentions`.

    Lists where numbers are looked at one by one, so that none is made anew at each look.
    """

    starts: array[int] = field(default_factory=lambda: array("I"))
    ends: array[int] = field(default_factory=lambda: array("I"))
    sizes: list[int] = field(default_factory=list)
    terms: list[int] = field(default_factory=list)
    mentions: array[int] = field(default_factory=lambda: array("I"))
    """The same as `features.terms` numbers them: `terms[m]` is the first place that has the number `mentions[m]`."""
    vocabulary: list[int] = field(default_factory=list)
    """The different terms, in order."""
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
        starts, ends, sizes, counts, terms = columns = [list[bytes]() for _ in range(5)]
        runs, run_of = pool.runs, pool.run_of
        at = 0
        for position, row in enumerate(rows):
            if row is EMPTY:
                continue
            starts.append(row.starts)
            ends.append(row.ends)
            sizes.append(row.sizes)
            counts.append(row.counts)
            terms.append(row.terms)
            for block, source, length in row.blocks():
                run_of += [len(runs)] * length
                runs.append(Run(position, block, source, at, at + length))
                at += length
        pool.starts, pool.ends, of_sizes, of_counts, mentions = (array("I", b"".join(column)) for column in columns)
        pool.sizes = of_sizes.tolist()
        pool.offsets = list(accumulate(of_counts, initial=0))
        if pool.offsets[-1] != len(mentions) or at != len(of_sizes):
            raise JournalDamagedError(
                f"stored rows name {pool.offsets[-1]} terms of {at} units and hold {len(mentions)} of {len(of_sizes)}"
            )
        pool.mentions = mentions
        first: dict[int, int] = {}
        pool.terms = list(map(first.setdefault, mentions, count()))
        pool.vocabulary = list(first.values())
        return pool

    def __len__(self) -> int:
        return len(self.sizes)

    def run(self, unit: int) -> Run:
        """The run that a unit belongs to."""
        return self.runs[self.run_of[unit]]

    def terms_of(self, unit: int) -> list[int]:
        """The terms of one unit, each once, as places in `mentions`."""
        return self.terms[self.offsets[unit] : self.offsets[unit + 1]]
