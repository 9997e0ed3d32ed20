"""What was added to messages behind a checkpoint, so that it is sent again unchanged: placeholders, and recall blocks with their decisions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ..checkpoint import Checkpoint
from ..journal import Journal
from ..session.requests import Attachment
from ..session.store import SessionStore
from ..tokens import Counter, block_cost
from ..transcript import Text
from .paths import Front, Path

__all__ = ["Attached", "AttachedTo"]

_MOST_CHECKPOINTS = 10_000


@dataclass
class AttachedTo:
    """The attachments under one checkpoint."""

    placeholders: tuple[Attachment, ...] = ()
    recalls: dict[str, str] = field(default_factory=dict)
    """The block by entry; empty where nothing was found when the entry was first sent."""
    costs: dict[tuple[str, str], int] = field(default_factory=dict)
    """Tokens of a block, by entry and counter."""

    def add(self, new: Iterable[Attachment]) -> None:
        """Take in more; a decision that was made stays."""
        for item in new:
            if item.kind == "recall":
                self.recalls.setdefault(item.entry, item.text)
            else:
                self.placeholders = (*self.placeholders, item)


class Attached:
    """The attachments of all checkpoints in use, read from the journal once."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._under: dict[str, AttachedTo] = {}

    def under(self, checkpoint: Checkpoint) -> AttachedTo:
        """What was attached under a checkpoint.

        Raises:
            SessionNotFoundError: its session was deleted.
        """
        known = self._under.get(checkpoint.id)
        if known is None:
            if len(self._under) > _MOST_CHECKPOINTS:
                self._under.clear()
            known = self._under[checkpoint.id] = AttachedTo()
            try:
                known.add(SessionStore(self._journal, checkpoint.session).attachments(checkpoint.id))
            except BaseException:
                del self._under[checkpoint.id]
                raise
        return known

    def recall_costs(self, path: Path, front: Front, length: int, counter: Counter) -> Mapping[int, int]:
        """Tokens of the blocks behind a checkpoint, by position of their messages among the first `length` of the path."""
        under = self.under(front.checkpoint)
        if not under.recalls:
            return {}
        found: dict[int, int] = {}
        for number in range(front.covered, min(length, len(path.entries))):
            text = under.recalls.get(path.entries[number])
            if text:
                key = (path.entries[number], counter.name)
                if key not in under.costs:
                    under.costs[key] = block_cost(Text(text, "injected"), counter)
                found[number] = under.costs[key]
        return found
