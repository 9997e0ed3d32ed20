"""OpenCode's strategies on any history, right or broken, and on the real sessions: valid, bounded, deterministic, nothing lost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from real_sessions import shared

from firsthand.budget import Budget, Occupancy
from firsthand.codec import decode_as, encode
from firsthand.formats import read_sessions
from firsthand.formats.wire import wire_by_name
from firsthand.projection.boundaries import open_step
from firsthand.projection.fates import fates
from firsthand.projection.render import applies, project
from firsthand.projection.repair import repair
from firsthand.strategies import strategy_by_name
from firsthand.strategies.contract import (
    CompactionRequest,
    Decision,
    DueState,
    Item,
    Kept,
    NeedsSummary,
    Plan,
    Refused,
    Strategy,
    Summary,
    Trigger,
)
from firsthand.strategies.opencode.messages import messages
from firsthand.strategies.opencode.size import Sizes, estimate
from firsthand.strategies.opencode.v1 import OpencodeV1
from firsthand.strategies.opencode.v2 import OpencodeV2
from firsthand.testing.random_entries import entry_lists, paired_paths
from firsthand.testing.validate import validate
from firsthand.tokens import EstimateCounter, entry_cost, total_cost
from firsthand.transcript import Entry, Text, ToolResult, View, chained

WIRES = ("openai-chat", "openai-responses", "anthropic")
SUMMARY = "## Objective\n- go on\n\n## Important Details\n- (none)"

STRATEGIES = st.sampled_from(
    [
        ("opencode-v1", {"preserve_recent_tokens": 60}),
        ("opencode-v1", {"tail_turns": 1}),
        ("opencode-v1", {"preserve_recent_tokens": 90, "strict_bugs": True}),
        ("opencode-v1", {"follows": "V1-b", "preserve_recent_tokens": 40}),
        ("opencode-v1", {"prune": True, "prune_protect": 1, "prune_minimum": 0, "prune_turns": 1}),
        ("opencode-prune", {"protect": 0, "minimum": 0, "turns": 0}),
        ("opencode-v2", {"keep_tokens": 20}),
        ("opencode-v2", {"keep_tokens": 20, "follows": "V2-a"}),
        ("opencode-v2", {"keep_tokens": 20, "follows": "V2-c"}),
        ("opencode-v2", {"keep_tokens": 20, "follows": "V2-d"}),
    ]
)
TRIGGERS = st.sampled_from(["automatic", "manual", "provider_context_limit", "model_context_downshift", "new_context"])
HISTORIES = st.one_of(entry_lists(), paired_paths())


# Blocks that nobody has a word for, and names of tools that a provider refuses, are sent as they are.
INHERITED = {"system", "part-type", "block-type", "item-type", "output-type", "tool-name"}


def driven(
    strategy: Strategy,
    view: View,
    budget: Budget,
    request: CompactionRequest,
    previous: Plan | None = None,
    occupancy: Occupancy | None = None,
    summary: Summary | None = None,
) -> Decision:
    """The decision once every summary that is asked for was answered."""
    decision = strategy.plan(view, budget, request, previous, None, occupancy)
    if isinstance(decision, NeedsSummary):
        answers = {made.id: summary or Summary(SUMMARY) for made in decision.requests}
        decision = strategy.plan(view, budget, request, previous, answers, occupancy)
    return decision


def assert_writable(entries: Sequence[Entry]) -> None:
    """Every wire makes a request of them that its provider would take, but for what is wrong in the originals themselves."""
    repaired = repair(entries).entries
    for name in WIRES:
        written = wire_by_name(name).write(repaired)
        if written.messages:
            found = validate(name, written.messages, written.system)
            assert [v for v in found if v.rule not in INHERITED] == []


def assert_sound(view: View, plan: Plan) -> None:
    """What holds for each plan, whatever the strategy."""
    assert applies(plan, view)
    assert decode_as(encode(plan), Plan) == plan
    shown = project(view, plan)
    assert_writable(shown)
    after = view.entries[view.positions[plan.cutoff] + 1 :]
    assert all(mine is theirs for mine, theirs in zip(shown[len(plan.items) :], after, strict=True))
    found = list(fates(view, plan))
    assert len(found) == sum(len(entry.blocks) for entry in view.entries)
    rules = [
        tuple(b.text for b in entry.blocks if isinstance(b, Text) and b.origin != "summary" and b.text.strip())
        for entry in view.entries
        if entry.role in ("system", "developer")
    ]
    texts = [tuple(b.text for b in entry.blocks if isinstance(b, Text)) for entry in shown]
    for rule in rules:
        assert not rule or any(set(rule) <= set(text) for text in texts)


@settings(max_examples=100, deadline=None)
@given(STRATEGIES, HISTORIES, HISTORIES, TRIGGERS, st.booleans(), st.sampled_from([None, "note"]))
def test_any_history(
    chosen: tuple[str, dict[str, Any]],
    history: tuple[Entry, ...],
    more: tuple[Entry, ...],
    trigger: Trigger,
    auto: bool,
    note: str | None,
) -> None:
    name, options = chosen
    strategy = strategy_by_name(name, **options)
    budget = Budget.of(100_000, 1_000, counter=EstimateCounter())
    request = CompactionRequest(trigger=trigger, auto=auto, instructions=note)
    full = Occupancy(99_500, 99_500)
    view = View(history)
    first = driven(strategy, view, budget, request, None, full)
    assert first == driven(strategy, view, budget, request, None, full)
    if not isinstance(first, Plan):
        return
    assert_sound(view, first)
    grown = [entry_with(entry, f"n{number}") for number, entry in enumerate(more)]
    follow_up = [
        Entry(id=f"f{number}", role=item.role, blocks=(Text(item.text, item.origin),))
        for number, item in enumerate(first.follow_up)
    ]
    later = View(chained([*history, *follow_up, *grown]))
    assert applies(first, later)
    second = driven(strategy, later, budget, request, first, full)
    assert second == driven(strategy, later, budget, request, decode_as(encode(first), Plan), full)
    if isinstance(second, Plan):
        assert_sound(later, second)
    failed = driven(strategy, later, budget, request, first, full, Summary(failure="away"))
    if isinstance(failed, Plan):
        assert_sound(later, failed)


def entry_with(entry: Entry, new_id: str) -> Entry:
    return msgspec.structs.replace(entry, id=new_id)


@settings(max_examples=80, deadline=None)
@given(HISTORIES, st.integers(0, 200), st.sampled_from([None, 0, 1, 2]))
def test_the_tail_of_v1_is_within_its_budget_and_nothing_is_shown_twice(
    history: tuple[Entry, ...], budget: int, turns: int | None
) -> None:
    view = View(history)
    strategy = OpencodeV1(preserve_recent_tokens=budget, tail_turns=turns)
    decision = driven(
        strategy, view, Budget.of(100_000, counter=EstimateCounter()), CompactionRequest(trigger="manual")
    )
    if not isinstance(decision, Plan):
        return
    tail = messages(view, decision)
    if not any(part for message in tail for part in message.parts if getattr(part, "result", part) is None):
        assert not tail or Sizes.of(tail).tokens(0, len(tail)) <= budget
    shown = [entry.id for entry in project(view, decision)]
    assert len(shown) == len(set(shown))


@settings(max_examples=80, deadline=None)
@given(HISTORIES, st.integers(0, 60))
def test_the_recent_text_of_v2_is_within_its_budget(history: tuple[Entry, ...], keep: int) -> None:
    budget = Budget.of(100_000, counter=EstimateCounter())
    decision = driven(OpencodeV2(keep_tokens=keep), View(history), budget, CompactionRequest(trigger="manual"))
    if isinstance(decision, Plan):
        pieces = decision.state["recent"].split("\n\n[")
        assert sum(estimate(len(piece)) for piece in pieces) <= keep + len(pieces)


@settings(max_examples=80, deadline=None)
@given(
    st.sampled_from(
        [{}, {"tail_turns": 1}, {"preserve_recent_tokens": 60}, {"strict_bugs": True}, {"follows": "V1-b"}]
    ),
    st.sampled_from(["opencode-v1", "opencode-v2"]),
    paired_paths(),
    TRIGGERS,
)
def test_what_was_typed_is_read_by_the_summariser_or_still_shown(
    options: dict[str, Any], name: str, history: tuple[Entry, ...], trigger: Trigger
) -> None:
    strategy = strategy_by_name(name, **options) if name == "opencode-v1" else OpencodeV2(keep_tokens=20)
    view = View(history)
    budget = Budget.of(100_000, counter=EstimateCounter())
    request, full = CompactionRequest(trigger=trigger), Occupancy(99_500, 99_500)
    asked = strategy.plan(view, budget, request, None, None, full)
    decision = driven(strategy, view, budget, request, None, full)
    if not isinstance(asked, NeedsSummary) or not isinstance(decision, Plan):
        return
    (made,) = asked.requests
    read = [made.instruction, *(block.text for item in made.items for block in texts_of(view, item))]
    shown = [block.text for entry in project(view, decision) for block in entry.blocks if isinstance(block, Text)]
    shown += [item.text for item in decision.follow_up]
    for entry in history:
        for block in entry.blocks if entry.role == "user" else ():
            if isinstance(block, Text) and block.origin == "typed":
                assert any(block.text in text for text in (*read, *shown))


def texts_of(view: View, item: Item) -> Iterator[Text]:
    if isinstance(item, Kept):
        yield from (block for block in view[item.entry].blocks if isinstance(block, Text))


# --- Real sessions -----------------------------------------------------------------------------------------------------------------------

SESSIONS = [
    "claude-code/entire-cli-compact3.jsonl.gz",
    "claude-code/flutter-image-compact4.jsonl.gz",
    "claude-code/technocore-images.jsonl.gz",
    "claude-code/entirecontext-korean.jsonl.gz",
    "claude-code/viewer-sidechain-small.jsonl",
    "codex/mise-compact3.jsonl.gz",
    "codex/hk-compact2.jsonl.gz",
    "pi/pi-before-compaction.jsonl.gz",
    "pi/preloop-omp-thinking.jsonl.gz",
    "opencode/dump4-gpt-5-2.jsonl.gz",
]
# Instructions of 16,000 tokens leave too little of an input limit of 22,000 at times.
CROWDED = ("codex/mise-compact3.jsonl.gz", 32_000)


def views(path: str) -> Iterator[View]:
    return (transcript.view() for transcript in read_sessions(shared(path)))


def compactions(strategy: Strategy, entries: Sequence[Entry], budget: Budget) -> Iterator[tuple[View, Decision]]:
    """The session as it grew, compacted whenever it was due."""
    grown: list[Entry] = []
    previous: Plan | None = None
    size = budget.fixed
    for entry in entries:
        grown.append(entry)
        size += entry_cost(entry, budget.counter)
        answered = entry.role == "assistant" or any(isinstance(block, ToolResult) for block in entry.blocks)
        if not answered or open_step(grown) < len(grown):
            continue
        occupancy = Occupancy(size)
        state = DueState(phase="mid_turn", previous=previous)
        trigger = strategy.due(occupancy, budget, state)
        if trigger is None:
            continue
        view = View(chained(grown))
        request = CompactionRequest(trigger=trigger, phase="mid_turn")
        decision = driven(strategy, view, budget, request, previous, occupancy)
        yield view, decision
        if isinstance(decision, Plan):
            previous, size = decision, decision.tokens_after
            for item in decision.follow_up:
                grown.append(
                    Entry(id=f"follow-up-{len(grown)}", role=item.role, blocks=(Text(item.text, item.origin),))
                )


@pytest.mark.parametrize("window", [32_000, 128_000, 200_000])
@pytest.mark.parametrize("name", ["opencode-v1", "opencode-v2"])
@pytest.mark.parametrize("path", SESSIONS)
def test_real_sessions_as_they_grew(path: str, name: str, window: int) -> None:
    budget = Budget.of(window)
    strategy = strategy_by_name(name)
    for view in views(path):
        plans = refused = 0
        for at, decision in compactions(strategy, view.entries, budget):
            if not isinstance(decision, Plan):
                refused += isinstance(decision, Refused)
                if refused > 9:
                    break
                continue
            plans += 1
            assert decision.tokens_after <= budget.input_limit
            assert_sound(at, decision)
            if isinstance(strategy, OpencodeV1):
                tail = messages(at, decision)
                assert not tail or Sizes.of(tail).tokens(0, len(tail)) <= strategy.tail_budget(budget)
        assert not refused or (path, window) == CROWDED
        if total_cost(view.entries, budget.counter) > 2 * window:
            assert plans or (path, window) == CROWDED


@pytest.mark.parametrize("path", SESSIONS)
@pytest.mark.parametrize("name", ["opencode-v1", "opencode-v2", "opencode-prune"])
def test_real_sessions_compacted_by_hand(path: str, name: str) -> None:
    budget = Budget.of(1_000_000)
    request = CompactionRequest(trigger="manual", phase="standalone")
    for view in views(path):
        decision = driven(strategy_by_name(name), view, budget, request)
        assert decision == driven(strategy_by_name(name), view, budget, request)
        if isinstance(decision, Plan):
            assert_sound(view, decision)
            assert decision.tokens_after < decision.tokens_before
