"""The compaction request of the Codex strategies: the live history as it is sent, and how it is made smaller (codex.md 6.1, 6.3 and 7.2)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from ...projection.plan import Item, Kept
from ...projection.render import Shown
from ...transcript import Entry, Media, Text, ToolCall, ToolResult
from ..contract import SummaryRequest
from .counting import cut_to_tokens, entry_tokens, text_tokens
from .history import LiveHistory

__all__ = ["OUTPUT_NOTICE", "pairs", "pre_trimmed", "recorded", "without_oldest"]

OUTPUT_NOTICE = "[this tool output was left out to make the request fit]"
"""Stands for an output that the pre-trim took away; ours, about as long as the original's."""


def recorded(history: LiveHistory, output_limit: int | None) -> list[Item]:
    """The live history as items, tool outputs cut as Codex cuts them when it records them (codex.md 7.2).

    Args:
        history: what is covered.
        output_limit: tokens of one output before the allowance of a fifth that Codex adds; None leaves outputs whole.
    """
    limit = None if output_limit is None else -(-output_limit * 6 // 5)
    paired = {entry for pair in pairs(history.added) for entry in (pair[0], pair[2])}
    return [part.item or _as_recorded(part.entry, limit, part.entry.id in paired) for part in history.parts]


def _as_recorded(entry: Entry, limit: int | None, paired: bool) -> Kept:
    # `without_oldest` sees no view: an entry of several blocks must name them, so that one of them can go with its other half.
    blocks = tuple(range(len(entry.blocks))) if paired and len(entry.blocks) > 1 else None
    replaced = {}
    if limit is not None:
        for number, block in enumerate(entry.blocks):
            if isinstance(block, ToolResult) and not any(isinstance(part, Media) for part in block.content):
                text = _cut_parts([part.text for part in block.content if isinstance(part, Text)], limit)
                if text is not None:
                    replaced[number] = text
    return Kept(entry.id, blocks, replaced)


def _cut_parts(parts: Sequence[str], limit: int) -> str | None:
    """The parts of one output within a shared limit: whole, then one cut, then counted only. None when all fit."""
    if sum(map(text_tokens, parts)) <= limit:
        return None
    out: list[str] = []
    left_out = 0
    for part in parts:
        size = text_tokens(part)
        if limit <= 0:
            left_out += bool(part)
        else:
            out.append(part if size <= limit else cut_to_tokens(part, limit))
        limit -= size
    if left_out:
        out.append(f"[{left_out} more parts of this output were left out]")
    return "\n".join(out)


def pairs(entries: Iterable[Entry]) -> list[tuple[str, int, str, int]]:
    """Each call with its first result: entry and block of the call, entry and block of the result."""
    calls: dict[str, tuple[str, int]] = {}
    found: list[tuple[str, int, str, int]] = []
    for entry in entries:
        for number, block in enumerate(entry.blocks):
            if isinstance(block, ToolCall):
                calls.setdefault(block.id, (entry.id, number))
            elif isinstance(block, ToolResult) and (call := calls.pop(block.call_id, None)) is not None:
                found.append((*call, entry.id, number))
    return found


def without_oldest(request: SummaryRequest) -> SummaryRequest | None:
    """The request without its oldest item and what that is paired with, or None when only the instruction would be left to drop.

    The request's state says how many items at its start are base instructions, which stay, and what is paired (codex.md 6.1).
    """
    state = request.state if isinstance(request.state, dict) else {}
    base = state.get("base", 0)
    if len(request.items) <= base:
        return None
    dropped, rest = request.items[base], request.items[base + 1 :]
    gone: set[tuple[str, int]] = set()
    if isinstance(dropped, Kept):
        for call, call_block, result, result_block in state.get("pairs", ()):
            if call == dropped.entry and _holds(dropped, call_block):
                gone.add((result, result_block))
            if result == dropped.entry and _holds(dropped, result_block):
                gone.add((call, call_block))
    left = tuple(item for item in (_without(item, gone) for item in rest) if item is not None)
    return msgspec.structs.replace(request, items=(*request.items[:base], *left))


def _holds(item: Kept, block: int) -> bool:
    return item.blocks is None or block in item.blocks


def _without(item: Item, gone: set[tuple[str, int]]) -> Item | None:
    """The item without the blocks that are gone; None when it has no others. An item that names no blocks has but one."""
    if not isinstance(item, Kept):
        return item
    if item.blocks is None:
        return None if any(entry == item.entry for entry, _ in gone) else item
    blocks = tuple(number for number in item.blocks if (item.entry, number) not in gone)
    if len(blocks) == len(item.blocks):
        return item
    replaced = {number: text for number, text in item.replaced.items() if number in blocks}
    return Kept(item.entry, blocks, replaced) if blocks else None


def pre_trimmed(items: Sequence[Item], parts: Sequence[Shown], fixed: int, usable: int) -> list[Item]:
    """The items with the newest outputs replaced by a notice while the estimate is above the usable window (codex.md 6.3).

    Stops at the first item from the end that is no tool output, even when the request is still too big.

    Args:
        items: the live history as items.
        parts: the same as it is shown.
        fixed: tokens of what is sent beside it.
        usable: the hard window.
    """
    out = list(items)
    total = fixed + sum(_tokens(part.entry, item) for part, item in zip(parts, items, strict=True))
    for at in reversed(range(len(parts))):
        entry, item = parts[at].entry, out[at]
        if not isinstance(item, Kept) or parts[at].item is not None:
            break
        for number in reversed(range(len(entry.blocks))):
            if total <= usable or not isinstance(entry.blocks[number], ToolResult):
                return out
            shorter = Kept(item.entry, item.blocks, {**item.replaced, number: OUTPUT_NOTICE})
            total += _tokens(entry, shorter) - _tokens(entry, item)
            out[at] = item = shorter
    return out


def _tokens(entry: Entry, item: Item) -> int:
    """The estimate of an entry with what the item puts in place of its outputs. The items of an earlier plan are rendered already."""
    blocks = list(entry.blocks)
    for number, text in item.replaced.items() if isinstance(item, Kept) else ():
        if number < len(blocks) and isinstance(block := blocks[number], ToolResult):
            blocks[number] = msgspec.structs.replace(block, content=(Text(text),))
    return entry_tokens(msgspec.structs.replace(entry, blocks=tuple(blocks)))
