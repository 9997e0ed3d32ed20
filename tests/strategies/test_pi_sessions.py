"""`pi` on the real sessions: the published numbers of one, and what holds on all."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from real_sessions import shared

from firsthand.budget import Budget
from firsthand.formats import read_sessions
from firsthand.formats.wire import wire_by_name
from firsthand.projection.render import project
from firsthand.projection.repair import repair
from firsthand.strategies.contract import CompactionRequest, Decision, NeedsSummary, Plan, Refused, Summary, Unchanged
from firsthand.strategies.javascript import length
from firsthand.strategies.pi.cut import Preparation, prepare
from firsthand.strategies.pi.files import file_lists
from firsthand.strategies.pi.path import path
from firsthand.strategies.pi.rules import Rules
from firsthand.strategies.pi.state import recorded_checkpoints
from firsthand.strategies.pi.strategy import Pi
from firsthand.strategies.pi.text import serialised
from firsthand.testing.validate import validate
from firsthand.tokens import counter_for_model
from firsthand.transcript import View

MANUAL = CompactionRequest(trigger="manual")
NOTE = re.compile(r"\n\n\[([\d,]+) more characters are left out here\](?=\n\n|\Z)")


def prepared(follows: str) -> tuple[Preparation, Rules]:
    (transcript,) = read_sessions(shared("pi/pi-before-compaction.jsonl.gz"))
    rules = Rules.of(follows, False, {})  # type: ignore[arg-type]
    view = transcript.view()
    found = prepare(path(view, recorded_checkpoints(view.markers), rules), 20_000, rules)
    assert isinstance(found, Preparation)
    return found, rules


@pytest.mark.parametrize(
    ("follows", "history", "modified", "chars"),
    [("Mar", 306, 11, 296_614), ("Jul", 383, 12, 344_968), ("Sep", 383, 12, 344_968), ("Nov", 383, 12, 328_714)],
)
def test_the_published_numbers_of_before_compaction(follows: str, history: int, modified: int, chars: int) -> None:
    found, rules = prepared(follows)
    assert (found.is_split, len(found.history), len(found.prefix)) == (True, history, 7)
    assert found.first_kept.role == "assistant"
    # Its row among the entries that are no header, from 0; the header is line 1.
    assert found.first_kept.source is not None
    assert found.first_kept.source.line == 946 + 2
    assert found.previous is not None
    assert length(found.previous.summary) == 3_649
    assert found.tokens_before == 168_018 + 12_802
    read, changed = file_lists((*found.history, *found.prefix), rules)
    assert (len(read), len(changed)) == (2, modified)
    # What we word ourselves: the note about a cut, and the line that names a command, which is two characters longer than Pi's.
    text = serialised(found.history, rules)
    ours = sum(len(note[0]) for note in NOTE.finditer(text))
    theirs = sum(len(f"\n\n[... {note[1].replace(',', '')} more characters truncated]") for note in NOTE.finditer(text))
    runs = sum(piece.kind == "bash" for piece in found.history)
    assert length(text) - ours + theirs - 2 * runs == chars


def decided(strategy: Pi, view: View, budget: Budget) -> tuple[Decision, int]:
    """The decision with a fake summariser, and how many requests it took."""
    decision = strategy.plan(view, budget, MANUAL)
    if not isinstance(decision, NeedsSummary):
        return decision, 0
    text = "## Goal\n" + "All of it is done but for the last part. " * 60
    answers = {request.id: Summary(text) for request in decision.requests}
    return strategy.plan(view, budget, MANUAL, summaries=answers), len(answers)


FILES = (
    "claude-code/entire-cli-compact3.jsonl.gz",
    "claude-code/entirecontext-korean.jsonl.gz",
    "claude-code/flutter-image-compact4.jsonl.gz",
    "claude-code/technocore-images.jsonl.gz",
    "claude-code/viewer-sidechain-small.jsonl",
    "codex/hk-compact2.jsonl.gz",
    "codex/mise-compact3.jsonl.gz",
    "pi/pi-before-compaction.jsonl.gz",
    "pi/preloop-omp-thinking.jsonl.gz",
)


@pytest.mark.slow
@pytest.mark.parametrize("file", FILES)
def test_real_sessions_are_valid_bounded_and_the_same_again(file: str) -> None:
    for transcript in read_sessions(Path(shared(file))):
        view = transcript.view()
        counter = counter_for_model(transcript.model)
        for window in (32_000, 128_000, 200_000):
            budget = Budget.of(window, counter=counter, fixed=3_000)
            for strategy in (Pi(), Pi(follows="Nov"), Pi(recorded=True)):
                decision, requests = decided(strategy, view, budget)
                assert decided(strategy, view, budget)[0] == decision
                if isinstance(decision, Unchanged | Refused):
                    assert isinstance(decision, Unchanged) or window == 32_000, decision
                    continue
                assert isinstance(decision, Plan)
                assert requests in (1, 2)
                assert decision.tokens_after <= budget.input_limit
                shown = repair(project(view, decision))
                assert not any(done.kind == "result-orphaned" for done in shown.repairs)
                for name in ("openai-chat", "openai-responses", "anthropic"):
                    written = wire_by_name(name).write(shown.entries)
                    assert validate(name, written.messages, written.system) == []
