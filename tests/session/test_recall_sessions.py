"""Recall in a running session: attached when a message is first sent, and sent again as it was."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from firsthand.errors import ConfigError, ProviderError
from firsthand.journal import Journal
from firsthand.session.recall import recall_over, recall_stored
from firsthand.session.session import AsyncSession, Session
from firsthand.strategies.futureos.strategies import FutureosDeterministic
from firsthand.testing.builders import call, result, said, user
from firsthand.testing.validate import assert_valid
from firsthand.tokens import EstimateCounter
from firsthand.transcript import Entry, Text

COUNTER = EstimateCounter()
NEEDLE = "ERROR worker-7f3a91 lost its lease after 30 s"
QUESTION = "What was wrong with worker-7f3a91?"


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with Journal.open(tmp_path / "journal.db") as opened:
        yield opened


# Leaves the needle out, which the default would show.
RULES = FutureosDeterministic(from_originals=True)


def opened(journal: Journal, **settings: Any) -> Session:
    return Session.open(
        "s", journal=journal, **{"window": 32_000, "counter": COUNTER, "recall": 1_000, "strategy": RULES, **settings}
    )


def past() -> list[Entry]:
    """A history whose middle names the needle once, in tool output."""
    made: list[Entry] = [user("Only port 8123 is free.")]
    for number in range(40):
        log = "\n".join(f"{number}: line {line} of the build log" for line in range(60))
        made += [
            call("run", id=f"c{number}", cmd=f"make test-{number}"),
            result(f"c{number}", log + (f"\n{NEEDLE}\n{log}" if number == 3 else "")),
        ]
    made.append(said("All of it ran."))
    return [Entry(id=f"p{number}", role=entry.role, blocks=entry.blocks) for number, entry in enumerate(made)]


def compacted(journal: Journal, **settings: Any) -> Session:
    session = opened(journal, **settings)
    session.append(past())
    assert session.compact().kind == "applied"
    assert NEEDLE not in json.dumps(session.prepare().body)
    return session


def asks(session: Session, text: str) -> None:
    session.append([Entry(id="", role="user", blocks=(Text(text),))])


def blocks(entry: Entry) -> list[str]:
    return [block.text for block in entry.blocks if isinstance(block, Text)]


def test_a_message_brings_lines_that_are_not_shown(journal: Journal) -> None:
    session = compacted(journal)
    asks(session, QUESTION)
    newest = session.prepare().entries[-1]
    assert blocks(newest)[0] == QUESTION
    assert f"| {NEEDLE}" in blocks(newest)[1]
    assert "[p8 output]" in blocks(newest)[1]
    assert [block.origin for block in newest.blocks if isinstance(block, Text)] == ["typed", "injected"]


@pytest.mark.parametrize("wire", ["openai-chat", "openai-responses", "anthropic"])
def test_what_was_sent_is_sent_again_as_it_was(journal: Journal, wire: str) -> None:
    session = compacted(journal, wire=wire)
    asks(session, QUESTION)
    assert_valid(wire, session.prepare().body)
    first = session.prepare().messages
    assert NEEDLE in json.dumps(first)
    assert session.prepare().messages == first
    assert opened(journal, wire=wire).prepare().messages == first
    assert opened(journal, wire=wire, recall=None).prepare().messages == first
    session.append([said("It lost its lease."), user("thanks")])
    again = session.prepare()
    assert again.messages[: len(first)] == first
    assert again.messages[len(first) :]
    assert NEEDLE not in json.dumps(again.messages[len(first) :])


@pytest.mark.parametrize("wire", ["openai-chat", "openai-responses", "anthropic"])
def test_an_error_of_a_tool_brings_lines_too(journal: Journal, wire: str) -> None:
    session = compacted(journal, wire=wire)
    asks(session, "go on")
    session.append([said(call("run", id="x1", cmd="a"), call("run", id="x2", cmd="b"))])
    session.append([result("x1", "no such worker: worker-7f3a91", error=True), result("x2", "fine")])
    first = session.prepare()
    assert NEEDLE in json.dumps(first.messages)
    assert_valid(wire, first.body)
    session.append([said("I see."), user("thanks")])
    assert session.prepare().messages[: len(first.messages)] == first.messages


def test_nothing_is_attached_without_need(journal: Journal) -> None:
    session = opened(journal)
    session.append(past())
    asks(session, QUESTION)
    assert len(blocks(session.prepare().entries[-1])) == 1  # no checkpoint yet, so everything is shown
    session.compact()
    session.append([said("ok")])
    for text in ("thanks", "go on", "What about worker-000000?", "Only port 8123 is free."):
        asks(session, text)
        assert blocks(session.prepare().entries[-1]) == [text]
        session.append([said("ok")])


def test_what_was_sent_without_recall_stays_without(journal: Journal) -> None:
    session = compacted(journal)
    asks(session, "go on with the work")
    before = session.prepare().messages
    session.settings = replace(session.settings, recall=2_000)
    assert session.prepare().messages == before


def test_it_is_off_unless_asked_for(journal: Journal) -> None:
    session = compacted(journal, recall=None)
    asks(session, QUESTION)
    assert len(blocks(session.prepare().entries[-1])) == 1
    with pytest.raises(ConfigError, match="recall"):
        opened(journal, recall=0)


def test_the_input_limit_holds(journal: Journal) -> None:
    session = compacted(journal, threshold=30_000)
    budget = session.prepare().budget
    used = session.prepare().occupancy.tokens
    asks(session, QUESTION + " " + "x" * (4 * (budget.input_limit - used - 40)))
    prepared = session.prepare()
    assert prepared.outcome is None
    assert prepared.occupancy.tokens <= prepared.budget.input_limit
    assert len(blocks(prepared.entries[-1])) == 1


def test_after_a_refusal_nothing_is_added(journal: Journal) -> None:
    session = compacted(journal)
    for number in range(10):
        session.append([said(f"step {number} " + "y" * 4_000), user("go on")])
    asks(session, QUESTION)
    session.prepare()
    refusal = {"error": {"code": "context_length_exceeded", "message": "maximum context length is 16000 tokens"}}
    again = session.recover(ProviderError(400, json.dumps(refusal)))
    assert len(blocks(again.entries[-1])) == 1
    assert session.prepare().messages == again.messages


def test_a_new_checkpoint_leaves_the_block_behind(journal: Journal) -> None:
    session = compacted(journal)
    asks(session, QUESTION)
    session.prepare()
    session.append([said("It lost its lease.")])
    session.append([Entry(id=f"q{n}", role=e.role, blocks=e.blocks) for n, e in enumerate(past())])
    assert session.compact().kind == "applied"
    assert "[recall:" not in json.dumps(session.prepare().messages)


def test_the_async_session_recalls_too(journal: Journal) -> None:
    async def work() -> str:
        session = await AsyncSession.open("s", journal=journal, window=32_000, counter=COUNTER, recall=1_000)
        await session.append(past())
        await session.compact()
        await session.append([{"role": "user", "content": QUESTION}])
        return json.dumps((await session.prepare()).messages)

    assert NEEDLE in asyncio.run(work())


def test_both_sources_give_the_same_block(journal: Journal) -> None:
    session = compacted(journal)
    covered = tuple(journal.entries("s"))
    shown = session.prepare().entries
    in_memory = recall_over(covered, shown, COUNTER)
    stored = recall_stored(journal, "s", covered[-1].id, shown, COUNTER)
    found = 0
    for message in (
        QUESTION,
        "ERROR ____ lost its lease after 30 s",
        "thanks",
        "3: line ____ of the build log",
        "make test-7",
        "test-3, test-9",
    ):
        assert in_memory(message) == stored(message)
        found += stored(message) is not None
    assert found >= 3


def test_recall_searches_the_path_and_nothing_else(journal: Journal) -> None:
    session = compacted(journal)
    journal.create("other")
    journal.append("other", [user("the secret of worker-7f3a91 is swordfish-99", id="o1")])
    branch = session.fork("p4")
    branch.append([said("worker-7f3a91 is another branch's affair", id="b1")])
    asks(session, QUESTION)
    text = json.dumps(session.prepare().messages)
    assert NEEDLE in text
    assert "swordfish" not in text
    assert "another branch" not in text
    asks(session, "swordfish-99")
    assert len(blocks(session.prepare().entries[-1])) == 1
