"""The lazy greedy of budgeted maximum coverage."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heapreplace
from itertools import accumulate

from .pool import Pool

__all__ = ["Cover"]

_SCALE = 1 << 20


@dataclass
class Cover:
    """A growing choice of units.

    Guarantee: with sizes as costs, the better of the greedy's choice and the best single unit that fits is worth at least (1 - 1/e) / 2 of the
    best choice that fits (Khuller, Moss and Naor 1999, lemma 2.3; the greedy alone has no such bound). `spend` makes that comparison.
    """

    pool: Pool
    weights: dict[int, int]
    """What each term is still worth: 0 once a chosen unit covers it. Changed as units are chosen."""
    chosen: set[int] = field(default_factory=set)

    def take(self, units: Iterable[int]) -> None:
        """Counts units as chosen whatever they are worth, such as those of texts that are shown anyway."""
        for unit in units:
            self.chosen.add(unit)
            for term in self.pool.terms_of(unit):
                self.weights[term] = 0

    def worth(self, unit: int) -> int:
        """What the unit adds to what is covered."""
        return sum(map(self.weights.__getitem__, self.pool.terms_of(unit)))

    def spend(self, room: int, units: Sequence[int], costs: Sequence[int]) -> tuple[list[int], int]:
        """Chooses among `units` by worth for each token until nothing that adds anything fits.

        Args:
            room: what may be spent, in the costs' unit.
            units: the candidates, in original order; ties go to the earlier one.
            costs: what each unit of the pool takes, by unit number, at least 1.

        Returns:
            The units chosen now, in the order in which they were chosen, and what is left of the room.
        """
        offsets, terms, weights = self.pool.offsets, self.pool.terms, self.weights
        value = weights.__getitem__
        sums = list(accumulate(map(value, terms), initial=0))
        heap = [
            (-(worth * _SCALE // costs[unit]), unit)
            for unit in units
            if (worth := sums[offsets[unit + 1]] - sums[offsets[unit]]) and unit not in self.chosen
        ]
        heapify(heap)
        picked: list[int] = []
        while heap:
            stale, unit = heap[0]
            cost = costs[unit]
            if cost > room:
                heappop(heap)
                continue
            own = terms[offsets[unit] : offsets[unit + 1]]
            density = -(sum(map(value, own)) * _SCALE // cost)
            if density == stale:
                heappop(heap)
                picked.append(unit)
                room -= cost
                for term in own:
                    weights[term] = 0
            elif density:
                heapreplace(heap, (density, unit))
            else:
                heappop(heap)
        self.chosen.update(picked)
        return picked, room
