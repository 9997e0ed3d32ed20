"""`codex-local` and `codex-remote-v2` beside the published Codex: the requests around each compaction (docs/fidelity.md)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from codex_client import LIMIT, RELEASES, Codex, codex, runs
from codex_compared import Verdict, judged
from real_clients import TALLY, ScriptedModel, lines, says

from firsthand.strategies import strategy_by_name
from firsthand.testing.server import Failure

pytestmark = pytest.mark.differential

FOLLOWS = {"0.171.0": "0.171", "0.147.0": "2026-09"}
# Told within the stream, as the provider does; a status of 400 is told apart by 0.171.0 only.
OVERFLOW = Failure("overflow", in_stream=True)
each_release = pytest.mark.parametrize("release", RELEASES)

# One pixel, as a PNG.
PICTURE = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="


def verdicts(release: str, model: ScriptedModel, name: str = "codex-local", **options: Any) -> list[Verdict]:
    found = judged(model.seen, strategy_by_name(name, follows=FOLLOWS[release], **options))
    client = f"Codex {release} {name}"
    for verdict in found:
        TALLY[client, f"compactions {verdict.phase}"] += 1
        TALLY[client, "compactions that differ"] += bool(verdict.differences)
        TALLY[client, "messages cut"] += verdict.cut
        TALLY[client, "requests for a summary"] += verdict.tries
    assert [verdict.differences for verdict in found if verdict.differences] == []
    return found


def phases(found: Sequence[Verdict]) -> list[str]:
    return [verdict.phase for verdict in found]


@each_release
@pytest.mark.parametrize("phase", ["mid_turn", "pre_turn", "standalone"])
def test_a_short_history(release: str, phase: str, tmp_path: Path) -> None:
    with codex(release, tmp_path) as (session, model):
        model.summaries.append(says("SUMMARY-1 of the work"))
        session.turn("first prompt", runs("A", text="I look"), says("answer one"))
        compacts(session, phase, "second prompt")
        session.turn("last prompt", says("the end"))
    assert phases(verdicts(release, model)) == [phase]


def compacts(session: Codex, phase: str, prompt: str) -> None:
    """A turn that leads to one compaction in that phase, at the latest before the next turn."""
    match phase:
        case "mid_turn":
            session.turn(prompt, runs("M", tokens=LIMIT, text="I run it"), says("done"))
        case "pre_turn":
            session.turn(prompt, says("done", tokens=LIMIT))
        case _:
            session.turn(prompt, runs("E"), says("done"))
            session.compact()


@each_release
@pytest.mark.parametrize("phase", ["mid_turn", "pre_turn", "standalone"])
@pytest.mark.parametrize(
    "sizes", [(30_000, 30_000, 30_000), (100_000,), (100, 79_000, 5_000, 300), (79_995, 3), (3, 79_998)], ids=str
)
def test_user_text_over_the_cap(release: str, phase: str, sizes: tuple[int, ...], tmp_path: Path) -> None:
    with codex(release, tmp_path) as (session, model):
        model.summaries.append(says("SUMMARY-1 of the work"))
        for number, size in enumerate(sizes[:-1]):
            session.turn(lines(f"P{number}", size), says("yes"))
        compacts(session, phase, lines("LAST", sizes[-1]))
        session.turn("last prompt", says("the end"))
    [verdict] = verdicts(release, model)
    assert verdict.phase == phase
    assert verdict.cut == int(len("".join(lines(f"P{n}", size) for n, size in enumerate(sizes)).encode()) > 80_000)


@each_release
def test_compactions_one_after_the_other(release: str, tmp_path: Path) -> None:
    order = ["mid_turn", "pre_turn", "standalone", "pre_turn", "mid_turn", "standalone", "mid_turn"]
    with codex(release, tmp_path) as (session, model):
        session.turn("first prompt", runs("A"), says("answer one"))
        for number, phase in enumerate(order):
            model.summaries.append(says(f"SUMMARY-{number} of the work"))
            compacts(session, phase, f"prompt {number}")
        session.turn("last prompt", says("the end"))
    assert phases(verdicts(release, model)) == order


@each_release
@pytest.mark.parametrize("refusals", [1, 4, 9])
def test_the_request_for_a_summary_overflows(release: str, refusals: int, tmp_path: Path) -> None:
    with codex(release, tmp_path) as (session, model):
        model.summaries.extend([OVERFLOW] * refusals)
        model.summaries.append(says("SUMMARY-1 of the work"))
        session.turn("first prompt", runs("A", text="I look"), says("answer one"))
        session.turn("second prompt", runs("B"), runs("C", text="and again"), runs("D", tokens=LIMIT), says("done"))
        session.turn("last prompt", says("the end"))
    assert sum(kind == "summary" for kind, _ in model.seen) == refusals + 1
    assert phases(verdicts(release, model)) == ["mid_turn"]


def test_a_status_of_400_makes_no_request_smaller_in_the_older_release(tmp_path: Path) -> None:
    """Known difference: when a request is made smaller is the client's affair; `shrink` only says how."""
    with codex("0.147.0", tmp_path) as (session, model):
        model.summaries.extend([Failure("overflow")] * 2)
        session.turn("first prompt", runs("A", tokens=LIMIT), says("not asked for any more"))
    asked = [got.messages for kind, got in model.seen if kind == "summary"]
    assert [len(messages) for messages in asked] == [len(asked[0])] * 2


