"""Recall over a list of entries in memory: indexed once, then asked as often as wanted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ...tokens import Counter
from ...transcript import Entry
from .block import block_of
from .lines import Line, Readable
from .ranking import wanted_lines
from .shown import Shown

__all__ = ["recall_over"]


def recall_over(
    entries: Sequence[Entry], shown: Iterable[Entry], counter: Counter, most: int = 1_000
) -> Callable[[str], str | None]:
    """What a user message would bring back of a covered history.

    Args:
        entries: the covered history, oldest first.
        shown: the entries of the projection; what they literally show needs no recall.
        counter: counts the block.
        most: tokens of a block at most.

    Returns:
        Takes the text of a message and returns the text of its block, or None when nothing relevant is found.
    """
    literally = Shown(shown)
    index = _Index(entries, literally)
    return lambda message: block_of(wanted_lines(message, index, literally.shows), counter, most)


class _Index:
    """Words of omitted lines and where they stand."""

    def __init__(self, entries: Sequence[Entry], shown: Shown) -> None:
        self.total = len(entries)
        self._lines: list[Line] = []
        self._at: dict[str, list[int]] = {}
        self._entries: dict[str, int] = {}
        seen: set[str] = set()
        # The newest of equal lines stands for all of them.
        for order in range(len(entries) - 1, -1, -1):
            words: set[str] = set()
            for line in Readable(entries[order], order).lines():
                words |= line.words
                if line.text in seen or not line.words or shown.has_line(line.text):
                    continue
                seen.add(line.text)
                number = len(self._lines)
                self._lines.append(line)
                for word in line.words:
                    self._at.setdefault(word, []).append(number)
            for word in words:
                self._entries[word] = self._entries.get(word, 0) + 1

    def frequency(self, word: str) -> int:
        return self._entries.get(word, 0)

    def lines(self, words: Sequence[str]) -> Iterable[Line]:
        numbers = {number for word in words for number in self._at.get(word, ())}
        return [self._lines[number] for number in sorted(numbers)]
