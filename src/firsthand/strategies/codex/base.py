"""What all Codex strategies have in common: options, triggers, gates, and the end of a plan."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import takewhile
from typing import Any, ClassVar, Literal, TypeAlias, TypedDict

import msgspec

from ...budget import Budget, Occupancy
from ...errors import ConfigError
from ...projection.plan import Fate, Item, Kept, Phase, Plan, Trigger
from ...projection.render import applies, project, shown
from ...tokens import total_cost
from ...transcript import Entry, View
from ..contract import CompactionRequest, DueState, Refused, Strategy, Summary, Unchanged
from .counting import active_tokens, history_tokens, is_model_generated
from .history import LiveHistory, Message, live_history, messages
from .kinds import Kind, is_real_user
from .layout import arranged, base_instructions, initial_context
from .limits import Limits, Scope, limits_for, usable_window
from .request import pairs

__all__ = ["CodexOptions", "CodexStrategy", "Release", "ask_for_text"]

Release: TypeAlias = Literal["2026-09", "0.171"]
"""Whose order of the new history is followed: the pinned source's (observed in 0.147 too), or that of release 0.171."""


class CodexOptions(TypedDict, total=False):
    """The options that every Codex strategy takes."""

    model_auto_compact_token_limit: int | None
    model_auto_compact_token_limit_scope: Scope
    effective_context_window_percent: int
    model_post_turn_compact_threshold_percent: int
    strict_user_messages: bool
    follows: Release


