"""Chosen units as text: in original order, grouped by block under the entry's id, gaps marked."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

import msgspec

from ...projection.coverage.pool import Pool
from ...projection.features.units import Source, readable
from ...projection.plan import Excerpt, Span
from ...transcript import Entry, ToolCall, ToolResult, typed_text
from .state import is_to_do

__all__ = ["Group", "Labels", "bridged", "grouped", "rendered", "rounded_off", "short_ids"]

GAP = "…"
_LEAST_ID = 6
_FIRST_WORDS = 4
_FEW = 3
"""Lines from which on a group can be read for itself."""
_PATH = re.compile(
    r'"(?:file_?path|path|file_?name|target_file|absolute_path)"\s*:\s*"(?:[^"\\]*/)?([^"/\\]{1,60})"', re.IGNORECASE
)
_MOST_BLOCKS = 1 << 32
_ARGUMENTS = 2_000
"""Characters of a call's arguments in which its path is looked for; it comes first where a file is written."""


class Group(msgspec.Struct, frozen=True):
    """What is shown of one block."""

    position: int
    block: int
    source: Source
    spans: tuple[Span, ...]
    units: tuple[int, ...]
    reason: str = ""
    """Why it is shown, for a person."""

    def excerpt(self, entries: Sequence[Entry]) -> Excerpt:
        """The same as a part of a plan."""
        return Excerpt(entries[self.position].id, self.block, self.spans, self.reason)


def grouped(pool: Pool, units: Iterable[int]) -> Iterator[Group]:
    """The units in original order; what follows each other without a unit between is one span."""
    starts, ends = pool.starts, pool.ends
    for number, members in groupby(sorted(units), key=pool.run_of.__getitem__):
        run = pool.runs[number]
        spans: list[Span] = []
        own = list(members)
        first = last = own[0]
        for unit in own:
            if unit > last + 1:
                spans.append(Span(starts[first], ends[last]))
                first = unit
            last = unit
        spans.append(Span(starts[first], ends[last]))
        yield Group(run.entry, run.block, run.source, tuple(spans), tuple(own))


def bridged(pool: Pool, units: Iterable[int], most: int) -> list[int]:
    """The units with those between two of them in one block that together are at most `most` pieces: less than a gap is worth to a reader."""
    out: list[int] = []
    last = -2
    for unit in sorted(units):
        # Every unit takes a piece at least.
        if (
            1 < unit - last <= most + 1
            and last >= 0
            and pool.run_of[last] == pool.run_of[unit]
            and sum(pool.sizes[last + 1 : unit]) <= most
        ):
            out.extend(range(last + 1, unit))
        out.append(unit)
        last = unit
    return out


def rounded_off(pool: Pool, units: Iterable[int], entries: Sequence[Entry], whole: int, beside: int) -> list[int]:
    """The units with what makes a group of one or two readable.

    Args:
        pool: the units.
        units: the chosen ones.
        entries: the entries that positions count.
        whole: pieces of the rest of a block up to which all of it is taken.
        beside: pieces of neighbouring lines, the shorter first, up to which they make it three lines.
    """
    out: list[int] = []
    for number, members in groupby(sorted(units), key=pool.run_of.__getitem__):
        own = list(members)
        run = pool.runs[number]
        block = entries[run.entry].blocks[run.block]
        # An older to-do list would be read as one that holds, the more of it the better.
        if len(own) < _FEW and not (isinstance(block, ToolCall) and is_to_do(block)):
            missing = sum(pool.sizes[run.first : run.end]) - sum(map(pool.sizes.__getitem__, own))
            own = list(range(run.first, run.end)) if missing <= whole else _with_neighbours(pool, own, beside)
        out += own
    return out


def _with_neighbours(pool: Pool, own: list[int], room: int) -> list[int]:
    run = pool.run(own[0])
    first, last = own[0], own[-1]
    found = set(own)
    while len(found) < _FEW:
        beside = [unit for unit in (last + 1, first - 1) if run.first <= unit < run.end]
        nearest = min(beside, key=pool.sizes.__getitem__, default=None)
        if nearest is None or pool.sizes[nearest] > room:
            return own
        room -= pool.sizes[nearest]
        found.add(nearest)
        first, last = min(first, nearest), max(last, nearest)
    return sorted(found)


