"""The history divided: what is covered and what is the tail, and what of the covered part stays whole."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from ...budget import Budget
from ...projection.originals import Original, originals
from ...tokens import FRAMING, Counter, entry_cost
from ...transcript import Entry, View
from ..contract import CompactionRequest, Refused, Unchanged
from .newest import newest_step, tail_start
from .prose import names_something
from .sizing import Options, Sizes, sizes
from .whole import Whole, stays_whole

__all__ = ["Divided", "divided"]

_NEWEST = 50
"""Percent of the target that the newest step may take as it is; of a larger one both ends are shown."""
_NEWEST_OF_FIXED = 25
"""The same where the target is fixed: whoever compares at a size compares what is chosen."""
_LABELS = 160
"""Tokens set aside for the texts around the excerpts while it is decided what stays whole."""


@dataclass(frozen=True)
class Divided:
    """What one plan works with."""

    view: View
    budget: Budget
    options: Options
    sizes: Sizes
    cut: int
    """Where the tail begins."""
    whole: Whole
    tail_cost: int

    @property
    def covered(self) -> Sequence[Entry]:
        """The entries that the plan covers."""
        return self.view.entries[: self.cut]

    @cached_property
    def shown_blocks(self) -> frozenset[tuple[int, int]]:
        """Position and number of the covered blocks that stay whole."""
        positions, entries = self.view.positions, self.view.entries
        return frozenset(
            (positions[original.kept.entry], number)
            for original in self.whole.kept
            for number in (
                range(len(entries[positions[original.kept.entry]].blocks))
                if original.kept.blocks is None
                else original.kept.blocks
            )
        )


def divided(
    view: View, budget: Budget, request: CompactionRequest, options: Options, size: int
) -> Divided | Unchanged | Refused:
    """Where to cut, and what stays whole, or why nothing is to be done.

    Args:
        view: what may be seen.
        budget: of the next request.
        request: what was asked for.
        options: the user's.
        size: tokens of the request as it is, fixed tokens included.
    """
    counter = budget.counter
    in_place = {entry.id: entry_cost(entry, counter) for entry in view.entries if entry.role in ("system", "developer")}
    placed = sum(in_place.values())
    history = size - budget.fixed - placed
    refused = request.trigger == "provider_context_limit"
    room = sizes(options, budget, placed, history, refused=refused)
    if request.trigger != "manual" and not refused and history <= room.target and size <= budget.input_limit:
        return Unchanged(f"the history of {history:,} tokens already fits the target of {room.target:,}")
    step, is_irreplaceable = newest_step(view.entries, counter)
    share = _NEWEST if room.may_rise else _NEWEST_OF_FIXED
    newest = room.target * max(options.tail, share) // 100 if options.tail else 0
    if is_irreplaceable and newest < step <= room.limit * 3 // 4:
        if room.may_rise:
            # Like other user text: the target rises before any of it is excerpted.
            room = replace(room, target=min(room.limit * 3 // 4, room.target + step))
            newest = step
        elif step * 2 <= room.target:
            newest = step
    cut = tail_start(view.entries, counter, room.target * options.tail // 100, newest)
    if cut == 0 or len(in_place) == len(view.entries):
        if request.trigger == "manual" and size <= budget.input_limit:
            return Unchanged("nothing stands before the newest step, so there is nothing to cover")
        return Refused(
            "no-valid-boundary",
            f"the request takes {size:,} tokens, {placed:,} of them system and developer messages, and nothing else stands before its newest "
            f"step, while the input limit is {budget.input_limit:,}; shorten the newest message or use a larger window",
            {"size": size, "placed": placed, "limit": budget.input_limit},
        )
    tail_cost = sum(entry_cost(entry, counter) for entry in view.entries[cut:] if entry.id not in in_place)
    found = originals(view.entries[:cut], counter, view.pins)
    whole = stays_whole(
        found,
        in_place.keys(),
        lambda entry_id: names_something(view[entry_id]),
        target=room.target,
        most=room.limit * 3 // 4 if room.may_rise else room.target,
        reserved=tail_cost + _LABELS + FRAMING,
        rest_exceeds=lambda most: _exceeds(view.entries[:cut], in_place.keys(), found, counter, most),
        user_share=options.user,
        prose_share=options.prose,
    )
    placed = whole.placed + sum(in_place.get(entry.id, 0) for entry in view.entries[cut:])
    return Divided(
        view, budget, options, replace(room, target=whole.target), cut, replace(whole, placed=placed), tail_cost
    )


def _exceeds(
    entries: Sequence[Entry], placed_ids: Collection[str], found: Iterable[Original], counter: Counter, most: int
) -> bool:
    """Whether what is no original of these entries takes more than so many tokens; counted from the entries, so that it is the same at any time."""
    own = {original.kept.entry: original.cost for original in found}
    for entry in entries:
        if entry.id not in placed_ids:
            most -= max(0, entry_cost(entry, counter) - own.get(entry.id, 0))
            if most < 0:
                return True
    return False
