"""Derived rows: opaque bytes that one version of an extractor made from one entry.

A stored entry never changes, so its key stands for its content hash. A strategy works the same without these rows, only slower.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from sqlalchemy import Connection, delete, select
from sqlalchemy.dialects.sqlite import insert

from .append import taken_ids
from .schema import entries, features

__all__ = ["Rows", "StoredFeatures", "forget_features", "get_features", "lacking", "put_features"]

_CHUNK = 500


class Rows(NamedTuple):
    """Derived rows on their way into the journal."""

    extractor: str
    data: Mapping[str, bytes]
    """By entry id."""


class StoredFeatures(Mapping[str, bytes]):
    """Derived rows by entry id, read from the journal when the first one is wanted."""

    def __init__(self, load: Callable[[], dict[str, bytes]]) -> None:
        self._load = load

    @cached_property
    def _rows(self) -> dict[str, bytes]:
        return self._load()

    def __getitem__(self, entry_id: str) -> bytes:
        return self._rows[entry_id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


def put_features(connection: Connection, extractor: str, rows: Mapping[str, bytes]) -> int:
    """Store derived rows by entry id; those of entries that are not (or no longer) there are left out. Returns how many were stored."""
    keys = {place.id: place.n for place in taken_ids(connection, rows)}
    values = [{"extractor": extractor, "entry": key, "data": rows[entry_id]} for entry_id, key in keys.items()]
    if values:
        statement = insert(features)
        statement = statement.on_conflict_do_update(
            index_elements=[features.c.extractor, features.c.entry], set_={"data": statement.excluded.data}
        )
        connection.execute(statement, values)
    return len(values)


def get_features(connection: Connection, extractor: str, keys: Sequence[int]) -> dict[str, bytes]:
    """The stored rows of the entries with these keys, by entry id."""
    found: dict[str, bytes] = {}
    for start in range(0, len(keys), _CHUNK):
        chosen = (
            select(entries.c.id, features.c.data)
            .join(entries, entries.c.n == features.c.entry)
            .where(features.c.extractor == extractor, features.c.entry.in_(keys[start : start + _CHUNK]))
        )
        found.update((entry_id, data) for entry_id, data in connection.execute(chosen))
    return found


def lacking(connection: Connection, extractor: str, keys: Sequence[int]) -> list[int]:
    """Those of these keys whose entries have no row of this extractor, in their order."""
    there: set[int] = set()
    for start in range(0, len(keys), _CHUNK):
        chosen = select(features.c.entry).where(
            features.c.extractor == extractor, features.c.entry.in_(keys[start : start + _CHUNK])
        )
        there.update(connection.scalars(chosen))
    return [key for key in keys if key not in there]


def forget_features(connection: Connection, extractor: str) -> int:
    """Drop the rows of one version of an extractor; returns how many there were."""
    return connection.execute(delete(features).where(features.c.extractor == extractor)).rowcount
