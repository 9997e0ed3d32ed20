"""The trigram index: which entries may hold a substring. It narrows down; the text itself decides.

A query of three characters or more asks for entries that hold all its trigrams. A shorter one asks for entries with a trigram that begins
with it, which works because two line ends stand behind every part of an indexed text. Only where the index folds case in a way that we
cannot foresee (one or two cased characters outside ASCII) are all entries candidates.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlalchemy import Connection, delete, insert, select

from ..codec import wire_safe
from ..errors import JournalDamagedError
from ..transcript import Entry
from .readable import index_text, passages
from .rows import entry_from
from .schema import calls, entries

__all__ = ["candidates", "index_entries", "is_looked_up", "merge", "rebuild", "remove", "stale", "unindexed"]

_MOST_TRIGRAMS = 24
_MOST_SHORT_ROWS = 200_000
_SCANNED_FIRST = 100
_CHUNK = 500
_INSERT = "INSERT INTO search (rowid, text) VALUES (?, ?)"
_REMOVE = "INSERT INTO search (search, rowid, text) VALUES ('delete', ?, ?)"
_MATCH = "SELECT rowid FROM search WHERE search MATCH ? AND rowid BETWEEN ? AND ? ORDER BY rowid DESC"
_BEGINNING = "SELECT doc FROM search_terms WHERE term >= ? AND term <= ? AND doc BETWEEN ? AND ? LIMIT ?"
_ALL = "SELECT n FROM entries WHERE n BETWEEN ? AND ? ORDER BY n DESC"
_HIGHEST = "\U0010ffff"


def index_entries(connection: Connection, new: Sequence[tuple[int, Entry]]) -> None:
    """Add entries, by their keys, to the index and to the table of calls."""
    texts: list[tuple[int, str]] = []
    made: dict[tuple[str, int, int], str] = {}
    for key, entry in new:
        found = list(passages(entry))
        text = index_text(found)
        if text:
            texts.append((key, text))
        for passage in found:
            if passage.kind == "tool_call" and passage.call_id and passage.tool:
                made[wire_safe(passage.call_id), key, passage.block] = wire_safe(passage.tool)
    if texts:
        connection.exec_driver_sql(_INSERT, texts)
    if made:
        rows = [
            {"call_id": call_id, "entry": key, "block": block, "tool": tool}
            for (call_id, key, block), tool in made.items()
        ]
        connection.execute(insert(calls), rows)


def candidates(connection: Connection, query: str, lowest: int, highest: int) -> Iterator[int]:
    """The keys from `highest` down to `lowest` of entries that may hold `query`, the newest first; never one too few."""
    wanted = wire_safe(query.replace("\0", "\ufffd"))
    if len(wanted) >= 3:
        yield from connection.exec_driver_sql(_MATCH, (_all_trigrams(wanted), lowest, highest)).scalars()
        return
    # A short query is mostly a common one: the newest entries fill the page before the index would have been asked.
    newest = list(connection.exec_driver_sql(_ALL + " LIMIT ?", (lowest, highest, _SCANNED_FIRST)).scalars())
    yield from newest
    if len(newest) < _SCANNED_FIRST:
        return
    highest = newest[-1] - 1
    if all(map(is_looked_up, wanted)):
        start = wanted.lower()
        bounds = (start, start + 2 * _HIGHEST, lowest, highest, _MOST_SHORT_ROWS)
        keys = list(connection.exec_driver_sql(_BEGINNING, bounds).scalars())
        if len(keys) < _MOST_SHORT_ROWS:
            yield from sorted(set(keys), reverse=True)
            return
    yield from connection.exec_driver_sql(_ALL, (lowest, highest)).scalars()


def is_looked_up(character: str) -> bool:
    """Whether we know under which character the index holds this one: ASCII under its lower case, what has no case under itself."""
    if character in "\ufffe\uffff":  # SQLite reads these two as U+FFFD
        return False
    return character.isascii() or character == character.lower() == character.upper()


def _all_trigrams(text: str) -> str:
    """An FTS5 expression for texts that hold all trigrams of `text`; of a long one, some from all over it."""
    found = list(dict.fromkeys(text[at : at + 3] for at in range(len(text) - 2)))
    if len(found) > _MOST_TRIGRAMS:
        found = [found[at * (len(found) - 1) // (_MOST_TRIGRAMS - 1)] for at in range(_MOST_TRIGRAMS)]
    return " AND ".join('"' + trigram.replace('"', '""') + '"' for trigram in found)


def remove(connection: Connection, keys: Sequence[int]) -> bool:
    """Take entries out of the index, before their rows go. False when a damaged one had to stay in it."""
    whole = True
    for start in range(0, len(keys), _CHUNK):
        some = keys[start : start + _CHUNK]
        texts: list[tuple[int, str]] = []
        for key, entry in _stored(connection, some):
            if entry is None:
                whole = False
            elif text := index_text(list(passages(entry))):
                texts.append((key, text))
        if texts:
            connection.exec_driver_sql(_REMOVE, texts)
        connection.execute(delete(calls).where(calls.c.entry.in_(some)))
    return whole


def merge(connection: Connection) -> None:
    """Merge the index into one piece, so that what was taken out of it is gone from the file and not only marked."""
    connection.exec_driver_sql("INSERT INTO search (search) VALUES ('optimize')")


def rebuild(connection: Connection) -> int:
    """Make the index anew from the entries; damaged ones are left out. Returns how many entries were read."""
    connection.exec_driver_sql("INSERT INTO search (search) VALUES ('delete-all')")
    connection.execute(delete(calls))
    keys = list(connection.scalars(select(entries.c.n).order_by(entries.c.n)))
    for start in range(0, len(keys), _CHUNK):
        some = _stored(connection, keys[start : start + _CHUNK])
        index_entries(connection, [(key, entry) for key, entry in some if entry is not None])
    return len(keys)


def unindexed(connection: Connection, some: Sequence[tuple[int, Entry]]) -> Iterator[tuple[int, str]]:
    """Those of these entries, by key, that a search would miss, and why. Looks for three trigrams of each: first, middle, last."""
    there = _indexed(connection, [key for key, _ in some])
    for key, entry in some:
        text = index_text(list(passages(entry)))
        if bool(text) != (key in there):
            yield key, "the search index does not have it" if text else "the search index has it, but it has no text"
        elif text:
            end = len(text) - 3
            probes = "".join(text[at : at + 3] for at in (0, end // 2, end))
            expression = " AND ".join(_all_trigrams(probes[at : at + 3]) for at in (0, 3, 6))
            if connection.exec_driver_sql(_MATCH, (expression, key, key)).scalar() is None:
                yield key, "the search index holds another text for it"


def stale(connection: Connection) -> int:
    """How many rows of the index belong to no entry."""
    lost = "SELECT count(*) FROM search_docsize WHERE id NOT IN (SELECT n FROM entries)"
    return int(connection.exec_driver_sql(lost).scalar_one())


def _indexed(connection: Connection, keys: Sequence[int]) -> frozenset[int]:
    if not keys:
        return frozenset()
    marks = ", ".join("?" * len(keys))
    rows = connection.exec_driver_sql(f"SELECT id FROM search_docsize WHERE id IN ({marks})", tuple(keys))
    return frozenset(rows.scalars())


def _stored(connection: Connection, keys: Sequence[int]) -> Iterator[tuple[int, Entry | None]]:
    """The entries with these keys; None for one that is damaged."""
    columns = (entries.c.n, entries.c.id, entries.c.payload, entries.c.content_hash)
    rows = connection.execute(select(*columns).where(entries.c.n.in_(keys)).order_by(entries.c.n)).all()
    for key, entry_id, payload, expected in rows:
        try:
            yield key, entry_from(entry_id, payload, expected)
        except JournalDamagedError:
            yield key, None
