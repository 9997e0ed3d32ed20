"""Features once: what a strategy needs of an entry is computed when the entry is appended, and stored as a derived row.

Rows are an addition: a plan is the same without them. So whatever goes wrong with one is logged, and never keeps an entry from being stored.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from itertools import islice

from ..errors import JournalError
from ..journal import Journal
from ..journal.features import Rows
from ..strategies.contract import Strategy
from ..transcript import Entry

__all__ = ["rows_of", "store_missing"]

_log = logging.getLogger("firsthand")
_CHUNK = 500


def rows_of(strategy: Strategy, entries: Iterable[Entry]) -> Rows | None:
    """The derived rows of some entries; None for a strategy that needs none."""
    extractor = strategy.extractor
    if extractor is None:
        return None
    rows: dict[str, bytes] = {}
    for entry in entries:
        try:
            rows[entry.id] = strategy.features(entry)
        except Exception:
            _log.exception(
                "strategy %r made no features of entry %s; it will plan without them", strategy.name, entry.id
            )
    return Rows(extractor, rows)


def _batched(entries: Iterator[Entry], size: int) -> Iterator[list[Entry]]:
    """Lists of so many entries; the last one may be shorter."""
    while some := list(islice(entries, size)):
        yield some


def store_missing(journal: Journal, session_id: str, *strategies: Strategy | None) -> int:
    """Compute and store the rows that entries of a session's active path lack: imported ones, or those of another strategy's time.

    Returns:
        How many were stored. A journal that cannot be written to now gets them another time.
    """
    stored = 0
    for strategy in strategies:
        if strategy is None or strategy.extractor is None:
            continue
        try:
            for entries in _batched(journal.lacking_features(session_id, strategy.extractor), _CHUNK):
                made = rows_of(strategy, entries)
                stored += journal.put_features(made.extractor, made.data) if made else 0
        except JournalError as error:
            _log.warning("features of session %s were not stored: %s", session_id, error)
    return stored