class CodexStrategy(Strategy):
    """Options, triggers and bookkeeping of the Codex family; no strategy by itself.

    Options:
        model_auto_compact_token_limit: tokens at which a compaction is due; None: nine tenths of the window, which it can only lower.
        model_auto_compact_token_limit_scope: `total`, or `body_after_prefix`: only what came after the window's first request counts, and the
            limit is not clamped.
        effective_context_window_percent: the part of the window that may be filled at all (95).
        model_post_turn_compact_threshold_percent: compact after a turn from that fill on (0: never). After a turn is phase `standalone` with the
            trigger `automatic`.
        strict_user_messages: one injected part takes a whole user message out, as in the original. Off: other clients put reminders beside what
            was typed, and only the reminders go.
        follows: `2026-09` or `0.171`, see `Release`.
    """

    version: ClassVar[str] = "codex-2026-09-1"
    recomputed = False
    retain_client_developer_messages: bool = False
    """Whether developer messages of the client's caller are messages and no context; some strategies have it as an option."""

    def __init__(
        self,
        *,
        model_auto_compact_token_limit: int | None = None,
        model_auto_compact_token_limit_scope: Scope = "total",
        effective_context_window_percent: int = 95,
        model_post_turn_compact_threshold_percent: int = 0,
        strict_user_messages: bool = False,
        follows: Release = "2026-09",
    ) -> None:
        self.model_auto_compact_token_limit = model_auto_compact_token_limit
        self.model_auto_compact_token_limit_scope: Scope = model_auto_compact_token_limit_scope
        self.effective_context_window_percent = effective_context_window_percent
        self.model_post_turn_compact_threshold_percent = model_post_turn_compact_threshold_percent
        self.strict_user_messages = strict_user_messages
        # The command line reads a bare 0.171 as a number.
        self.follows: Release = str(follows)  # type: ignore[assignment]
        self._limits(1)
        if not 0 <= model_post_turn_compact_threshold_percent <= 100:
            raise ConfigError(
                f"the post-turn threshold must be 0 to 100 percent, not {model_post_turn_compact_threshold_percent}; 0 switches it off"
            )
        if self.follows not in ("2026-09", "0.171"):
            raise ConfigError(f"a Codex strategy follows '2026-09' or '0.171', not {follows!r}")

    def options(self) -> dict[str, Any]:
        """The options in force."""
        return dict(vars(self))

    def due(self, occupancy: Occupancy, budget: Budget, state: DueState) -> Trigger | None:
        """The switch of the model first, before a turn only; then the limits (codex.md 3 and 4).

        The input limit stands for the provider's refusal: nothing above it may be sent, so a compaction is due there too. Codex asks for no output
        limit; with a small output ceiling the input limit lies above its own thresholds.
        """
        if state.phase == "pre_turn" and self._switched(occupancy, budget, state):
            return "model_context_downshift"
        if not state.auto:
            return None
        reached = self._limits(budget.window, budget.threshold).reached(occupancy.tokens, baseline(occupancy, budget))
        if state.phase == "standalone":
            return "automatic" if self._due_after_turn(reached, occupancy.tokens, budget) else None
        return "automatic" if reached or occupancy.tokens > budget.input_limit else None

    def _limits(self, window: int, threshold: int | None = None) -> Limits:
        """The limits in a window; a threshold that the budget brings is the user's limit where the option is not set."""
        return limits_for(
            window,
            self.effective_context_window_percent,
            threshold if self.model_auto_compact_token_limit is None else self.model_auto_compact_token_limit,
            self.model_auto_compact_token_limit_scope,
        )

    def _due_after_turn(self, reached: bool, active: int, budget: Budget) -> bool:
        percent = self.model_post_turn_compact_threshold_percent
        return percent > 0 and (reached or active * 100 >= self._limits(budget.window).usable * percent)

    def _switched(self, occupancy: Occupancy, budget: Budget, state: DueState) -> bool:
        """The two rules of codex.md 4.3; without automatic compaction only a history above the input limit counts."""
        labels = (state.previous_compatibility, state.compatibility)
        if state.auto and None not in labels and labels[0] != labels[1]:
            return True
        limits = self._limits(budget.window, budget.threshold)
        if state.previous_window is None:
            return False
        smaller = usable_window(state.previous_window, self.effective_context_window_percent) > limits.usable
        if not state.auto:
            return smaller and occupancy.tokens > budget.input_limit
        return smaller and limits.too_big_after_switch(occupancy.tokens)

    def _covered(
        self, view: View, budget: Budget, request: CompactionRequest, previous: Plan | None, occupancy: Occupancy | None
    ) -> LiveHistory | Unchanged | Refused:
        """What is to be covered, or why nothing is. Only the trigger `automatic` is gated here: `due` decides about the others."""
        if previous is not None and not applies(previous, view):
            previous = None
        if request.trigger == "automatic" and not request.auto:
            return Unchanged("automatic compaction is off")
        size = total_cost((part.entry for part in shown(view, previous)), budget.counter) + budget.fixed
        if occupancy is not None and request.trigger == "automatic":
            size = max(size, occupancy.tokens)
        history = live_history(view, previous, request.phase)
        if request.trigger == "automatic" and size <= budget.input_limit:
            active = occupancy.tokens if occupancy is not None else _active(history, previous, budget)
            limits = self._limits(budget.window, budget.threshold)
            reached = limits.reached(active, _prefix(history, previous, occupancy, budget))
            if request.phase == "standalone":
                reached = reached or self._due_after_turn(reached, active, budget)
            if not reached:
                return Unchanged(f"{active:,} tokens are under the limit of {limits.limit + limits.buffer:,}")
        if history is not None:
            return history
        if size <= budget.input_limit:
            return Unchanged("nothing was added since the last compaction but what is just coming in")
        return Refused(
            "no-valid-boundary",
            f"the request takes {size:,} tokens, the input limit is {budget.input_limit:,}, and nothing older can be covered; shorten the newest "
            "message or use a model with a larger window",
            {"size": size, "input_limit": budget.input_limit},
        )

    def _messages(
        self, history: LiveHistory, view: View, kinds: Collection[Kind], *, media: bool = False
    ) -> list[Message]:
        return messages(history, view, kinds, media=media, strict=self.strict_user_messages)

    def _base(self, history: LiveHistory) -> list[Entry]:
        return base_instructions(history, as_developer=self.follows == "0.171")

    def _shrinking(self, history: LiveHistory, items: Sequence[Item]) -> dict[str, Any]:
        """What `without_oldest` has to know: how many items at the start are base instructions, and which blocks are pairs."""
        base = {entry.id for entry in self._base(history)}
        standing = (n for n, item in enumerate(items) if not isinstance(item, Kept) or item.entry not in base)
        return {"base": next(standing, len(items)), "pairs": [list(pair) for pair in pairs(history.added)]}

    def _arranged(self, history: LiveHistory, phase: Phase, retained: Sequence[tuple[Kind, Item]]) -> tuple[Item, ...]:
        """The new history; only between two steps, or always in release 0.171, does the context stand inside."""
        base = self._base(history)
        shown_already = {item.entry for _, item in retained if isinstance(item, Kept)}
        context = initial_context(
            history, base, shown_already, client_developer=not self.retain_client_developer_messages
        )
        inside = phase == "mid_turn" or self.follows == "0.171"
        return arranged([Kept(entry.id) for entry in base], retained, context, context_inside=inside)

    def _hopeless(
        self, history: LiveHistory, budget: Budget, phase: Phase, retained: Sequence[tuple[Kind, Item]], view: View
    ) -> Refused | None:
        """The refusal of a projection that is too big even without a summary, so that no model is asked in vain."""
        items = self._arranged(history, phase, retained)
        bare = Plan(strategy=self.name, version=self.version, covered_from="", cutoff=history.cutoff, items=items)
        return _too_big(total_cost(project(view, bare), budget.counter) + budget.fixed, budget)

    def _finished(
        self,
        view: View,
        budget: Budget,
        request: CompactionRequest,
        history: LiveHistory,
        items: tuple[Item, ...],
        *,
        rest: Fate = "summarised",
        summary: str | None = None,
        notes: Mapping[str, str],
    ) -> Plan | Refused:
        """The plan with its sizes and state, unless it would not fit or would help nothing.

        Codex checks neither; both bind every strategy here (design.md 5.3, 5.4), but an explicit request and the model's own are carried out.
        """
        before = total_cost((*history.entries, *history.tail), budget.counter) + budget.fixed
        plan = Plan(
            strategy=self.name,
            version=self.version,
            covered_from=view.entries[0].id,
            cutoff=history.cutoff,
            items=items,
            rest=rest,
            summary=summary,
            tokens_before=before,
            trigger=request.trigger,
            phase=request.phase,
            instructions=request.instructions,
            notes={name: text for name, text in notes.items() if text},
        )
        entries = project(view, plan)
        after = total_cost(entries, budget.counter) + budget.fixed
        if (refusal := _too_big(after, budget)) is not None:
            return refusal
        if request.trigger not in ("manual", "new_context") and after >= before:
            return Refused(
                "no-progress",
                f"the projection would take {after:,} tokens and the request takes {before:,} now",
                {"before": before, "after": after},
            )
        estimate = history_tokens(entries[: len(items)], budget.fixed)
        state = {"window_number": window_number(history.previous) + 1, "last_usage_total": estimate}
        return msgspec.structs.replace(plan, tokens_after=after, state=state)


