"""Codex's live history: what a compaction covers, and which of its messages may be retained (codex.md 4 and 6).

The live history is what the model sees now: the newest plan's items, then the entries after it. Codex works on it and not on the originals, so a
message that one compaction cut is cut already at the next.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import msgspec

from ...projection.boundaries import has_result, open_step
from ...projection.plan import Item, Kept, Phase, Plan, Synthetic
from ...projection.render import Shown, shown
from ...transcript import Block, Entry, Text, ToolResult, View
from .kinds import Kind, beside, is_real_user, kind_of, media_tags, own

__all__ = ["LiveHistory", "Message", "live_history", "messages", "opening_prompt"]


@dataclass(frozen=True)
class LiveHistory:
    """What a compaction would cover, and what stays behind it."""

    parts: tuple[Shown, ...]
    """The live history without what stays, oldest first."""
    tail: tuple[Entry, ...]
    """A prompt that is just coming in, or a step that still waits for results."""
    originals: tuple[Entry, ...]
    """The entries of the view from its start to the cutoff."""
    previous: Plan | None = None

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The live history's entries as they are shown."""
        return tuple(part.entry for part in self.parts)

    @property
    def added(self) -> tuple[Entry, ...]:
        """Those that came after the previous plan."""
        return tuple(part.entry for part in self.parts if part.item is None)

    @property
    def cutoff(self) -> str:
        """Id of the newest covered entry."""
        return self.originals[-1].id


def live_history(view: View, previous: Plan | None, phase: Phase) -> LiveHistory | None:
    """What a compaction in that phase covers, or None when nothing was added since the previous one.

    Before a turn the newest prompt is not part of the history yet, nor is what the client records along with it; between two steps the same
    holds for everything that was typed after the newest result (codex.md 4.1 and 4.2). An explicit compaction covers all. A step whose calls still
    wait for results stays whole, which Codex never meets (SE-07).
    """
    current = shown(view, previous)
    entries = [part.entry for part in current]
    covered = len(previous.items) if previous is not None else 0
    at = len(current)
    if phase != "standalone":
        at = _incoming(entries, covered, newest_only=phase == "pre_turn")
    at = max(min(at, open_step(entries)), covered)
    if not any(entry.blocks for entry in entries[covered:at]):
        return None
    end = view.positions[entries[at - 1].id] + 1
    return LiveHistory(tuple(current[:at]), tuple(entries[at:]), view.entries[:end], previous)


def _incoming(entries: Sequence[Entry], least: int, *, newest_only: bool) -> int:
    """Where the input begins that no model step has seen."""
    start = len(entries)
    while start > least and entries[start - 1].role not in ("assistant", "tool") and not has_result(entries[start - 1]):
        start -= 1
    prompts = [at for at in range(start, len(entries)) if is_real_user(entries[at])]
    if not prompts:
        return len(entries)
    at = prompts[-1 if newest_only else 0]
    while at > start and not is_real_user(entries[at - 1]):
        at -= 1
    return at


@dataclass(frozen=True, slots=True)
class Message:
    """A message of the live history that may be retained."""

    kind: Kind
    part: Shown
    numbers: tuple[int, ...]
    """Numbers, in the original, of the blocks that it consists of; in a synthetic text 0."""
    blocks: tuple[Block, ...]
    """The same blocks as they are shown now."""
    beside: tuple[int, ...] = ()
    """Blocks that the client put into the same entry and that go where it goes."""
    size: int = 1
    """Number of blocks of the original."""
    tags: frozenset[int] = frozenset()
    """Numbers of texts that only frame an attachment."""

    @property
    def id(self) -> str:
        """Id of its entry."""
        return self.part.entry.id

    @property
    def text(self) -> str:
        """Its text parts, put together without a separator (codex.md 1)."""
        return "".join(
            block.text
            for number, block in zip(self.numbers, self.blocks, strict=True)
            if isinstance(block, Text) and number not in self.tags
        )

    def item(self, kept: Collection[int] | None = None, replaced: dict[int, str] | None = None) -> Item:
        """The message in a plan.

        Args:
            kept: numbers of the blocks that stay; None: all of them.
            replaced: other text for some of them.
        """
        replaced = replaced or {}
        if isinstance(self.part.item, Synthetic):
            return msgspec.structs.replace(self.part.item, text=replaced.get(0, self.part.item.text))
        stay = self.numbers if kept is None else tuple(n for n in self.numbers if n in kept)
        if isinstance(self.part.item, Kept):
            replaced = {n: text for n, text in self.part.item.replaced.items() if n in stay} | replaced
        numbers = tuple(sorted({*stay, *self.beside}))
        return Kept(self.id, None if len(numbers) == self.size else numbers, replaced)


def opening_prompt(history: LiveHistory) -> str | None:
    """Id of the session's first user message; what a client put beside it is opening context."""
    return next((entry.id for entry in history.originals if is_real_user(entry)), None)


def messages(
    history: LiveHistory, view: View, kinds: Collection[Kind], *, media: bool = False, strict: bool = False
) -> list[Message]:
    """The messages that the retention of a compaction starts from, oldest first.

    Args:
        history: what is covered.
        view: where the originals are.
        kinds: which kinds of message are wanted.
        media: whether pictures and other attachments belong to a message; otherwise only its texts do.
        strict: one injected part takes a user message out.
    """
    opening = opening_prompt(history)
    found: list[Message] = []
    for part in history.parts:
        if isinstance(part.item, Synthetic):
            if "summary" in kinds and part.item.kind == "summary" and part.item.raw is None:
                found.append(Message("summary", part, (0,), part.entry.blocks))
            continue
        original = view[part.entry.id]
        kind = kind_of(part.entry, strict=strict)
        if kind is None or kind not in kinds:
            continue
        tags = media_tags(original)
        mine = set(own(original) if kind == "user" else range(len(original.blocks)))
        if not media:
            mine -= tags
        wanted = [
            (number, block)
            for number, block in _numbered(part)
            if number in mine and (isinstance(block, Text) or (media and not isinstance(block, ToolResult)))
        ]
        stays = beside(original) if original.id == opening else ()
        found.append(
            Message(
                kind,
                part,
                tuple(number for number, _ in wanted),
                tuple(block for _, block in wanted),
                stays,
                len(original.blocks),
                tags,
            )
        )
    return found


def _numbered(part: Shown) -> list[tuple[int, Block]]:
    """The blocks that are shown, with their numbers in the original."""
    kept = part.item if isinstance(part.item, Kept) else None
    numbers = range(len(part.entry.blocks)) if kept is None or kept.blocks is None else kept.blocks
    return list(zip(numbers, part.entry.blocks, strict=True))