@each_release
def test_the_request_for_a_second_summary_overflows(release: str, tmp_path: Path) -> None:
    with codex(release, tmp_path) as (session, model):
        model.summaries += [says("SUMMARY-1 of the work"), OVERFLOW, OVERFLOW, says("SUMMARY-2")]
        session.turn("first prompt", runs("A", tokens=LIMIT), says("answer one"))
        session.turn("second prompt", runs("B", tokens=LIMIT), says("done"))
        session.turn("last prompt", says("the end"))
    assert phases(verdicts(release, model)) == ["mid_turn", "mid_turn"]


@each_release
@pytest.mark.parametrize("seed", range(4))
def test_a_long_session(release: str, seed: int, tmp_path: Path) -> None:
    with codex(release, tmp_path) as (session, model):
        order = wander(random.Random(seed), session, model, longest=60_000)
    assert phases(verdicts(release, model)) == order


def wander(chance: random.Random, session: Codex, model: ScriptedModel, *, longest: int) -> list[str]:
    """Twelve compactions with turns of all lengths between them; returns their phases."""
    order = [chance.choice(["mid_turn", "pre_turn", "standalone"]) for _ in range(12)]
    for number, phase in enumerate(order):
        model.summaries.append(says(lines(f"SUMMARY-{number}", chance.randrange(30, 6_000)).rstrip()))
        for turn in range(chance.randrange(3)):
            steps = [runs(f"S{number}-{turn}-{step}", chance.randrange(1, 120)) for step in range(chance.randrange(3))]
            session.turn(prompt(chance, f"P{number}-{turn}", longest), *steps, says(f"answer {number} {turn}"))
        compacts(session, phase, prompt(chance, f"C{number}", longest))
    session.turn("last prompt", says("the end"))
    return order


def prompt(chance: random.Random, mark: str, longest: int) -> str:
    """Most prompts are short, some are as long as the cap."""
    return lines(mark, chance.choice([20, 200, 3_000, chance.randrange(10, longest)])).rstrip()


@each_release
@pytest.mark.parametrize("phase", ["mid_turn", "pre_turn", "standalone"])
def test_remote_compaction(release: str, phase: str, tmp_path: Path) -> None:
    with codex(release, tmp_path, built_in=True) as (session, model):
        model.summaries += [says("one"), says("two")]
        session.turn("first prompt", runs("A", text="I look"), says("answer one"))
        for number in range(2):
            compacts(session, phase, f"prompt {number}")
        session.turn("last prompt", says("the end"))
    assert phases(verdicts(release, model, "codex-remote-v2", compaction_item="opaque")) == [phase, phase]


@each_release
@pytest.mark.parametrize("seed", range(2))
def test_a_long_session_with_remote_compaction(release: str, seed: int, tmp_path: Path) -> None:
    with codex(release, tmp_path, built_in=True) as (session, model):
        order = wander(random.Random(100 + seed), session, model, longest=200_000)
    assert phases(verdicts(release, model, "codex-remote-v2", compaction_item="opaque")) == order


@each_release
@pytest.mark.parametrize("built_in", [False, True])
def test_pictures(release: str, built_in: bool, tmp_path: Path) -> None:
    with codex(release, tmp_path, built_in=built_in) as (session, model):
        model.summaries.append(says("SUMMARY-1 of the work"))
        session.turn("what is this?", says("a pixel"), image=PICTURE)
        compacts(session, "pre_turn", "and now?")
        session.turn("last prompt", says("the end"))
    name, options = ("codex-remote-v2", {"compaction_item": "opaque"}) if built_in else ("codex-local", {})
    assert phases(verdicts(release, model, name, **options)) == ["pre_turn"]
