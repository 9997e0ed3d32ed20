"""Units: the lines and sentences of originals that a projection can show without the rest.

A unit is a stretch of the *readable text* of a block: of texts and results the text itself, of a call's arguments one `key: value` line for
each argument, strings unescaped, so that code in an argument is cut like code. Arguments that are no JSON object are read as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import IntEnum
from typing import Any

from ...codec import compact_json, decode
from ...transcript import Block, Entry, Text, ToolCall, ToolResult

__all__ = ["Source", "cuts", "readable", "source_of"]

_LONG_PROSE = 120
_LONGEST = 256
_WINDOW = 160
_SENTENCE = re.compile(r"(?<=[.!?;])\s+(?=\S)|(?<=[。！？；])")
_BREAKS = re.compile(r"[\s,;]")


class Source(IntEnum):
    """Who said what a unit shows."""

    USER = 0
    ASSISTANT = 1
    CALL = 2
    ERROR = 3
    """The result of a call that failed."""
    RESULT = 4
    INJECTED = 5
    """What a client put in: rule files, reminders, environment."""


def source_of(entry: Entry, block: Block) -> Source | None:
    """Whose words the block holds; None for what no excerpt is made of: reasoning, media, summaries, blocks without a word for them."""
    match block:
        case Text(origin="typed") if entry.role == "user":
            return Source.USER
        case Text(origin="typed") if entry.role == "assistant":
            return Source.ASSISTANT
        case Text(origin="injected") if entry.role == "user":
            return Source.INJECTED
        case ToolCall():
            return Source.CALL
        case ToolResult(is_error=True):
            return Source.ERROR
        case ToolResult():
            return Source.RESULT
        case _:
            return None


def readable(block: Block) -> str:
    """The text that the spans of excerpts refer to."""
    match block:
        case Text(text=text):
            return text
        case ToolResult():
            return block.text
        case ToolCall(arguments=arguments):
            return _arguments(arguments)
        case _:
            return ""


def _arguments(arguments: str) -> str:
    try:
        value = decode(arguments)
    except (ValueError, RecursionError):
        return arguments
    if not isinstance(value, dict):
        return arguments
    return "\n".join(f"{key}: {_value(item)}" for key, item in value.items())


def _value(item: Any) -> str:
    if isinstance(item, str):
        return item
    if isinstance(item, list) and item and all(isinstance(part, dict) for part in item):
        # Edits and to-do lists: each row's strings unescaped, too.
        return "\n".join(f"{key}: {_value(part)}" for row in item for key, part in row.items())
    return compact_json(item)


def cuts(text: str, *, prose: bool) -> Iterator[tuple[int, int]]:
    """The units of a text as (start, end) in characters, in order, blank ones left out; each ends before its line's end.

    Args:
        text: the readable text.
        prose: whether somebody wrote it for a reader, so that sentences end at full stops.
    """
    most = _LONG_PROSE if prose else _LONGEST
    at = 0
    for line in text.splitlines(keepends=True):
        if rest := line.lstrip():
            start = at + len(line) - len(rest)
            end = start + len(rest.rstrip())
            if end - start <= most:
                yield start, end
            else:
                yield from _pieces(text, start, end, prose)
        at += len(line)


def _pieces(text: str, start: int, end: int, prose: bool) -> Iterator[tuple[int, int]]:
    at = start
    if prose:
        for match in _SENTENCE.finditer(text, start, end):
            if match.start() - at >= 20:
                yield from _windows(text, at, match.start())
                at = match.end()
    yield from _windows(text, at, end)


def _windows(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Pieces of about `_WINDOW` characters, cut at blanks, commas or semicolons and never inside a word."""
    while end - start > _LONGEST:
        match = _BREAKS.search(text, start + _WINDOW, min(end, start + 4 * _WINDOW))
        if match is None:
            break
        at = match.start() if match[0].isspace() else match.end()
        yield start, at
        start = at
        while start < end and text[start].isspace():
            start += 1
    if start < end:
        yield start, end