def rendered(
    groups: Iterable[Group],
    entries: Sequence[Entry],
    names: Mapping[str, str],
    labels: Mapping[tuple[int, int], str],
    texts: dict[tuple[int, int], str],
) -> str:
    """The groups as text: a header line with id and speaker or tool, then the lines; `…` before a line stands for a gap.

    Args:
        groups: in order.
        entries: the entries that positions count.
        names: how each entry's id is written.
        labels: who speaks in each block, by position and block number.
        texts: readable texts by position and block number; those that are missing are put in.
    """
    lines: list[str] = []
    behind = 0
    turns = [position for position, entry in enumerate(entries) if entry.role == "user" and _words(entry)]
    for group in groups:
        entry = entries[group.position]
        earlier = bisect_right(turns, group.position) - 1
        if earlier >= 0 and behind <= turns[earlier] < group.position:
            # The person's messages stand whole before the excerpts; this says where each of them was.
            lines.append(f"[user: {_words(entries[turns[earlier]])}{GAP}]")
        behind = group.position + 1
        place = group.position, group.block
        text = texts.get(place)
        if text is None:
            text = texts[place] = readable(entry.blocks[group.block])
        lines.append(f"{names[entry.id]} {labels[place]}:")
        for number, span in enumerate(group.spans):
            shown = text[span.start : span.end]
            lines.append(f"{GAP} {shown}" if number else shown)
    return "\n".join(lines)


class Labels(dict[tuple[int, int], str]):
    """Who speaks in each block, by position and block number: `user`, `assistant`, `call read`, `read result app.py`. Made where looked up."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        super().__init__()
        self._entries = entries
        # Places as one number each; in most sessions no id comes again.
        self._calls: dict[str, int] = {}
        self._again: dict[str, list[int]] = {}
        for position, entry in enumerate(entries):
            for number, block in enumerate(entry.blocks):
                if isinstance(block, ToolCall):
                    place = _place(position, number)
                    first = self._calls.setdefault(block.id, place)
                    if first != place:
                        self._again.setdefault(block.id, [first]).append(place)

    def __missing__(self, place: tuple[int, int]) -> str:
        entry = self._entries[place[0]]
        match entry.blocks[place[1]]:
            case ToolCall(name=name):
                label = f"call {name}"
            case ToolResult(call_id=call) as result:
                asked = self._call_before(call, _place(*place))
                name = result.name or (asked.name if asked else "tool")
                label = f"{name} error" if result.is_error else f"{name} result{_file_of(asked) if asked else ''}"
            case _:
                label = entry.role
        self[place] = label
        return label

    def _call_before(self, call: str, place: int) -> ToolCall | None:
        """The last call with an id before a place."""
        places = self._again.get(call) or ([self._calls[call]] if call in self._calls else [])
        earlier = bisect_left(places, place) - 1
        if earlier < 0:
            return None
        position, number = divmod(places[earlier], _MOST_BLOCKS)
        block = self._entries[position].blocks[number]
        return block if isinstance(block, ToolCall) else None


def _place(position: int, number: int) -> int:
    return position * _MOST_BLOCKS + number


def _file_of(call: ToolCall) -> str:
    """The name of the file that a call is about, with a blank before it; "" where no argument is a path."""
    found = _PATH.search(call.arguments, 0, _ARGUMENTS)
    return f" {found[1]}" if found else ""


def short_ids(entries: Sequence[Entry]) -> dict[str, str]:
    """The shortest beginning of each id, of six characters and more, that no other entry shares; the whole id where there is none."""
    out: dict[str, str] = {}
    waiting = [entry.id for entry in entries]
    length = _LEAST_ID
    while waiting:
        heads = [one[:length] for one in waiting]
        if len(set(heads)) == len(heads):
            out.update(zip(waiting, heads, strict=True))
            break
        times = Counter(heads)
        out.update(
            {one: head for one, head in zip(waiting, heads, strict=True) if times[head] == 1 or len(one) <= length}
        )
        waiting = [one for one in waiting if one not in out]
        length += 1
    return out


def _words(entry: Entry) -> str:
    """The first words of what the person typed; "" for every other entry."""
    return " ".join(next(typed_text(entry), "")[:60].split()[:_FIRST_WORDS]) if entry.role == "user" else ""
