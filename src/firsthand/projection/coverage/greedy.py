"""The lazy greedy of budgeted maximum coverage."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heapify, heappop, heappush, heapreplace
from itertools import accumulate

from .pool import Pool

__all__ = ["Cover"]

_SCALE = 1 << 20


class Cover:
    """A growing choice of units.

    Guarantee: the better of the greedy's choice and the best single unit that fits is worth at least (1 - 1/e) / 2 of the best choice that
    fits (Khuller, Moss and Naor 1999; the greedy alone has no such bound). `spend` makes that comparison on its first call.
    """

    def __init__(self, pool: Pool, weights: dict[int, int], costs: Sequence[int]) -> None:
        """A choice of nothing.

        Args:
            pool: the units.
            weights: what each term is worth; changed as units are chosen, so hand over a copy if you need it.
            costs: what each unit takes, by number, at least 1.
        """
        self.pool = pool
        self.weights = weights
        self.costs = costs
        self.chosen: set[int] = set()
        self._heap: list[tuple[int, int]] = []
        self._too_large: list[tuple[int, int]] = []

    def take(self, units: Iterable[int]) -> None:
        """Counts units as chosen whatever they are worth, such as those of texts that are shown anyway."""
        weights = self.weights
        for unit in units:
            self.chosen.add(unit)
            for term in self.pool.terms_of(unit):
                weights[term] = 0

    def worth(self, unit: int) -> int:
        """What the unit adds to what is covered."""
        return sum(map(self.weights.__getitem__, self.pool.terms_of(unit)))

    def spend(self, room: int, units: Iterable[int] | None = None) -> tuple[list[int], int]:
        """Chooses by worth for each token until nothing that adds anything fits.

        Args:
            room: what may be spent, in the costs' unit.
            units: the candidates; ties go to the earlier one. None: go on with those of the last call, also those that were too large then.

        Returns:
            The units chosen now, in the order in which they were chosen, and what is left of the room.
        """
        heap, costs = self._heap, self.costs
        offsets, terms, weights = self.pool.offsets, self.pool.terms, self.weights
        value = weights.__getitem__
        if units is not None:
            sums = list(accumulate(map(value, terms), initial=0))
            heap = self._heap = [
                (-(worth * _SCALE // costs[unit]), unit)
                for unit in units
                if (worth := sums[offsets[unit + 1]] - sums[offsets[unit]]) and unit not in self.chosen
            ]
            heapify(heap)
        else:
            for pair in self._too_large:
                heappush(heap, pair)
        self._too_large = []
        picked: list[int] = []
        while heap:
            stale, unit = heap[0]
            cost = costs[unit]
            if cost > room:
                self._too_large.append(heappop(heap))
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
