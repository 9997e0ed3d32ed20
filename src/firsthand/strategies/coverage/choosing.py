"""Which units are shown, in the order in which the room is spent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

from ...projection.coverage.greedy import Cover
from ...projection.coverage.pool import Pool, Run
from ...projection.coverage.weights import heard, weights
from ...projection.features.rows import Row, extract, read_row
from ...projection.features.units import Source, readable
from ...tokens import Counter
from ...transcript import View
from .dividing import Divided
from .excerpts import Group, Labels, bridged, grouped, rendered, rounded_off, short_ids
from .handoff import NO_HANDOFF, Handoff, Offer, worthwhile
from .ledger import head, ledger
from .newest import tail_start
from .prose import introducing_lines
from .reasons import reasoned
from .state import newest_to_do
from .whole import is_rule

__all__ = ["Choice", "chosen"]

_LEAST = 150
"""Tokens under which no excerpts are made: a line or two help nobody."""
_LEDGER = 80
"""Tokens for the line that counts what is left out."""
_ROUNDS = 4
_FIRST_ROUND = 96
"""Percent of the room that the first round spends, since joined text counts a little differently from the sum of its parts."""
_SLACK = 16
"""Tokens that may stay unspent."""
_LINES = 90
"""Percent of the room up to which the assistant's introducing lines are all shown."""
_ASSISTANT = 25
"""Percent of the room that is kept for the assistant's lines where not all of them fit."""
_TO_DO = 5
"""Percent of the room for the newest to-do list."""
_OPENING = 8
"""Pieces that a further group costs beside its lines: its header, and the trouble of reading one more (less at small targets)."""
_BRIDGE = 6
"""Pieces between two lines up to which what is between is shown, too, in place of the mark of a gap."""
_WHOLE = 24
"""Pieces that are missing of a block up to which it is shown whole where only a line or two of it are chosen."""
_BESIDE = 12
"""Pieces of lines beside a chosen one or two that are shown to make them three."""
_CONTEXT = 3
"""Lines before and behind a chosen one that are shown when there is room for nothing better."""
_SAMPLE = 64


def chosen(work: Divided, room: int, offer: Offer | None = None) -> tuple[str, list[Group], Handoff]:
    """The text of the excerpts with what stands around it and what it shows, and what is shown of a summary, in at most `room` tokens.

    Where there is no room for any, the groups are empty; where there is not even room for the text around them, so is the text.
    """
    counter = work.budget.counter
    names = short_ids(work.view.entries)
    start = head(work, counter)
    room -= counter.count(start) + _LEDGER
    if room < _LEAST:
        return (f"{start}\n{ledger(work, (), names)}", [], NO_HANDOFF) if room >= 0 else ("", [], NO_HANDOFF)
    choice = Choice(work, names, room, offer)
    text, groups = choice.filled()
    return "\n".join(part for part in (start, text, ledger(work, groups, names)) if part), groups, choice.handoff


@dataclass
class _Text:
    """What a choice looks like."""

    units: list[int]
    text: str
    over: int
    """Tokens above the room; negative where some are left."""


