"""What each strategy's compaction of one's own sessions would cost: token counts at a boundary, times a price. A model of money, never a bill.

What was really charged stands in the ledger of the runs that paid; the two are never put in one column.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

from ...budget import Budget
from ...codec import compact_json
from ...projection.plan import Plan
from ...projection.render import project
from ...projection.repair import repair
from ...strategies import strategy_by_name
from ...strategies.contract import CompactionRequest, Decision, NeedsSummary, Strategy, Summary, SummaryRequest
from ...tokens import Counter, O200kCounter, counter_for_model, entry_cost, total_cost
from ...transcript import Transcript, View
from ..arms import size_of
from ..boundaries import Boundary, boundaries, safe_positions
from ..questions import ask, questions
from ..searched import Occurring
from ..summarisers import summariser
from ..values import reading
from .convention import TURNS, Costs, single
from .prices import PICO, Price

__all__ = ["OwnCosts", "Pooled", "own_costs", "pooled"]

_ROUNDS = 4


@dataclass(frozen=True, slots=True)
class OwnCosts:
    """One strategy's compaction at one boundary. Tokens by the exact counter (o200k)."""

    session: str
    boundary: str
    strategy: str
    calls: int
    prompt: int
    """Of all its summary calls."""
    completion: int
    """As long as the stand-in by rules, at most 2,000 tokens: a model may write less or more."""
    shares: bool
    """Whether its summary requests have the session's own system prompt, tools and messages."""
    projection: int
    history: int
    fixed: int
    hits: int
    of: int
    exam: str
    costs: Costs


@dataclass(frozen=True, slots=True)
class Pooled:
    """One strategy over all boundaries, in both conventions. Currency units."""

    strategy: str
    compactions: int
    share: float
    """Hits over questions of the exam, by the literal reader, pooled over boundaries."""
    total_cold: Decimal
    total_cached: Decimal
    """Of all compactions together, as the published study prints."""
    published_break_even: Decimal | None
    """All compactions over what one median turn saves."""
    published_per_point: Decimal | None
    """All compactions and 100 median turns, for each point."""
    one_cold: Decimal
    one_cached: Decimal
    """Of a single compaction, the mean."""
    turn_cold: Decimal
    first_turn: Decimal
    turn: Decimal
    baseline: Decimal
    """Medians of one request each."""
    break_even: Decimal | None
    """A single compaction, and what its first turn costs more for being cold, over what one median turn saves."""
    per_point: Decimal | None
    """A single compaction and 100 median turns, the first one cold."""


def own_costs(
    session: Transcript,
    strategies: Sequence[str],
    price: Price,
    *,
    shares: Sequence[int] | None = None,
    window: int = 200_000,
    exam: str = "supported",
    least: int = 0,
) -> Iterator[OwnCosts]:
    """The costs of each strategy at each boundary of a session; nothing where a strategy leaves the history as it is.

    Args:
        session: the session.
        strategies: their names.
        price: of the model that reads and summarises.
        shares: boundaries, in percent of the tokens; None for the one place where a session in such a window would be compacted.
        window: of the strategies' budgets.
        exam: whose score the cost of a point is counted by; answered by the literal reader.
        least: tokens of the smallest history that is costed; nobody compacts a small one.
    """
    counter = O200kCounter()
    view = session.view()
    costs = [entry_cost(entry, counter) for entry in view.entries]
    tools = counter.count(compact_json(list(session.tools))) if session.tools else 0
    fixed = counter.count(session.system or "") + tools
    occurs = Occurring("\n".join(reading(view.entries)))
    found = (
        _where_due(view, costs, window - fixed) if shares is None else boundaries(view, shares, costs, recorded=False)
    )
    for boundary in found:
        before = View(view.entries[: boundary.position])
        history = size_of(before.entries, counter)
        if history < least:
            continue
        asked = questions(view.entries, boundary, costs, counter, exams=(exam,), occurs=occurs)
        for name in strategies:
            made = _decided(strategy_by_name(name), before, _budget(session, window), counter)
            if made is None:
                continue
            plan, requests, completion = made
            shown = repair(project(before, plan)).entries
            size = size_of(shown, counter)
            calls = [_call(request, before, counter, fixed, tools) for request in requests]
            each = completion // max(1, len(calls))
            measured = [one for one in ask(asked, shown, size) if one.exam == exam]
            yield OwnCosts(
                session=session.id,
                boundary=boundary.label,
                strategy=name,
                calls=len(calls),
                prompt=sum(prompt for prompt, _ in calls),
                completion=completion,
                shares=bool(calls) and all(shared for _, shared in calls),
                projection=size,
                history=history,
                fixed=fixed,
                hits=sum(one.hits for one in measured),
                of=sum(one.of for one in measured),
                exam=exam,
                costs=single(price, [(prompt, each, shared) for prompt, shared in calls], size, history, fixed=fixed),
            )


