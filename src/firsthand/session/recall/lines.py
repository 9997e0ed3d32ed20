"""Lines: what recall shows of an entry. Verbatim lines of its readable text, long ones in windows that overlap."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property

from ...transcript import Entry, Text, ToolCall, ToolResult
from .words import words_of

__all__ = ["WINDOW", "Line", "lines_of"]

WINDOW = 320
"""Characters of a longer line that are shown at most; neighbouring windows share half of them."""

_ESCAPES = re.compile(r'\\(u[0-9a-fA-F]{4}|["\\/bfnrt])')
_PLAIN = {"b": " ", "f": " ", "n": "\n", "r": "", "t": "\t"}


@dataclass(frozen=True)
class Line:
    """A line of an entry, or a window of a long one."""

    entry: str
    """Id of the entry."""
    order: int
    """Position of the entry in the history; larger is newer."""
    number: int
    """Position of the line in the entry."""
    source: str
    """Who or what the text is from, for the reader of a block."""
    text: str
    part: int = 0
    """0 for a whole line; the windows of a long one count from 1."""

    @cached_property
    def sequence(self) -> list[str]:
        """Its words, in order."""
        return words_of(self.text)

    @cached_property
    def words(self) -> frozenset[str]:
        """Its distinct words."""
        return frozenset(self.sequence)


def lines_of(entry: Entry, order: int, holding: Collection[str] = ()) -> Iterator[Line]:
    """The lines of an entry that can be recalled: texts, arguments of calls, results; no reasoning, no summaries, no blank lines.

    Args:
        entry: the entry.
        order: its position in the history.
        holding: words of which a line must hold one; () for all lines.
    """
    number = 0
    for source, text in _texts(entry):
        for whole in text.splitlines():
            for part, window in _windows(whole.strip()):
                line = Line(entry.id, order, number, source, window, part)
                number += 1
                if not holding or (_may_hold(window, holding) and not line.words.isdisjoint(holding)):
                    yield line


def _may_hold(text: str, words: Collection[str]) -> bool:
    lower = text.lower()
    return any(word in lower for word in words)


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
