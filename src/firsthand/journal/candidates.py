"""Which entries may hold a substring, by the trigram index. It narrows down; the text itself decides.

A query of three characters or more asks for the entries that hold all its trigrams. A shorter one asks for those with a trigram that begins with
it, which works because two line ends stand behind every part of an indexed text. Only where the index folds case in a way that we cannot foresee
(one or two cased characters outside ASCII) are all entries candidates.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sqlalchemy import Connection

from ..codec import wire_safe
from .search_index import OVERLAP

__all__ = ["all_trigrams", "candidates", "is_looked_up"]

_MOST_TRIGRAMS = 24
# So many hits in the index mean that reading entries, the newest first, fills a page sooner than sorting the hits.
_MOST_SHORT_ROWS = 20_000
_SCANNED_FIRST = 100
_MATCH = (
    "SELECT search_parts.entry FROM search CROSS JOIN search_parts ON search_parts.part = search.rowid "
    "WHERE search MATCH ? AND search.rowid BETWEEN ? AND ? ORDER BY search.rowid DESC"
)
_BEGINNING = "SELECT doc FROM search_terms WHERE term >= ? AND term <= ? AND doc BETWEEN ? AND ? LIMIT ?"
_ENTRIES = "SELECT DISTINCT entry FROM search_parts WHERE part IN (SELECT value FROM json_each(?)) ORDER BY entry DESC"
_LOWEST_PART = "SELECT part FROM search_parts WHERE entry >= ? ORDER BY entry, part LIMIT 1"
_HIGHEST_PART = "SELECT part FROM search_parts WHERE entry <= ? ORDER BY entry DESC, part DESC LIMIT 1"
_ALL = "SELECT n FROM entries WHERE n BETWEEN ? AND ? ORDER BY n DESC"
_HIGHEST = "\U0010ffff"


def candidates(connection: Connection, query: str, lowest: int, highest: int) -> Iterator[int]:
    """The keys from `highest` down to `lowest` of entries that may hold `query`, the newest first, each once; never one too few."""
    wanted = wire_safe(query.replace("\0", "\ufffd"))
    if len(wanted) >= 3:
        # Parts overlap, so that this much of a query stands whole in one of them.
        expression = all_trigrams(wanted[:OVERLAP])
        parts = _parts(connection, lowest, highest)
        yield from _once(connection.exec_driver_sql(_MATCH, (expression, *parts)).scalars())
        return
    # A short query is mostly a common one: the newest entries fill the page before the index would have been asked.
    newest = list(connection.exec_driver_sql(_ALL + " LIMIT ?", (lowest, highest, _SCANNED_FIRST)).scalars())
    yield from newest
    if len(newest) < _SCANNED_FIRST:
        return
    highest = newest[-1] - 1
    if all(map(is_looked_up, wanted)):
        start = wanted.lower()
        bounds = (start, start + 2 * _HIGHEST, *_parts(connection, lowest, highest), _MOST_SHORT_ROWS)
        found = list(connection.exec_driver_sql(_BEGINNING, bounds).scalars())
        if len(found) < _MOST_SHORT_ROWS:
            listed = "[" + ",".join(map(str, set(found))) + "]"
            yield from connection.exec_driver_sql(_ENTRIES, (listed,)).scalars()
            return
    yield from connection.exec_driver_sql(_ALL, (lowest, highest)).scalars()


def is_looked_up(character: str) -> bool:
    """Whether we know under which character the index holds this one: ASCII under its lower case, what has no case under itself."""
    if character in "\ufffe\uffff":  # SQLite reads these two as U+FFFD
        return False
    return character.isascii() or character == character.lower() == character.upper()


def all_trigrams(text: str) -> str:
    """An FTS5 expression for texts that hold all trigrams of `text`; of a long one, some from all over it."""
    found = list(dict.fromkeys(text[at : at + 3] for at in range(len(text) - 2)))
    if len(found) > _MOST_TRIGRAMS:
        found = [found[at * (len(found) - 1) // (_MOST_TRIGRAMS - 1)] for at in range(_MOST_TRIGRAMS)]
    return " AND ".join('"' + trigram.replace('"', '""') + '"' for trigram in found)


def _parts(connection: Connection, lowest: int, highest: int) -> tuple[int, int]:
    """The first and the last part of the entries with these keys; an empty range when there is none."""
    first = connection.exec_driver_sql(_LOWEST_PART, (lowest,)).scalar()
    last = connection.exec_driver_sql(_HIGHEST_PART, (highest,)).scalar()
    return (1, 0) if first is None or last is None else (int(first), int(last))


def _once(keys: Iterable[int]) -> Iterator[int]:
    before = None
    for key in keys:
        if key != before:
            yield key
        before = key
