"""Pi's compaction: a model-written summary of what is older, two where a turn is split, and about 20,000 tokens of tail (pi.md)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import msgspec

from ...budget import Budget, Occupancy
from ...errors import ConfigError
from ...projection.plan import Plan, Trigger
from ...projection.render import applies, project
from ...tokens import total_cost
from ...transcript import Entry, Text, View
from ..contract import CompactionRequest, Decision, DueState, NeedsSummary, Refused, Strategy, Summary, Unchanged
from .cut import Preparation, prepare
from .files import file_lists, listing
from .path import Piece, context, path
from .plan import final_refusal, fitting, items, nothing, omitted, summary_item, tail_refusal
from .rules import FIXES, Follows, Rules
from .state import checkpoints, recorded_checkpoints, state
from .text import HISTORY, PREFIX, Wording, joined, requests

__all__ = ["Pi"]


class Pi(Strategy):
    """A model's summary (two where a turn is split) and about 20,000 tokens of tail, as Pi 0.82.0 does it, with later releases' fixes.

    Guarantees: the tail is byte for byte and begins at the first legal cut point at or after the entry that fills `keep_recent_tokens`; a
    result is never parted from its call; system and developer entries stay in place, once; the summary is shown as a user message, marked as a
    summary; nothing is installed when a summary failed, was cut off or is blank; files that were read or changed by Pi's own tools are listed
    from the calls. The tail is bounded by Pi's count (UTF-16 code units over four), not by the budget's counter, and one large entry can exceed
    it; a projection above the input limit is refused. Loses: everything before the cut but what the summaries say; paths of tools with other
    names. The N-th plan builds on the summary before it.

    Options:
        follows: `Mar`, `Jul`, `Sep` or `Nov` 2026 (0.58.3, 0.82.0, 0.87.1, 1.6.0).
        reserve_tokens, keep_recent_tokens: Pi's `compaction.reserveTokens` and `compaction.keepRecentTokens`.
        fixes: whether the fixes are in force that the release lacks; each can be set by itself, by the names in `rules.FIXES`.
        prompt, prefix_prompt: texts that replace the instructions of the history and of the turn-prefix request.
        recorded: go on from the compactions that Pi itself recorded in the session file (off: decide from the originals alone).
    """

    name: ClassVar[str] = "pi"
    version: ClassVar[str] = "pi-1"
    recomputed = False

    def __init__(
        self,
        *,
        follows: Follows = "Jul",
        reserve_tokens: int = 16_384,
        keep_recent_tokens: int = 20_000,
        fixes: bool = True,
        prompt: str | None = None,
        prefix_prompt: str | None = None,
        recorded: bool = False,
        **chosen: bool | None,
    ) -> None:
        if unknown := sorted(set(chosen) - set(FIXES)):
            raise TypeError(f"no option named {', '.join(unknown)}")
        for option, value in (("reserve_tokens", reserve_tokens), ("keep_recent_tokens", keep_recent_tokens)):
            if not isinstance(value, int) or value < 0:
                raise ConfigError(f"{option} must be a whole number of tokens, 0 or more, not {value!r}")
        self.reserve_tokens = reserve_tokens
        self.keep_recent_tokens = keep_recent_tokens
        self.fixes = fixes
        self.rules = Rules.of(follows, fixes, chosen)
        self.wording = Wording(prompt, prefix_prompt)
        self.recorded = recorded

    def options(self) -> dict[str, Any]:
        """The options in force, each fix by its name."""
        return {
            "follows": self.rules.follows,
            "reserve_tokens": self.reserve_tokens,
            "keep_recent_tokens": self.keep_recent_tokens,
            "fixes": self.fixes,
            **{name: getattr(self.rules, name) for name in FIXES},
            "prompt": self.wording.history,
            "prefix_prompt": self.wording.prefix,
            "recorded": self.recorded,
        }

    def at_size(self, tokens: int) -> Pi:
        """The same with a tail that leaves room for a summary of an eighth, 2,000 tokens at most; in Pi's count, which is often low."""
        options = self.options() | {"keep_recent_tokens": max(1, tokens - min(2_000, tokens // 8))}
        return Pi(**options)

    def due(self, occupancy: Occupancy, budget: Budget, state: DueState) -> Trigger | None:
        """Above the window less the reserve, strictly (pi.md 5).

        Before a turn the last reported usage decides alone; between the calls of a turn the whole. The input limit stands for the provider's
        refusal, at which Pi compacts as well: nothing above it may be sent.
        """
        if not state.auto:
            return None
        rules = self.rules
        if state.phase == "mid_turn":
            size = occupancy.tokens if rules.check_between_turns else None
        else:
            size = occupancy.reported or (occupancy.tokens if rules.trigger_without_usage else None)
        over = size is not None and size > self._allowed(budget)
        return "automatic" if over or occupancy.tokens > budget.input_limit else None

    def plan(
        self,
        view: View,
        budget: Budget,
        request: CompactionRequest,
        previous: Plan | None = None,
        summaries: Mapping[str, Summary] | None = None,
        occupancy: Occupancy | None = None,
    ) -> Decision:
        """The decision: nothing to do, the summary requests, or the plan with their answers."""
        if previous is not None and not applies(previous, view):
            previous = None
        recorded = recorded_checkpoints(view.markers) if self.recorded and previous is None else {}
        pieces = path(view, recorded or checkpoints(previous, view), self.rules)
        shown = _as_recorded(pieces, self.rules) if recorded else project(view, previous)
        before = total_cost(shown, budget.counter) + budget.fixed
        if (reason := self._gate(before, budget, request, occupancy)) is not None:
            return Unchanged(reason)
        fits = fitting(view, pieces, budget, self._allowed(budget)) if self.rules.fit_window else None
        prepared = prepare(pieces, self.keep_recent_tokens, self.rules, fits)
        if isinstance(prepared, str):
            return nothing(prepared, before, budget)
        if (refusal := tail_refusal(view, prepared, budget)) is not None:
            return refusal
        wanted = requests(prepared, self.rules, self.wording, request.instructions, self._output_limits(budget))
        given = summaries or {}
        if missing := tuple(call for call in wanted if call.id not in given):
            return NeedsSummary(missing)
        answers = {call.id: self._answer(call.id, given[call.id]) for call in wanted}
        if refused := next((answer for answer in answers.values() if isinstance(answer, Refused)), None):
            return refused
        texts = {name: str(answer) for name, answer in answers.items()}
        return self._finished(view, pieces, prepared, previous, texts, before, budget, request)

    def _allowed(self, budget: Budget) -> int:
        """The largest context that is not compacted yet; a threshold that the user set goes before the reserve."""
        return budget.window - self.reserve_tokens if budget.threshold is None else budget.threshold - 1

    def _gate(self, before: int, budget: Budget, request: CompactionRequest, occupancy: Occupancy | None) -> str | None:
        """Why an automatic compaction is not due, or None."""
        if request.trigger not in ("automatic", "model_context_downshift"):
            return None
        if not request.auto:
            return "automatic compaction is off"
        if occupancy is None:
            due = before > min(self._allowed(budget), budget.input_limit)
        else:
            due = self.due(occupancy, budget, DueState(request.phase)) is not None
        tokens = before if occupancy is None else occupancy.tokens
        return None if due else f"{tokens:,} tokens are not above the trigger of {self._allowed(budget):,}"

    def _output_limits(self, budget: Budget) -> tuple[int, int]:
        """Output caps of the two requests, in tokens (pi.md 7.7); the output ceiling stands for the model's own maximum (SU-10)."""
        ceiling = max(1, budget.output_ceiling)
        if not self.rules.limits_output:
            return ceiling, ceiling
        history, prefix = (max(1, math.floor(share * self.reserve_tokens)) for share in (0.8, 0.5))
        return min(history, ceiling), min(prefix, ceiling)

    def _answer(self, name: str, summary: Summary) -> str | Refused:
        """The text of an answer, or the refusal when it cannot become a checkpoint (pi.md 7.8)."""
        cut_off = summary.failure == "length" and summary.text and not self.rules.reject_truncated
        if summary.failure is not None and not cut_off:
            why = f"failed: {summary.failure}"
        elif not summary.text.strip():
            why = "came back without text"
        else:
            return summary.text
        return Refused(
            "invalid-summary",
            f"the {name} summary {why}; nothing was compacted and the context is as it was. Try again, or use a strategy that needs no model",
        )

    def _finished(
        self,
        view: View,
        pieces: list[Piece],
        prepared: Preparation,
        previous: Plan | None,
        answers: Mapping[str, str],
        before: int,
        budget: Budget,
        request: CompactionRequest,
    ) -> Decision:
        last = prepared.previous
        read, modified = file_lists(
            (*prepared.history, *prepared.prefix),
            self.rules,
            last.read_files if last else (),
            last.modified_files if last else (),
        )
        text = joined(prepared, self.rules, answers.get(HISTORY), answers.get(PREFIX)) + listing(read, modified)
        shown, cutoff = items(view, pieces, prepared, text, self.rules, budget.counter)
        plan = Plan(
            strategy=self.name,
            version=self.version,
            covered_from=view.entries[0].id,
            cutoff=cutoff,
            items=shown,
            omitted=omitted(view, prepared, previous, self.rules),
            rest="summarised",
            summary=text,
            state=state(
                pieces,
                prepared.first_kept.id,
                (read, modified),
                prepared.tokens_before,
                silent=self.rules.silent_checkpoints,
            ),
            tokens_before=before,
            trigger=request.trigger,
            phase=request.phase,
            instructions=request.instructions,
            notes={"split turn": "yes"} if prepared.prefix else {},
        )
        after = total_cost(project(view, plan), budget.counter) + budget.fixed
        refusal = final_refusal(before, after, budget, request)
        return refusal or msgspec.structs.replace(plan, tokens_after=after)


def _as_recorded(pieces: Sequence[Piece], rules: Rules) -> Iterator[Entry]:
    """The context that the newest recorded compaction leads to, for its size."""
    for piece in context(pieces, rules):
        if piece.entry is not None:
            yield piece.entry
        elif piece.checkpoint is not None:
            yield Entry(id="", role="user", blocks=(Text(summary_item(piece.checkpoint.summary).text, "summary"),))
