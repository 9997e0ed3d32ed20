"""All that one compaction needs to know, as a value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..budget import Budget, Occupancy
from ..checkpoint import Checkpoint, CheckpointStore, fingerprint
from ..strategies.contract import CompactionRequest, Strategy
from ..summary.attempts import DEADLINE_SECONDS
from ..transcript import Usage, View
from .effects import Summariser
from .events import Event
from .requests import Attachment

__all__ = ["Job"]


@dataclass(frozen=True)
class Job:
    """All that one compaction needs to know."""

    session: str
    store: CheckpointStore
    view: View
    chain: str
    """Chain hash of the view's newest entry, in hex: equal only for equal histories."""
    strategy: Strategy
    fallback: Strategy | None
    """Takes over when `strategy` cannot do without the summary that failed."""
    budget: Budget
    request: CompactionRequest
    previous: Checkpoint | None
    occupancy: Occupancy
    wire: str
    model: str | None = None
    system: Any = None
    tools: Sequence[Any] | None = None
    attachments: Sequence[Attachment] = ()
    summariser: Summariser | None = None
    output_cap: int | None = None
    """The most output that the model may be asked for (SU-10); None where nobody said."""
    deadline: float = DEADLINE_SECONDS
    emit: Callable[[Event], None] = lambda event: None
    price: Callable[[Sequence[Usage]], float | None] = lambda usage: None
    view_for: Callable[[Strategy], View] | None = None
    """Reads the view with the derived rows of another strategy than `strategy`; None where it carries none."""

    @property
    def key(self) -> str:
        """What makes two requests the same (futureos.md 6.4): history, budget, settings, instructions and algorithm; not what came later."""
        budget = self.budget
        return fingerprint(
            self.chain,
            [
                budget.window,
                budget.output_ceiling,
                budget.fixed,
                budget.counter.name,
                budget.profile,
                budget.target,
                budget.threshold,
            ],
            self.request,
            [self.strategy.name, self.strategy.version, self.strategy.options()],
            self.summariser is not None,
            sorted(self.view.pins),
        )