def _where_due(view: View, costs: Sequence[int], room: int) -> list[Boundary]:
    """The last safe position at which the history takes at most 80 % of the room; the end of a session that is shorter."""
    most = room * 4 // 5
    size = 0
    last = 0
    safe = set(safe_positions(view.entries))
    for position, cost in enumerate(costs, start=1):
        size += cost
        if size > most:
            break
        if position in safe:
            last = position
    return [Boundary(last, "end" if last == len(costs) else "80% of window")] if last else []


def _budget(session: Transcript, window: int) -> Budget:
    counter = counter_for_model(session.model)
    tools = counter.count(compact_json(list(session.tools))) if session.tools else 0
    return Budget.of(window, fixed=counter.count(session.system or "") + tools, counter=counter)


def _decided(
    strategy: Strategy, view: View, budget: Budget, counter: Counter
) -> tuple[Plan, list[SummaryRequest], int] | None:
    """The plan, the summaries that it took, and their tokens; None where the strategy makes no plan."""
    stand_in = summariser("extractive", counter)
    summaries: dict[str, Summary] | None = None
    requests: list[SummaryRequest] = []
    decision: Decision | None = None
    for _ in range(_ROUNDS):
        decision = strategy.plan(view, budget, CompactionRequest(trigger="manual", phase="standalone"), None, summaries)
        if not isinstance(decision, NeedsSummary):
            break
        requests += decision.requests
        summaries = {**(summaries or {}), **{one.id: stand_in(one, view) for one in decision.requests}}
    if not isinstance(decision, Plan):
        return None
    return decision, requests, sum(counter.count(summary.text) for summary in (summaries or {}).values())


def _call(request: SummaryRequest, view: View, counter: Counter, fixed: int, tools: int) -> tuple[int, int]:
    """Prompt tokens of a summary call, and those of them that the session's own requests began with."""
    last = view.entries[-1].id
    items = Plan(strategy="summary", version="1", covered_from=view.entries[0].id, cutoff=last, items=request.items)
    messages = total_cost(repair(project(view, items)).entries, counter) if request.items else 0
    instruction = counter.count(request.instruction)
    if request.system is not None:
        return counter.count(request.system) + (tools if request.tools == "session" else 0) + messages + instruction, 0
    if request.tools != "session":
        # Tools stand before the messages, on some wires before the system prompt too: what comes after them is read anew.
        return fixed - tools + messages + instruction, 0 if tools else fixed + messages
    return fixed + messages + instruction, fixed + messages


def pooled(found: Sequence[OwnCosts]) -> list[Pooled]:
    """Both conventions for each strategy, in order of first appearance."""
    groups: dict[str, list[OwnCosts]] = {}
    for one in found:
        groups.setdefault(one.strategy, []).append(one)
    return [_pooled(name, rows) for name, rows in groups.items()]


def _pooled(name: str, rows: Sequence[OwnCosts]) -> Pooled:
    count = len(rows)
    cold, cached = (
        Decimal(sum(values)) / PICO for values in ([r.costs.cold for r in rows], [r.costs.cached for r in rows])
    )
    cold_turn = _median([row.costs.turn_cold for row in rows])
    first = _median([row.costs.first_turn for row in rows])
    turn = _median([row.costs.turn for row in rows])
    baseline = _median([row.costs.baseline for row in rows])
    saved = baseline - turn
    of = sum(row.of for row in rows)
    share = sum(row.hits for row in rows) / of if of else 0.0
    points = Decimal(str(share)) * 100
    one = cached / count
    return Pooled(
        strategy=name,
        compactions=count,
        share=share,
        total_cold=cold,
        total_cached=cached,
        published_break_even=cached / saved if saved > 0 else None,
        published_per_point=(cached + TURNS * turn) / points if points else None,
        one_cold=cold / count,
        one_cached=one,
        turn_cold=cold_turn,
        first_turn=first,
        turn=turn,
        baseline=baseline,
        break_even=(one + first - turn) / saved if saved > 0 else None,
        per_point=(one + first + (TURNS - 1) * turn) / points if points else None,
    )


def _median(picos: Sequence[int]) -> Decimal:
    ordered = sorted(picos)
    middle = len(ordered) // 2
    both = ordered[middle] + ordered[middle if len(ordered) % 2 else middle - 1]
    return Decimal(both) / 2 / PICO
