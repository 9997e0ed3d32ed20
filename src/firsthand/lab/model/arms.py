"""An arm's projection at a boundary, with its summaries paid for through the ledger where a model writes them."""

from __future__ import annotations

from ...budget import Budget
from ...errors import ConfigError
from ...projection.plan import Plan
from ...projection.render import project
from ...projection.repair import repair
from ...strategies import strategy_by_name
from ...strategies.contract import CompactionRequest, NeedsSummary, Strategy, Summary, SummaryRequest, Unchanged
from ...summary.request import summary_body
from ...summary.validation import accepted
from ...tokens import Counter
from ...transcript import View
from ..arms import Arm, Projected, run_arm
from .endpoint import reply_json
from .jobs import Ask
from .shape import RequestShape

__all__ = ["BY_MODEL", "projected", "strategy_of"]

BY_MODEL = "model"
"""Name of the summariser that is the reader's own endpoint."""

_ROUNDS = 4


def strategy_of(arm: Arm) -> Strategy:
    """The arm's strategy, set to its size where it has one.

    Raises:
        ConfigError: the strategy has no knob for its size.
        UnknownNameError: there is no such strategy.
    """
    strategy = strategy_by_name(arm.strategy)
    if arm.target is None:
        return strategy
    sized = strategy.at_size(arm.target)
    if sized is None:
        raise ConfigError(f"{arm.strategy} cannot be set to a size; leave out --target, or the strategy")
    return sized


def projected(
    arm: Arm,
    strategy: Strategy,
    view: View,
    budget: Budget,
    counter: Counter,
    *,
    ask: Ask | None = None,
    shape: RequestShape | None = None,
    identity: str = "",
) -> Projected:
    """What the arm shows of the view, compacted now. The published experiment's name for it is forced compaction.

    Args:
        arm: names the summariser: `none`, `extractive`, or `model` for the endpoint.
        strategy: as `strategy_of` gave it.
        view: the entries before the boundary.
        budget: of the next request.
        counter: counts the summaries' caps.
        ask: writes the summaries of a `model` arm, and pays for them.
        shape: the session's system prompt and tools, which summary requests of the session's own shape have.
        identity: of the arm, for the ledger.

    Raises:
        BudgetSpentError: a summary does not fit the budget.
        UnresolvedCallError: a summary was asked for before, and there is no reply.
    """
    if arm.summariser != BY_MODEL or ask is None:
        return run_arm(arm, strategy, view, budget, None, "forced", counter)
    request = CompactionRequest(trigger="manual", phase="standalone")
    summaries: dict[str, Summary] | None = None
    for _ in range(_ROUNDS):
        decision = strategy.plan(view, budget, request, None, summaries)
        if not isinstance(decision, NeedsSummary):
            break
        answers = {
            wanted.id: _summary(wanted, view, counter, ask, shape, f"{identity}/summary {wanted.id}")
            for wanted in decision.requests
        }
        summaries = {**(summaries or {}), **answers}
    asked = summaries is not None
    if isinstance(decision, Plan):
        return Projected(repair(project(view, decision)).entries, decision, "compacted", 0.0, asked)
    if isinstance(decision, Unchanged):
        return Projected(view.entries, None, "whole", 0.0, asked)
    return Projected((), None, "refused", 0.0, asked)


def _summary(
    wanted: SummaryRequest,
    view: View,
    counter: Counter,
    ask: Ask,
    shape: RequestShape | None,
    identity: str,
) -> Summary:
    entries = view.entries
    shown = project(
        view,
        Plan(strategy="summary", version="1", covered_from=entries[0].id, cutoff=entries[-1].id, items=wanted.items),
    )
    body = summary_body(
        wanted,
        "openai-chat",
        repair(shown).entries if shown else (),
        system=shape.system if shape else None,
        tools=shape.tools if shape else None,
    )
    call = ask(identity, body)
    reply = reply_json(call.reply)
    if call.state != "answered" or reply is None:
        return Summary(failure=f"the summary call {call.reason or 'gave no JSON object'}")
    return accepted("openai-chat", reply, wanted, counter)
