"""The lazy greedy of budgeted maximum coverage."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from heapq import heappop, heappush
from itertools import accumulate, islice
from operator import floordiv, itemgetter, sub

from .pool import Pool

__all__ = ["Cover"]

_SCALE = 20
"""Bits of a density behind the point."""
_UNITS = 24
"""Bits of a heap's numbers that hold the unit; the density stands above them, negative, so that the densest and then the earliest comes first."""
_MASK = (1 << _UNITS) - 1
_DENSITY = _SCALE + _UNITS
# A key is `unit - ((worth << _DENSITY) // cost & ~_MASK)`, written out where it is made, since a call would take longer.
_FEW = 2_048
"""Units that are given a key at first, at least."""
_LEAST = 2
"""Places from which on an `itemgetter` gives a tuple."""
_EVERY = 16
"""One in so many densities is looked at to find where the densest end."""
_MORE = 4
"""How many times as many units are looked at when those with a key are too sparse."""
_PATIENCE = 256
"""Units in a row that do not fit the room before the greedy stops looking for smaller ones."""


class Cover:
    """A growing choice of units.

    The greedy by worth for each token has no constant bound under a budget; the better of its choice and the best single unit that fits is
    worth at least (1 - 1/e) / 2 of the best choice (Khuller, Moss and Naor 1999). A unit is a line and a budget thousands of tokens, so the single
    unit never wins; `best_single` is there to check that.
    """

    def __init__(self, pool: Pool, weights: list[int], costs: Sequence[int], opening: int = 0, joint: int = 0) -> None:
        """A choice of nothing.

        Args:
            pool: the units.
            weights: what each term is worth, by its number in the pool; changed as units are chosen, so hand over a copy if you need it.
            costs: what each unit takes, by number, at least 1.
            opening: what the first unit of a block takes beside its own cost, for the line that names it.
            joint: what every unit takes beside its own cost, for its line break.
        """
        self.pool = pool
        self.weights = weights
        self.chosen: set[int] = set()
        self._opening = opening
        beside = opening + joint
        self._costs = [cost + beside for cost in costs]
        """What each unit takes now: without the opening in blocks that are open."""
        self._opened: set[int] = set()
        self._dense: list[int] = []
        """Keys as they were offered, the densest last."""
        self._heap: list[int] = []
        """Keys that came later."""
        self._too_large: list[int] = []
        self._offered: tuple[Sequence[int], Sequence[int], Sequence[int]] = (), (), ()
        """The offered units, and what each of them was worth and took then."""
        self._worth_then: list[int] = []
        """What each unit was worth when it was offered, which is the most that it can be worth later; 0 for units that were not offered."""
        self._sample: list[int] = []
        """Densities of some of the offered units, falling."""
        self._floor = 0
        """Units that are less dense than this have no key yet."""
        self._opened_since: list[int] = []

    def cost(self, unit: int) -> int:
        """What the unit would take now."""
        return self._costs[unit]

    def cost_of(self, units: Collection[int]) -> int:
        """What these units would take together."""
        closed = [run for unit in units if (run := self.pool.run_of[unit]) not in self._opened]
        return sum(map(self._costs.__getitem__, units)) - self._opening * (len(closed) - len(set(closed)))

    def take(self, units: Iterable[int]) -> int:
        """Counts units as chosen, whatever they are worth; returns what they take."""
        spent = 0
        for unit in units:
            spent += self.cost(unit)
            self.chosen.add(unit)
            self._open(self.pool.run_of[unit])
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
        heap, dense = self._heap, self._dense
        costs, chosen = self._costs, self.chosen
        offsets, terms, weights, run_of = self.pool.offsets, self.pool.terms, self.weights, self.pool.run_of
        push, too_large = heappush, self._too_large
        picked: list[int] = []
        misses = 0
        floor = -self._floor << _DENSITY
        while misses < _PATIENCE:
            if dense and (not heap or dense[-1] < heap[0]):
                key = dense.pop()
            elif heap:
                key = heappop(heap)
            elif floor:
                key = 0
            else:
                break
            if key >= floor and floor:
                if key:
                    heappush(heap, key)
                self._lower()
                floor = -self._floor << _DENSITY
                continue
            unit = key & _MASK
            if unit in chosen:
                continue
            cost = costs[unit]
            if cost > room:
                too_large.append(key)
                misses += 1
                continue
            own = terms[offsets[unit] : offsets[unit + 1]]
            worth = 0
            for term in own:
                worth += weights[term]
            if not worth:
                continue
            now = unit - ((worth << _DENSITY) // cost & ~_MASK)
            if now == key:
                picked.append(unit)
                chosen.add(unit)
                room -= cost
                misses = 0
                for term in own:
                    weights[term] = 0
                if self._open(run_of[unit]):
                    self._offer_cheaper(run_of[unit])
            else:
                push(heap, now)
        return picked, room

    def _offer(self, units: Sequence[int] | None, room: int) -> None:
        """Makes keys for the densest of the units that are worth anything; the others follow if it comes to that."""
        if units is None:
            units = range(len(self.pool))
            self._worth_then = worths = self._worths()
            costs = self._costs.copy()
        else:
            units = list(dict.fromkeys(units))
            worths, costs = list(map(self.worth, units)), list(map(self.cost, units))
            self._worth_then = [0] * len(self.pool)
            for unit, worth in zip(units, worths, strict=True):
                self._worth_then[unit] = worth
        self._offered = units, worths, costs
        self._opened_since = []
        self._dense, self._heap = [], []
        self._sample = sorted(map(floordiv, worths[::_EVERY], costs[::_EVERY]), reverse=True)
        self._fill(max(_FEW, room))

    def _worths(self) -> list[int]:
        """What each unit of the pool is worth, by loops that run in C: quicker than ours over the densest alone."""
        terms, offsets = self.pool.terms, self.pool.offsets
        if len(terms) < _LEAST or len(offsets) < _LEAST:
            return list(map(self.worth, range(len(self.pool))))
        sums = list(accumulate(itemgetter(*terms)(self.weights), initial=0))
        at = itemgetter(*offsets)(sums)
        return list(map(sub, islice(at, 1, None), at))

    def _fill(self, enough: int, below: int | None = None) -> None:
        """Makes keys for about so many units, of those below a density, and lowers the floor to the least dense of them."""
        sampled = enough // _EVERY
        self._floor = floor = self._sample[sampled] if sampled < len(self._sample) else 0
        least = max(1, floor * min(self._offered[2], default=1))
        self._dense += [
            unit - ((worth << _DENSITY) // cost & ~_MASK)
            for unit, worth, cost in zip(*self._offered, strict=True)
            if worth >= least and worth >= floor * cost and (below is None or worth < below * cost)
        ]
        if below is not None:
            # A block that was opened since has cheaper units than were offered.
            for run in self._opened_since:
                self._dense += self._cheaper(run, floor, below)
        self._dense.sort(reverse=True)

    def _lower(self) -> None:
        above = sum(density >= self._floor for density in self._sample) * _EVERY
        self._fill(max(above, _FEW) * _MORE, self._floor)

    def _open(self, run: int) -> bool:
        """Marks a block as opened, so that its other units become cheaper; whether it was not before."""
        if run in self._opened:
            return False
        self._opened.add(run)
        first, end = self.pool.runs[run].first, self.pool.runs[run].end
        self._costs[first:end] = [cost - self._opening for cost in self._costs[first:end]]
        return True

    def _offer_cheaper(self, run: int) -> None:
        """Offers the units of a block that was just opened once more, with what they were worth at most."""
        self._opened_since.append(run)
        for key in self._cheaper(run, self._floor, None):
            heappush(self._heap, key)

    def _cheaper(self, run: int, floor: int, below: int | None) -> list[int]:
        """The keys of an opened block's units by what they were worth at most, as far as they are between these densities."""
        first, end = self.pool.runs[run].first, self.pool.runs[run].end
        return [
            unit - ((worth << _DENSITY) // cost & ~_MASK)
            for unit, worth, cost in zip(
                range(first, end), self._worth_then[first:end], self._costs[first:end], strict=True
            )
            if worth and worth >= floor * cost and (below is None or worth < below * cost)
        ]
