"""What a session holds in memory between two checkpoints: the checkpoint's front, the tail, the attachments. Nothing of what is covered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..checkpoint import Checkpoint
from ..errors import EntryNotFoundError
from ..journal import Journal
from ..projection.plan import Kept
from ..projection.render import project
from ..projection.repair import repair
from ..transcript import Entry, View
from .requests import Attachment, attached

__all__ = ["Frame", "front_of"]


@dataclass(frozen=True)
class Frame:
    """The state that requests are made from."""

    checkpoint: Checkpoint | None = None
    front: tuple[Entry, ...] = ()
    tail: tuple[Entry, ...] = ()
    attachments: tuple[Attachment, ...] = ()
    leaf: str | None = None
    """Id of the newest entry of the session."""

    def appended(self, new: Sequence[Entry]) -> Frame:
        """The same with entries behind the tail."""
        return replace(self, tail=(*self.tail, *new), leaf=new[-1].id if new else self.leaf)

    def with_attachments(self, new: Sequence[Attachment]) -> Frame:
        """The same with more attachments."""
        return replace(self, attachments=(*self.attachments, *new))

    @property
    def fresh(self) -> int:
        """How many entries of the tail were recorded after the checkpoint; only their usage says how large a request is now."""
        if self.checkpoint is None:
            return len(self.tail)
        for position, entry in enumerate(self.tail):
            if entry.id == self.checkpoint.head:
                return len(self.tail) - position - 1
        # The head was covered itself, so everything in the tail came later.
        return len(self.tail)

    def shown(self) -> tuple[tuple[Entry, ...], tuple[Attachment, ...]]:
        """The entries to send, repaired, and the attachments that sending them adds."""
        cutoff = "" if self.checkpoint is None else self.checkpoint.plan.cutoff
        entries, new = attached(self.front, self.tail, self.attachments, cutoff)
        return repair(entries).entries, new


def front_of(journal: Journal, checkpoint: Checkpoint) -> tuple[Entry, ...] | None:
    """What a checkpoint shows before the tail, read from the journal; None when an original it refers to is not there."""
    try:
        kept = [journal.entry(item.entry) for item in checkpoint.plan.items if isinstance(item, Kept)]
        cutoff = journal.entry(checkpoint.plan.cutoff)
    except EntryNotFoundError:
        return None
    entries = [entry for entry in kept if entry.id != cutoff.id]
    return project(View((*entries, cutoff)), checkpoint.plan)
