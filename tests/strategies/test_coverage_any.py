"""What holds for every plan of `coverage`, whatever the history, the budget and the options."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from firsthand.budget import Budget, Occupancy
from firsthand.codec import decode_as, encode
from firsthand.formats.wire import wire_by_name
from firsthand.projection.fates import fates
from firsthand.projection.features.rows import extract
from firsthand.projection.features.units import readable
from firsthand.projection.plan import Kept, Plan, Synthetic
from firsthand.projection.render import applies, project
from firsthand.projection.repair import repair
from firsthand.strategies.contract import CompactionRequest, Refused, Unchanged
from firsthand.strategies.coverage.strategy import Coverage
from firsthand.testing.random_entries import entry_lists, paired_paths
from firsthand.testing.validate import validate
from firsthand.tokens import Counter, EstimateCounter, counter_by_name, counter_for_model, entry_cost, total_cost
from firsthand.transcript import Entry, Text, ToolResult, View, typed_text

WIRES = ("openai-chat", "openai-responses", "anthropic")
# Blocks that nobody has a word for, and names of tools that a provider refuses, are sent as they are.
INHERITED = {"system", "part-type", "block-type", "item-type", "output-type", "tool-name"}
COUNTERS: list[Counter] = [EstimateCounter(), counter_for_model(None), counter_by_name("calibrated:claude")]


def swollen(entries: Iterable[Entry], times: int) -> tuple[Entry, ...]:
    """The same entries with more to say: typed texts repeated, results with lines of names and numbers behind them."""
    out: list[Entry] = []
    for number, entry in enumerate(entries):
        blocks = []
        for block in entry.blocks:
            if isinstance(block, Text) and block.origin == "typed" and number % 3 == 0:
                block = Text((block.text + f" value_{number} must not fail. ") * times, block.origin)
            elif isinstance(block, ToolResult):
                lines = "\n".join(f"{n} src/a{number}_{n}.py error {n * 37}" for n in range(times))
                block = msgspec.structs.replace(block, content=(*block.content, Text(lines)))
            blocks.append(block)
        out.append(msgspec.structs.replace(entry, blocks=tuple(blocks)))
    return tuple(out)


@st.composite
def views(draw: st.DrawFn) -> View:
    entries = swollen(draw(st.one_of(entry_lists(20), paired_paths(6))), draw(st.integers(1, 40)))
    ids = [entry.id for entry in entries]
    return View(entries, frozenset(draw(st.sets(st.sampled_from(ids), max_size=2)) if ids else ()))


@st.composite
def budgets(draw: st.DrawFn) -> Budget:
    return Budget.of(
        draw(st.sampled_from((40, 300, 1_000, 3_000, 12_000, 200_000))),
        fixed=draw(st.sampled_from((0, 17, 50))),
        counter=draw(st.sampled_from(COUNTERS)),
        target=draw(st.sampled_from((None, None, 20, 100, 400, 2_000))),
    )


TRIGGERS = st.sampled_from(("automatic", "manual", "provider_context_limit", "model_context_downshift", "new_context"))
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "target": st.sampled_from((1, 50, 300, 2_000)),
        "fixed_target": st.booleans(),
        "tail": st.sampled_from((0, 10, 100)),
        "prose": st.sampled_from((0, 60, 100)),
        "user": st.sampled_from((0, 60, 100)),
    },
)


def assert_shows_originals(view: View, plan: Plan) -> None:
    """Every excerpt stands in the text byte for byte, and texts that are kept are those of the view."""
    texts = [item.text for item in plan.items if isinstance(item, Synthetic)]
    for excerpt in plan.excerpts:
        text = readable(view[excerpt.entry].blocks[excerpt.block])
        assert excerpt.spans
        for span in excerpt.spans:
            assert 0 <= span.start < span.end <= len(text)
            assert text[span.start : span.end] in texts[0]
    assert all(not item.replaced for item in plan.items if isinstance(item, Kept))


def assert_valid_on_every_wire(entries: tuple[Entry, ...]) -> None:
    for name in WIRES:
        written = wire_by_name(name).write(repair(entries).entries)
        if written.messages:
            found = validate(name, written.messages, system=written.system)
            assert [violation for violation in found if violation.rule not in INHERITED] == []


@settings(max_examples=200)
@given(views(), budgets(), TRIGGERS, OPTIONS)
def test_any_plan(view: View, budget: Budget, trigger: str, options: dict[str, int]) -> None:
    strategy = Coverage(**options)
    request = CompactionRequest(trigger=trigger)  # type: ignore[arg-type]
    plan = strategy.plan(view, budget, request)
    stored = View(view.entries, view.pins, (), {entry.id: extract(entry) for entry in view.entries})
    assert strategy.plan(stored, budget, request) == plan
    if not isinstance(plan, Plan):
        assert isinstance(plan, (Unchanged, Refused))
        return
    shown = project(view, plan)
    assert plan.tokens_after == total_cost(shown, budget.counter) + budget.fixed <= budget.input_limit
    assert trigger == "manual" or plan.tokens_after < plan.tokens_before
    instructions = sum(entry_cost(e, budget.counter) for e in shown if e.role in ("system", "developer"))
    history = plan.tokens_after - budget.fixed - instructions
    if strategy.options()["fixed_target"] or budget.target is not None:
        assert history <= int(plan.notes["target"]) <= (budget.target or strategy.options()["target"])
    assert_shows_originals(view, plan)
    assert_valid_on_every_wire(shown)
    assert applies(plan, view)
    assert decode_as(encode(plan), Plan) == plan
    assert len(list(fates(view, plan))) == sum(len(entry.blocks) for entry in view.entries)
    whole = {item.entry for item in plan.items if isinstance(item, Kept) and item.blocks is None}
    cut = view.positions[plan.cutoff] + 1
    blank = {entry.id for entry in view.entries if not entry.blocks}
    assert all(pin in whole | blank for pin in view.pins if view.positions[pin] < cut)


@settings(max_examples=60)
@given(views(), st.integers(2, 12))
def test_the_last_of_several_plans_equals_the_one_made_at_once(view: View, parts: int) -> None:
    """Each sees more of the session and the plan before it; the plan depends on the originals alone."""
    strategy, budget = Coverage(), Budget.of(12_000, counter=EstimateCounter())
    request = CompactionRequest(trigger="manual")
    previous: Plan | None = None
    for part in range(1, parts + 1):
        seen = View(view.entries[: len(view) * part // parts], view.pins)
        decision = strategy.plan(seen, budget, request, previous)
        at_once = strategy.plan(seen, budget, request)
        if isinstance(decision, Plan) and isinstance(at_once, Plan):
            assert msgspec.structs.replace(decision, tokens_before=0) == msgspec.structs.replace(
                at_once, tokens_before=0
            )
            previous = decision
        else:
            assert type(decision) is type(at_once)


@settings(max_examples=60)
@given(paired_paths(6), st.integers(5, 40))
def test_typed_text_is_whole_while_it_fits(entries: tuple[Entry, ...], times: int) -> None:
    view = View(swollen(entries, times))
    counter = EstimateCounter()
    plan = Coverage().plan(view, Budget.of(200_000, counter=counter), CompactionRequest(trigger="manual"))
    if isinstance(plan, Plan):
        typed = [text for entry in view.entries if entry.role == "user" for text in typed_text(entry)]
        shown = [text for entry in project(view, plan) if entry.role == "user" for text in typed_text(entry)]
        assert sum(map(counter.count, typed)) < 7_000
        assert shown == typed


@given(paired_paths(5), st.integers(5, 40))
def test_a_reported_size_decides_when_and_not_what(entries: tuple[Entry, ...], times: int) -> None:
    view, budget = View(swollen(entries, times)), Budget.of(3_000, counter=EstimateCounter())
    request = CompactionRequest()
    plans = [
        found
        for reported in (2_600, 2_900, 60_000)
        if isinstance(
            found := Coverage().plan(view, budget, request, occupancy=Occupancy(reported, reported=reported)), Plan
        )
    ]
    assert len({encode(msgspec.structs.replace(plan, tokens_before=0)) for plan in plans}) <= 1


SCRIPT = """
import sys
from firsthand.budget import Budget
from firsthand.codec import encode
from firsthand.samples import chain
from firsthand.strategies.contract import CompactionRequest
from firsthand.strategies.coverage.strategy import Coverage
from firsthand.transcript import View
view = View(chain("export").entries[:60])
plan = Coverage().plan(view, Budget.of(200_000), CompactionRequest(trigger="manual"))
sys.stdout.buffer.write(encode(plan))
"""


def test_another_process_makes_the_same_plan() -> None:
    made = [
        subprocess.run(
            [sys.executable, "-c", SCRIPT], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    ]
    assert made[0] == made[1]
    assert len(decode_as(made[0], Plan).excerpts) > 0
