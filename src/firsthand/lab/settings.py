"""Names and plain numbers of arguments: values that a call uses because its tool asks for them, not because the agent remembered them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ..codec import decode
from ..transcript import Entry, Text, ToolCall
from .values import literal, shows

__all__ = ["is_setting"]


def is_setting(entry: Entry, value: str, shape: str) -> bool:
    """Whether the entry uses the value only as the name of an argument, or as the whole of a number that an argument takes.

    Args:
        entry: the entry that uses it.
        value: the value, as it was found.
        shape: its shape; only identifiers and numbers can be settings.
    """
    if shape not in ("identifier", "number"):
        return False
    calls = [block for block in entry.blocks if isinstance(block, ToolCall)]
    if any(isinstance(block, Text) and shows(literal(block.text), value) for block in entry.blocks):
        return False
    used = [call for call in calls if shows(literal(call.arguments), value)]
    return bool(used) and all(_only_setting(call.arguments, value) for call in used)


def _only_setting(arguments: str, value: str) -> bool:
    try:
        parsed = decode(arguments)
    except (ValueError, RecursionError):
        parsed = None
    if isinstance(parsed, dict):
        return not any(shows(literal(text), value) for text in _strings(parsed))
    # A script: the name before a colon, or the number behind one.
    text = literal(arguments)
    quoted = re.escape(value)
    setting = re.compile(rf"(?<![\w.\"'-])[\"']?{quoted}[\"']?\s*:(?!:)|(?<=[\w\"'])\s*:\s*{quoted}(?=\s*[,}}\n])")
    return setting.search(text) is not None and not shows(setting.sub(" ", text), value)


def _strings(parsed: Any) -> Iterator[str]:
    """The strings in a JSON value that stand where a value belongs, iteratively: nesting may be deep."""
    waiting = [parsed]
    while waiting:
        at = waiting.pop()
        if isinstance(at, str):
            yield at
        elif isinstance(at, dict):
            waiting += at.values()
        elif isinstance(at, list):
            waiting += at