class Choice:
    """The choice for one plan."""

    def __init__(self, work: Divided, names: dict[str, str], room: int, offer: Offer | None = None) -> None:
        self.work = work
        self.offer = offer
        self.handoff = NO_HANDOFF
        self.names = names
        self.room = room
        self.counter = work.budget.counter
        self.pool = Pool.of(_rows(work.view))
        self.speakers = Labels(work.view.entries)
        self.texts: dict[tuple[int, int], str] = {}
        free: list[Run] = []
        shown: list[Run] = []
        cut, shown_blocks = work.cut, work.shown_blocks
        for run in self.pool.runs:
            is_free = run.entry < cut and (run.entry, run.block) not in shown_blocks
            (free if is_free else shown).append(run)
        self.rate = _tokens_for_hundred_pieces(self.pool, free, work.view, self.counter)
        self.opening = opening = min(_OPENING, 3 + work.whole.target // 2_000)
        self.heard = heard(self.pool)
        worths = weights(self.pool, self.heard)
        self.cover = Cover(self.pool, worths, self.pool.sizes, opening, joint=1)
        for run in shown:
            self.cover.know(run.first, run.end)
        self.free = free
        self.worths = self.cover.weights.copy()

    def filled(self) -> tuple[str, list[Group]]:
        """The text that fills the room, and its groups."""
        forced, picked = self._first_round()
        made = self._text(forced, picked)
        for _ in range(_ROUNDS):
            if made.over > 0:
                picked = self._without(picked, made.over)
            elif made.over < -_SLACK:
                room = self._pieces(-made.over)
                more = self.cover.go_on(room)[0] or self._filling({*forced, *picked}, room)
                if not more:
                    break
                picked += more
            else:
                break
            made = self._text(forced, picked)
        while made.over > 0 and (picked or forced):
            if picked:
                picked = self._without(picked, made.over)
            else:
                forced = forced[: -max(1, len(forced) // 8)]
            made = self._text(forced, picked)
        return made.text, reasoned(
            grouped(self.pool, made.units),
            self.pool,
            (*forced, *picked),
            forced,
            self.worths,
            self.work.view.entries,
            self.texts,
            is_user_whole=self.work.whole.is_user_whole,
        )

    def _first_round(self) -> tuple[list[int], list[int]]:
        """What is shown in any case, and what the greedy adds."""
        cover, work = self.cover, self.work
        forced = self._forced(self._pieces(self.room))
        room = self._pieces(self.room * _FIRST_ROUND // 100) - cover.take(forced)
        if self.offer is not None and room > 0:
            room -= self._pieces(self._handed_over(self.offer, forced, room))
        lines_fit = work.whole.prose_fits
        if not lines_fit and work.options.prose:
            lines = self._introducing(forced, room)
            lines_fit = lines is not None
            room -= cover.take(lines or ())
            forced += lines or ()
        picked: list[int] = []
        if room > 0 and not lines_fit:
            share = room * _ASSISTANT // 100
            picked, left = cover.spend(share, self._candidates(Source.ASSISTANT))
            room -= share - left
        if room > 0:
            picked = picked + cover.spend(room)[0]
        return forced, picked

    def _introducing(self, shown: Iterable[int], room: int) -> list[int] | None:
        """The assistant's lines that introduce a name, or as many of them as introduce it to the session; None where these do not fit either."""
        work, taken = self.work, set(shown)
        for found in introducing_lines(self.pool, self.heard, work.view, work.cut, work.shown_blocks):
            lines = [unit for unit in found if unit not in taken]
            if self.cover.cost_of(lines) * 100 <= room * _LINES:
                return lines
        return None

    def _handed_over(self, offer: Offer, forced: list[int], room: int) -> int:
        """Takes what a summary is worth into the choice; returns its tokens, which are no longer room for excerpts."""
        self.handoff = found = worthwhile(offer, self.pool, self.worths, self.opening, forced, room, self.counter)
        for term in found.terms:
            self.cover.weights[term] = 0
        self.room -= found.tokens
        return found.tokens

    def _candidates(self, source: Source | None = None) -> list[int]:
        runs = self.free if source is None else [run for run in self.free if run.source is source]
        return list(chain.from_iterable(range(run.first, run.end) for run in runs))

    def _filling(self, shown: set[int], room: int) -> list[int]:
        """What else fits when nothing is left that names anything new: the assistant's other words, newest first, then lines around chosen ones."""
        run_of = self.pool.run_of
        opened = {run_of[unit] for unit in shown}
        others = (
            unit for run in reversed(self.free) if run.source is Source.ASSISTANT for unit in range(run.first, run.end)
        )
        around = (
            unit + step * side
            for step in range(1, _CONTEXT + 1)
            for unit in sorted(shown, reverse=True)
            for side in (-1, 1)
            if 0 <= unit + step * side < len(run_of) and run_of[unit + step * side] == run_of[unit]
        )
        out: dict[int, None] = {}
        for unit in chain(others, around):
            if unit not in shown and unit not in out:
                cost = self.pool.sizes[unit] + 1 + (0 if run_of[unit] in opened else self.opening)
                if cost > room:
                    break
                room -= cost
                opened.add(run_of[unit])
                out[unit] = None
        return list(out)

    def _pieces(self, tokens: int) -> int:
        return tokens * 100 // self.rate

    def _without(self, picked: list[int], over: int) -> list[int]:
        """Without the last chosen units, as many as make up for `over` tokens."""
        pieces = self._pieces(over) + 1
        end = len(picked)
        while end and pieces > 0:
            end -= 1
            pieces -= self.pool.sizes[picked[end]] + 1
        return picked[:end]

    def _text(self, forced: Iterable[int], picked: Iterable[int]) -> _Text:
        chosen_units = bridged(self.pool, (*forced, *picked), _BRIDGE)
        units = rounded_off(self.pool, chosen_units, self.work.view.entries, _WHOLE, _BESIDE)
        text = rendered(grouped(self.pool, units), self.work.view.entries, self.names, self.speakers, self.texts)
        return _Text(units, text, self.counter.count(text) - self.room)

    def _forced(self, room: int) -> list[int]:
        """Units that are shown whatever they cover: rules of user text, the newest to-do list, both ends of a newest step that was cut."""
        out: dict[int, None] = {}
        work, pool = self.work, self.pool
        to_do = newest_to_do(work.covered)
        for run in self.free:
            units = range(run.first, run.end)
            if not work.whole.is_user_whole and run.source is Source.USER:
                text = readable(work.view.entries[run.entry].blocks[run.block])
                out.update((unit, None) for unit in units if is_rule(text[pool.starts[unit] : pool.ends[unit]]))
            elif (run.entry, run.block) == to_do:
                out.update(dict.fromkeys(_fitting(pool, units, room * _TO_DO // 100)))
        if work.cut == len(work.view.entries):
            out.update(dict.fromkeys(self._ends_of_newest(room * work.options.tail // 100)))
        return list(out)

    def _ends_of_newest(self, room: int) -> list[int]:
        """The first and last lines of the newest step, a third from the front and the rest from the end."""
        newest = tail_start(self.work.view.entries, self.counter, 0, 1 << 60)
        own = [unit for run in self.free if run.entry >= newest for unit in range(run.first, run.end)]
        front = _fitting(self.pool, own, room // 3)
        return sorted({*front, *_fitting(self.pool, own[::-1], room - room // 3)})


def _fitting(pool: Pool, units: Iterable[int], room: int) -> list[int]:
    """The units up to the first that does not fit."""
    out: list[int] = []
    for unit in units:
        room -= pool.sizes[unit] + 1
        if room < 0:
            break
        out.append(unit)
    return out


def _rows(view: View) -> Iterable[Row]:
    stored = view.features
    for entry in view.entries:
        data = stored.get(entry.id)
        yield read_row(extract(entry) if data is None else data)


def _tokens_for_hundred_pieces(pool: Pool, runs: Sequence[Run], view: View, counter: Counter) -> int:
    """How many of the counter's tokens a hundred of the pieces are that units are measured in, from a sample of them."""
    lines: list[str] = []
    pieces = 0
    for run in runs[:: max(1, len(runs) // _SAMPLE)]:
        unit = (run.first + run.end) // 2
        lines.append(readable(view.entries[run.entry].blocks[run.block])[pool.starts[unit] : pool.ends[unit]])
        pieces += pool.sizes[unit]
    return max(10, counter.count("\n".join(lines)) * 100 // max(1, pieces)) if pieces else 100
