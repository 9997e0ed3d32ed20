"""The lazy greedy of budgeted maximum coverage."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from heapq import heapify, heappop, heappush, heapreplace
from itertools import accumulate, repeat
from operator import add, sub, truediv

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
_MORE = 4
"""How many times as many units are looked at when those in the heap are too sparse."""
_PATIENCE = 256
"""Units in a row that do not fit the room before the greedy stops looking for smaller ones."""


class Cover:
    """A growing choice of units.

    The greedy by worth for each token has no constant bound under a budget; the better of its choice and the best single unit that fits is
    worth at least (1 - 1/e) / 2 of the best choice (Khuller, Moss and Naor 1999). A unit is a line and a budget thousands of tokens, so the single
    unit never wins; `best_single` is there to check that.
    """

    def __init__(self, pool: Pool, weights: list[int], costs: list[int], opening: int = 0) -> None:
        """A choice of nothing.

        Args:
            pool: the units.
            weights: what each term is worth, by its number in the pool; changed as units are chosen, so hand over a copy if you need it.
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
        self._too_large: list[int] = []
        self._offered: Sequence[int] = ()
        self._worth_then: list[int] = []
        """What each unit was worth when it was offered, which is the most that it can be worth later; 0 for units that were not offered."""
        self._cost_then: list[int] = []
        self._densities: list[float] = []
        """Of the offered units, as they were then."""
        self._sample: list[float] = []
        self._floor = 0
        """Units that are less dense than this are not in the heap yet."""
        self._opened_since: list[int] = []

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
            for term in self.pool.terms_of(unit):
                self.weights[term] = 0
        return spent

    def know(self, first: int, end: int) -> None:
        """Counts the terms of the units from `first` to `end` as covered, since their text is shown anyway."""
        offsets, weights = self.pool.offsets, self.weights
        for term in self.pool.terms[offsets[first] : offsets[end]]:
            weights[term] = 0

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
            while self._floor and (not heap or heap[0] >= -self._floor << _SCALE + _UNITS):
                self._lower()
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
                for term in own:
                    weights[term] = 0
                if run_of[unit] not in opened:
                    self._open(run_of[unit])
            elif now < 0:
                heapreplace(heap, now)
            else:
                heappop(heap)
        return picked, room

    def _offer(self, units: Sequence[int] | None, room: int) -> None:
        """Fills the heap with the densest of the units that are worth anything; the others follow if it comes to that."""
        pool = self.pool
        costs = list(map(add, self._costs, repeat(self._opening)))
        for run in self._opened:
            first, end = pool.runs[run].first, pool.runs[run].end
            costs[first:end] = self._costs[first:end]
        # Loops over the whole pool that run in C: quicker than ours over most of it.
        if units is None:
            sums = list(accumulate(map(self.weights.__getitem__, pool.terms), initial=0))
            at = list(map(sums.__getitem__, pool.offsets))
            worths = list(map(sub, at[1:], at))
            self._offered = range(len(pool))
            self._densities = list(map(truediv, worths, costs))
        else:
            worths = [0] * len(pool)
            for unit in units:
                worths[unit] = self.worth(unit)
            self._offered = list(dict.fromkeys(units))
            self._densities = [worths[unit] / costs[unit] for unit in self._offered]
        self._worth_then, self._cost_then = worths, costs
        self._opened_since = []
        self._heap = []
        self._sample = sorted(self._densities[::_EVERY], reverse=True)
        self._fill(max(_FEW, room))

    def _fill(self, enough: int, below: int | None = None) -> None:
        """Puts about so many units, of those below a density, into the heap and lowers the floor to the least dense of them."""
        sampled = enough // _EVERY
        self._floor = floor = int(self._sample[sampled]) if sampled < len(self._sample) else 0
        worths, costs = self._worth_then, self._cost_then
        dense = [unit for unit, density in zip(self._offered, self._densities, strict=True) if density >= floor]
        if below is not None:
            dense = [unit for unit in dense if worths[unit] < below * costs[unit]]
        self._heap += [unit - _density(worths[unit], costs[unit]) for unit in dense if worths[unit]]
        if below is not None:
            # A block that was opened since has cheaper units than were offered.
            for run in self._opened_since:
                self._heap += self._cheaper(run, floor, below)
        heapify(self._heap)

    def _lower(self) -> None:
        above = sum(density >= self._floor for density in self._sample) * _EVERY
        self._fill(max(above, _FEW) * _MORE, self._floor)

    def _open(self, run: int) -> None:
        """Marks a block as opened: its other units have become cheaper, and come back with what they were worth at most."""
        self._opened.add(run)
        self._opened_since.append(run)
        for key in self._cheaper(run, self._floor, None):
            heappush(self._heap, key)

    def _cheaper(self, run: int, floor: int, below: int | None) -> list[int]:
        """The keys of an opened block's units by what they were worth at most, as far as they are between these densities."""
        first, end = self.pool.runs[run].first, self.pool.runs[run].end
        return [
            unit - _density(worth, cost)
            for unit, worth, cost in zip(
                range(first, end), self._worth_then[first:end], self._costs[first:end], strict=True
            )
            if worth and worth >= floor * cost and (below is None or worth < below * cost)
        ]


def _density(worth: int, cost: int) -> int:
    """Worth for each token, in the bits above those of the unit."""
    return (worth << _SCALE + _UNITS) // cost & ~_MASK
