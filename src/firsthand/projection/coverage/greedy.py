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

    def __init__(self, pool: Pool, weights: dict[int, int], costs: Sequence[int], opening: int = 0) -> None:
        """A choice of nothing.

        Args:
            pool: the units.
            weights: what each term is worth; changed as units are chosen, so hand over a copy if you need it.
            costs: what each unit takes, by number, at least 1.
            opening: what the first unit of a block takes beside its own cost.
        """
        self.opening = opening
        self.opened: set[int] = set()
        self.pool = pool
        self.weights = weights
        self.costs = costs
        self.chosen: set[int] = set()
        self._heap: list[tuple[int, int]] = []
        self._too_large: list[tuple[int, int]] = []
        self._offered: set[int] = set()

    def take(self, units: Iterable[int]) -> None:
        """Counts units as chosen whatever they are worth, such as those of texts that are shown anyway."""
        weights = self.weights
        for unit in units:
            self.chosen.add(unit)
            self.opened.add(self.pool.blocks[unit])
            for term in self.pool.terms_of(unit):
                weights[term] = 0

    def worth(self, unit: int) -> int:
        """What the unit adds to what is covered."""
        return sum(map(self.weights.__getitem__, self.pool.terms_of(unit)))

    def spend(self, room: int, units: Sequence[int] | None = None) -> tuple[list[int], int]:
        """Chooses by worth for each token until nothing that adds anything fits.

        Args:
            room: what may be spent, in the costs' unit.
            units: the candidates; ties go to the earlier one. None: go on with those of the last call, also those that were too large then.

        Returns:
            The units chosen now, in the order in which they were chosen, and what is left of the room.
        """
        heap, costs, opening = self._heap, self.costs, self.opening
        blocks, opened, chosen = self.pool.blocks, self.opened, self.chosen
        offsets, terms, weights = self.pool.offsets, self.pool.terms, self.weights
        value = weights.__getitem__
        if units is not None:
            sums = list(accumulate(map(value, terms), initial=0))
            heap = self._heap = [
                (-(worth * _SCALE // (costs[unit] if blocks[unit] in opened else costs[unit] + opening)), unit)
                for unit in units
                if (worth := sums[offsets[unit + 1]] - sums[offsets[unit]]) and unit not in chosen
            ]
            heapify(heap)
            offered = self._offered = set(units) if opening else set()
        else:
            offered = self._offered
            for pair in self._too_large:
                heappush(heap, pair)
        self._too_large = []
        picked: list[int] = []
        while heap:
            stale, unit = heap[0]
            if unit in chosen:
                heappop(heap)
                continue
            block = blocks[unit]
            cost = costs[unit] if block in opened else costs[unit] + opening
            if cost > room:
                self._too_large.append(heappop(heap))
                continue
            own = terms[offsets[unit] : offsets[unit + 1]]
            density = -(sum(map(value, own)) * _SCALE // cost)
            if density == stale:
                heappop(heap)
                picked.append(unit)
                chosen.add(unit)
                room -= cost
                for term in own:
                    weights[term] = 0
                if block not in opened:
                    opened.add(block)
                    for other in self.pool.neighbours(unit):
                        if other in offered and other not in chosen and (worth := self.worth(other)):
                            heappush(heap, (-(worth * _SCALE // costs[other]), other))
            elif density:
                heapreplace(heap, (density, unit))
            else:
                heappop(heap)
        return picked, room
