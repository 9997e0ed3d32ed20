"""Compactions of a path: the runtime's own compaction, on the journal, with its result rendered for the wire. Runs in a thread."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..budget import Budget, Occupancy
from ..checkpoint import CheckpointStore
from ..projection.plan import Phase, Trigger
from ..session.compaction import Outcome, compaction
from ..session.effects import Summariser, run
from ..session.frame import front_of
from ..session.job import Job
from ..strategies.contract import CompactionRequest, DueState, Strategy
from ..strategies.futureos.strategies import FutureosDeterministic
from ..tokens import Counter
from .paths import Front, Path
from .stitch import rendered
from .store import GatewayStore

__all__ = ["Compacted", "Compactor", "Wanted", "due"]


@dataclass(frozen=True)
class Wanted:
    """One compaction that is to be made."""

    path: Path
    length: int
    """The first messages of the path, which the request shows."""
    front: Front | None
    budget: Budget
    counter: Counter
    """The model's own, without what the budget's is corrected by."""
    used: Occupancy
    trigger: Trigger
    phase: Phase
    model: str
    summariser: Summariser | None = None
    system: Any = None
    tools: list[Any] | None = None


@dataclass(frozen=True)
class Compacted:
    """How it ended: with a front, or with a reason why there is none."""

    front: Front | None
    outcome: Outcome


def due(
    strategy: Strategy, path: Path, front: Front | None, used: Occupancy, budget: Budget, phase: Phase
) -> Trigger | None:
    """The trigger that fires now, or None.

    What could not be made smaller is not tried again before there is something new to cover (OV-02): half a tail of it, or, for a request that
    cannot be sent as it is, anything. Such a request is tried whatever the strategy would wait for.
    """
    if used.tokens < path.tried_at:
        # The count was corrected since, so what was found then does not hold.
        path.tried_at = 0
    least = max(path.tried_at, front.checkpoint.baseline if front else 0)
    new = 1 if used.tokens > budget.input_limit else budget.keep_recent // 2
    if least and used.tokens < least + new:
        return None
    state = DueState(phase=phase, auto=True, previous=front.checkpoint.plan if front else None)
    trigger = strategy.due(used, budget, state)
    if trigger is None and used.tokens > budget.input_limit:
        return "provider_context_limit"
    return trigger


class Compactor:
    """Makes compactions with one strategy."""

    def __init__(self, store: GatewayStore, strategy: Strategy) -> None:
        self._store = store
        self.strategy = strategy
        self._fallback = FutureosDeterministic(from_originals=True)

    def make(self, wanted: Wanted) -> Compacted:
        """Make one compaction; everything of the path must be in the journal."""
        path, journal = wanted.path, self._store.journal
        newest = path.entries[wanted.length - 1]
        view = journal.view(path.session, newest, extractor=self.strategy.extractor)
        job = Job(
            session=path.session,
            store=CheckpointStore(journal, path.session),
            view=view,
            chain=journal.chain(newest).hex(),
            strategy=self.strategy,
            fallback=self._fallback,
            budget=wanted.budget,
            request=CompactionRequest(trigger=wanted.trigger, phase=wanted.phase),
            previous=wanted.front.checkpoint if wanted.front else None,
            occupancy=wanted.used,
            wire=path.wire,
            model=wanted.model or None,
            system=wanted.system,
            tools=wanted.tools,
            summariser=wanted.summariser,
        )
        outcome = run(compaction(job))
        checkpoint = outcome.checkpoint
        if checkpoint is None:
            return Compacted(None, outcome)
        entries = front_of(journal, checkpoint)
        if entries is None:
            return Compacted(None, Outcome("failed", "an original that the plan refers to is not in the journal"))
        covered = path.entries.index(checkpoint.plan.cutoff) + 1
        stored = self._store.rendered(checkpoint)
        if stored is None:
            stored = rendered(path.wire, entries, wanted.counter)
            self._store.keep_rendered(path.session, checkpoint, *stored)
        return Compacted(Front(checkpoint, covered, *stored), outcome)
