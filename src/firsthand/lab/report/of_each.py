"""What is looked at session by session, in whichever process is free: audits of recorded compactions, and costs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ...strategies import DEFAULT_STRATEGY
from ...tokens import O200kCounter
from ..audit import audit
from ..lanes import Lanes, in_lanes
from ..loaded import Origin, RememberingCounter, transcript_of
from ..money.own import OwnCosts, own_costs
from ..money.prices import Price
from .record import AuditLine

__all__ = ["Costing", "Placed", "audited", "costed", "of_each"]

Asked = TypeVar("Asked", bound="Placed")
Made = TypeVar("Made")


@dataclass(frozen=True)
class Placed:
    """One session, by where it is, and the name of its file for tables."""

    origin: Origin
    label: str
    weight: int = 0
    """How much there is in it: the largest ones are begun first."""


@dataclass(frozen=True)
class Costing(Placed):
    """A session, and how its compactions are costed."""

    strategies: tuple[str, ...] = ()
    price: Price | None = None
    window: int = 0
    least: int = 0


def audited(asked: Placed) -> tuple[Placed, float, list[AuditLine]]:
    """The numbers of the session's recorded compactions."""
    start = time.perf_counter()
    session = transcript_of(asked.origin)
    # The counter remembers texts of this session only, since another one shares few with it.
    counter = RememberingCounter(O200kCounter())
    found = audit(session, counter, source=asked.label, strategy=DEFAULT_STRATEGY)
    return asked, time.perf_counter() - start, [AuditLine.of_audit(row) for row in found]


def costed(asked: Costing) -> tuple[Costing, float, list[OwnCosts]]:
    """What the session's compaction would cost."""
    start = time.perf_counter()
    assert asked.price is not None
    session = transcript_of(asked.origin)
    found = list(own_costs(session, asked.strategies, asked.price, window=asked.window, least=asked.least))
    return asked, time.perf_counter() - start, found


def of_each(
    work: Callable[[Asked], tuple[Asked, float, list[Made]]], asked: Sequence[Asked], lanes: Lanes
) -> tuple[list[Made], float]:
    """What was made of each, in the order in which they were asked, and the seconds of all processes."""
    files: dict[str | None, list[Asked]] = {}
    for one in asked:
        files.setdefault(one.origin.path, []).append(one)
    groups = sorted(files.values(), key=lambda group: -sum(one.weight for one in group))
    made = {one: (seconds, found) for one, seconds, found in in_lanes(work, groups, lanes)}
    return list(_joined(made[one][1] for one in asked)), sum(seconds for seconds, _ in made.values())


def _joined(parts: Iterator[list[Made]]) -> Iterator[Made]:
    for part in parts:
        yield from part
