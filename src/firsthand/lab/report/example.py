"""One complete projection taken apart, and how a window's trigger comes about: what the figures of the report's last part show."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from ...budget import Budget
from ...codec import compact_json
from ...projection.fates import block_kind, fates, tally
from ...projection.plan import Kept, Plan
from ...strategies import strategy_by_name
from ...tokens import Counter, O200kCounter, block_cost, counter_for_model
from ...transcript import Transcript, View
from ..arms import Arm, run_arm
from ..boundaries import boundaries
from ..loaded import RememberingCounter
from .record import BudgetLine, Example, Stretch

__all__ = ["PUBLISHED_CEILING", "PUBLISHED_WINDOW", "budgets_of", "example_of"]

PUBLISHED_WINDOW = 1_000_000
PUBLISHED_CEILING = 384_000
"""Window and declared output of the published experiment (futureos.md 8.4)."""
_MOST_STRETCHES = 600
_SHOWN = {
    "excerpts": "excerpts",
    "index": "evidence index",
    "summary": "summary",
    "ledger": "ledger of what was left out",
    "notice": "notice",
}


def example_of(session: Transcript, source: str, strategy: str, window: int) -> Example | None:
    """The projection of a whole session by one strategy; None where it makes none.

    Args:
        session: the session, compacted at its end.
        source: name of its file.
        strategy: the strategy's name; summaries are written by the stand-in.
        window: of its budget, in tokens.
    """
    counter = RememberingCounter(O200kCounter())
    view = session.view()
    costs = list(_costs(view, counter))
    ends = boundaries(view, (100,), costs, recorded=False)
    if not ends:
        return None
    position = ends[-1].position
    before = View(view.entries[:position])
    used = counter_for_model(session.model)
    tools = used.count(compact_json(list(session.tools))) if session.tools else 0
    budget = Budget.of(window, fixed=used.count(session.system or "") + tools, counter=used)
    arm = Arm(strategy, None, "extractive")
    made = run_arm(arm, strategy_by_name(strategy), before, budget, None, "forced", counter, timed=False)
    if made.plan is None or made.outcome != "compacted":
        return None
    return Example(
        source=source,
        strategy=strategy,
        summariser="extractive" if made.asked else "-",
        window=window,
        position=position,
        history=_coarser(_history(before, made.plan, counter)),
        projection=_joined(_projection(before, made.plan, counter)),
        kinds=_kinds(before, made.plan, counter),
    )


def _costs(view: View, counter: Counter) -> Iterator[int]:
    for entry in view.entries:
        yield sum(block_cost(block, counter) for block in entry.blocks)


def _history(view: View, plan: Plan, counter: Counter) -> tuple[Stretch, ...]:
    return _joined(
        Stretch("tail" if found.reason == "recent tail" else found.fate, block_cost(found.block, counter))
        for found in fates(view, plan)
    )


def _projection(view: View, plan: Plan, counter: Counter) -> Iterator[Stretch]:
    for item in plan.items:
        if not isinstance(item, Kept):
            yield Stretch(_SHOWN[item.kind], counter.count(item.text))
            continue
        entry = view.entries[view.positions[item.entry]]
        for number, block in enumerate(entry.blocks):
            if item.blocks is None or number in item.blocks:
                text = item.replaced.get(number)
                cost = block_cost(block, counter) if text is None else counter.count(text)
                yield Stretch(f"{block_kind(entry, block)} originals", cost)
    for entry in view.entries[view.positions[plan.cutoff] + 1 :]:
        for block in entry.blocks:
            yield Stretch("tail", block_cost(block, counter))


def _kinds(view: View, plan: Plan, counter: Counter) -> dict[str, dict[str, int]]:
    kinds: dict[str, dict[str, int]] = {}
    for row in tally(view, plan, counter):
        kinds.setdefault(row.kind, {})[row.fate] = row.tokens
    return kinds


def _joined(stretches: Iterable[Stretch]) -> tuple[Stretch, ...]:
    """Neighbours of one name become one."""
    return tuple(
        Stretch(name, sum(stretch.tokens for stretch in found))
        for name, found in groupby(stretches, key=lambda stretch: stretch.name)
    )


def _coarser(stretches: Sequence[Stretch]) -> tuple[Stretch, ...]:
    """As many stretches as a figure can show: of a long history, equal slices, each with its parts in order of size."""
    if len(stretches) <= _MOST_STRETCHES:
        return tuple(stretches)
    whole = sum(stretch.tokens for stretch in stretches)
    slices: list[dict[str, int]] = [{} for _ in range(_MOST_STRETCHES // 4)]
    passed = 0
    for stretch in stretches:
        cell = slices[min(len(slices) - 1, passed * len(slices) // max(1, whole))]
        cell[stretch.name] = cell.get(stretch.name, 0) + stretch.tokens
        passed += stretch.tokens
    return _joined(
        Stretch(name, tokens) for cell in slices for name, tokens in sorted(cell.items(), key=lambda part: -part[1])
    )


def budgets_of(window: int, fixed: int = 0) -> tuple[BudgetLine, ...]:
    """How the trigger of the report's window comes about, and of the published experiment's.

    Args:
        window: in tokens.
        fixed: tokens of system prompt and tools.
    """
    return (
        _line("this report", Budget.of(window, fixed=fixed)),
        _line("published experiment", Budget.of(PUBLISHED_WINDOW, PUBLISHED_CEILING, profile="futureos-e2")),
    )


def _line(name: str, budget: Budget) -> BudgetLine:
    return BudgetLine(
        name=name,
        window=budget.window,
        output_ceiling=budget.output_ceiling,
        margin=budget.margin,
        input_limit=budget.input_limit,
        trigger=budget.trigger,
        fixed=budget.fixed,
        keep_recent=budget.keep_recent,
        max_target=budget.max_target,
    )
