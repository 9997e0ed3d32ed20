"""Lines: what recall shows of an entry. Verbatim lines of its readable text, long ones in windows that overlap."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from ...transcript import Entry, Text, ToolCall, ToolResult
from .words import words_of

__all__ = ["WINDOW", "Line", "Place", "Readable"]

WINDOW = 320
"""Characters of a longer line that are shown at most; neighbouring windows share half of them."""

_ESCAPES = re.compile(r'\\(u[0-9a-fA-F]{4}|["\\/bfnrt])')
_ASCII_LOWER = {code: code + 32 for code in range(65, 91)}
_PLAIN = {"b": " ", "f": " ", "n": "\n", "r": "", "t": "\t"}


Place: TypeAlias = tuple[int, int, int]
"""Where a line stands in its entry: which text, at which character of it, which window of a long line (0 for a whole one, else from 1)."""


@dataclass(frozen=True)
class Line:
    """A line of an entry, or a window of a long one."""

    entry: str
    """Id of the entry."""
    order: int
    """Position of the entry in the history; larger is newer."""
    place: Place
    source: str
    """Who or what the text is from, for the reader of a block."""
    text: str

    @cached_property
    def sequence(self) -> list[str]:
        """Its words, in order."""
        return words_of(self.text)

    @cached_property
    def words(self) -> frozenset[str]:
        """Its distinct words."""
        return frozenset(self.sequence)


class Readable:
    """An entry's texts that can be recalled: what was said, arguments of calls, results; no reasoning, no summaries.

    Args:
        entry: the entry.
        order: its position in the history.
    """

    def __init__(self, entry: Entry, order: int) -> None:
        self._entry = entry.id
        self._order = order
        self._texts = list(_texts(entry))
        self._lower: list[str] | None = None

    def lines(self) -> Iterator[Line]:
        """All lines that are not blank, in order."""
        for number, (_, text) in enumerate(self._texts):
            start = 0
            for whole in text.split("\n"):
                yield from self._windows(number, start, whole)
                start += len(whole) + 1

    def holding(self, word: str) -> Iterator[Line]:
        """The lines that hold a word, in order."""
        if self._lower is None:
            self._lower = [_lower(text) for _, text in self._texts]
        for number, lower in enumerate(self._lower):
            text = self._texts[number][1]
            at = lower.find(word)
            while at >= 0:
                start = text.rfind("\n", 0, at) + 1
                end = text.find("\n", at)
                end = len(text) if end < 0 else end
                yield from (line for line in self._windows(number, start, text[start:end]) if word in line.words)
                at = lower.find(word, end)

    def _windows(self, number: int, start: int, whole: str) -> Iterator[Line]:
        for part, window in _windows(whole.strip()):
            yield Line(self._entry, self._order, (number, start, part), self._texts[number][0], window)


def _lower(text: str) -> str:
    lower = text.lower()
    # Some capitals are two characters in lower case; then only ASCII is folded, so that places stay what they are.
    return lower if len(lower) == len(text) else text.translate(_ASCII_LOWER)


def _texts(entry: Entry) -> Iterator[tuple[str, str]]:
    for block in entry.blocks:
        match block:
            case Text(text=text, origin="typed"):
                yield entry.role, text
            case Text(text=text, origin="injected"):
                yield "injected", text
            case ToolCall(name=name, arguments=arguments):
                yield f"call {name}"[:60], _unescaped(arguments)
            case ToolResult(is_error=is_error):
                text = block.text
                # Clients that wrap an output into JSON put all its lines into one.
                yield "error" if is_error else "output", _unescaped(text) if text[:1] in ("{", "[") else text
            case _:
                pass


def _unescaped(text: str) -> str:
    return _ESCAPES.sub(lambda match: _undone(match[1]), text) if "\\" in text else text


def _undone(escape: str) -> str:
    if escape[0] == "u":
        code = int(escape[1:], 16)
        # Halves of a pair stay as they are written.
        return f"\\{escape}" if 0xD800 <= code < 0xE000 or code < 32 else chr(code)
    return _PLAIN.get(escape, escape)


def _windows(line: str) -> Iterator[tuple[int, str]]:
    if len(line) <= WINDOW + WINDOW // 4:
        if line:
            yield 0, line
        return
    start = 0
    part = 1
    while start < len(line):
        end = min(len(line), start + WINDOW)
        yield part, line[_word_start(line, start) : _word_end(line, end)].strip()
        if end == len(line):
            return
        start += WINDOW // 2
        part += 1


_NEAR = 24
"""How far a window's edge moves so that it cuts no word."""


def _word_start(line: str, at: int) -> int:
    if at == 0 or line[at - 1].isspace():
        return at
    space = line.rfind(" ", max(0, at - _NEAR), at)
    return at if space < 0 else space + 1


def _word_end(line: str, at: int) -> int:
    if at >= len(line) or line[at].isspace():
        return at
    space = line.find(" ", at, at + _NEAR)
    return at if space < 0 else space
