"""`opencode-v1`: which summary the next one is merged with, as the published OpenCode 1.18.31 does it (docs/fidelity.md)."""

from __future__ import annotations

import pytest

from firsthand.budget import Budget
from firsthand.strategies.contract import CompactionRequest, NeedsSummary, Plan, Summary
from firsthand.strategies.opencode.v1 import OpencodeV1
from firsthand.testing.builders import said, user, view
from firsthand.tokens import EstimateCounter
from firsthand.transcript import Entry

BUDGET = Budget.of(40_000, 8_000, counter=EstimateCounter())
MANUAL = CompactionRequest(trigger="manual", phase="standalone")


def turn(mark: str, answer: int) -> list[Entry]:
    return [user(f"Q{mark} " * 1_000), said(("A" + mark) * answer)]


@pytest.mark.parametrize(("strict", "prior"), [(False, "SUMMARY1"), (True, "SUMMARY0")])
def test_an_older_summary_in_the_tail_is_taken_for_the_prior_one(strict: bool, prior: str) -> None:
    strategy = OpencodeV1(strict_bugs=strict)
    entries: list[Entry] = []
    previous: Plan | None = None
    for number, added in enumerate(([*turn("1", 4_000), *turn("2", 4_000), *turn("3", 4_000)], turn("4", 4_000))):
        entries += added
        answers = {"summary": Summary(f"SUMMARY{number}")}
        decision = strategy.plan(view(*entries), BUDGET, MANUAL, previous, answers)
        assert isinstance(decision, Plan)
        previous = decision
    decision = strategy.plan(view(*entries, *turn("5", 4_000)), BUDGET, MANUAL, previous)
    assert isinstance(decision, NeedsSummary)
    assert f"<prior-summary>\n{prior}\n</prior-summary>" in decision.requests[0].instruction
