"""How much of what one checkpoint chose the next one still shows: a projection that reshuffles without need is hard to follow."""

from __future__ import annotations

from ..projection.plan import Kept, Plan
from ..transcript import Block, Reasoning, Text, ToolCall, ToolResult, View

__all__ = ["chosen_lines", "stayed"]

Line = tuple[str, int, str]
"""Entry, block and text of an excerpt's line."""


def chosen_lines(view: View, plan: Plan) -> frozenset[Line]:
    """The lines of a plan's excerpts, blank ones left out."""
    return frozenset(
        (excerpt.entry, excerpt.block, line.strip())
        for excerpt in plan.excerpts
        for span in excerpt.spans
        for line in _text(view[excerpt.entry].blocks[excerpt.block])[span.start : span.end].splitlines()
        if line.strip()
    )


def stayed(before: frozenset[Line], view: View, plan: Plan) -> int:
    """How many of the lines that an earlier plan chose are chosen again, or stand in an entry that is shown as it is."""
    now = chosen_lines(view, plan)
    cutoff = view.positions[plan.cutoff]
    whole = {item.entry for item in plan.items if isinstance(item, Kept) and item.blocks is None and not item.replaced}
    return sum(line in now or line[0] in whole or view.positions[line[0]] > cutoff for line in before)


def _text(block: Block) -> str:
    match block:
        case Text(text=text) | Reasoning(text=text):
            return text
        case ToolCall(arguments=arguments):
            return arguments
        case ToolResult():
            return block.text
        case _:
            return ""
