"""One case of budgeted maximum coverage as a value, for whoever wants to check how near a choice comes to the best there is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .greedy import Cover
from .pool import Pool

__all__ = ["Problem"]


@dataclass(frozen=True)
class Problem:
    """Units, what their terms are worth, what they take, and the room."""

    pool: Pool
    weights: Sequence[int]
    """What each term is worth, by its number in the pool; 0 where it is shown anyway. Not changed."""
    costs: Sequence[int]
    """What each unit takes, at least 1."""
    opening: int
    """What the first unit of a block takes beside its own cost."""
    room: int

    @property
    def candidates(self) -> list[int]:
        """The units that can add anything."""
        weights, pool = self.weights, self.pool
        return [unit for unit in range(len(pool)) if any(weights[term] for term in pool.terms_of(unit))]

    def value(self, units: Iterable[int]) -> int:
        """What these units are worth together."""
        return sum(self.weights[term] for term in {term for unit in units for term in self.pool.terms_of(unit)})

    def cost(self, units: Iterable[int]) -> int:
        """What these units take together."""
        own = set(units)
        opened = {self.pool.run_of[unit] for unit in own}
        return sum(self.costs[unit] for unit in own) + self.opening * len(opened)

    def greedy(self) -> list[int]:
        """What the lazy greedy chooses from nothing."""
        return Cover(self.pool, list(self.weights), list(self.costs), self.opening).spend(self.room)[0]
