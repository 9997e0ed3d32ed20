"""The next request: is a compaction due, what is shown, does it fit, what does going on cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..budget import Budget, Occupancy
from ..errors import RequestTooLargeError
from ..formats.files.base import entry_id
from ..projection.boundaries import has_result
from ..strategies.contract import DueState, Phase, Trigger
from ..summary.request import request_body
from ..transcript import Entry, Text
from .compacting import compacted
from .compaction import Outcome
from .cost import Carrying, carrying
from .effects import Steps
from .events import NearTrigger
from .recalling import recalled
from .state import SessionState

__all__ = ["Prepared", "prepared"]

_ROUNDS = 4
"""Compactions of one `prepare` at most, where others keep appending."""


@dataclass(frozen=True)
class Prepared:
    """The next request, and what was decided about it."""

    body: dict[str, Any]
    """System prompt, tools, messages and output limit in the session's wire; add what else your call needs."""
    messages: list[dict[str, Any]]
    """The messages in it (`input` of the Responses API)."""
    entries: tuple[Entry, ...]
    """The entries behind them, repaired."""
    occupancy: Occupancy
    budget: Budget
    outcome: Outcome | None = None
    """How the compaction ended that this request needed; None when it needed none."""
    cost: Carrying | None = None
    """What going on costs; None without prices."""


def prepared(state: SessionState, trigger: Trigger) -> Steps[Prepared]:
    """The next request; compacts first when that is due, or when something else than its size asks for it."""
    yield from state.synced()
    budget = state.budget()
    shown, new = state.frame.shown()
    used = state.occupancy(shown, budget)
    outcome = None
    wanted = _due(state, used, budget) if trigger == "automatic" else trigger
    if wanted is None and state.settings.auto and used.tokens > budget.input_limit:
        # The strategy would wait, but there is nothing to wait for: this request cannot be sent.
        wanted = "provider_context_limit"
    if wanted is not None:
        for _ in range(_ROUNDS):
            outcome = yield from compacted(state, wanted, _phase(state), None)
            state.tried_at = None if outcome.checkpoint else used.tokens
            shown, new = state.frame.shown()
            used = state.occupancy(shown, budget)
            # Other writers may have filled the window again meanwhile.
            if used.tokens <= budget.input_limit or outcome.checkpoint is None or not state.frame.fresh:
                break
    elif (yield from _noticed(state, used, budget)):
        shown, new = state.frame.shown()
        used = state.occupancy(shown, budget)
    elif used.tokens >= budget.trigger * state.settings.warn_at and state.warned_under != state.checkpoint_id:
        state.warned_under = state.checkpoint_id
        state.emit(
            NearTrigger(session=state.id, tokens=used.tokens, trigger=budget.trigger, input_limit=budget.input_limit)
        )
    if used.tokens > budget.input_limit:
        reason = f": {outcome.reason}" if outcome and outcome.reason else ""
        sizes = {"size": used.tokens, "input_limit": budget.input_limit, **(outcome.sizes if outcome else {})}
        raise RequestTooLargeError(
            f"the next request takes {used.tokens:,} tokens and the input limit is {budget.input_limit:,}{reason}; nothing was sent",
            sizes,
        )
    if new:
        yield from state.attached(new)
    # What a provider just refused is not made larger again.
    room = budget.input_limit - used.tokens if trigger == "automatic" else 0
    if (yield from recalled(state, shown, room)):
        shown, _ = state.frame.shown()
        used = state.occupancy(shown, budget)
    return _request(state, shown, used, budget, outcome)


def _request(
    state: SessionState, shown: tuple[Entry, ...], used: Occupancy, budget: Budget, outcome: Outcome | None
) -> Prepared:
    ask, settings = state.ask, state.settings
    body = request_body(
        settings.wire,
        shown,
        model=settings.model,
        system=ask.system,
        tools=ask.tools,
        max_output=budget.output_ceiling if settings.wire == "anthropic" else state.asked_output(),
    )
    cost = None
    if settings.prices is not None:
        checkpoint = state.frame.checkpoint
        known = (checkpoint.plan.tokens_before if checkpoint else None, 0.0)
        before, spent = state.before.get(state.checkpoint_id, known)
        cost = carrying(used.tokens, settings.prices, before=before, spent=spent)
    messages = body["input" if settings.wire == "openai-responses" else "messages"]
    return Prepared(body, messages, shown, used, budget, outcome, cost)


def _due(state: SessionState, used: Occupancy, budget: Budget) -> Trigger | None:
    trigger = state.settings.strategy.due(used, budget, _due_state(state, budget))
    if trigger != "automatic" or used.tokens > budget.input_limit:
        return trigger
    if state.put_off:
        return None
    # What could not be made smaller is not tried again, and not summarised again, before there is something new to cover (OV-02).
    checkpoint = state.frame.checkpoint
    least = max(state.tried_at or 0, checkpoint.baseline if checkpoint else 0)
    return trigger if not least or used.tokens >= least + budget.keep_recent // 2 else None


def _due_state(state: SessionState, budget: Budget) -> DueState:
    last = state.learned.get("last_window")
    start = _notice_id(state, "")
    return DueState(
        phase=_phase(state),
        auto=state.settings.auto,
        previous=state.frame.checkpoint.plan if state.frame.checkpoint else None,
        previous_window=last if last != budget.window else None,
        new_context_requested=state.new_context,
        notices=frozenset(entry.id.removeprefix(start) for entry in state.frame.tail if entry.id.startswith(start)),
    )


def _notice_id(state: SessionState, notice: str) -> str:
    return f"notice-{entry_id(state.id, state.checkpoint_id)}-{notice}"


def _noticed(state: SessionState, used: Occupancy, budget: Budget) -> Steps[bool]:
    """Appends what the strategy reminds the model of at this occupancy, each once for a checkpoint; whether there was anything."""
    notices = state.settings.strategy.notices(used, budget, _due_state(state, budget))
    entries = tuple(
        Entry(
            id=_notice_id(state, notice.id),
            role=notice.item.role,
            blocks=(Text(notice.item.text, origin=notice.item.origin),),
        )
        for notice in notices
    )
    yield from state.appended(entries)
    return bool(entries)


def _phase(state: SessionState) -> Phase:
    newest = state.frame.tail[-1] if state.frame.tail else None
    return "mid_turn" if newest is not None and (has_result(newest) or newest.role == "assistant") else "pre_turn"
