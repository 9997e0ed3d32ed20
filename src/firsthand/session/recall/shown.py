"""What a projection shows literally; there is no need to recall it."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ...transcript import Block, Entry, Reasoning, Text, ToolCall, ToolResult

__all__ = ["Shown"]

_ESCAPES = re.compile(r'\\+(["\\/nrt])')
_PLAIN = {"n": "\n", "r": "\n", "t": "\t"}


class Shown:
    """The texts of a projection, to be asked what they contain. JSON escapes are undone: evidence rows are JSON."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        texts = [text for entry in entries for block in entry.blocks if (text := _text(block))]
        plain = [_ESCAPES.sub(lambda match: _PLAIN.get(match[1], match[1]), text) for text in texts if "\\" in text]
        self._text = "\n".join((*texts, *plain))
        self._lines = {line.strip() for line in self._text.splitlines()}

    def shows(self, text: str) -> bool:
        """Whether the text stands somewhere in the projection."""
        return text in self._text

    def has_line(self, text: str) -> bool:
        """Whether the text is a whole line of the projection; quicker than `shows`."""
        return text in self._lines


def _text(block: Block) -> str:
    match block:
        case Text(text=text) | Reasoning(text=text):
            return text
        case ToolCall(name=name, arguments=arguments):
            return f"{name} {arguments}"
        case ToolResult():
            return block.text
        case _:
            return ""
