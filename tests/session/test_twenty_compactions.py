"""A real session replayed through twenty compactions."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from real_sessions import shared

from firsthand.formats import read_sessions
from firsthand.journal import Journal
from firsthand.session.session import Session
from firsthand.strategies.contract import CompactionRequest, Plan, Strategy
from firsthand.strategies.coverage.strategy import Coverage
from firsthand.strategies.futureos.strategies import FutureosDeterministic
from firsthand.testing.builders import user
from firsthand.testing.validate import validate
from firsthand.transcript import Text, View


@pytest.mark.slow
@pytest.mark.parametrize("wire", ["openai-chat", "anthropic"])
@pytest.mark.parametrize("name", ["coverage", "futureos-deterministic"])
def test_twenty_compactions_of_a_growing_session(tmp_path: Path, name: str, wire: str) -> None:
    (recorded,) = read_sessions(shared("pi/pi-before-compaction.jsonl.gz"))
    third = next(entry for entry in recorded.entries[2:] if entry.role == "user")
    strategy = Coverage() if name == "coverage" else FutureosDeterministic(from_originals=True)
    typed = [block.text for block in third.blocks if isinstance(block, Text)]
    compactions = 0
    with Journal.open(tmp_path / "j.db") as journal:
        # The smaller projections of `coverage` fill up later.
        window = 48_000 if name == "coverage" else 64_000
        session = Session.open("s", journal=journal, window=window, model=recorded.model, wire=wire, strategy=strategy)
        before: list[object] = []
        for number, entry in enumerate(recorded.entries):
            if entry.role == "assistant" and number > 3:
                prepared = session.prepare()
                assert validate(wire, prepared.messages, system=prepared.body.get("system")) == []
                assert prepared.occupancy.tokens <= prepared.budget.input_limit
                if prepared.outcome is None:
                    extends(before, prepared.messages)
                else:
                    compactions += 1
                    assert prepared.outcome.kind == "applied", prepared.outcome.reason
                    shown = [
                        block.text
                        for message in prepared.entries
                        for block in message.blocks
                        if isinstance(block, Text)
                    ]
                    if number > third.sequence:
                        assert [shown.count(text) for text in typed] == [1] * len(typed)
                    checked_plan(session, journal, strategy)
                    if compactions == 3:
                        session.pin(third.id)
                before = prepared.messages
            # Usage of the real run counts another system prompt and other tools.
            session.append([msgspec.structs.replace(entry, parent=None, sequence=0, usage=None)])
            if compactions == 20:
                break
        assert compactions == 20
        session.append([user("done", id="last")])
        assert journal.verify().ok


def extends(before: list[object], after: list[object]) -> None:
    """Each request is the one before plus what was appended; on Anthropic's wire neighbours share a message, so there by block."""
    old, new = flat(before), flat(after)
    assert new[: len(old)] == old


def flat(messages: list[object]) -> list[str]:
    pieces = []
    for message in messages:
        assert isinstance(message, dict)
        content = message["content"]
        if isinstance(content, str):
            content = [{"type": "text", "text": content}]
        rest = {key: value for key, value in message.items() if key != "content"}
        pieces += [json.dumps([rest, block]) for block in content or [None]]
    return pieces


def checked_plan(session: Session, journal: Journal, strategy: Strategy) -> None:
    """The plan in force equals the plan that is made at once from the originals."""
    checkpoint = session.checkpoint
    assert checkpoint is not None
    view = journal.view("s", upto=checkpoint.head)
    budget = session._steps.state.budget()
    request = CompactionRequest(trigger=checkpoint.plan.trigger, phase=checkpoint.plan.phase)
    seen = View(view.entries, frozenset(), view.markers) if not view.pins else view
    at_once = strategy.plan(seen, budget, request)
    assert isinstance(at_once, Plan)
    assert msgspec.structs.replace(at_once, tokens_before=0) == msgspec.structs.replace(
        checkpoint.plan, tokens_before=0
    )
