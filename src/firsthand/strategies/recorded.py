"""What the client that wrote a session file really kept at its own newest compaction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import msgspec

from ..budget import Budget, Occupancy
from ..projection.plan import Item, Kept, Plan, Synthetic, SyntheticKind, Trigger
from ..projection.render import project
from ..tokens import total_cost
from ..transcript import Entry, Marker, Text, Unknown, View
from .contract import CompactionRequest, Decision, DueState, Strategy, Summary, Unchanged

__all__ = ["Recorded"]

_UNREADABLE = "[The client's own summary of the history up to here is an opaque item that only its provider can read; it is not shown.]"


class Recorded(Strategy):
    """The projection that the client itself made at its newest recorded compaction in the view, followed by what came after.

    Guarantees: shows what the session file says the client showed, nothing else; makes no call. It promises no bound, since a recorded
    compaction fits the window of its client and not every other; whoever runs it checks the result. A summary that only its provider can
    read is replaced by a line that says so, and `Plan.notes` counts it.
    """

    name: ClassVar[str] = "recorded"
    version: ClassVar[str] = "recorded-1"

    def due(self, occupancy: Occupancy, budget: Budget, state: DueState) -> Trigger | None:
        """Never by itself: the client decided, back then."""
        return None

    def plan(
        self,
        view: View,
        budget: Budget,
        request: CompactionRequest,
        previous: Plan | None = None,
        summaries: Mapping[str, Summary] | None = None,
        occupancy: Occupancy | None = None,
    ) -> Decision:
        """The newest recorded compaction as a plan."""
        marker = _newest(view)
        if marker is None or marker.after is None:
            return Unchanged("the session file records no compaction by its client")
        items = tuple(_item(shown, view) for shown in marker.shown)
        unreadable = sum(isinstance(item, Synthetic) and item.text == _UNREADABLE for item in items)
        plan = Plan(
            strategy=self.name,
            version=self.version,
            covered_from=view.entries[0].id,
            cutoff=marker.after,
            items=items,
            rest="summarised"
            if any(isinstance(item, Synthetic) and item.kind == "summary" for item in items)
            else "omitted",
            summary=next(
                (item.text for item in reversed(items) if isinstance(item, Synthetic) and item.kind == "summary"), None
            ),
            tokens_before=total_cost(view.entries, budget.counter) + budget.fixed,
            trigger=request.trigger,
            phase=request.phase,
            notes={"marker": marker.id} | ({"unreadable": str(unreadable)} if unreadable else {}),
        )
        after = total_cost(project(view, plan), budget.counter) + budget.fixed
        return msgspec.structs.replace(plan, tokens_after=after)


def _newest(view: View) -> Marker | None:
    placed = [marker for marker in view.markers if marker.after in view.positions]
    return max(placed, key=lambda marker: view.positions[marker.after or ""], default=None)


def _item(shown: str | Entry, view: View) -> Item:
    if isinstance(shown, str):
        return Kept(shown)
    texts = [block for block in shown.blocks if isinstance(block, Text)]
    if not texts or any(isinstance(block, Unknown) for block in shown.blocks):
        return Synthetic("notice", _UNREADABLE)
    origin = "summary" if any(block.origin == "summary" for block in texts) else texts[0].origin
    kind: SyntheticKind = "summary" if origin == "summary" else "excerpts"
    return Synthetic(kind, "\n".join(block.text for block in texts), role=shown.role, origin=origin)
