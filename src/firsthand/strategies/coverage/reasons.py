"""Why each excerpt was chosen, in words for a person."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from ...projection.coverage.pool import Pool
from ...projection.features.terms import CLASS_BITS, TermClass, text_of
from ...projection.features.units import Source
from ...transcript import Entry, ToolCall
from .excerpts import Group
from .state import is_to_do

__all__ = ["reasoned"]

_NAMED = 3
"""Names that a reason spells out."""
_LONGEST_NAME = 48
_CLASS, _WORD = (1 << CLASS_BITS) - 1, int(TermClass.WORD)


def reasoned(
    groups: Iterable[Group],
    pool: Pool,
    order: Iterable[int],
    forced: Iterable[int],
    weights: Sequence[int],
    entries: Sequence[Entry],
    texts: Mapping[tuple[int, int], str],
    *,
    is_user_whole: bool,
) -> list[Group]:
    """The groups with their reasons: what was to be shown in any case, and the names that no unit chosen before shows, heaviest first.

    Args:
        groups: what is shown.
        pool: the units.
        order: the chosen units, in the order in which they were chosen.
        forced: those of them that are shown whatever they cover.
        weights: what terms were worth before anything was chosen; those of text that stays whole are worth nothing.
        entries: the entries that positions count.
        texts: the readable texts of the groups' blocks, by position and number.
        is_user_whole: whether all user text stays whole, so that none of it is in an excerpt for a rule's sake.
    """
    first: dict[int, int] = {}
    for unit in order:
        for term in pool.terms_of(unit):
            if term not in first and weights[term]:
                first[term] = unit
    always = set(forced)
    return [
        msgspec.structs.replace(
            group, reason=_reason(group, pool, first, always, weights, entries, texts, is_user_whole)
        )
        for group in groups
    ]


def _reason(
    group: Group,
    pool: Pool,
    first: Mapping[int, int],
    always: set[int],
    weights: Sequence[int],
    entries: Sequence[Entry],
    texts: Mapping[tuple[int, int], str],
    is_user_whole: bool,
) -> str:
    block = entries[group.position].blocks[group.block]
    numbers = pool.mentions
    found = [
        (term, unit)
        for unit in group.units
        for term in pool.terms_of(unit)
        if numbers[term] & _CLASS != _WORD and first.get(term) == unit
    ]
    says = ""
    verb = "first to show"
    if not always.isdisjoint(group.units):
        if group.source is Source.USER and not is_user_whole:
            says = "rule of the user"
        elif isinstance(block, ToolCall) and is_to_do(block):
            says = "newest to-do list"
        elif group.source is Source.ASSISTANT:
            verb = "introduces"
        else:
            says = "both ends of the newest step"
    if not found:
        words = any(first.get(term) == unit for unit in group.units for term in pool.terms_of(unit))
        return says or ("rare words" if words else "between lines that were chosen")
    found.sort(key=lambda pair: weights[pair[0]], reverse=True)
    text = texts[group.position, group.block]
    names = [
        _clipped(text_of(numbers[term], text[pool.starts[unit] : pool.ends[unit]])) for term, unit in found[:_NAMED]
    ]
    shown = ", ".join(name for name in names if name)
    more = len(found) - sum(map(bool, names))
    names_it = f"{verb} {shown}" + (f" and {more} more" if more else "") if shown else f"{verb} {more} names"
    return f"{says}; {names_it}" if says else names_it


def _clipped(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"
