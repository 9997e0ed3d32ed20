"""From the parents that Claude Code's lines name to the order and the tree of the entries."""

from __future__ import annotations

from ....transcript import ToolCall, ToolResult
from ..branches import arrival_order, straightened
from .drafts import Conversation, Draft

__all__ = ["linked"]


def linked(conversation: Conversation, tip: str | None) -> tuple[list[int], list[int | None], int | None]:
    """The order of the drafts, the parent of each, and the leaf, all by index.

    The tree has a branch where the person went back and the conversation went on differently (IM-06); what only hangs beside the path
    (results of parallel calls, hook texts) is on it. `tip` is the line at which the active path ends; None for the newest draft.
    """
    drafts = conversation.drafts
    parents: list[int | None] = []
    for index, draft in enumerate(drafts):
        if draft.linked:
            parents.append(conversation.resolve(draft.parent, index - 1))
        else:
            parents.append(index - 1 if index else None)
    order = _asides_after_results(drafts, parents, arrival_order(parents))
    leaf = len(drafts) - 1 if tip is None else conversation.resolve(tip, len(drafts) - 1)
    parents, leaf = straightened(parents, _branching(drafts), order, leaf if drafts else None)
    return order, parents, leaf


def _branching(drafts: list[Draft]) -> list[bool]:
    """Which drafts continue the conversation. Two results for one call are branches too: one path must not hold both."""
    branching = [draft.role == "assistant" or draft.typed for draft in drafts]
    first: dict[str, int] = {}
    for index, draft in enumerate(drafts):
        for block in draft.blocks if draft.role == "tool" else ():
            if isinstance(block, ToolResult) and first.setdefault(block.call_id, index) != index:
                branching[index] = branching[first[block.call_id]] = True
    return branching


def _asides_after_results(drafts: list[Draft], parents: list[int | None], order: list[int]) -> list[int]:
    """The order with each aside that came between a response's calls and their results moved behind the results.

    That is how the client sends them, since a provider wants results first. `parents` is changed to match.
    """
    answered = {
        block.call_id: index
        for index, draft in enumerate(drafts)
        if draft.role == "tool"
        for block in draft.blocks
        if isinstance(block, ToolResult)
    }
    out: list[int] = []
    held: list[int] = []
    waiting: set[int] = set()

    def release() -> None:
        for aside in held:
            parents[aside] = out[-1]
            out.append(aside)
        held.clear()

    for index in order:
        draft = drafts[index]
        if draft.aside and waiting:
            held.append(index)
            continue
        if draft.role != "tool":
            release()
            waiting.clear()
        if draft.role == "assistant":
            calls = (block.id for block in draft.blocks if isinstance(block, ToolCall))
            waiting.update(answered[call] for call in calls if answered.get(call, -1) > index)
        parent = parents[index]
        while parent is not None and parent in held:
            parent = parents[parent]
        parents[index] = parent
        out.append(index)
        waiting.discard(index)
        if not waiting:
            release()
    release()
    return out
