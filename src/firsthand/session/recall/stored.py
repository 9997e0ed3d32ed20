"""Recall over the journal: the same look-ups through its search index, over one path up to one entry, reading a bounded number of entries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from ...journal import Journal
from ...journal.holding import MOST_KEYS, Path
from ...tokens import Counter
from ...transcript import Entry
from .block import block_of
from .lines import Line, Place, Readable
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
        self._read: dict[int, Readable] = {}
        self._held: dict[tuple[int, str], list[Line]] = {}

    def frequency(self, word: str) -> int:
        found = len(self._holding(word))
        # The index finds parts of longer words as well; of a rare word it is worth looking which are whole.
        return found if found > MOST_ENTRIES else len({line.order for line in self._in(self._holding(word), word)})

    def lines(self, words: Sequence[str]) -> Iterable[Line]:
        found: dict[tuple[int, Place], Line] = {}
        for word in words:
            keys = self._holding(word)
            if len(keys) > MOST_ENTRIES and len(words) > 1:
                # Of a common word those entries are read first that hold the others too, and of the commonest no others.
                both = self._path.holding_all(words)
                keys = both if len(keys) >= MOST_KEYS else list(dict.fromkeys((*both, *keys)))
            found |= {(line.order, line.place): line for line in self._in(keys[:MOST_ENTRIES], word)}
        return [line for _, line in sorted(found.items(), key=_newest_first) if not self._shown.has_line(line.text)]

    def _in(self, keys: Sequence[int], word: str) -> Iterator[Line]:
        missing = [key for key in keys if key not in self._read][: MOST_READ - len(self._read)]
        if missing:
            self._read |= {key: Readable(*found) for key, found in self._path.read(missing).items()}
        for key in keys:
            if key in self._read:
                if (key, word) not in self._held:
                    self._held[key, word] = list(self._read[key].holding(word))
                yield from self._held[key, word]

    def _holding(self, word: str) -> list[int]:
        if word not in self._keys:
            self._keys[word] = self._path.holding(word)
        return self._keys[word]


def _newest_first(item: tuple[tuple[int, Place], Line]) -> tuple[int, Place]:
    (order, place), _ = item
    return -order, place
