"""What the tests of `pi` share: two short sessions, and a fake summariser."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from firsthand.budget import Budget
from firsthand.strategies.contract import (
    CompactionRequest,
    NeedsSummary,
    Plan,
    Summary,
)
from firsthand.strategies.pi.strategy import Pi
from firsthand.testing.builders import (
    call,
    filler,
    result,
    said,
    user,
    view,
)
from firsthand.tokens import EstimateCounter
from firsthand.transcript import Entry, Text, View

MANUAL = CompactionRequest(trigger="manual")
BUDGET = Budget.of(200_000, 10_000, counter=EstimateCounter())
CHAT = view(
    user(filler(100, "a")),
    said(filler(100, "b")),
    user(filler(100, "c")),
    said(filler(100, "d")),
    user(filler(100, "e")),
    said(filler(100, "f")),
)
SPLIT = view(
    user("old"),
    said("done"),
    user("go"),
    said("I look.", call("read", path="a.py")),
    result("c1", filler(100)),
    said("I write.", call("write", path="b.py", content="x")),
    result("c2", filler(100)),
    said("Finished."),
)


def small(**options: Any) -> Pi:
    return Pi(**{"keep_recent_tokens": 200, **options})


def asked(strategy: Pi, seen: View, request: CompactionRequest = MANUAL, **more: Any) -> NeedsSummary:
    decision = strategy.plan(seen, BUDGET, request, **more)
    assert isinstance(decision, NeedsSummary), decision
    return decision


def planned(
    strategy: Pi, seen: View, request: CompactionRequest = MANUAL, budget: Budget = BUDGET, **more: Any
) -> Plan:
    decision = strategy.plan(seen, budget, request, **more)
    assert isinstance(decision, NeedsSummary), decision
    answers = {call.id: Summary(f"What {call.id} was.") for call in decision.requests}
    plan = strategy.plan(seen, budget, request, summaries=answers, **more)
    assert isinstance(plan, Plan), plan
    return plan


def texts(entries: Iterable[Entry]) -> list[str]:
    return ["".join(block.text for block in entry.blocks if isinstance(block, Text)) for entry in entries]
