"""What providers refuse: too large is mended once before the client sees anything; everything else is relayed as it came."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from gatewayed import WIRES, agent_session, running, said, user
from in_process import InProcess

from firsthand.strategies import strategy_by_name
from firsthand.testing.server import Failure, FakeServer, Reply

EACH_WIRE = pytest.mark.parametrize("wire", WIRES)


def long(wire: str) -> Any:
    *_, messages = agent_session(wire, 14)
    return messages


@EACH_WIRE
@pytest.mark.parametrize("stream", [False, True])
def test_a_refusal_as_too_large_is_answered_by_one_compaction_and_one_replay(
    tmp_path: Path, wire: str, stream: bool
) -> None:
    """OV-06, OV-11: the client, which gives up for good on such an error, sees an answer; the limit is used from then on."""
    server = FakeServer(window=5_000, cache=False)
    with InProcess(tmp_path, server, windows={"*": 100_000}) as gateway:
        messages = long(wire)
        answer = gateway.ask(wire, messages, stream=stream)
        assert (answer.status_code, answer.headers["x-firsthand-decision"]) == (200, "compacted"), answer.text
        assert answer.headers["x-firsthand-reason"] == "the provider refused the request as too large"
        assert [got.status for got in server.turns] == [400, 200]
        again = gateway.ask(wire, [*messages, said(wire, "ok"), user(wire, "next")], stream=stream)
        assert again.headers["x-firsthand-decision"] == "projected"
        assert again.headers["x-firsthand-window"].endswith("; learned")
        assert len(server.turns) == 3


@pytest.mark.parametrize("wire", ["openai-chat", "anthropic"])
def test_a_learned_limit_outlives_the_process(tmp_path: Path, wire: str) -> None:
    messages = long(wire)
    for decision in ("compacted", "projected"):
        with InProcess(tmp_path, FakeServer(window=5_000, cache=False), windows={"*": 100_000}) as gateway:
            answer = gateway.ask(wire, messages)
            assert (answer.status_code, answer.headers["x-firsthand-decision"]) == (200, decision)
            messages = [*messages, said(wire, "ok"), user(wire, "next")]
    assert answer.headers["x-firsthand-window"] == "5000; learned"


@EACH_WIRE
def test_without_any_known_window_the_refusal_teaches_it(tmp_path: Path, wire: str) -> None:
    with InProcess(tmp_path, FakeServer(window=5_000, cache=False)) as gateway:
        short = gateway.ask(wire, [user(wire, "hello")])
        assert (short.headers["x-firsthand-decision"], short.headers["x-firsthand-reason"]) == (
            "forwarded",
            "the model's window is unknown",
        )
        answer = gateway.ask(wire, long(wire))
        assert (answer.status_code, answer.headers["x-firsthand-decision"]) == (200, "compacted")


@EACH_WIRE
def test_an_overflow_for_ever_is_one_compaction_and_one_retry(tmp_path: Path, wire: str) -> None:
    """OV-10: the second refusal is the client's, in the provider's own words."""
    server = FakeServer(default=Failure("overflow", limit=6_000), cache=False)
    with InProcess(tmp_path, server, windows={"*": 100_000}) as gateway:
        answer = gateway.ask(wire, long(wire))
    assert answer.status_code == 400
    assert len(server.turns) == 2
    assert len(server.turns[1].body) < len(server.turns[0].body)
    assert server.turns[0].answer == server.turns[1].answer


@pytest.mark.parametrize("stream", [True])
def test_a_refusal_inside_a_stream_is_mended_as_well(tmp_path: Path, stream: bool) -> None:
    """Codex gives up for good on `response.failed` with this code."""
    wire = "openai-responses"
    with (
        FakeServer([Failure("overflow", limit=9_000, in_stream=True)], default=Reply("ok"), cache=False) as server,
        running(tmp_path, server, windows={"*": 22_000}) as both,
    ):
        got = both.ask(wire, long(wire), stream=stream)
        assert got.whole
        assert b"response.failed" not in got.body
        assert b"response.completed" in got.body
        assert got.decision == "compacted"
        assert len(server.turns) == 2


@pytest.mark.parametrize("mode", ["shadow", "off"])
def test_only_mode_on_mends(tmp_path: Path, mode: Any) -> None:
    server = FakeServer(window=5_000, cache=False)
    with InProcess(tmp_path, server, windows={"*": 100_000}, mode=mode) as gateway:
        assert gateway.ask("openai-chat", long("openai-chat")).status_code == 400
    assert len(server.turns) == 1


@EACH_WIRE
@pytest.mark.parametrize("kind", ["rate_limit", "overloaded", "server", "auth", "invalid_request"])
def test_other_refusals_are_relayed_as_they_came(tmp_path: Path, wire: str, kind: Any) -> None:
    server = FakeServer(default=Failure(kind, retry_after="7"), cache=False)
    with InProcess(tmp_path, server, windows={"*": 100_000}) as gateway:
        answer = gateway.ask(wire, long(wire))
    assert len(server.turns) == 1
    assert (answer.status_code, answer.headers["retry-after"]) == (server.turns[0].status, "7")
    assert "error" in answer.json()


def test_an_upstream_that_cannot_be_reached_is_said_so(tmp_path: Path) -> None:
    server = FakeServer()
    with server, running(tmp_path, server) as both:
        server.stop()
        got = both.ask("anthropic", [user("anthropic", "hello")])
    assert got.status == 502
    assert got.json["type"] == "error"
    assert "'default' could not be reached" in got.json["error"]["message"]


def test_a_client_that_leaves_stops_the_upstream(tmp_path: Path) -> None:
    import socket
    import time

    slow = Reply("word " * 400, chunk_delay=0.02)
    with FakeServer([slow]) as server, running(tmp_path, server) as both:
        host, port = both.gateway.url.removeprefix("http://").split(":")
        body = json.dumps({"model": "m", "stream": True, "messages": [user("openai-chat", "go")]}).encode()
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(
                b"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: %d\r\n\r\n" % len(body)
                + body
            )
            assert connection.recv(4_096).startswith(b"HTTP/1.1 200")
        limit = time.monotonic() + 5
        while (
            "in_flight 1" in (page := both.post("/metrics", None, method="GET").body.decode())
            and time.monotonic() < limit
        ):
            pass
        assert "firsthand_gateway_in_flight 0.0" in page
        assert not server.turns[0].finished


def test_a_reply_that_came_after_a_replay_is_a_complete_one(tmp_path: Path) -> None:
    from firsthand.journal import Journal

    wire = "openai-responses"
    with (
        FakeServer([Failure("overflow", limit=9_000, in_stream=True)], default=Reply("ok"), cache=False) as server,
        running(tmp_path, server, windows={"*": 22_000}) as both,
    ):
        got = both.ask(wire, messages := long(wire), stream=True)
        assert len(server.turns) == 2
        both.ask(wire, [*messages, said(wire, "ok"), user(wire, "next")], stream=True)
    with Journal.open(tmp_path / "gateway.db") as journal:
        reply = list(journal.entries(got.headers["x-firsthand-session"]))[-2]
    assert (reply.role, reply.status) == ("assistant", "complete")
    assert reply.usage is not None


def test_a_client_that_leaves_during_a_compaction_finds_it_made(tmp_path: Path) -> None:
    import socket
    import time

    summary = Reply("no summary at all", delay=0.6)
    strategy = strategy_by_name("futureos-summarized")
    with (
        FakeServer([summary], default=Reply("ok"), cache=False, validate=False) as server,
        running(tmp_path, server, windows={"*": 8_000}, strategy=strategy, summaries=True) as both,
    ):
        host, port = both.gateway.url.removeprefix("http://").split(":")
        body = json.dumps({"model": "m", "messages": long("openai-chat")}).encode()
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(
                b"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: %d\r\n\r\n" % len(body)
                + body
            )
            while not server.turns:
                pass
        limit = time.monotonic() + 10
        while "compaction" not in both.log.getvalue() and time.monotonic() < limit:
            pass
        got = both.post("/v1/chat/completions", body)
        assert (got.status, got.decision) == (200, "projected")
        assert len(server.turns) == 2
