"""What a plan of `pi` shows before the tail, what no summary covers, and whether it fits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ...budget import Budget
from ...projection.originals import Original, originals
from ...projection.plan import BlockRef, Item, Kept, Plan, Synthetic
from ...tokens import Counter, entry_cost, total_cost
from ...transcript import Block, Entry, Media, Reasoning, Text, ToolResult, Unknown, View
from ..contract import CompactionRequest, Refused, Unchanged
from .cut import Preparation
from .path import Piece
from .rules import Rules
from .text import is_hidden, shown_summary

__all__ = ["final_refusal", "fitting", "items", "nothing", "omitted", "summary_item", "tail_refusal"]


def summary_item(summary: str) -> Synthetic:
    """A stored summary as it stands in a projection."""
    return Synthetic("summary", shown_summary(summary), origin="summary")


def items(
    view: View, pieces: Sequence[Piece], prepared: Preparation, summary: str, rules: Rules, counter: Counter
) -> tuple[tuple[Item, ...], str]:
    """What stands in front of the tail, and the id of the newest entry that is not part of it.

    First what Pi has in its system prompt (system and developer entries, rule files that other clients inject), then the summary. Where older
    checkpoints are shown again (a defect of Jul), the entries up to the last of them are listed one by one.
    """
    start = view.positions[prepared.first_kept.id]
    instructions = [original.kept for original in _instructions(view.entries[:start], pieces, counter)]
    again: list[Item] = []
    pending: list[Item] = []
    end = start - 1
    at = -1
    for piece in pieces:
        at += piece.entry is not None
        if at < start:
            continue
        if piece.entry is not None:
            pending.append(Kept(piece.entry.id))
        elif piece.checkpoint is not None and not rules.silent_checkpoints:
            again += [*pending, summary_item(piece.checkpoint.summary)]
            pending = []
            end = at
    if end < 0:
        # A plan covers at least one entry; this one is kept.
        again, end = [Kept(view.entries[0].id)], 0
    return (*instructions, summary_item(summary), *again), view.entries[end].id


def omitted(view: View, prepared: Preparation, previous: Plan | None, rules: Rules) -> tuple[BlockRef, ...]:
    """The covered blocks that no summary covers: images, what a release does not serialise, and what its defects forget."""
    start = view.positions[prepared.first_kept.id]
    made = prepared.previous
    before = view.positions.get(made.first_kept or "", 0) if made else 0
    lost = made is not None and prepared.prefix and not prepared.history and not rules.keep_previous_summary
    told = {piece.id for piece in (*prepared.history, *prepared.prefix)}
    found = list(previous.omitted) if previous is not None and made is not None and not lost else []
    seen = {(ref.entry, ref.block) for ref in found}
    for entry in view.entries[0 if lost else before : start]:
        for number in _unsaid(entry, entry.id in told, rules):
            if (entry.id, number) not in seen:
                found.append(BlockRef(entry.id, number))
    return tuple(found)


def _unsaid(entry: Entry, told: bool, rules: Rules) -> Iterator[int]:
    if not told or is_hidden(entry):
        yield from range(len(entry.blocks))
        return
    for number, block in enumerate(entry.blocks):
        if not _is_serialised(block, rules):
            yield number


def _is_serialised(block: Block, rules: Rules) -> bool:
    match block:
        case Media() | Unknown():
            return False
        case Reasoning():
            return rules.shows_thinking
        case ToolResult(content=content):
            return not content or any(isinstance(part, Text) for part in content)
        case _:
            return True


def nothing(reason: str, before: int, budget: Budget) -> Unchanged | Refused:
    """Pi does nothing; where the request cannot be sent as it is, that is the end."""
    if before <= budget.input_limit:
        return Unchanged(reason)
    return Refused(
        "no-valid-boundary",
        f"{reason}, so nothing can be summarised, and the request takes {before:,} tokens with an input limit of {budget.input_limit:,}; "
        "shorten the newest entry, keep fewer recent tokens, or use a model with a larger window",
        {"size": before, "input_limit": budget.input_limit},
    )


def fitting(view: View, pieces: Sequence[Piece], budget: Budget, allowed: int) -> Callable[[Entry], bool]:
    """Whether a tail that begins at an entry, with the instructions before it, leaves room for a summary and for going on.

    It may take half of what is free under the trigger and the input limit, so that the next compaction is not due at once, and three quarters
    of the target where one is wanted.
    """
    limit = max(0, min(budget.input_limit, allowed) - budget.fixed) // 2
    if budget.target is not None:
        limit = min(limit, budget.target * 3 // 4)
    sizes: dict[str, int] = {}
    tail = 0
    for entry in reversed(view.entries):
        tail += entry_cost(entry, budget.counter)
        sizes[entry.id] = tail
    costs = {original.kept.entry: original.cost for original in _instructions(view.entries, pieces, budget.counter)}
    front = 0
    for entry in view.entries:
        sizes[entry.id] += front
        front += costs.get(entry.id, 0)
    return lambda entry: sizes[entry.id] <= limit


def _instructions(entries: Sequence[Entry], pieces: Sequence[Piece], counter: Counter) -> list[Original]:
    """What of the entries stands in Pi's system prompt, each text once."""
    messages = {piece.id for piece in pieces if piece.kind != "none"}
    return [
        original
        for original in originals(entries, counter)
        if original.kind == "instruction" and original.kept.entry not in messages
    ]


def tail_refusal(view: View, prepared: Preparation, budget: Budget) -> Refused | None:
    """The refusal before any call is made, when not even the tail fits."""
    tail = total_cost(view.entries[view.positions[prepared.first_kept.id] :], budget.counter)
    if tail + budget.fixed <= budget.input_limit:
        return None
    return Refused(
        "budget-exceeded",
        f"the tail that Pi's rules keep takes {tail:,} tokens, {budget.fixed:,} more go to the system prompt and tools, and the input limit is "
        f"{budget.input_limit:,}; keep fewer recent tokens, shorten the newest entries, or use a model with a larger window",
        {"tail": tail, "fixed": budget.fixed, "input_limit": budget.input_limit},
    )


def final_refusal(before: int, after: int, budget: Budget, request: CompactionRequest) -> Refused | None:
    """The refusal of a finished projection that cannot be sent, or that helps nothing."""
    if after > budget.input_limit:
        return Refused(
            "budget-exceeded",
            f"with its summary the projection would take {after:,} tokens and the input limit is {budget.input_limit:,}; keep fewer recent tokens",
            {"after": after, "input_limit": budget.input_limit},
        )
    if request.trigger != "manual" and after >= before:
        return Refused(
            "no-progress",
            f"the projection would take {after:,} tokens and the request takes {before:,} now",
            {"before": before, "after": after},
        )
    return None