def _too_big(after: int, budget: Budget) -> Refused | None:
    limit = budget.input_limit if budget.target is None else min(budget.input_limit, budget.target + budget.fixed)
    if after <= limit:
        return None
    return Refused(
        "budget-exceeded",
        f"the projection would take {after:,} tokens and may take {limit:,}; Codex bounds the retained messages but neither the summary nor the "
        "client's context: use a larger window, or lower the option that limits the retained messages",
        {"after": after, "limit": limit},
    )


def window_number(previous: Plan | None) -> int:
    """How many compactions came before (codex.md 9); 0 before the first."""
    return _known(previous, "window_number") or 0


def _known(previous: Plan | None, name: str) -> int | None:
    state = previous.state if previous is not None else None
    value = state.get(name) if isinstance(state, dict) else None
    return value if isinstance(value, int) else None


def baseline(occupancy: Occupancy, budget: Budget) -> int:
    """The prefix that does not count as body, as far as sizes alone tell: the newest projection's, else what is sent beside the messages."""
    return occupancy.prefix or budget.fixed


def _prefix(
    history: LiveHistory | None, previous: Plan | None, occupancy: Occupancy | None, budget: Budget
) -> int | None:
    """The same where the history is known: the input side of the window's first response, which later ones never replace (codex.md 2.6).

    Before that an estimate: the size after the last compaction, or what stood before the first response of a session that reports no usage.
    """
    for entry in history.added if history is not None else ():
        if entry.usage is not None and entry.usage.input_tokens > 0:
            return entry.usage.input_tokens
    known = (occupancy.prefix if occupancy is not None else 0) or _known(previous, "last_usage_total")
    if known or history is None:
        return known or None
    return history_tokens(takewhile(lambda entry: not is_model_generated(entry), history.entries), budget.fixed)


def _active(history: LiveHistory | None, previous: Plan | None, budget: Budget) -> int:
    """Context size from the history alone (codex.md 2.4); the incoming prompt is not counted."""
    if history is None:
        return _known(previous, "last_usage_total") or budget.fixed
    entries = history.entries
    reported = next((entry.usage.total for entry in reversed(history.added) if entry.usage and entry.usage.total), None)
    reported = reported or _known(previous, "last_usage_total")
    if reported is None:
        return history_tokens(entries, budget.fixed)
    turn = next((at for at in reversed(range(len(entries))) if is_real_user(entries[at])), 0)
    return active_tokens(entries, reported, turn)


def ask_for_text(answer: Summary | None, what: str) -> str | Refused:
    """The text of an answer, or the refusal that a missing or failed one means (codex.md 4.1, 4.2: no compaction, the history stays)."""
    if answer is not None and answer.failure is None and answer.text.strip():
        return answer.text
    why = "no answer came" if answer is None else answer.failure or "the answer has no text"
    return Refused(
        "invalid-summary", f"{what} failed ({why}); nothing was changed, so ask again or use a strategy without a model"
    )
