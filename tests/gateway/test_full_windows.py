"""Answers of 200 that say that the window was full: mended once before the client sees anything, where nothing was relayed yet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from gatewayed import WIRES, agent_session
from in_process import InProcess

from firsthand.testing.server import Call, Failure, FakeServer, Reply
from firsthand.transcript import Usage

EACH_WIRE = pytest.mark.parametrize("wire", WIRES)
# No more than half of the window are left by our count, and not as much as the trigger.
WINDOW = 16_000
FULL = Usage(input_tokens=15_990, output_tokens=10)


def long(wire: str) -> Any:
    *_, messages = agent_session(wire, 12)
    return messages


def finish(wire: str) -> str:
    return "length" if wire == "openai-responses" else "context_window"


@EACH_WIRE
def test_an_answer_that_stopped_because_the_window_was_full_is_replayed(tmp_path: Path, wire: str) -> None:
    """OV-07, OV-13."""
    stopped = Reply("", reasoning="hm", finish=finish(wire), usage=FULL)
    server = FakeServer([stopped], default=Reply("all is well"), cache=False)
    with InProcess(tmp_path, server, windows={"*": WINDOW}) as gateway:
        answer = gateway.ask(wire, long(wire))
    assert len(server.turns) == 2
    assert (answer.status_code, answer.headers["x-firsthand-decision"]) == (200, "compacted")
    assert answer.headers["x-firsthand-reason"] == "the answer stopped because the window was full"
    assert "all is well" in answer.text
    assert len(server.turns[1].body) < len(server.turns[0].body)


@EACH_WIRE
def test_it_is_replayed_once(tmp_path: Path, wire: str) -> None:
    server = FakeServer(default=Reply("", reasoning="hm", finish=finish(wire), usage=FULL), cache=False)
    with InProcess(tmp_path, server, windows={"*": WINDOW}) as gateway:
        answer = gateway.ask(wire, long(wire))
    assert answer.status_code == 200
    assert len(server.turns) == 2


@EACH_WIRE
@pytest.mark.parametrize(
    "reply",
    [
        Reply("cut in the mid", finish="length", usage=FULL),
        Reply("", calls=(Call("bash", {"cmd": "ls"}),), finish="length", usage=FULL),
        Reply("", reasoning="hm", finish="length", usage=Usage(input_tokens=9_000, output_tokens=500)),
        Reply("fine"),
    ],
    ids=["said", "calls", "output limit", "fine"],
)
def test_every_other_answer_is_the_clients(tmp_path: Path, wire: str, reply: Reply) -> None:
    tools = {"tools": [{"name": "bash", "input_schema": {}}]} if wire == "anthropic" else {}
    got = []
    for mode in ("on", "off"):
        server = FakeServer(default=reply, cache=False)
        with InProcess(tmp_path, server, windows={"*": WINDOW}, mode=mode) as gateway:
            answer = gateway.ask(wire, long(wire), **tools)
            assert len(server.turns) == 1
            got.append((answer.status_code, answer.content))
    assert got[0] == got[1]


@EACH_WIRE
def test_a_stream_that_begins_with_a_refusal_is_mended(tmp_path: Path, wire: str) -> None:
    server = FakeServer([Failure("overflow", limit=9_000, in_stream=True)], default=Reply("all is well"), cache=False)
    with InProcess(tmp_path, server, windows={"*": WINDOW}) as gateway:
        answer = gateway.ask(wire, long(wire), stream=True)
    assert len(server.turns) == 2
    assert answer.headers["x-firsthand-decision"] == "compacted"
    assert "well" in answer.text
    assert '"error":{' not in answer.text.replace(" ", "")
