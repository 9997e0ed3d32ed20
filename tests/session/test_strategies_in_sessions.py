"""The other strategies in a session, over several compactions and on all three wires, against a server that judges every request."""

from __future__ import annotations

import gc
import json
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agent_run import RULE, SYSTEM, TOOLS, WIRES, opened, result, user, work

from firsthand.journal import Journal
from firsthand.session.session import Session
from firsthand.strategies import strategy_by_name
from firsthand.summary.model import HttpModel
from firsthand.testing import builders
from firsthand.testing.server import Call, FakeServer, Reply
from firsthand.testing.server.received import Received
from firsthand.testing.validate import assert_valid
from firsthand.tokens import EstimateCounter
from firsthand.transcript import Entry, Media, Text, ToolCall, ToolResult, Unknown

SUMMARY = "## Goal\nThe stub runs on port 8123.\n## Progress\nFiles were read one by one."
WINDOW = 32_000


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with Journal.open(tmp_path / "journal.db") as opened:
        yield opened


def answers(numbers: Iterator[int]) -> Any:
    """A model that calls a tool when it may and is not asked for a summary; else it writes one."""

    def answer(got: Received) -> Reply:
        asked = json.dumps(got.json).rpartition('"role"')[2].lower()
        if not got.json.get("tools") or "summar" in asked or "handoff" in asked:
            return Reply(SUMMARY)
        return Reply("I look.", calls=(Call("read", {"path": "a.py"}, id=f"c{next(numbers)}"),))

    return answer


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("name", ["codex-local", "pi", "opencode-v1"])
def test_several_compactions(journal: Journal, name: str, wire: str) -> None:
    compactions = 0
    with FakeServer(answers(iter(range(1_000))), window=WINDOW, cache=False) as server:
        model = HttpModel(server.url + "/v1", wire=wire, model="fake-model")
        session = opened(
            journal, wire=wire, model="fake-model", strategy=strategy_by_name(name), summariser=model, fallback=None
        )
        session.append([user(RULE)])
        for step in range(18):
            prepared = session.prepare(system=SYSTEM, tools=TOOLS[wire], max_output=4_000)
            if prepared.outcome is not None and prepared.outcome.checkpoint is not None:
                assert prepared.outcome.kind == "applied", prepared.outcome.reason
                compactions += 1
            assert prepared.occupancy.tokens <= prepared.budget.input_limit
            reply = session.record(model(prepared.body))
            for block in (block for entry in reply for block in entry.blocks if isinstance(block, ToolCall)):
                session.append([result(int(block.id.removeprefix("c")), 3_500, wire)])
            if step % 6 == 5:
                session.append([user(f"go on with part {step}")])
        assert [violation for got in server.turns for violation in got.violations] == []
        assert server.problems == []
    assert compactions >= 2
    again = opened(journal, wire=wire, model="fake-model", strategy=strategy_by_name(name), summariser=model)
    body = again.prepare(system=SYSTEM, tools=TOOLS[wire], max_output=4_000).body
    assert json.dumps(body) == json.dumps(session.prepare(system=SYSTEM, tools=TOOLS[wire], max_output=4_000).body)
    assert journal.verify().ok


@pytest.mark.parametrize("wire", WIRES)
def test_images_and_unknown_blocks_through_compactions(journal: Journal, wire: str) -> None:
    session = opened(journal, wire=wire)
    session.append([user(RULE)])
    odd = Entry(
        id="odd",
        role="user",
        blocks=(Text("see this"), builders.image(), Unknown({"type": "hologram", "data": [1, {"é": None}]})),
    )
    shown = ToolResult("c500", (Text("a screenshot"), Media("image", "image/png", "iVBORw0KGgo=")))
    session.append([odd, builders.call("read", id="c500"), Entry(id="", role="tool", blocks=(shown,))])
    session.append([user("and the file?")])
    for request in work(session, range(30)):
        assert_valid(wire, request.body)
    assert session.checkpoint is not None
    assert journal.entry("odd").blocks == odd.blocks


@pytest.mark.slow
def test_ten_thousand_entries_in_flat_memory(journal: Journal) -> None:
    """JR-10: what is covered is not kept; steps late in a long session take no more memory than early ones."""
    entries: list[Entry] = []
    for number in range(5_000):
        entries.append(builders.call("read", id=f"c{number}", path=f"f{number}.py"))
        entries.append(builders.result(f"c{number}", f"{number} " + "x" * 1_200))
    session = opened(journal, window=200_000)
    session.append([user(RULE)])
    levels: list[int] = []
    tracemalloc.start()
    for start in range(0, len(entries), 500):
        session.append(
            [
                Entry(id=f"n{start}-{n}", role=e.role, blocks=e.blocks)
                for n, e in enumerate(entries[start : start + 500])
            ]
        )
        session.prepare(system=SYSTEM, max_output=8_000)
        gc.collect()
        levels.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    assert len(journal.view("s").entries) == 10_001
    assert len(session._steps.frame.tail) < 1_000
    assert max(levels[10:]) < 2 * max(levels[:5]) + 2_000_000


def test_a_session_of_long_ago_opens_quickly_and_equal(tmp_path: Path) -> None:
    with Journal.open(tmp_path / "j.db") as journal:
        session = Session.open("s", journal=journal, window=64_000, counter=EstimateCounter())
        session.append([user(RULE), *({"role": "user", "content": f"step {n}"} for n in range(500))])
        work(session, range(60))
        assert session.checkpoint is not None
        body = session.prepare(system=SYSTEM).body
    with Journal.open(tmp_path / "j.db") as journal:
        start = time.process_time()
        session = Session.open("s", journal=journal, window=64_000, counter=EstimateCounter())
        assert json.dumps(session.prepare(system=SYSTEM).body) == json.dumps(body)
        assert time.process_time() - start < 5
