"""Recall over the journal: the same look-ups through its search index, over one path up to one entry, reading a bounded number of entries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ...journal import Journal
from ...journal.holding import Path
from ...tokens import Counter
from ...transcript import Entry
from .block import block_of
from .lines import Line, Readable
from .ranking import wanted_lines
from .shown import Shown

__all__ = ["recall_stored"]

MOST_ENTRIES = 64
"""Entries that are read for one word, the newest first."""
MOST_READ = 256
"""Entries that are read for one message."""


def recall_stored(
    journal: Journal, session_id: str, cutoff: str, shown: Iterable[Entry], counter: Counter, most: int = 1_000
) -> Callable[[str], str | None]:
    """What a user message would bring back of a session's path up to `cutoff`; like `recall_over`, with the journal as its memory.

    Args:
        journal: holds the session.
        session_id: the session.
        cutoff: id of the newest covered entry.
        shown: the entries of the projection; what they literally show needs no recall.
        counter: counts the block.
        most: tokens of a block at most.

    Raises:
        SessionNotFoundError: there is no such session; raised when the message comes.
        EntryNotFoundError: it has no entry `cutoff`; likewise.
    """
    literally = Shown(shown)

    def recall(message: str) -> str | None:
        with journal.path_upto(session_id, cutoff) as path:
            return block_of(wanted_lines(message, _Stored(path, literally), literally.shows), counter, most)

    return recall


class _Stored:
    """A path of the journal, as recall searches it."""

    def __init__(self, path: Path, shown: Shown) -> None:
        self.total = path.entries
        self._path = path
        self._shown = shown
        self._keys: dict[str, list[int]] = {}
        self._read: dict[int, Readable | None] = {}
        self._held: dict[str, list[Line]] = {}

    def frequency(self, word: str) -> int:
        found = len(self._holding(word))
        # The index finds parts of longer words as well; of a rare word it is worth looking which are whole.
        return found if found > MOST_ENTRIES else len({line.order for line in self._all_lines(word)})

    def lines(self, words: Sequence[str]) -> Iterable[Line]:
        found = {(line.order, line.place): line for word in words for line in self._lines(word)}
        return [found[at] for at in sorted(found, key=lambda at: (-at[0], at[1]))]

    def _lines(self, word: str) -> list[Line]:
        return [line for line in self._all_lines(word) if not self._shown.has_line(line.text)]

    def _all_lines(self, word: str) -> list[Line]:
        if word not in self._held:
            readable = [self._readable(key) for key in self._holding(word)[:MOST_ENTRIES]]
            self._held[word] = [line for one in readable if one is not None for line in one.holding(word)]
        return self._held[word]

    def _readable(self, key: int) -> Readable | None:
        if key not in self._read:
            if len(self._read) >= MOST_READ:
                return None
            found = self._path.entry(key)
            self._read[key] = None if found is None else Readable(*found)
        return self._read[key]

    def _holding(self, word: str) -> list[int]:
        if word not in self._keys:
            self._keys[word] = self._path.holding(word)
        return self._keys[word]
