"""Where a history may be cut: turn starts, steps, the recent tail (futureos.md 3.2).

A *step* is what the model said in one go and the results that answer it; a cut inside one would part a call from its result, or a
provider's reasoning item from the item it belongs to.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..transcript import Entry, Media, Reasoning, Text, ToolCall, ToolResult, Unknown

__all__ = ["has_call", "has_result", "open_step", "recent_tail", "step_start", "turn_start"]


def has_call(entry: Entry) -> bool:
    """Whether the entry makes a tool call that a result is expected for."""
    return any(isinstance(block, ToolCall) and block.kind != "server" for block in entry.blocks)


def has_result(entry: Entry) -> bool:
    """Whether the entry carries a tool result."""
    return any(isinstance(block, ToolResult) for block in entry.blocks)


def turn_start(entry: Entry) -> bool:
    """Whether a turn begins here: something that a person typed or attached, and no tool result with it."""
    return (
        entry.role == "user"
        and not has_result(entry)
        and any(
            block.origin == "typed" if isinstance(block, Text) else isinstance(block, (Media, Unknown))
            for block in entry.blocks
        )
    )


def step_start(entries: Sequence[Entry], position: int) -> int:
    """The first position at or before `position` where a cut parts nothing: a cut of p leaves entries[p:] as the tail.

    Goes back over results to the run of assistant entries that made the calls, and over what one response of the Responses API spread
    over several entries. Results without any call before them end at the first entry that is no result.
    """
    at = position
    while 0 < at < len(entries) and has_result(entries[at]):
        at -= 1
    while 0 < at < len(entries) and entries[at].role == "assistant" and _continues(entries[at - 1], entries[at]):
        at -= 1
    return at


def _continues(before: Entry, entry: Entry) -> bool:
    """Whether two neighbouring assistant entries belong to one response."""
    if before.role != "assistant":
        return False
    if before.group is not None or entry.group is not None:
        return before.group == entry.group
    return entry.wire == before.wire == "openai-responses" or all(isinstance(b, Reasoning) for b in before.blocks)


def open_step(entries: Sequence[Entry]) -> int:
    """Where the newest step begins if one of its calls has no result yet, else the number of entries.

    Such a call stays in the projection until it is answered (failure kind SE-07). Calls that were abandoned earlier do not count: once the
    history goes on with something else, no result will come.
    """
    end = len(entries)
    while end and has_result(entries[end - 1]):
        end -= 1
    if not end or entries[end - 1].role != "assistant":
        return len(entries)
    start = end - 1
    while start and entries[start - 1].role == "assistant":
        start -= 1
    answered = {block.call_id for entry in entries[end:] for block in entry.blocks if isinstance(block, ToolResult)}
    calls = [
        block
        for entry in entries[start:end]
        if entry.status not in ("aborted", "error")
        for block in entry.blocks
        if isinstance(block, ToolCall) and block.kind != "server"
    ]
    return start if any(call.id not in answered for call in calls) else len(entries)


def recent_tail(
    entries: Sequence[Entry], costs: Sequence[int], starts: Sequence[int], keep: int, *, cover_all_if_short: bool
) -> int | None:
    """The cut that leaves a recent tail of at most `keep` tokens, or None where no cut lies strictly inside.

    Whole turns while they fit, newest first; where no turn fits, or all do, single messages (the newest always stays).

    Args:
        entries: the current projection, oldest first.
        costs: tokens of each.
        starts: positions in it where a turn begins, rising.
        keep: wanted size of the tail, in tokens.
        cover_all_if_short: when everything fits into the tail, cover everything (a manual compaction of a short conversation).
    """
    total = 0
    cut = len(entries)
    for start in reversed(starts):
        total += sum(costs[start:cut])
        if total > keep:
            break
        cut = start
    if cover_all_if_short and ((starts and cut == starts[0]) or (not starts and sum(costs) <= keep)):
        return len(entries)
    if 0 < cut < len(entries):
        return cut
    return _message_tail(entries, costs, keep)


def _message_tail(entries: Sequence[Entry], costs: Sequence[int], keep: int) -> int | None:
    if len(entries) < 2:
        return None
    cut = len(entries) - 1
    size = costs[cut]
    while cut and size + costs[cut - 1] <= keep:
        cut -= 1
        size += costs[cut]
    cut = step_start(entries, max(1, cut))
    return cut if 0 < cut < len(entries) else None
