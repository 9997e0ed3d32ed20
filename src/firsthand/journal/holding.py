"""One path of the journal up to one entry, asked which of its entries hold a word. For recall, which asks many such questions at one moment."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

from sqlalchemy import Connection, and_, or_
from sqlalchemy.dialects import sqlite

from ..codec import wire_safe
from ..errors import JournalDamagedError
from ..transcript import Entry
from .candidates import all_trigrams, is_looked_up
from .reading import place_in
from .rows import entry_from
from .schema import entries
from .tree import path_reach

__all__ = ["MOST_KEYS", "Path"]

MOST_KEYS = 256
"""Entries that are found for one word, the newest first; a word that more hold is a common one."""

_MOST_PARTS = 2_048
_MATCH = (
    "SELECT DISTINCT entries.n FROM search CROSS JOIN search_parts ON search_parts.part = search.rowid "
    "CROSS JOIN entries ON entries.n = search_parts.entry WHERE search MATCH ? AND ({}) ORDER BY search.rowid DESC LIMIT ?"
)
_SHORT = (
    "SELECT DISTINCT entries.n FROM (SELECT DISTINCT doc FROM search_terms WHERE term >= ? AND term <= ? LIMIT ?) AS found "
    "CROSS JOIN search_parts ON search_parts.part = found.doc CROSS JOIN entries ON entries.n = search_parts.entry "
    "WHERE ({}) ORDER BY entries.n DESC LIMIT ?"
)
_ROWS = "SELECT n, id, depth, payload, content_hash FROM entries WHERE n IN (SELECT value FROM json_each(?))"
_CHUNK = 500
_HIGHEST = "\U0010ffff"


class Path:
    """The entries of a session's path up to one of them. Good for as long as the connection is.

    Raises:
        SessionNotFoundError: there is no such session.
        EntryNotFoundError: it has no such entry.
    """

    def __init__(self, connection: Connection, session_id: str, upto: str) -> None:
        self._connection = connection
        _, place = place_in(connection, session_id, upto)
        reaches = path_reach(connection, place.n)
        self.entries = place.depth + 1
        """How many there are."""
        on_path = or_(*(and_(entries.c.segment == reach.segment, entries.c.n <= reach.cut) for reach in reaches))
        self._on_path = str(on_path.compile(dialect=sqlite.dialect(), compile_kwargs={"literal_binds": True}))

    def holding(self, word: str) -> list[int]:
        """The keys of entries that hold a word, in part of a longer one or in other case too, the newest first, `MOST_KEYS` at most.

        Words of one or two characters are found in scripts without case only; for others the index has no answer that is worth its time.
        """
        wanted = _indexed(word)
        if len(wanted) >= 3:
            return self._found(_MATCH, all_trigrams(wanted), MOST_KEYS)
        if wanted and not wanted.isascii() and all(map(is_looked_up, wanted)):
            return self._found(_SHORT, wanted, wanted + 2 * _HIGHEST, _MOST_PARTS, MOST_KEYS)
        return []

    def holding_all(self, words: Iterable[str]) -> list[int]:
        """The keys of entries that hold all of these words near each other, as `holding` finds them; words under three characters do not count."""
        expressions = [all_trigrams(wanted) for word in words if len(wanted := _indexed(word)) >= 3]
        return self._found(_MATCH, " AND ".join(expressions), MOST_KEYS) if expressions else []

    def read(self, keys: Sequence[int]) -> dict[int, tuple[Entry, int]]:
        """The entries with these keys and their positions on the path; damaged ones are left out."""
        found: dict[int, tuple[Entry, int]] = {}
        for start in range(0, len(keys), _CHUNK):
            listed = "[" + ",".join(map(str, keys[start : start + _CHUNK])) + "]"
            for key, entry_id, depth, payload, expected in self._connection.exec_driver_sql(_ROWS, (listed,)):
                with suppress(JournalDamagedError):
                    found[key] = (entry_from(entry_id, payload, expected), depth)
        return found

    def _found(self, statement: str, *values: Any) -> list[int]:
        return list(self._connection.exec_driver_sql(statement.format(self._on_path), values).scalars())


def _indexed(word: str) -> str:
    return wire_safe(word.replace("\0", "\ufffd"))
