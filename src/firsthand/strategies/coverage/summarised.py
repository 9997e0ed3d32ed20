"""The strategy `coverage+summary`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec

from ...budget import Budget
from ...projection.plan import Plan
from ...transcript import View
from ..contract import CompactionRequest, Decision, NeedsSummary, Summary, SummaryRequest
from ..summary_items import halved, summary_items
from .handoff import MOST
from .instruction import HEADINGS, instruction
from .planning import plan_view
from .strategy import Coverage

__all__ = ["CoverageSummarised"]

_ID = "handoff"
_PRIOR = "prior"


class CoverageSummarised(Coverage):
    """`coverage`, and of a handoff summary that the model writes the lines that are worth their tokens.

    One model call, which shares the session's cached prefix. The summary's lines and sentences compete with all others: they are worth the
    terms of the originals that they name, so one that names nothing, or only what no original says, is not shown. They take at most `summary`
    percent of the target, and 2,000 tokens; they stand in a message of their own, labelled as written by a model.

    Guarantees: those of `coverage`, which is also what a failed or refused summary falls back to, with the reason in `Plan.notes`; the target
    holds with the summary in it; a summary never takes the place of user text, pins or the newest steps. A summary builds on the one before
    it, so `recomputed` is false; what else is shown is recomputed from the originals.

    Options:
        those of `coverage`
        summary: percent of the target for the summary at most.
        prompt: text that replaces our instruction; headings are not asked for then.
    """

    name: ClassVar[str] = "coverage+summary"
    version: ClassVar[str] = "coverage-summary-1"
    recomputed = False

    def __init__(self, *, summary: int = 20, prompt: str | None = None, **options: Any) -> None:
        super().__init__(**options)
        if not 0 <= summary <= 100:
            raise TypeError(f"summary is a percentage, not {summary}")
        self.summary = summary
        self.prompt = prompt

    def options(self) -> dict[str, Any]:
        """The options in force."""
        return {**super().options(), "summary": self.summary, "prompt": self.prompt}

    def shrink(self, request: SummaryRequest) -> SummaryRequest | None:
        """The first two messages and the newer half of the rest; nothing when there is no half left (SU-09)."""
        return halved(request)

    def _planned(
        self,
        view: View,
        budget: Budget,
        request: CompactionRequest,
        size: int,
        previous: Plan | None,
        summaries: Mapping[str, Summary] | None,
    ) -> Decision:
        prior = _prior(previous)
        if summaries is None:
            without = super()._planned(view, budget, request, size, previous, None)
            return (
                NeedsSummary((self._request(view, budget, request, previous, prior),))
                if isinstance(without, Plan)
                else without
            )
        summary = summaries.get(_ID, Summary(failure="no summary was asked for"))
        if summary.failure is None:
            decision = plan_view(
                view, budget, request, self._options, size, self.name, self.version, summary.text.strip(), self.summary
            )
            if isinstance(decision, Plan):
                return decision
        decision = super()._planned(view, budget, request, size, previous, None)
        if not isinstance(decision, Plan):
            return decision
        return msgspec.structs.replace(
            decision,
            strategy=Coverage.name,
            version=Coverage.version,
            # The next summary still builds on the last one that was written.
            state=None if prior is None else {_PRIOR: prior},
            notes={**decision.notes, "fallback": summary.failure or "no projection was possible with the summary"},
        )

    def _request(
        self, view: View, budget: Budget, request: CompactionRequest, previous: Plan | None, prior: str | None
    ) -> SummaryRequest:
        # A longer one costs more to write and could not be shown; what is not worth its tokens is dropped anyway.
        most = max(1, min(MOST, budget.window // 16))
        return SummaryRequest(
            id=_ID,
            instruction=instruction(most, prior=prior, note=request.instructions, prompt=self.prompt),
            items=summary_items(view, previous, budget, most),
            max_output=2 * most,
            requires=HEADINGS if self.prompt is None else (),
        )


def _prior(previous: Plan | None) -> str | None:
    """The newest summary that a model wrote for this session, whole."""
    if previous is None:
        return None
    if previous.summary is None and isinstance(previous.state, dict):
        found = previous.state.get(_PRIOR)
        return found if isinstance(found, str) else None
    return previous.summary
