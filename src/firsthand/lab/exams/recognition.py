"""`recognition`: which values are asked, and whether the projection shows them (measures.md, "Exams"). `supported` and `cloze` ask the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from ..values import KINDS, Kind, Value, shows

__all__ = ["PER_CELL", "SEEDS", "Draws", "draw"]

PER_CELL = 12
"""Values asked for each age decile and kind."""

SEEDS = 5
"""Draws; a score is the mean over them."""


@dataclass(frozen=True)
class Draws:
    """The values asked at one boundary, one tuple per seed."""

    older: tuple[tuple[Value, ...], ...]
    """Up to `PER_CELL` values per age decile and kind, none of which the exam tail shows."""
    recent: tuple[tuple[Value, ...], ...]
    """Up to `PER_CELL` values per kind that the exam tail shows, asked apart."""

    @property
    def distinct(self) -> dict[str, Value]:
        """All values of all draws, once each, in order of first draw."""
        return {value.text: value for draw in (*self.older, *self.recent) for value in draw}


def draw(
    values: Mapping[str, Value], ages: Sequence[int], tail_text: str, seeds: int = SEEDS, per_cell: int = PER_CELL
) -> Draws:
    """The draws of one boundary.

    Args:
        values: the values of the history before the boundary, with their homes.
        ages: the age decile of each entry before the boundary, 0 the oldest.
        tail_text: literal text of the exam tail.
        seeds: how many draws.
        per_cell: values per age decile and kind.
    """
    older: dict[tuple[int, Kind], list[Value]] = {}
    recent: dict[Kind, list[Value]] = {}
    for value in values.values():
        if shows(tail_text, value.text):
            recent.setdefault(value.kind, []).append(value)
        else:
            older.setdefault((ages[value.position], value.kind), []).append(value)
    cells = [older[cell] for cell in sorted(older, key=lambda cell: (cell[0], KINDS.index(cell[1])))]
    tails = [recent[kind] for kind in KINDS if kind in recent]
    return Draws(
        tuple(tuple(_drawn(cells, seed, per_cell)) for seed in range(seeds)),
        tuple(tuple(_drawn(tails, seed, per_cell)) for seed in range(seeds)),
    )


def _drawn(cells: Iterable[list[Value]], seed: int, per_cell: int) -> Iterable[Value]:
    for number, cell in enumerate(cells):
        yield from cell if len(cell) <= per_cell else Random(1_000 * seed + number).sample(cell, per_cell)
