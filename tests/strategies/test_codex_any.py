"""Codex's strategies on any history, right or broken, and on the real sessions: valid, bounded, deterministic; and what the real client kept."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from codex_cases import asked, budget
from hypothesis import given, settings
from hypothesis import strategies as st
from real_sessions import shared

from firsthand.budget import Budget, Occupancy
from firsthand.codec import decode_as, encode
from firsthand.formats import read_sessions
from firsthand.formats.wire import wire_by_name
from firsthand.projection.boundaries import has_result
from firsthand.projection.fates import fates
from firsthand.projection.render import applies, project
from firsthand.projection.repair import repair
from firsthand.strategies import strategy_by_name
from firsthand.strategies.codex.counting import text_tokens
from firsthand.strategies.contract import (
    CompactionRequest,
    Decision,
    DueState,
    Kept,
    NeedsSummary,
    Phase,
    Plan,
    Refused,
    Strategy,
    Summary,
    SummaryRequest,
    Synthetic,
    Unchanged,
)
from firsthand.testing.random_entries import entry_lists, paired_paths
from firsthand.testing.validate import validate
from firsthand.tokens import EstimateCounter, counter_for_model, entry_cost, total_cost
from firsthand.transcript import Entry, Text, Transcript, Unknown, View

WIRES = ("openai-chat", "openai-responses", "anthropic")
ITEM = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAA"}
HANDOFF = "Goal: go on. Done: some of it. Next: the rest.\n" * 40

VARIANTS: list[tuple[str, dict[str, Any]]] = [
    ("codex-local", {}),
    ("codex-local", {"follows": "0.171", "strict_user_messages": True, "stale_summary": True}),
    ("codex-remote-v2", {}),
    ("codex-remote-v2", {"compaction_item": "opaque", "retain_client_developer_messages": True}),
    ("codex-remote-v2", {"compaction_item": "none", "compaction_image_budget": False, "follows": "0.171"}),
    ("codex-remote-v1", {}),
    ("codex-token-budget", {}),
    ("codex-token-budget", {"retain_client_developer_messages": True}),
]
SMALL = {
    "codex-local": "user_message_tokens",
    "codex-remote-v2": "retained_message_tokens",
    "codex-remote-v1": "retained_message_tokens",
}
PHASES: tuple[Phase, ...] = ("mid_turn", "pre_turn", "standalone")
TRIGGERS = ("automatic", "manual", "provider_context_limit", "model_context_downshift", "new_context")


def answered(request: SummaryRequest, strategy: Strategy) -> Summary:
    return Summary(raw=ITEM) if strategy.options().get("compaction_item") == "opaque" else Summary(HANDOFF)


def driven(
    strategy: Strategy,
    view: View,
    limits: Budget,
    request: CompactionRequest,
    previous: Plan | None = None,
    occupancy: Occupancy | None = None,
) -> Decision:
    decision = strategy.plan(view, limits, request, previous, None, occupancy)
    if isinstance(decision, NeedsSummary):
        for made in decision.requests:
            check_request(made, strategy, view)
        answers = {made.id: answered(made, strategy) for made in decision.requests}
        decision = strategy.plan(view, limits, request, previous, answers, occupancy)
    assert isinstance(decision, (Plan, Refused, Unchanged))
    return decision


def check_request(request: SummaryRequest, strategy: Strategy, view: View) -> None:
    """The request can be rendered, and shrinking it ends; of long ones the first steps are looked at."""
    smaller: SummaryRequest | None = request
    steps = 0
    while smaller is not None and steps < 16:
        shown = Plan(strategy="", version="", covered_from="", cutoff=view.entries[-1].id, items=smaller.items)
        assert len(project(view, shown)) == len(smaller.items) <= len(request.items) - steps
        smaller = strategy.shrink(smaller)
        steps += 1
    assert smaller is None or len(request.items) > 14


def check_plan(plan: Plan, view: View, limits: Budget, *, opaque: bool) -> None:
    assert applies(plan, view)
    assert decode_as(encode(plan), Plan) == plan
    shown = project(view, plan)
    assert plan.tokens_after == total_cost(shown, limits.counter) + limits.fixed <= limits.input_limit
    assert len(list(fates(view, plan))) == sum(len(entry.blocks) for entry in view.entries)
    repaired = repair(shown).entries
    for wire in ("openai-responses",) if opaque else WIRES:
        written = wire_by_name(wire).write(repaired)
        found = validate(wire, written.messages, system=written.system)
        # A block that nobody has a word for, and the name of a tool, go back to the wire that they came from, whatever they are.
        ours = [v for v in found if "novelty" not in v.explanation and v.rule != "tool-name"]
        assert ours == [], wire


def is_said(entry: Entry) -> bool:
    return any(isinstance(block, Text) and block.text.strip() for block in entry.blocks)


@settings(max_examples=300, deadline=None)
@given(
    entries=st.one_of(entry_lists(), paired_paths()),
    variant=st.sampled_from(VARIANTS),
    room=st.sampled_from((0, 1, 3, 20_000)),
    phase=st.sampled_from(PHASES),
    trigger=st.sampled_from(TRIGGERS),
    window=st.sampled_from((400, 3_000, 100_000)),
    part=st.integers(0, 12),
)
def test_any_history_gives_a_valid_plan_or_a_reason(
    entries: tuple[Entry, ...],
    variant: tuple[str, dict[str, Any]],
    room: int,
    phase: Phase,
    trigger: Any,
    window: int,
    part: int,
) -> None:
    name, options = variant
    if name in SMALL:
        options = {**options, SMALL[name]: room}
    strategy = strategy_by_name(name, **options)
    limits = Budget.of(window, counter=EstimateCounter())
    request = asked(phase, trigger)
    previous: Plan | None = None
    for view in (View(entries[:part]), View(entries)):
        decision = driven(strategy, view, limits, request, previous)
        assert driven(strategy_by_name(name, **options), view, limits, request, previous) == decision
        if not isinstance(decision, Plan):
            continue
        # Nothing but text that somebody wrote makes a request that a provider takes; of the rest only the shape is looked at.
        shown = project(view, decision)
        if any(is_said(entry) for entry in shown):
            check_plan(decision, view, limits, opaque=options.get("compaction_item") == "opaque")
        if name == "codex-local":
            typed = [
                block.text
                for entry, _ in _kept(decision, view)
                for block in entry.blocks
                if isinstance(block, Text) and block.origin == "typed" and entry.role == "user"
            ]
            assert sum(map(text_tokens, typed)) <= room + 8, "the marker comes on top"
            assert sum(isinstance(item, Synthetic) for item in decision.items) == 1
        previous = decision


def _kept(plan: Plan, view: View) -> Iterator[tuple[Entry, Kept]]:
    shown = project(view, plan)
    yield from ((entry, item) for entry, item in zip(shown, plan.items, strict=False) if isinstance(item, Kept))


# --- real sessions ----------------------------------------------------------------------------------------------------------------------------

FILES = [
    "claude-code/entire-cli-compact3.jsonl.gz", "claude-code/entirecontext-korean.jsonl.gz", "claude-code/flutter-image-compact4.jsonl.gz",
    "claude-code/technocore-images.jsonl.gz", "claude-code/viewer-sidechain-small.jsonl", "codex/hk-compact2.jsonl.gz",
    "codex/mise-compact3.jsonl.gz", "pi/pi-before-compaction.jsonl.gz", "pi/preloop-omp-thinking.jsonl.gz",
]  # fmt: skip


def limits_of(session: Transcript, window: int) -> Budget:
    counter = counter_for_model(session.model)
    return Budget.of(window, counter=counter, fixed=counter.count(session.system or ""))


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize(
    "window", [pytest.param(32_000, marks=pytest.mark.slow), pytest.param(128_000, marks=pytest.mark.slow), 200_000]
)
def test_whole_real_sessions(file: str, window: int) -> None:
    for session in read_sessions(shared(file)):
        view, limits = session.view(), limits_of(session, window)
        for name, options in VARIANTS:
            strategy = strategy_by_name(name, **options)
            decision = driven(strategy, view, limits, asked("standalone"))
            assert decision == driven(strategy_by_name(name, **options), view, limits, asked("standalone"))
            assert isinstance(decision, Plan), (session.id, name, decision)
            check_plan(decision, view, limits, opaque=options.get("compaction_item") == "opaque")


def boundaries(entries: tuple[Entry, ...]) -> Iterator[tuple[int, Phase]]:
    """Where a client would look whether a compaction is due: behind the results of a step, and before a turn."""
    for at, entry in enumerate(entries, start=1):
        following = entries[at] if at < len(entries) else None
        if has_result(entry) and (following is None or not has_result(following)):
            yield at, "mid_turn"
        elif entry.role == "user" and (following is None or following.role == "assistant"):
            yield at, "pre_turn"


@pytest.mark.slow
@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("window", [32_000, 128_000, 200_000])
def test_real_sessions_from_compaction_to_compaction(file: str, window: int) -> None:
    for session in read_sessions(shared(file)):
        entries, limits = session.view().entries, limits_of(session, window)
        for name, options in VARIANTS:
            strategy = strategy_by_name(name, **options)
            previous: Plan | None = None
            size, counted, done = limits.fixed, 0, 0
            for at, phase in boundaries(entries):
                size += sum(entry_cost(entry, limits.counter) for entry in entries[counted:at])
                counted = at
                occupancy = Occupancy(size, prefix=previous.tokens_after if previous else 0)
                trigger = strategy.due(occupancy, limits, DueState(phase=phase, previous=previous))
                if trigger is None:
                    assert size <= limits.input_limit
                    continue
                view = View(entries[:at])
                decision = driven(strategy, view, limits, asked(phase, trigger), previous, occupancy)
                if not isinstance(decision, Plan):
                    # One prompt or one context alone is more than so small a window holds; every refusal is at 32,000.
                    assert isinstance(decision, Refused), (session.id, name, decision)
                    assert window == 32_000, (session.id, name, decision)
                    assert decision.reason in ("no-valid-boundary", "budget-exceeded")
                    continue
                check_plan(decision, view, limits, opaque=options.get("compaction_item") == "opaque")
                done += 1
                assert decision.state["window_number"] == done
                assert decision.tokens_after < occupancy.tokens
                previous, size = decision, decision.tokens_after


@pytest.mark.parametrize(
    ("file", "compactions"), [("codex/hk-compact2.jsonl.gz", 2), ("codex/mise-compact3.jsonl.gz", 3)]
)
def test_what_the_real_client_kept_is_what_the_strategy_keeps(file: str, compactions: int) -> None:
    """Both sessions were compacted remotely, between two steps: same messages, same context, same order, each compaction upon the one before."""
    session = read_sessions(shared(file))[0]
    view = session.view()
    strategy = strategy_by_name("codex-remote-v2", compaction_item="opaque")
    previous: Plan | None = None
    assert len(view.markers) == compactions
    for marker in view.markers:
        assert marker.after is not None
        before = View(view.entries[: view.positions[marker.after] + 1])
        plan = driven(strategy, before, budget(272_000), asked("mid_turn"), previous)
        assert isinstance(plan, Plan)
        theirs = [view[item] if isinstance(item, str) else item for item in marker.shown]
        assert [said(entry) for entry in project(before, plan)] == [said(entry) for entry in theirs]
        previous = plan


def said(entry: Entry) -> tuple[str, ...]:
    """Role and texts of an entry; an item that only the provider can read is that."""
    if any(isinstance(block, Unknown) for block in entry.blocks):
        return ("compaction item",)
    return (entry.role, *(block.text for block in entry.blocks if isinstance(block, Text)))
