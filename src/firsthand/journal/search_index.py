"""Keeping the trigram index in step with the entries: adding, taking out, making anew, checking.

The text of an entry is indexed in parts that overlap: in a short part it says more that all trigrams of a query are there. The rows of the index
are numbered in order of arrival; `search_parts` says whose they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlalchemy import Connection, delete, insert, select

from ..codec import wire_safe
from ..errors import JournalDamagedError
from ..transcript import Entry
from .readable import Passage, index_text, passages
from .rows import entry_from
from .schema import calls, entries

__all__ = ["OVERLAP", "index_entries", "merge", "rebuild", "remove", "stale", "unindexed"]

OVERLAP = 64
"""Characters that neighbouring parts of a text share: whatever is no longer than this stands whole in one part."""

# Measured on 15 MB of real sessions: against whole entries, parts of 2,000 make the index 1.4 times as large, and nine in ten queries
# read less than a fifth of what they would read in vain; parts of 1,000 make it 1.7 times as large and halve the rest.
_PART = 2_000
_CHUNK = 500
_NEXT = "SELECT coalesce(max(part), 0) + 1 FROM search_parts"
_INSERT = "INSERT INTO search (rowid, text) VALUES (?, ?)"
_OWN = "INSERT INTO search_parts (part, entry) VALUES (?, ?)"
_REMOVE = "INSERT INTO search (search, rowid, text) VALUES ('delete', ?, ?)"
_CLEAR = "INSERT INTO search (search) VALUES ('delete-all')"
_PARTS_OF = "SELECT entry, part FROM search_parts WHERE entry IN (SELECT value FROM json_each(?)) ORDER BY part"
_DISOWN = "DELETE FROM search_parts WHERE entry IN (SELECT value FROM json_each(?))"
_HOLDS = "SELECT 1 FROM search WHERE search MATCH ? AND rowid = ?"
_STALE = (
    "SELECT (SELECT count(*) FROM search_parts WHERE entry NOT IN (SELECT n FROM entries)) "
    "+ (SELECT count(*) FROM search_docsize WHERE id NOT IN (SELECT part FROM search_parts))"
)


def index_entries(connection: Connection, new: Sequence[tuple[int, Entry]]) -> None:
    """Add entries, by their keys, to the index and to the table of calls. The newest of the journal only, in order."""
    following = int(connection.exec_driver_sql(_NEXT).scalar_one())
    texts: list[tuple[int, str]] = []
    owners: list[tuple[int, int]] = []
    made: dict[tuple[str, int, int], str] = {}
    for key, entry in new:
        found = list(passages(entry))
        for part in _parts(index_text(found)):
            texts.append((following, part))
            owners.append((following, key))
            following += 1
        made.update(((wire_safe(p.call_id or ""), key, p.block), wire_safe(p.tool or "")) for p in found if _is_call(p))
    if texts:
        connection.exec_driver_sql(_INSERT, texts)
        connection.exec_driver_sql(_OWN, owners)
    if made:
        rows = [
            {"call_id": call_id, "entry": key, "block": block, "tool": tool}
            for (call_id, key, block), tool in made.items()
        ]
        connection.execute(insert(calls), rows)


def remove(connection: Connection, keys: Sequence[int]) -> bool:
    """Take entries out of the index, before their rows go. False when a damaged one had to stay in it."""
    whole = True
    for start in range(0, len(keys), _CHUNK):
        some = keys[start : start + _CHUNK]
        there = _parts_of(connection, some)
        texts: list[tuple[int, str]] = []
        for key, entry in _stored(connection, some):
            mine = there.get(key, [])
            parts = [] if entry is None else _parts(index_text(list(passages(entry))))
            whole = whole and len(mine) == len(parts)
            texts.extend(zip(mine, parts, strict=False))
        if texts:
            connection.exec_driver_sql(_REMOVE, texts)
        connection.exec_driver_sql(_DISOWN, (_listed(some),))
        connection.execute(delete(calls).where(calls.c.entry.in_(some)))
    return whole


def merge(connection: Connection) -> None:
    """Merge the index into one piece, so that what was taken out of it is gone from the file and not only marked."""
    connection.exec_driver_sql("INSERT INTO search (search) VALUES ('optimize')")


def rebuild(connection: Connection) -> int:
    """Make the index anew from the entries; damaged ones are left out. Returns how many entries were read."""
    for statement in (_CLEAR, "DELETE FROM search_parts", "DELETE FROM calls"):
        connection.exec_driver_sql(statement)
    keys = list(connection.scalars(select(entries.c.n).order_by(entries.c.n)))
    for start in range(0, len(keys), _CHUNK):
        some = _stored(connection, keys[start : start + _CHUNK])
        index_entries(connection, [(key, entry) for key, entry in some if entry is not None])
    return len(keys)


def unindexed(connection: Connection, some: Sequence[tuple[int, Entry]]) -> Iterator[tuple[int, str]]:
    """Those of these entries, by key, that a search would miss, and why. Looks for three trigrams of each part: first, middle, last."""
    there = _parts_of(connection, [key for key, _ in some])
    for key, entry in some:
        parts = _parts(index_text(list(passages(entry))))
        mine = there.get(key, [])
        if len(mine) != len(parts):
            yield key, f"the search index has {len(mine)} of its {len(parts)} parts"
        elif not all(map(_holds, [connection] * len(parts), mine, parts)):
            yield key, "the search index holds another text for it"


def stale(connection: Connection) -> int:
    """How many rows of the index belong to no entry."""
    return int(connection.exec_driver_sql(_STALE).scalar_one())


def _parts(text: str) -> list[str]:
    """A text as the parts in which it is indexed; [] for no text."""
    if len(text) <= _PART:
        return [text] if text else []
    return [text[at : at + _PART] for at in range(0, len(text) - OVERLAP, _PART - OVERLAP)]


def _is_call(passage: Passage) -> bool:
    return passage.kind == "tool_call" and bool(passage.call_id and passage.tool)


def _holds(connection: Connection, part: int, text: str) -> bool:
    probes = {text[at : at + 3].replace('"', '""') for at in (0, (len(text) - 3) // 2, len(text) - 3)}
    expression = " AND ".join(f'"{probe}"' for probe in probes)
    return connection.exec_driver_sql(_HOLDS, (expression, part)).scalar() is not None


def _parts_of(connection: Connection, keys: Sequence[int]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for key, part in connection.exec_driver_sql(_PARTS_OF, (_listed(keys),)):
        found.setdefault(key, []).append(part)
    return found


def _listed(keys: Sequence[int]) -> str:
    return "[" + ",".join(map(str, keys)) + "]"


def _stored(connection: Connection, keys: Sequence[int]) -> Iterator[tuple[int, Entry | None]]:
    """The entries with these keys; None for one that is damaged."""
    columns = (entries.c.n, entries.c.id, entries.c.payload, entries.c.content_hash)
    rows = connection.execute(select(*columns).where(entries.c.n.in_(keys)).order_by(entries.c.n)).all()
    for key, entry_id, payload, expected in rows:
        try:
            yield key, entry_from(entry_id, payload, expected)
        except JournalDamagedError:
            yield key, None
