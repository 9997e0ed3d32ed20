"""`opencode-v1` beside the published OpenCode: the requests around each compaction (docs/fidelity.md)."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from opencode_client import RELEASE, OpenCode, opencode, runs
from opencode_compared import Verdict, judged, stored, untimely
from opencode_pruned import cleared
from real_clients import TALLY, lines, says

from firsthand.strategies import strategy_by_name
from firsthand.testing.server import Failure

pytestmark = pytest.mark.differential

OVERFLOW = Failure("overflow")


def agreed(session: OpenCode, *, defects: bool = True, **options: Any) -> list[Verdict]:
    """Without `defects`, the strategy as it is by default, which leaves out what the client does by mistake."""
    strategy = strategy_by_name("opencode-v1", strict_bugs=defects, **options)
    found = judged(session, stored(session), strategy, defects=defects)
    client = f"OpenCode {RELEASE} opencode-v1 {'with' if defects else 'without'} its defects"
    for verdict in found:
        TALLY[client, f"compactions {verdict.trigger}"] += 1
        TALLY[client, "compactions that differ"] += bool(verdict.differences)
        TALLY[client, "turns split"] += verdict.split
        TALLY[client, "older summaries shown again"] += verdict.resurfaced
    assert [verdict.differences for verdict in found if verdict.differences] == []
    assert untimely(session, strategy) == []
    return found


def test_a_short_history_is_summarised_whole(tmp_path: Path) -> None:
    with opencode(tmp_path, window=68_000) as session:
        session.model.summaries += [says(f"SUMMARY-{number}") for number in range(3)]
        session.turn(lines("P1", 3_000), runs("A", text="I look"), says(lines("A1", 2_000)))
        session.turn("second", says("answer two"))
        session.compact()
        session.turn(lines("P3", 3_000), runs("B", tokens=60_000), says("gone on"))
        session.turn(lines("P4", 3_000), says("answer four", tokens=60_000), says("nothing left"))
        session.turn("last", says("the end"))
        for defects in (True, False):
            found = agreed(session, defects=defects)
            assert [(verdict.trigger, verdict.tail) for verdict in found] == [
                ("manual", 0),
                ("automatic", 0),
                ("automatic", 0),
            ]


def test_a_split_turn(tmp_path: Path) -> None:
    """Usable 60,000: the tail may take 15,000 tokens, more than the 8,000 of older releases."""
    with opencode(tmp_path, window=68_000) as session:
        session.model.summaries += [says("SUMMARY-0"), says("SUMMARY-1")]
        session.turn(lines("P1", 8_000), says(lines("A1", 8_000)))
        steps = [runs(f"S{number}", 150, text=lines(f"T{number}", 4_000)) for number in range(9)]
        session.turn(lines("P2", 2_000), *steps, runs("LAST", 100, tokens=60_000), says("gone on"))
        more = [runs(f"U{number}", 190, text=lines(f"V{number}", 3_000)) for number in range(6)]
        session.turn("third", *more, says("done"))
        session.compact()
        session.turn("last", says("the end"))
        for defects in (True, False):
            found = agreed(session, defects=defects)
            assert [(verdict.trigger, verdict.split) for verdict in found] == [("automatic", True), ("manual", True)]
            assert [verdict.tail for verdict in found] == [10, 9]


@pytest.mark.parametrize(("last", "tail"), [(15_071, 4), (15_072, 3)])
def test_the_edge_of_the_tail_s_budget(last: int, tail: int, tmp_path: Path) -> None:
    with opencode(tmp_path, window=68_000) as session:
        session.model.summaries.append(says("SUMMARY-0"))
        session.turn(lines("P1", 9_000), says(lines("A1", 9_000)))
        session.turn("x" * last, says("y" * 14_900))
        session.turn("x" * 14_900, says("y" * 14_900))
        session.compact()
        session.turn("last", says("the end"))
        [verdict] = agreed(session)
        assert verdict.tail == tail


def test_a_second_tail_reaches_back_before_the_first_summary(tmp_path: Path) -> None:
    with opencode(tmp_path, window=68_000) as session:
        session.model.summaries += [says("SUMMARY-0"), says("SUMMARY-1"), says("SUMMARY-2")]
        for number in range(3):
            session.turn(lines(f"P{number}", 12_000), says(lines(f"A{number}", 12_000)))
        session.compact()
        session.turn(lines("P3", 14_000), says("short"))
        session.compact()
        session.turn(lines("P4", 12_000), says(lines("A4", 50_000)))
        session.compact()
        session.turn("last", says("the end"))
        for defects in (True, False):
            assert [verdict.resurfaced for verdict in agreed(session, defects=defects)] == [False, True, False]


def test_a_refused_request(tmp_path: Path) -> None:
    with opencode(tmp_path, window=68_000) as session:
        session.model.summaries += [says("SUMMARY-0"), says("SUMMARY-1")]
        session.turn(lines("P1", 9_000), runs("A", 50), says(lines("A1", 9_000)))
        session.turn("second", runs("B", 50, text="looks"), OVERFLOW, says("after the replay"))
        session.turn("last", says("the end"))
        for defects in (True, False):
            assert [verdict.trigger for verdict in agreed(session, defects=defects)] == ["provider_context_limit"]


def test_a_refused_request_with_a_tail(tmp_path: Path) -> None:
    """The client shows the message that it sends again twice, and what was done about it once; by default we show it once."""
    with opencode(tmp_path, window=68_000) as session:
        session.model.summaries.append(says("SUMMARY-0"))
        for number in range(3):
            session.turn(lines(f"P{number}", 12_000), says(lines(f"A{number}", 12_000)))
        session.turn("fourth", runs("B", 50, text="looks"), OVERFLOW, says("after the replay"))
        session.turn("last", says("the end"))
        for defects in (True, False):
            [verdict] = agreed(session, defects=defects)
            assert (verdict.trigger, verdict.copied) == ("provider_context_limit", True)


def test_the_first_request_is_refused(tmp_path: Path) -> None:
    with opencode(tmp_path, window=68_000) as session:
        session.model.summaries.append(says("SUMMARY-0"))
        session.turn(lines("P1", 9_000), runs("A", 50), OVERFLOW, says("gone on"))
        session.turn("last", says("the end"))
        for defects in (True, False):
            assert [verdict.trigger for verdict in agreed(session, defects=defects)] == ["provider_context_limit"]


@pytest.mark.parametrize(("seed", "window"), [(0, 68_000), (1, 136_000), (2, 40_000)])
def test_a_long_session(seed: int, window: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    with opencode(tmp_path, window=window) as session:
        order = wander(chance, session)
        for defects in (True, False):
            assert [verdict.trigger for verdict in agreed(session, defects=defects)] == order


def wander(chance: random.Random, session: OpenCode) -> list[str]:
    """Eight compactions with turns of all lengths between them; returns their triggers."""
    full = session.window - session.output
    order = [chance.choice(["manual", "automatic"]) for _ in range(8)]
    for number, trigger in enumerate(order):
        session.model.summaries.append(says(f"SUMMARY-{number}\n" + lines("s", chance.randrange(30, 3_000)).rstrip()))
        for turn in range(chance.randrange(1, 4)):
            session.turn(text(chance, "P"), *steps(chance), says(text(chance, f"A{number}-{turn}")))
        if trigger == "manual":
            session.turn(text(chance, "M"), *steps(chance), says(text(chance, f"M{number}")))
            session.compact()
        elif chance.random() < 0.5:
            session.turn(text(chance, "C"), *steps(chance), runs("c", 40, tokens=full), says("gone on"))
        else:
            session.turn(text(chance, "F"), *steps(chance), says(text(chance, "f"), tokens=full), says("nothing left"))
    session.turn("last", says("the end"))
    return order


def steps(chance: random.Random) -> list[Any]:
    return [runs(f"S{step}", chance.randrange(1, 300), text=text(chance, "T")) for step in range(chance.randrange(4))]


def text(chance: random.Random, mark: str) -> str:
    return lines(mark, chance.choice([20, 300, 3_000, chance.randrange(10, 16_000)])).rstrip()


def test_the_client_s_options_for_the_tail(tmp_path: Path) -> None:
    options = {"tail_turns": 2, "preserve_recent_tokens": 9_000}
    with opencode(tmp_path, window=68_000, **options) as session:
        session.model.summaries += [says("SUMMARY-0"), says("SUMMARY-1")]
        for number in range(4):
            session.turn(lines(f"P{number}", 3_000), says(lines(f"A{number}", 3_000)))
        session.compact()
        session.turn(lines("next", 3_000), says(lines("N", 34_000)))
        session.compact()
        session.turn("last", says("the end"))
        assert [verdict.tail for verdict in agreed(session, **options)] == [4, 1]


def test_old_tool_outputs_are_cleared(tmp_path: Path) -> None:
    """Outputs of about 7,000 tokens each, so that some turns have enough to clear and others have not."""
    with opencode(tmp_path, window=400_000, prune=True) as session:
        for number, outputs in enumerate([2, 5, 3, 1, 1, 4, 3, 1]):
            steps = [runs(f"T{number}-{output}", 600) for output in range(outputs)]
            session.turn(f"prompt {number}", *steps, says(f"answer {number}"))
        session.turn("last", says("the end"))
        found = cleared(session, stored(session), strategy_by_name("opencode-prune"))
    client = f"OpenCode {RELEASE} opencode-prune"
    TALLY[client, "turns"] += len(found)
    TALLY[client, "turns that differ"] += sum(theirs != ours for theirs, ours in found)
    assert [theirs for theirs, _ in found] == [ours for _, ours in found]
    assert len({len(theirs) for theirs, _ in found}) > 2, "too little was cleared to compare"
