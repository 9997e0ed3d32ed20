"""Compactions of a session, made and previewed: the view with its derived rows, the job, and what follows."""

from __future__ import annotations

from dataclasses import replace

from ..projection.plan import Phase, Plan, Trigger
from ..projection.report import Report, report_of
from ..strategies.contract import CompactionRequest, Strategy
from ..transcript import Entry, Text, View
from .compaction import Outcome, compaction
from .cost import usage_cost
from .effects import Steps, Store
from .features import store_missing
from .job import Job
from .state import SessionState

__all__ = ["compacted", "preview"]


def compacted(state: SessionState, trigger: Trigger, phase: Phase, instructions: str | None) -> Steps[Outcome]:
    """One compaction of the session as it stands, whatever the occupancy."""
    view: View = yield Store("read the view", lambda: _view(state))
    if not view.entries:
        return Outcome("unchanged", "the session is empty")
    head = view.entries[-1].id
    chain: bytes = yield Store("read the chain hash", lambda: state.journal.chain(head))
    budget = state.budget()
    shown, _ = state.frame.shown()
    used = state.occupancy(shown, budget)
    settings = state.settings
    outcome = yield from compaction(
        Job(
            session=state.id,
            store=state.checkpoints,
            view=view,
            view_for=lambda strategy: _with_features(state, view, strategy),
            chain=chain.hex(),
            strategy=settings.strategy,
            fallback=settings.fallback,
            budget=budget,
            request=CompactionRequest(trigger=trigger, phase=phase, instructions=instructions, auto=settings.auto),
            previous=state.frame.checkpoint,
            occupancy=used,
            wire=settings.wire,
            model=settings.model,
            system=state.ask.system,
            tools=state.ask.tools,
            attachments=state.frame.attachments,
            summariser=settings.summariser,
            output_cap=settings.output_ceiling,
            deadline=settings.summary_deadline,
            emit=state.emit,
            price=lambda usage: usage_cost(usage, settings.prices) if settings.prices else None,
        )
    )
    if outcome.checkpoint is not None:
        state.new_context = False
        spent = usage_cost(outcome.usage, settings.prices) if settings.prices else 0.0
        state.before.setdefault(outcome.checkpoint.id, (used.tokens, spent))
        yield from state.synced()
        yield from _followed_up(state, outcome)
    return outcome


def _followed_up(state: SessionState, outcome: Outcome) -> Steps[None]:
    """Appends what the plan's client appends after a compaction (a "continue" message), once."""
    checkpoint = outcome.checkpoint
    if checkpoint is None or outcome.reused or not checkpoint.plan.follow_up:
        return
    entries = tuple(
        Entry(id=f"f{number}-{checkpoint.id}", role=item.role, blocks=(Text(item.text, origin=item.origin),))
        for number, item in enumerate(checkpoint.plan.follow_up)
    )
    yield from state.appended(entries)


def preview(state: SessionState, instructions: str | None) -> Steps[tuple[Plan | None, Report]]:
    """What a compaction would keep now; no plan is stored and no model is asked."""
    yield from state.synced()
    view: View = yield Store("read the view", lambda: _view(state))
    budget = state.budget()
    request = CompactionRequest(trigger="manual", phase="standalone", instructions=instructions)
    previous = state.frame.checkpoint.plan if state.frame.checkpoint else None
    strategy = state.settings.strategy
    decision = strategy.plan(view, budget, request, previous)
    if not isinstance(decision, Plan) and state.settings.fallback is not None and hasattr(decision, "requests"):
        strategy = fallback = state.settings.fallback
        view = yield Store("read features", lambda: _with_features(state, view, fallback))
        decision = strategy.plan(view, budget, request, previous)
    plan = decision if isinstance(decision, Plan) else None
    shown, _ = state.frame.shown()
    before = state.occupancy(shown, budget).tokens
    reason = None if plan else getattr(decision, "reason", None) or getattr(decision, "message", None)
    return plan, report_of(view, plan, budget, strategy.name, before, plan.tokens_after if plan else before, reason)


def _view(state: SessionState) -> View:
    """The active path, with the strategy's derived rows; those that are not there yet are made now, once."""
    strategy = state.settings.strategy
    store_missing(state.journal, state.id, strategy)
    return state.journal.view(state.id, extractor=strategy.extractor)


def _with_features(state: SessionState, view: View, strategy: Strategy) -> View:
    """The same view for another strategy, which must not take the first one's rows for its own."""
    if strategy.extractor == state.settings.strategy.extractor:
        return view
    if strategy.extractor is None:
        return replace(view, features={})
    store_missing(state.journal, state.id, strategy)
    return replace(view, features=state.journal.features(state.id, strategy.extractor))
