"""From what OpenCode shows to a plan: which entries become items, where the tail begins, and whether the outcome may be sent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from ...budget import Budget
from ...errors import ConfigError
from ...projection.boundaries import open_step
from ...projection.originals import originals
from ...projection.plan import BlockRef, Item, Kept, Plan
from ...projection.render import project
from ...tokens import FRAMING, total_cost
from ...transcript import Text, ToolResult, View
from ..contract import CompactionRequest, Refused
from .messages import Message, Part, Tool, blocks_of_messages, instructions

__all__ = [
    "AUTOMATIC",
    "check_numbers",
    "checked",
    "kept_items",
    "laid_out",
    "open_from",
    "options_of",
    "prefix_items",
    "refs",
]

AUTOMATIC = ("automatic", "model_context_downshift", "provider_context_limit")
"""The triggers that OpenCode calls automatic: it goes on by itself afterwards."""


def refs(parts: Iterable[Part]) -> tuple[BlockRef, ...]:
    """References to the blocks."""
    return tuple(BlockRef(part.entry.id, part.number) for part in parts)


def laid_out(
    view: View,
    front: Sequence[Item],
    tail: Sequence[Message],
    budget: Budget,
    *,
    downgraded: Mapping[tuple[int, int], str] | None = None,
    between: Mapping[int, Sequence[Item]] | None = None,
) -> tuple[tuple[Item, ...], str]:
    """The items of a projection, and the id of the newest entry that they cover.

    First come the covered instructions, then `front`, then what of `tail` lies before the point from which on the view is shown whole.

    Args:
        view: the session.
        front: what stands for the covered range.
        tail: the messages that are shown.
        budget: whose counter is used.
        downgraded: other texts for single blocks, by position and block number.
        between: items that stand right after the entry at a position.
    """
    parts, texts = _by_position(tail)
    texts |= downgraded or {}
    apart, _ = instructions(view)
    cut = len(view.entries)
    lowest = max(between, default=-1) if between else -1
    while cut - 1 > lowest and _is_whole(view, cut - 1, parts.get(cut - 1, ()), texts, apart):
        cut -= 1
    cutoff = max(0, cut - 1)
    covered = [view.entries[position] for position in sorted(apart) if position <= cutoff]
    items: list[Item] = [found.kept for found in originals(covered, budget.counter) if found.kind == "instruction"]
    items += front
    for position in range(cutoff + 1):
        if position in parts:
            items.append(_kept(view, position, parts[position], texts))
        items += (between or {}).get(position, ())
    return tuple(items), view.entries[cutoff].id


def _is_whole(
    view: View, position: int, parts: Iterable[Part], texts: Mapping[tuple[int, int], str], apart: frozenset[int]
) -> bool:
    """Whether the tail can begin here: everything in the entry is shown as it is, or nothing in it belongs to a message."""
    wanted = blocks_of_messages(view.entries[position])
    shown = {part.number for part in parts}
    if not shown:
        return not wanted or position in apart
    return shown == wanted and not any((position, number) in texts for number in shown)


def _kept(view: View, position: int, parts: Iterable[Part], texts: Mapping[tuple[int, int], str]) -> Kept:
    entry = view.entries[position]
    numbers = sorted(part.number for part in parts)
    replaced = {number: texts[position, number] for number in numbers if (position, number) in texts}
    return Kept(entry.id, None if len(numbers) == len(entry.blocks) else tuple(numbers), replaced)


def _text_of(part: Part) -> str:
    """The text that the current projection shows in place of a block."""
    return part.block.text if isinstance(part.block, Text | ToolResult) else ""


def kept_items(
    view: View, shown: Sequence[Message], texts: Mapping[tuple[int, int], str] | None = None
) -> tuple[Item, ...]:
    """The messages as originals and nothing else, for a request that shows them to a summariser; `texts` replaces single blocks."""
    parts, replaced = _by_position(shown)
    replaced |= texts or {}
    return tuple(_kept(view, position, parts[position], replaced) for position in sorted(parts))


def prefix_items(view: View, previous: Plan | None, head: Sequence[Message]) -> tuple[Item, ...]:
    """The current projection up to the end of `head`, just as it is sent; for a request that shares the session's prefix (SU-16)."""
    parts, replaced = _by_position(head)
    apart, _ = instructions(view)
    covered = -1 if previous is None else view.positions[previous.cutoff]
    items = list(previous.items) if previous is not None else []
    for position in range(covered + 1, max(parts, default=-1) + 1):
        if position in apart:
            items.append(Kept(view.entries[position].id))
        elif position in parts:
            items.append(_kept(view, position, parts[position], replaced))
    return tuple(items)


def _by_position(shown: Sequence[Message]) -> tuple[dict[int, list[Part]], dict[tuple[int, int], str]]:
    """The blocks of the messages by position of their entry, and the texts that the current projection has in place of some."""
    parts: dict[int, list[Part]] = {}
    for message in shown:
        for part in message.blocks():
            parts.setdefault(part.position, []).append(part)
    found = (part for at in parts.values() for part in at if part.replaced)
    return parts, {(part.position, part.number): _text_of(part) for part in found}


def open_from(view: View, shown: Sequence[Message]) -> int:
    """The first message of a step that still waits for a result, and so must stay (SE-07); the number of messages when none does."""
    at = open_step(view.entries)
    waiting = (
        number
        for number, message in enumerate(shown)
        if any(
            isinstance(part, Tool) and part.result is None and part.call is not None and part.call.position >= at
            for part in message.parts
        )
    )
    return next(waiting, len(shown))


def checked(plan: Plan, view: View, budget: Budget, request: CompactionRequest, before: int) -> Plan | Refused:
    """The plan with its sizes, or a refusal where it must not be sent or saves nothing.

    OpenCode checks neither; the bounds of a request bind every strategy here (design 5.3 and 5.4, SU-11).
    """
    after = total_cost(project(view, plan), budget.counter) + budget.fixed
    whole = after + sum(FRAMING + budget.counter.count(item.text) for item in plan.follow_up)
    if whole > budget.input_limit:
        return Refused(
            "budget-exceeded",
            f"the projection takes {whole:,} tokens and the input limit is {budget.input_limit:,}; lower preserve_recent_tokens or keep_tokens, "
            "or use a model with a larger window",
            {"after": whole, "input_limit": budget.input_limit},
        )
    if request.trigger in AUTOMATIC and whole >= before:
        return Refused(
            "no-progress",
            f"the projection would take {whole:,} tokens and the request takes {before:,} now",
            {"before": before, "after": whole},
        )
    return msgspec.structs.replace(plan, tokens_before=before, tokens_after=after)


def check_numbers(strategy: Any, names: Sequence[str]) -> None:
    """Refuses options that cannot be negative.

    Raises:
        ConfigError: one is.
    """
    for name in names:
        value = getattr(strategy, name)
        if value is not None and value < 0:
            raise ConfigError(f"{name} must be at least 0, not {value:,}")


def options_of(strategy: Any, names: Sequence[str]) -> dict[str, Any]:
    """The named attributes, as a user would set them."""
    return {name: getattr(strategy, name) for name in names}
