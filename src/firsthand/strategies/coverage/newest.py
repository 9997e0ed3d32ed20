"""The newest steps: where the tail begins, and what becomes of a newest step that is too large for it."""

from __future__ import annotations

from collections.abc import Sequence

from ...projection.boundaries import open_step, step_start, turn_start
from ...tokens import Counter, entry_cost
from ...transcript import Block, Entry, Media, ToolResult

__all__ = ["newest_step", "tail_start"]


def newest_step(entries: Sequence[Entry], counter: Counter) -> tuple[int, bool]:
    """Tokens of the newest step, and whether no excerpt could stand for it: the person's message, or images that nobody has seen yet."""
    start = step_start(entries, len(entries) - 1) if entries else 0
    step = entries[start:]
    return sum(entry_cost(entry, counter) for entry in step), any(
        turn_start(entry) or any(_has_media(block) for block in entry.blocks) for entry in step
    )


def _has_media(block: Block) -> bool:
    return isinstance(block, Media) or (
        isinstance(block, ToolResult) and any(isinstance(part, Media) for part in block.content)
    )


def tail_start(entries: Sequence[Entry], counter: Counter, room: int, most: int) -> int:
    """Where the tail begins: whole steps, newest first, while they fit into `room`.

    The newest step is in it also when it needs more, up to `most`; one larger than that is covered, and cut, unless a call in it still
    waits for its result: such a step stays as it is (SE-07).

    Returns:
        A position in `entries`; their number when nothing stays.
    """
    end = len(entries)
    waiting = open_step(entries)
    start = end
    size = 0
    while start:
        before = step_start(entries, start - 1)
        cost = sum(entry_cost(entry, counter) for entry in entries[before:start])
        is_newest = start == end
        if size + cost > (most if is_newest else room) and before < waiting:
            break
        start, size = before, size + cost
        if start < waiting and size > room:
            break
    return min(start, waiting)
