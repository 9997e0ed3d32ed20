"""The strategy `coverage`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ...budget import Budget, Occupancy
from ...projection.features.rows import EXTRACTOR, extract
from ...projection.plan import Plan
from ...tokens import total_cost
from ...transcript import Entry, View
from ..contract import CompactionRequest, Decision, DueState, Refused, Strategy, Summary, Trigger, Unchanged
from ..gating import due_at_trigger, gate, is_gated
from .planning import plan_view
from .sizing import DEFAULT_TARGET, Options

__all__ = ["Coverage"]


class Coverage(Strategy):
    """User text whole, the newest steps, the assistant's words, and the verbatim lines that together cover most of what else there is.

    Guarantees: the projection is never above its target, nor above the input limit; user text is whole while it takes at most 60 % of the
    target, and in a running session the target rises up to three quarters of the room before any of it is excerpted; sentences of user text
    that set a rule stay; every line shown is verbatim, under the id of its entry; the plan is recomputed from the originals, so the N-th is as
    good as the first; no model call; whole-number arithmetic, so a plan is the same on every machine. What is left out is counted in the text.

    Options:
        target: wanted size of the projected history, in tokens of the budget's counter.
        fixed_target: hold it also where user text would make it rise.
        tail: percent of it for the newest steps, sent as they are; 0: none, but for a call that waits and for what the person just wrote.
        prose: percent of the free room up to which the assistant's words stay whole; 0 lets every line compete.
        user: percent of the target up to which user text stays whole.
    """

    name: ClassVar[str] = "coverage"
    version: ClassVar[str] = "coverage-2"
    recomputed = True
    extractor: ClassVar[str | None] = EXTRACTOR

    def __init__(
        self,
        *,
        target: int = DEFAULT_TARGET,
        fixed_target: bool = False,
        tail: int = 10,
        prose: int = 60,
        user: int = 60,
    ) -> None:
        if target < 1:
            raise TypeError(f"target is at least 1 token, not {target}")
        for name, value in (("tail", tail), ("prose", prose), ("user", user)):
            if not 0 <= value <= 100:
                raise TypeError(f"{name} is a percentage, not {value}")
        self._options = Options(target, fixed_target, tail, prose, user)

    def options(self) -> dict[str, Any]:
        """The options in force."""
        chosen = self._options
        return {
            "target": chosen.target,
            "fixed_target": chosen.fixed_target,
            "tail": chosen.tail,
            "prose": chosen.prose,
            "user": chosen.user,
        }

    def at_size(self, tokens: int) -> Strategy:
        """The same with a fixed target."""
        return type(self)(**{**self.options(), "target": tokens, "fixed_target": True})

    def features(self, entry: Entry) -> bytes:
        """The entry's units and terms (`projection.features.rows`)."""
        return extract(entry)

    def due(self, occupancy: Occupancy, budget: Budget, state: DueState) -> Trigger | None:
        """Four fifths of the window or the input limit, whichever is lower."""
        return due_at_trigger(occupancy, budget, state)

    def plan(
        self,
        view: View,
        budget: Budget,
        request: CompactionRequest,
        previous: Plan | None = None,
        summaries: Mapping[str, Summary] | None = None,
        occupancy: Occupancy | None = None,
    ) -> Decision:
        """The decision; `previous` only tells how large the request is now."""
        size = occupancy.tokens if occupancy else 0
        if size == 0 or request.trigger == "provider_context_limit":
            size = max(size, self._size(view, budget, previous))
        stop = gate(size, bool(view.entries), budget, request)
        if stop is not None:
            return stop
        decision = self._planned(view, budget, request, size, previous, summaries)
        if isinstance(decision, Refused) and is_gated(request) and size <= budget.input_limit:
            return Unchanged(f"the request still fits, and nothing smaller can be made of it: {decision.message}")
        return decision

    def _planned(
        self,
        view: View,
        budget: Budget,
        request: CompactionRequest,
        size: int,
        previous: Plan | None,
        summaries: Mapping[str, Summary] | None,
    ) -> Decision:
        """The decision once it is due; `size` is what the request takes now."""
        return plan_view(view, budget, request, self._options, size, self.name, self.version)

    @staticmethod
    def _size(view: View, budget: Budget, previous: Plan | None) -> int:
        """Tokens of the request as it is, fixed tokens included."""
        if previous is None or previous.cutoff not in view.positions:
            return total_cost(view.entries, budget.counter) + budget.fixed
        later = view.entries[view.positions[previous.cutoff] + 1 :]
        return previous.tokens_after + total_cost(later, budget.counter)
