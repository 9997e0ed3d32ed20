"""What the tests of the Codex strategies share: a short history, a request, and what a plan shows."""

from __future__ import annotations

from typing import Any

from firsthand.budget import Budget, Occupancy
from firsthand.projection.render import project
from firsthand.strategies.codex.local import CodexLocal
from firsthand.strategies.codex.texts import SUMMARY_PREFIX
from firsthand.strategies.contract import (
    CompactionRequest,
    Decision,
    NeedsSummary,
    Phase,
    Plan,
    Strategy,
    Summary,
    SummaryRequest,
    Trigger,
)
from firsthand.testing.builders import call, result, said, user
from firsthand.tokens import EstimateCounter
from firsthand.transcript import Entry, Text, View

estimate = EstimateCounter()
SUMMARY = f"{SUMMARY_PREFIX}\ndone: a; next: b"


def budget(window: int = 272_000, output: int = 8_000, **more: Any) -> Budget:
    return Budget.of(window, output, counter=estimate, **more)


def asked(phase: Phase = "mid_turn", trigger: Trigger = "manual", **more: Any) -> CompactionRequest:
    return CompactionRequest(trigger=trigger, phase=phase, **more)


def decide(
    history: View,
    request: CompactionRequest | None = None,
    *,
    strategy: Strategy | None = None,
    limits: Budget | None = None,
    previous: Plan | None = None,
    answer: Summary | None = None,
    occupancy: Occupancy | None = None,
) -> Decision:
    """What the strategy decides, the summary already answered."""
    chosen = strategy or CodexLocal()
    given = {"handoff": answer or Summary("done: a; next: b")}
    return chosen.plan(history, limits or budget(), request or asked(), previous, given, occupancy)


def planned(history: View, request: CompactionRequest | None = None, **more: Any) -> Plan:
    decision = decide(history, request, **more)
    assert isinstance(decision, Plan), decision
    return decision


def request_of(history: View, request: CompactionRequest | None = None, **more: Any) -> SummaryRequest:
    strategy = more.pop("strategy", None) or CodexLocal()
    decision = strategy.plan(history, more.pop("limits", None) or budget(), request or asked(), **more)
    assert isinstance(decision, NeedsSummary), decision
    return decision.requests[0]


def texts(entries: tuple[Entry, ...]) -> list[str]:
    return ["".join(block.text for block in entry.blocks if isinstance(block, Text)) for entry in entries]


def shown(history: View, plan: Plan) -> list[str]:
    return texts(project(history, plan))


TURNS = (user("one"), said("answer one"), user("two"), said("look"), call("read", path="a"), result("c1", "text"))
