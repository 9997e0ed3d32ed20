"""What the work stands at: the newest to-do list, and the files that were changed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from ...codec import decode
from ...tokens import Counter
from ...transcript import Entry, ToolCall

__all__ = ["changed_files", "is_to_do", "newest_to_do"]

_TO_DO = re.compile(r"to_?dos?(?:_?(?:write|list|update))?|update_plan|plan_update|write_todos", re.IGNORECASE)
_CHANGES = re.compile(r"write|edit|patch|create|replace|insert", re.IGNORECASE)
_PATHS = ("path", "file_path", "filePath", "notebook_path", "target_file", "filename", "absolute_path")
_PATCHED = re.compile(r"^\*\*\* (?:Update|Add|Delete) File: (.+)$", re.MULTILINE)


def newest_to_do(entries: Sequence[Entry]) -> tuple[int, int] | None:
    """Position and block number of the newest call that wrote a to-do list."""
    for position in range(len(entries) - 1, -1, -1):
        for number, block in enumerate(entries[position].blocks):
            if isinstance(block, ToolCall) and is_to_do(block):
                return position, number
    return None


def is_to_do(call: ToolCall) -> bool:
    """Whether the call writes a to-do list, told by the tool's name."""
    return _is_of_to_do(call.name)


@lru_cache(maxsize=1 << 10)
def _is_of_to_do(name: str) -> bool:
    return _TO_DO.fullmatch(name) is not None


def changed_files(entries: Sequence[Entry], counter: Counter, room: int) -> list[str]:
    """Paths that calls wrote to, the last written first, as many as `room` tokens hold."""
    out: dict[str, None] = {}
    for path in _written_last_first(entries):
        if path not in out:
            room -= counter.count(path) + 1
            if room < 0:
                break
            out[path] = None
    return list(out)


def _written_last_first(entries: Sequence[Entry]) -> Iterator[str]:
    for entry in reversed(entries):
        for block in entry.blocks:
            if isinstance(block, ToolCall) and (_CHANGES.search(block.name) or "*** Begin Patch" in block.arguments):
                yield from _written(block)


def _written(call: ToolCall) -> list[str]:
    try:
        value = decode(call.arguments)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        return [path.strip() for path in _PATCHED.findall(call.arguments)]
    patches = [path.strip() for text in value.values() if isinstance(text, str) for path in _PATCHED.findall(text)]
    if patches:
        return patches
    return [value[key] for key in _PATHS if isinstance(value.get(key), str) and value[key]][:1]
