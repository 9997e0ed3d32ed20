"""Which messages a remote compaction retains: 64,000 tokens of them, newest first (codex.md 6.3)."""

from __future__ import annotations

from collections.abc import Sequence

from ...projection.plan import Item
from ...transcript import Media, Text, Unknown
from .counting import IMAGE_TOKENS, cut_to_tokens, entry_tokens, text_tokens
from .history import Message
from .kinds import Kind

__all__ = ["AGENT_TOKENS", "message_cost", "newest_messages", "worth_keeping"]

AGENT_TOKENS = 10_000
"""A message of another agent above this is not retained."""


def worth_keeping(message: Message) -> bool:
    """Whether a message takes part at all; of those of other agents only short ones that are no report from a descendant."""
    if message.kind != "agent":
        return bool(message.blocks)
    return entry_tokens(message.part.entry) <= AGENT_TOKENS and not any(
        _reports_upward(block.raw) for block in message.blocks if isinstance(block, Unknown)
    )


def _reports_upward(raw: object) -> bool:
    """Whether an agent's message goes to one of its ancestors; agents are named by their path from the root."""
    if not isinstance(raw, dict):
        return False
    author, recipient = raw.get("author"), raw.get("recipient")
    return isinstance(author, str) and isinstance(recipient, str) and author.startswith(recipient.rstrip("/") + "/")


def message_cost(message: Message, *, images: bool) -> int:
    """Tokens that a message takes of the budget, at least 1; `images` says whether pictures are charged. Sound is free.

    The texts that frame an attachment count here, as runs of the client show.
    """
    if message.kind in ("developer", "agent"):
        return max(1, entry_tokens(message.part.entry))
    texts = sum(text_tokens(block.text) for block in message.blocks if isinstance(block, Text))
    return max(1, texts + IMAGE_TOKENS * sum(_charged(block, images) for block in message.blocks))


def _charged(block: object, images: bool) -> bool:
    return images and isinstance(block, Media) and block.kind != "audio"


def newest_messages(found: Sequence[Message], room: int, *, images: bool) -> tuple[list[tuple[Kind, Item]], str]:
    """The newest messages that `room` tokens hold, oldest first.

    The first that does not fit is cut part by part and ends the choice, also when nothing of it can stay: nothing older is taken in its place.

    Returns:
        The retained messages, and the id of the one that was cut, or "".
    """
    retained: list[tuple[Kind, Item]] = []
    for message in reversed(found):
        if room <= 0:
            break
        cost = message_cost(message, images=images)
        if cost <= room:
            retained.append((message.kind, message.item()))
            room -= cost
            continue
        item = _cut(message, room, images)
        if item is not None:
            retained.append((message.kind, item))
        return retained[::-1], message.id if item is not None else ""
    return retained[::-1], ""


def _cut(message: Message, room: int, images: bool) -> Item | None:
    """The message cut to `room`: texts from the first on and all media; with charged pictures all parts from the last on.

    A charged picture stays whole, with the texts that frame it, or not at all.
    """
    parts = dict(zip(message.numbers, message.blocks, strict=True))
    charged = {number for number, block in parts.items() if _charged(block, images)}
    frames = {number for number in message.tags if charged & {number - 1, number + 1}}
    kept: set[int] = set()
    replaced: dict[int, str] = {}
    for number in reversed(parts) if charged else parts:
        block = parts[number]
        if number in charged:
            unit = {number, *(frames & {number - 1, number + 1})}
            cost = IMAGE_TOKENS + sum(text_tokens(part.text) for n in unit if isinstance(part := parts[n], Text))
            if cost <= room:
                kept |= unit
                room -= cost
        elif number in frames or (isinstance(block, Text) and room <= 0):
            continue
        elif isinstance(block, Text):
            size = text_tokens(block.text)
            if size > room:
                replaced[number] = cut_to_tokens(block.text, room)
            kept.add(number)
            room -= min(size, room)
        else:
            kept.add(number)
    return message.item(kept, replaced) if kept else None
