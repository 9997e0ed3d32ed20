"""Passages: whether a projection says enough around a value to know what it stood for (measures.md, exam `supported`).

A bare list of values shows them all and tells nothing; so a value is supported only where the words of its home line stand beside it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from .values import LINE_WORDS, Value, around, find_values, shows

__all__ = ["PASSAGE_LINES", "HomeWords", "Passages", "home_words"]

PASSAGE_LINES = 5
"""Consecutive lines of one message that a passage may have."""

# Whole tokens of letters only: the `stub` in `tests/stub_server.py` is no word of its own.
_WORD = re.compile(r"(?<!\w)(?<!\w[-./])(?<!\w::)[^\W\d_]{3,}(?!\w|[-./]\w|::\w)")
_STOP_WORDS = """
    about after all also and any are because been before being but can could did does doing done each for from get
    had has have here how into its just let like may more most not now off one only other our out over own same
    she should some such than that the their them then there these they this those too under until use very was
    were what when where which while who why will with would you your der die das und ist mit ein eine nicht auf
    für les des une est que pour dans los las una por con para como это что как для при
"""
_STOP = frozenset(_STOP_WORDS.split())


@dataclass(frozen=True, slots=True)
class HomeWords:
    """The other distinct content words of a value's home line: three letters or more, outside a stop list; another value is one word."""

    plain: frozenset[str]
    values: tuple[str, ...]

    @property
    def needed(self) -> int:
        """How many of them a passage must have: half, rounded up, and all where there are at most two."""
        count = len(self.plain) + len(self.values)
        return count if count <= 2 else (count + 1) // 2

    def __bool__(self) -> bool:
        return bool(self.plain or self.values)


def home_words(value: Value) -> HomeWords:
    """The content words of a value's home line beside the value itself; none at all where the value stands alone on its line."""
    rest = value.line.replace(value.text, " \n ")
    # A value inside the asked one, or around it, is no other word.
    others = {
        found.text: None
        for found in find_values(value.line)
        if found.text not in value.text and value.text not in found.text
    }
    for other in sorted(others, key=len, reverse=True):
        rest = rest.replace(other, " ")
    return HomeWords(_plain(rest), tuple(others))


def _plain(text: str) -> frozenset[str]:
    return frozenset(word for word in map(str.lower, _WORD.findall(text)) if word not in _STOP)


class Passages:
    """The messages of a projection, to be searched for passages.

    Args:
        messages: the literal text of each message.
        originals: literal texts of original messages. Where a message is equal to one of them it is one passage, however long.
    """

    def __init__(self, messages: Sequence[str], originals: Collection[str] = ()) -> None:
        self._messages = messages
        self._whole = [message in originals for message in messages]
        self._words: dict[tuple[int, int, int], frozenset[str]] = {}

    def supports(self, value: Value, words: HomeWords) -> bool:
        """Whether some passage contains the value, on token boundaries, and enough of the other words of its home line."""
        for number, message in enumerate(self._messages):
            if value.text not in message:
                continue
            if self._whole[number] and shows(message, value.text) and self._enough(message, words, number):
                return True
            if any(self._enough(passage, words) for passage in _around(message, value.text)):
                return True
        return False

    def _enough(self, passage: str, words: HomeWords, number: int | None = None) -> bool:
        if number is None:
            plain = len(words.plain & _plain(passage)) if words.plain else 0
        else:
            key = (number, 0, len(passage))
            if key not in self._words:
                self._words[key] = _plain(passage)
            plain = len(words.plain & self._words[key])
        needed = words.needed - plain
        if needed <= 0:
            return True
        return len(words.values) >= needed and sum(shows(passage, other) for other in words.values) >= needed


def _around(message: str, value: str) -> Iterator[str]:
    """The passages around each occurrence of a value on token boundaries."""
    start = message.find(value)
    while start >= 0:
        end = start + len(value)
        line = around(message, start, end)
        if shows(line, value):
            before = _lines_before(message, start)
            after = _lines_after(message, end)
            for first in range(PASSAGE_LINES):
                above = before[len(before) - first :] if first else []
                below = after[: PASSAGE_LINES - 1 - first]
                if len(above) == first or first == len(before):
                    yield "\n".join((*above, line, *below))
        # Further occurrences on the same line have nearly the same passage; a list of a thousand would cost a thousand looks.
        next_line = message.find("\n", end)
        start = message.find(value, end + 400 if next_line < 0 or next_line > end + 400 else next_line)


def _lines_before(message: str, start: int) -> list[str]:
    lines: list[str] = []
    at = message.rfind("\n", 0, start)
    while at >= 0 and len(lines) < PASSAGE_LINES - 1:
        above = message.rfind("\n", 0, at)
        lines.append(_cut(message[above + 1 : at]))
        at = above
    lines.reverse()
    return lines


def _lines_after(message: str, end: int) -> list[str]:
    lines: list[str] = []
    at = message.find("\n", end)
    while at >= 0 and len(lines) < PASSAGE_LINES - 1:
        below = message.find("\n", at + 1)
        lines.append(_cut(message[at + 1 :] if below < 0 else message[at + 1 : below]))
        at = below
    return lines


def _cut(line: str) -> str:
    if len(line) <= 4 * LINE_WORDS:
        return line
    return " ".join(line[: 60 * LINE_WORDS].split()[:LINE_WORDS])
