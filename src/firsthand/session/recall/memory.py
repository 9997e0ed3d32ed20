"""Recall over a list of entries in memory: indexed once, then asked as often as wanted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ...tokens import Counter
from ...transcript import Entry
from .block import block_of
from .lines import Line, Readable
from .ranking import wanted_lines
from .shown import Shown

__all__ = ["Recallable", "recall_over"]


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
    return Recallable(entries).over(shown, counter, most)


class Recallable:
    """A covered history, indexed once for as many projections of it as there are.

    Args:
        entries: the history, oldest first.
    """

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._index = _Index(entries)

    def over(self, shown: Iterable[Entry], counter: Counter, most: int = 1_000) -> Callable[[str], str | None]:
        """What a user message would bring back beside one projection; as `recall_over`."""
        literally = Shown(shown)
        omitted = _Omitted(self._index, literally)
        return lambda message: block_of(wanted_lines(message, omitted, literally.shows), counter, most)


class _Index:
    """Words of lines and where they stand."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self.total = len(entries)
        self.lines: list[Line] = []
        self.at: dict[str, list[int]] = {}
        self.entries: dict[str, int] = {}
        seen: set[str] = set()
        # The newest of equal lines stands for all of them.
        for order in range(len(entries) - 1, -1, -1):
            words: set[str] = set()
            for line in Readable(entries[order], order).lines():
                words |= line.words
                if line.text in seen or not line.words:
                    continue
                seen.add(line.text)
                number = len(self.lines)
                self.lines.append(line)
                for word in line.words:
                    self.at.setdefault(word, []).append(number)
            for word in words:
                self.entries[word] = self.entries.get(word, 0) + 1


class _Omitted:
    """What of an index a projection does not show as a whole line."""

    def __init__(self, index: _Index, shown: Shown) -> None:
        self._index = index
        self._shown = shown
        self.total = index.total

    def frequency(self, word: str) -> int:
        return self._index.entries.get(word, 0)

    def lines(self, words: Sequence[str]) -> Iterable[Line]:
        numbers = {number for word in words for number in self._index.at.get(word, ())}
        found = (self._index.lines[number] for number in sorted(numbers))
        return [line for line in found if not self._shown.has_line(line.text)]
