"""`pi` beside the published Pi as a program: the requests around each compaction (docs/fidelity.md)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from pi_client import RELEASE, PiClient, pi, runs
from pi_driven import Verdict, judged
from real_clients import TALLY, lines, says

from firsthand.strategies import strategy_by_name
from firsthand.testing.server import Failure

pytestmark = pytest.mark.differential

FULL = 40_000 - 16_384 + 1
"""Reported tokens above which the client compacts in these runs."""


def agreed(session: PiClient, keep: int = 3_000) -> list[Verdict]:
    found = judged(session, strategy_by_name("pi", follows="Jul", fixes=False, keep_recent_tokens=keep))
    for verdict in found:
        TALLY[f"Pi {RELEASE}", f"compactions {verdict.trigger}"] += 1
        TALLY[f"Pi {RELEASE}", "compactions that differ"] += bool(verdict.differences)
        TALLY[f"Pi {RELEASE}", "requests for a summary"] += verdict.requests
    assert [verdict.differences for verdict in found if verdict.differences] == []
    return found


def requests(found: Sequence[Verdict]) -> list[int]:
    return [verdict.requests for verdict in found]


def test_turns_split_and_whole_and_a_second_compaction(tmp_path: Path) -> None:
    with pi(tmp_path, window=40_000) as session:
        session.model.summaries += [says(f"SUMMARY-{number}") for number in range(4)]
        session.turn(lines("P1", 9_000), runs("A", text="I look"), says(lines("A1", 9_000)))
        session.turn(lines("P2", 3_000), runs("B", 100), runs("C", 100), says(lines("A2", 3_000), FULL))
        session.turn(lines("P3", 9_000), says(lines("A3", 9_000)))
        session.turn(lines("P4", 9_000), says(lines("A4", 5_000)))
        session.compact()
        session.turn("last", says("the end"))
        assert requests(agreed(session)) == [2, 1]


def test_a_refused_request(tmp_path: Path) -> None:
    with pi(tmp_path, window=40_000) as session:
        session.model.summaries += [says(f"SUMMARY-{number}") for number in range(2)]
        session.turn(lines("P1", 9_000), runs("A"), says(lines("A1", 9_000)))
        session.turn(lines("P2", 9_000), runs("B", 80), Failure("overflow"), says("after it"))
        session.turn("last", says("the end"))
        assert [verdict.trigger for verdict in agreed(session)] == ["provider_context_limit"]


@pytest.mark.parametrize("seed", range(3))
def test_a_long_session(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    with pi(tmp_path, window=40_000) as session:
        for number in range(8):
            # Two for a split turn; what is not asked for is left over.
            session.model.summaries.clear()
            session.model.summaries += [says(f"SUMMARY-{number}-{part} of it") for part in range(2)]
            # Whatever follows, the tail cannot take it all.
            session.turn(lines(f"B{number}", 13_000), says("yes"))
            for turn in range(chance.randrange(4)):
                session.turn(text(chance, f"P{number}-{turn}"), *steps(chance), says(text(chance, f"A{number}-{turn}")))
            session.turn(text(chance, f"F{number}"), *steps(chance), says(text(chance, f"L{number}"), FULL))
        session.turn("last", says("the end"))
        assert len(agreed(session)) == 8


def steps(chance: random.Random) -> list[object]:
    return [runs(f"S{step}", chance.randrange(1, 200), text=text(chance, "T")) for step in range(chance.randrange(4))]


def text(chance: random.Random, mark: str) -> str:
    return lines(mark, chance.choice([20, 300, 3_000, chance.randrange(10, 9_000)])).rstrip()
