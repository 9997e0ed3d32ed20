"""The lazy greedy of budgeted maximum coverage."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from heapq import heapify, heappop, heappush, heapreplace
from itertools import accumulate, count, repeat
from operator import add, and_, floordiv, lshift, sub

from .pool import Pool

__all__ = ["Cover"]

_SCALE = 20
"""Bits of a density behind the point."""
_UNITS = 24
"""Bits of a heap's numbers that hold the unit; the density stands above them, negative, so that the densest and then the earliest comes first."""
_MASK = (1 << _UNITS) - 1
_FEW = 2_048
"""Units that the heap starts with at least."""
_EVERY = 16
"""One in so many densities is looked at to find where the densest end."""
_PATIENCE = 256
"""Units in a row that do not fit the room before the greedy stops looking for smaller ones."""


class Cover:
    """A growing choice of units.

    The greedy by worth for each token has no constant bound under a budget; the better of its choice and the best single unit that fits is
    worth at least (1 - 1/e) / 2 of the best choice (Khuller, Moss and Naor 1999). A unit is a line and a budget thousands of tokens, so the single
    unit never wins; `best_single` is there to check that.
    """

    def __init__(self, pool: Pool, weights: dict[int, int], costs: list[int], opening: int = 0) -> None:
        """A choice of nothing.

        Args:
            pool: the units.
            weights: what each term is worth; changed as units are chosen, so hand over a copy if you need it.
            costs: what each unit takes, by number, at least 1.
            opening: what the first unit of a block takes beside its own cost, for the line that names it.
        """
        self.pool = pool
        self.weights = weights
        self.chosen: set[int] = set()
        self._opening = opening
        self._costs = costs
        self._opened: set[int] = set()
        self._heap: list[int] = []
        self._rest: list[int] = []
        self._rest_from = 0
        self._worth_then: Callable[[int], int] = lambda unit: 0
        """What a unit was worth when it was offered, which is the most that it can be worth later; 0 for units that were not offered."""
        self._too_large: list[int] = []

    def cost(self, unit: int) -> int:
        """What the unit would take now."""
        return self._costs[unit] + (0 if self.pool.run_of[unit] in self._opened else self._opening)

    def cost_of(self, units: Collection[int]) -> int:
        """What these units would take together."""
        opening = {self.pool.run_of[unit] for unit in units} - self._opened
        return sum(map(self._costs.__getitem__, units)) + self._opening * len(opening)

    def take(self, units: Iterable[int]) -> int:
        """Counts units as chosen, whatever they are worth; returns what they take."""
        spent = 0
        for unit in units:
            spent += self.cost(unit)
            self.chosen.add(unit)
            self._opened.add(self.pool.run_of[unit])
            self.weights.update(dict.fromkeys(self.pool.terms_of(unit), 0))
        return spent

    def know(self, first: int, end: int) -> None:
        """Counts the terms of the units from `first` to `end` as covered, since their text is shown anyway."""
        offsets = self.pool.offsets
        self.weights.update(dict.fromkeys(self.pool.terms[offsets[first] : offsets[end]], 0))

    def worth(self, unit: int) -> int:
        """What the unit adds to what is covered."""
        return sum(map(self.weights.__getitem__, self.pool.terms_of(unit)))

    def best_single(self, room: int, units: Iterable[int]) -> int:
        """The worth of the best single unit that fits."""
        return max((self.worth(unit) for unit in units if self.cost(unit) <= room), default=0)

    def spend(self, room: int, units: Sequence[int] | None = None) -> tuple[list[int], int]:
        """Chooses by worth for each token until nothing that adds anything fits.

        Args:
            room: what may be spent, in the costs' unit.
            units: the candidates, none of them chosen; None for all units, of which those whose terms are known are worth nothing.

        Returns:
            The units chosen now, in the order in which they were chosen (ties go to the earlier one), and what is left of the room.
        """
        self._offer(units, room)
        self._too_large = []
        return self._spent(room)

    def go_on(self, room: int) -> tuple[list[int], int]:
        """`spend` with the candidates of the last call, also those that were too large then."""
        for key in self._too_large:
            heappush(self._heap, key)
        return self._spent(room)

    def _spent(self, room: int) -> tuple[list[int], int]:
        self._too_large = []
        heap = self._heap
        costs, opening, opened, chosen = self._costs, self._opening, self._opened, self.chosen
        offsets, terms, weights, run_of = self.pool.offsets, self.pool.terms, self.weights, self.pool.run_of
        value = weights.__getitem__
        picked: list[int] = []
        misses = 0
        while misses < _PATIENCE:
            if self._rest and (not heap or heap[0] >= self._rest_from):
                heap += self._rest
                heapify(heap)
                self._rest = []
            if not heap:
                break
            key = heap[0]
            unit = key & _MASK
            if unit in chosen:
                heappop(heap)
                continue
            cost = costs[unit] if run_of[unit] in opened else costs[unit] + opening
            if cost > room:
                self._too_large.append(heappop(heap))
                misses += 1
                continue
            own = terms[offsets[unit] : offsets[unit + 1]]
            now = unit - _density(sum(map(value, own)), cost)
            if now == key:
                heappop(heap)
                picked.append(unit)
                chosen.add(unit)
                room -= cost
                misses = 0
                weights.update(dict.fromkeys(own, 0))
                if run_of[unit] not in opened:
                    self._open(run_of[unit])
            elif now < 0:
                heapreplace(heap, now)
            else:
                heappop(heap)
        return picked, room

    def _offer(self, units: Sequence[int] | None, room: int) -> None:
        """Fills the heap with the units that are worth anything, by their densities as they are now."""
        found = self._keys_of_all() if units is None else self._keys_of(units)
        # Only the densest go into the heap; what is behind them is looked at if it comes to that.
        sample = sorted(found[::_EVERY])
        enough = max(_FEW, room // 2) // _EVERY
        if enough < len(sample):
            self._rest_from = sample[enough]
            self._heap = [key for key in found if key < self._rest_from]
            self._rest = [key for key in found if key >= self._rest_from]
        else:
            self._heap, self._rest = found, []
        heapify(self._heap)

    def _keys_of(self, units: Sequence[int]) -> list[int]:
        worths = {unit: self.worth(unit) for unit in units}
        self._worth_then = lambda unit: worths.get(unit, 0)
        return [unit - _density(worth, self.cost(unit)) for unit, worth in worths.items() if worth]

    def _keys_of_all(self) -> list[int]:
        """The keys of the offered units, by loops over the whole pool that run in C: quicker than ours over most of it."""
        pool = self.pool
        costs = list(map(add, self._costs, repeat(self._opening)))
        for run in self._opened:
            first, end = pool.runs[run].first, pool.runs[run].end
            costs[first:end] = self._costs[first:end]
        sums = list(accumulate(map(self.weights.__getitem__, pool.terms), initial=0))
        at = list(map(sums.__getitem__, pool.offsets))
        worths = list(map(sub, at[1:], at))
        self._worth_then = worths.__getitem__
        densities = map(and_, map(floordiv, map(lshift, worths, repeat(_SCALE + _UNITS)), costs), repeat(~_MASK))
        return list(filter((0).__gt__, map(sub, count(), densities)))

    def _open(self, run: int) -> None:
        """Marks a block as opened: its other units have become cheaper, and come back with what they were worth at most."""
        self._opened.add(run)
        worth_then = self._worth_then
        for other in range(self.pool.runs[run].first, self.pool.runs[run].end):
            if worth := worth_then(other):
                heappush(self._heap, other - _density(worth, self._costs[other]))


def _density(worth: int, cost: int) -> int:
    """Worth for each token, in the bits above those of the unit."""
    return (worth << _SCALE + _UNITS) // cost & ~_MASK
