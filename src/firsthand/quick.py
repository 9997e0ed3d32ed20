"""The quick call: messages in, a projection and a report out, without any journal.

`compact` is for whoever has a list of messages. `compact_view` is the same for entries that are read already, and is what the command line
uses. Both run strategies that need no model; a `Session` runs the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .budget import Budget
from .codec import compact_json
from .errors import CompactionRefusedError, ConfigError, FormatError
from .formats.wire import wire_by_name
from .projection.plan import Plan
from .projection.render import project
from .projection.repair import repair
from .projection.report import Report, report_of
from .strategies import DEFAULT_STRATEGY, strategy_by_name
from .strategies.contract import CompactionRequest, NeedsSummary, Refused, Strategy, Unchanged
from .tokens import Counter, counter_for_model, total_cost
from .transcript import Entry, View

__all__ = ["Compacted", "compact", "compact_view"]


@dataclass(frozen=True)
class Compacted:
    """A projection and how it came about."""

    messages: list[dict[str, Any]]
    """The messages of the next request, in the shape that came in; the very same list when nothing was changed."""
    system: Any
    """The value for a separate system prompt, for wires that have one; as it came in."""
    report: Report
    plan: Plan | None
    """The decision behind it; None when nothing was changed."""


def compact(
    messages: Sequence[dict[str, Any]],
    *,
    window: int,
    output_ceiling: int | None = None,
    system: Any = None,
    tools: Sequence[Any] | None = None,
    strategy: str | Strategy = DEFAULT_STRATEGY,
    target: int | None = None,
    counter: Counter | None = None,
    model: str | None = None,
    wire: str | None = None,
    force: bool = False,
) -> Compacted:
    """The messages that still fit: the same list while it is under the trigger, a projection above it.

    Args:
        messages: OpenAI Chat messages, OpenAI Responses items or Anthropic messages. They are not changed.
        window: the model's context window, in tokens.
        output_ceiling: output tokens that the request will ask for; default min(W/4, 32,000).
        system: the separate system prompt (Anthropic, or `instructions` of the Responses API), counted and handed back.
        tools: tool definitions, counted.
        strategy: a name (see `firsthand.strategies`) or an instance.
        target: wanted size of the messages afterwards, in tokens.
        counter: counts every text; default is the calibrated counter for `model`.
        model: the model's name, for the counter.
        wire: `openai-chat`, `openai-responses` or `anthropic`; told from the messages when None.
        force: compact also under the trigger.

    Returns:
        The messages with a report. What the report calls omitted stays in `messages`, which only you have: keep it, or use a journal.

    Raises:
        CompactionRefusedError: no valid projection fits; carries the sizes. Send nothing.
        OutputCeilingError, ConfigError, UnknownNameError: a setting cannot work.
        FormatError: a message is of no known shape.
    """
    # Telling formats apart brings every reader in, which whoever names the wire need not pay for.
    from .formats.detect import wire_of

    if not isinstance(window, int):
        raise ConfigError(f"the window is a whole number of tokens, not {window!r}")
    items = _items(messages)
    wire_format = wire_by_name(wire or wire_of(items))
    entries = wire_format.read(items)
    counter = counter or counter_for_model(model)
    fixed = sum(
        counter.count(part if isinstance(part, str) else compact_json(part)) for part in (system, tools) if part
    )
    budget = Budget.of(window, output_ceiling, fixed=fixed, counter=counter, target=target)
    chosen = strategy_by_name(strategy) if isinstance(strategy, str) else strategy
    request = CompactionRequest(trigger="manual" if force else "automatic", phase="standalone" if force else "pre_turn")
    plan, shown, report = compact_view(View(entries), budget, chosen, request)
    if plan is None:
        return Compacted(items, system, report, None)
    written = wire_format.write(shown)
    return Compacted(written.messages, system if written.system is None else written.system, report, plan)


def _items(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages as a list; a list stays the very same object."""
    if isinstance(messages, (str, bytes, Mapping)) or not isinstance(messages, Iterable):
        raise FormatError(f"messages must be a list of messages, not a {type(messages).__name__}")
    items = messages if isinstance(messages, list) else list(messages)
    for number, item in enumerate(items):
        if not isinstance(item, dict):
            raise FormatError(f"message {number} is a {type(item).__name__}, and a message must be a JSON object")
    return items


def compact_view(
    view: View, budget: Budget, strategy: Strategy, request: CompactionRequest
) -> tuple[Plan | None, tuple[Entry, ...], Report]:
    """Runs a strategy that needs no model on a view.

    Returns:
        The plan (None when nothing was changed), the entries that the next request shows, repaired and ready for a wire's `write`, and
        the report.

    Raises:
        CompactionRefusedError: no valid projection fits, or what is there does not fit and nothing could be done.
        ConfigError: the strategy needs a model.
    """
    decision = strategy.plan(view, budget, request)
    before = total_cost(view.entries, budget.counter) + budget.fixed
    if isinstance(decision, NeedsSummary):
        raise ConfigError(
            f"strategy {strategy.name!r} needs a model for its summary; use a Session, or a strategy that needs none"
        )
    if isinstance(decision, Refused):
        raise CompactionRefusedError(decision.reason, decision.message, decision.sizes)
    plan = decision if isinstance(decision, Plan) else None
    reason = decision.reason if isinstance(decision, Unchanged) else None
    if plan is not None and plan.tokens_after >= before:
        # A projection that is no smaller leaves the session worse off; it is not installed (design.md 5, SU-11).
        reason = f"not beneficial: the projection would take {plan.tokens_after:,} tokens instead of {before:,}"
        plan = None
    shown = repair(project(view, plan)).entries
    after = total_cost(shown, budget.counter) + budget.fixed
    if after > budget.input_limit:
        raise CompactionRefusedError(
            "budget-exceeded",
            f"the request would take {after:,} tokens and the input limit is {budget.input_limit:,}"
            + (f" ({reason})" if reason else f" (strategy {strategy.name!r} promises no bound)"),
            {"size": after, "input_limit": budget.input_limit},
        )
    return plan, shown, report_of(view, plan, budget, strategy.name, before, after if plan else before, reason)
