"""The gateway as its users meet it: modes, other paths, tenants, limits, its own pages, and failing open."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import json
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest
from gatewayed import PATHS, WIRES, agent_session, request, running, said, step, user
from in_process import InProcess

from firsthand.errors import ConfigError
from firsthand.gateway.config import GatewayConfig, GatewayKey, Upstream, load_config
from firsthand.journal import Journal
from firsthand.strategies import strategy_by_name
from firsthand.testing.server import Failure, FakeServer, Lane, Reply
from firsthand.transcript import Entry, Text

EACH_WIRE = pytest.mark.parametrize("wire", WIRES)
WINDOW = {"*": 8_000}


def long(wire: str) -> Any:
    *_, messages = agent_session(wire, 14)
    return messages


# Modes


@EACH_WIRE
def test_shadow_decides_and_says_so_and_changes_nothing(tmp_path: Path, wire: str) -> None:
    with InProcess(tmp_path, FakeServer(cache=False), windows=WINDOW, mode="shadow") as gateway:
        body = json.dumps(request(wire, long(wire))).encode()
        answer = gateway.send(wire, body)
        assert gateway.arrived.body == body
        assert answer.headers["x-firsthand-mode"] == "shadow"
        assert answer.headers["x-firsthand-decision"] == "compacted"
        assert int(answer.headers["x-firsthand-tokens-saved"]) > 0


@EACH_WIRE
def test_off_adds_nothing_and_stores_nothing(tmp_path: Path, wire: str) -> None:
    with FakeServer(cache=False) as server, running(tmp_path, server, mode="off") as both:
        body = json.dumps(request(wire, long(wire))).encode()
        got = both.post(PATHS[wire], body, {"x-firsthand-mode": "on"})
        assert both.last.body == body
        assert not [name for name in got.headers if name.startswith("x-firsthand")]
    assert not list(tmp_path.glob("*.db"))


def test_a_request_may_choose_its_mode(tmp_path: Path) -> None:
    with InProcess(tmp_path, FakeServer(cache=False), windows=WINDOW) as gateway:
        messages = long("openai-chat")
        for mode, decision in (
            ("off", "passed"),
            ("shadow", "compacted"),
            ("on", "projected"),
            ("nonsense", "projected"),
        ):
            answer = gateway.ask("openai-chat", messages, {"x-firsthand-mode": mode})
            assert answer.headers["x-firsthand-decision"] == decision
            assert (len(gateway.arrived.messages) == len(messages)) == (mode in ("off", "shadow"))


# Other paths


def test_everything_else_is_passed_through(tmp_path: Path) -> None:
    with FakeServer(models=("one", "two")) as server, running(tmp_path, server) as both:
        assert [model["id"] for model in both.post("/v1/models", None, method="GET").json["data"]] == ["one", "two"]
        assert both.post("/v1/models/one", None, method="GET").json["id"] == "one"
        assert both.post("/nothing/here?a=%20b", {"x": 1}).status == 404
        assert (server.requests[-1].path, server.requests[-1].query) == ("/nothing/here", "a=%20b")
        assert both.post("/", None, method="HEAD").status == 404
        assert both.post("/v1/files", b"x" * 300_000, {"content-type": "application/octet-stream"}).status == 404
        assert server.requests[-1].body == b"x" * 300_000


def test_a_websocket_is_refused_with_426(tmp_path: Path) -> None:
    with FakeServer() as server, running(tmp_path, server) as both:
        headers = {
            "connection": "Upgrade",
            "upgrade": "websocket",
            "sec-websocket-key": "eA==",
            "sec-websocket-version": "13",
        }
        assert both.post("/v1/responses", None, headers, method="GET").status == 426
    assert server.requests == []


def test_a_count_is_made_of_what_would_be_sent(tmp_path: Path) -> None:
    with InProcess(tmp_path, FakeServer(cache=False), windows=WINDOW) as gateway:
        messages = long("anthropic")
        body = json.dumps(request("anthropic", messages)).encode()

        def count() -> int:
            answer = gateway.do(gateway._client.post("/v1/messages/count_tokens", content=body))
            return int(answer.json()["input_tokens"])

        before = count()
        assert gateway.arrived.body == body
        gateway.ask("anthropic", messages)
        assert count() < before / 2


def test_upstreams_by_name() -> None:
    config = GatewayConfig([Upstream("openai", "https://a.example/v1"), Upstream("anthropic", "https://b.example")])
    for path, url in (
        ("/v1/chat/completions", "https://a.example/v1/chat/completions"),
        ("/chat/completions", "https://a.example/v1/chat/completions"),
        ("/v1/messages", "https://b.example/v1/messages"),
        ("/u/openai/v1/messages", "https://a.example/v1/messages"),
    ):
        upstream, rest = config.upstream(path)
        assert upstream.target(rest) == url
    with pytest.raises(ConfigError, match="no upstream 'x'"):
        config.upstream("/u/x/v1")


# Failing open


class Breaks(strategy_by_name("futureos-deterministic").__class__):  # type: ignore[misc]
    """A strategy with a bug."""

    def plan(self, *args: Any, **kwargs: Any) -> Any:
        raise ZeroDivisionError("secret words of a session")


@EACH_WIRE
def test_what_fails_in_here_lets_the_request_through(tmp_path: Path, wire: str) -> None:
    with InProcess(tmp_path, FakeServer(cache=False), windows=WINDOW, strategy=Breaks()) as gateway:
        body = json.dumps(request(wire, long(wire))).encode()
        for _ in range(2):
            answer = gateway.send(wire, body)
            assert answer.status_code == 200
            assert gateway.arrived.body == body
            assert answer.headers["x-firsthand-error"] == "prepare: ZeroDivisionError"
        assert "gateway failed" in gateway.log.getvalue()
        # Where it happened, and never what an error's text may quote.
        assert "compacting.py" in gateway.log.getvalue()
        assert "secret words" not in gateway.log.getvalue()


def test_a_journal_that_is_gone_lets_the_request_through(tmp_path: Path) -> None:
    with InProcess(tmp_path, FakeServer(cache=False), windows=WINDOW) as gateway:
        gateway.ask("openai-chat", long("openai-chat")[:4])
        gateway.do(gateway.app.state.engine.recorder.flush())
        with contextlib.closing(sqlite3.connect(tmp_path / "gateway.db")) as raw:
            raw.execute("ALTER TABLE entries RENAME TO gone")
            raw.commit()
        for _ in range(3):
            body = json.dumps(request("openai-chat", long("openai-chat"))).encode()
            assert gateway.send("openai-chat", body).status_code == 200
            assert gateway.arrived.body == body


# Tenants and limits


def keyed(*ids: str) -> tuple[GatewayKey, ...]:
    return tuple(GatewayKey(name, hashlib.sha256(f"key-of-{name}".encode()).hexdigest()) for name in ids)


def test_each_key_is_a_tenant_that_sees_only_its_own(tmp_path: Path) -> None:
    with InProcess(tmp_path, FakeServer(cache=False), windows=WINDOW, keys=keyed("alice", "bob")) as gateway:
        messages = long("openai-chat")
        sessions = {}
        for name in ("alice", "bob"):
            answer = gateway.ask(
                "openai-chat", messages, {"x-firsthand-key": f"key-of-{name}", "authorization": "Bearer upstream"}
            )
            # Had bob met alice's path, he would have been shown her checkpoint.
            assert answer.headers["x-firsthand-decision"] == "compacted"
            assert gateway.arrived.key == "upstream"
            sessions[name] = answer.headers["x-firsthand-session"]
        gateway.ask("openai-chat", messages, {"authorization": "Bearer key-of-alice"})
        # A key of the gateway's own goes no further.
        assert gateway.arrived.key == ""
        assert gateway.ask("openai-chat", messages).status_code == 401
        assert gateway.ask("openai-chat", messages, {"x-firsthand-key": "another"}).status_code == 401

        def get(path: str, name: str, method: str = "GET") -> Any:
            return gateway.do(gateway._client.request(method, path, headers={"x-firsthand-key": f"key-of-{name}"}))

        for name in ("alice", "bob"):
            assert [row["session"] for row in get("/_firsthand/sessions", name).json()["sessions"]] == [sessions[name]]
            assert [row["session"] for row in get("/_firsthand/status", name).json()["sessions"]] == [sessions[name]]
        assert get(f"/_firsthand/sessions/{sessions['alice']}", "bob", "DELETE").status_code == 404
        assert get("/_firsthand/sessions", "bob", "DELETE").json() == {"deleted": [sessions["bob"]]}
        for path in ("status", "sessions", "metrics"):
            assert gateway.do(gateway._client.get(f"/_firsthand/{path}")).status_code == 401
        assert gateway.do(gateway._client.get("/_firsthand/health")).json()["status"] == "ok"
        # What was deleted is begun anew, and nothing fails.
        answer = gateway.ask("openai-chat", messages, {"x-firsthand-key": "key-of-bob"})
        assert answer.headers["x-firsthand-decision"] == "compacted"
    with Journal.open(tmp_path / "gateway.db") as journal:
        assert {info.tenant for info in journal.sessions()} == {"alice", "bob"}


def test_a_client_that_knows_only_one_key_shows_the_gateways(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UPSTREAM_KEY", "sk-upstream")
    server = FakeServer()
    with server, running(tmp_path, server, keys=keyed("alice")) as both:
        config = GatewayConfig(
            [Upstream("default", server.url, "UPSTREAM_KEY")],
            port=0,
            keys=keyed("alice"),
            journal=str(tmp_path / "b.db"),
        )
        from firsthand.gateway.serving import Gateway

        with Gateway(config, both.gateway._telemetry) as gateway:
            both.gateway = gateway
            for wire, headers in (
                ("openai-chat", {"authorization": "Bearer key-of-alice"}),
                ("anthropic", {"x-api-key": "key-of-alice"}),
            ):
                assert both.ask(wire, [user(wire, "hello")], headers).status == 200
                assert both.last.key == "sk-upstream"
                assert "key-of-alice" not in json.dumps(dict(both.last.headers))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"host": "0.0.0.0"}, "gateway keys"),
        ({"upstreams": ()}, "needs an upstream"),
        ({"mode": "maybe"}, "mode"),
        ({"upstreams": (Upstream("a", "http://x"), Upstream("a", "http://y"))}, "one name"),
        ({"max_body": 0}, "max_body"),
        ({"windows": {"m": 0}}, "at least 1"),
        ({"keys": (GatewayKey("a", "0"), GatewayKey("a", "1"))}, "one id"),
    ],
)  # fmt: skip
def test_settings_that_cannot_work_are_refused(settings: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        GatewayConfig(**{"upstreams": (Upstream("a", "http://x"),), **settings})


@pytest.mark.parametrize("url", ["", "x", "ftp://a", "https://user:sk-secret@host/v1"])
def test_an_upstream_needs_a_url_without_secrets(url: str) -> None:
    with pytest.raises(ConfigError) as error:
        Upstream("a", url)
    assert "sk-secret" not in str(error.value)


def test_a_file_and_flags(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALICE", "key-of-alice")
    file = tmp_path / "gateway.toml"
    file.write_text(
        'mode = "shadow"\nport = 1\nstrategy = "futureos-deterministic"\n[upstreams.main]\nurl = "https://a.example/v1"\n[windows]\n"gpt-*" = 400000\n'
        '[[keys]]\nid = "alice"\nkey_env = "ALICE"\n'
    )
    config = load_config(file, port=2, mode=None)
    assert (config.mode, config.port, config.upstreams[0].name) == ("shadow", 2, "main")
    assert (config.window("gpt-x"), config.window("claude")) == (400_000, None)
    assert config.tenant(["key-of-alice"]) == "alice"
    file.write_text("nonsense = 1")
    with pytest.raises(ConfigError, match="nonsense"):
        load_config(file)


def test_a_body_above_the_limit_is_refused(tmp_path: Path) -> None:
    with FakeServer() as server, running(tmp_path, server, max_body=2_000) as both:
        got = both.ask("anthropic", [user("anthropic", "x" * 3_000)])
        assert (got.status, got.json["error"]["type"]) == (413, "request_too_large")
        assert both.post("/v1/files", b"x" * 3_000).status == 413
        assert both.ask("anthropic", [user("anthropic", "x")]).status == 200
    assert len(server.requests) == 1


def test_more_requests_than_allowed_are_asked_to_come_back(tmp_path: Path) -> None:
    with FakeServer(default=Reply("ok", delay=1.0)) as server, running(tmp_path, server, max_concurrent=1) as both:
        first = threading.Thread(target=both.ask, args=("openai-chat", [user("openai-chat", "go")]))
        first.start()
        while not server.requests:
            pass
        got = both.ask("openai-chat", [user("openai-chat", "go")])
        assert (got.status, got.headers["retry-after"]) == (503, "1")
        first.join()


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"origin": "http://localhost:3000"}, 200),
        ({"host": "localhost:8787"}, 200),
        ({"host": "[::1]:8787"}, 200),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"host": "evil.example:8787"}, 403),
        ({"host": "127.evil.example"}, 403),
    ],
)
def test_pages_of_other_sites_are_kept_out(tmp_path: Path, headers: dict[str, str], status: int) -> None:
    with InProcess(tmp_path) as gateway:
        assert gateway.ask("openai-chat", [user("openai-chat", "go")], headers).status_code == status
        page = gateway.do(gateway._client.get("/_firsthand/status", headers=headers))
        assert page.status_code == (200 if status == 200 else 401)
        assert gateway.do(gateway._client.get("/_firsthand/x", headers=headers)).status_code == 404


def test_old_sessions_are_deleted_and_others_stay(tmp_path: Path) -> None:
    old = Entry(id="e1", role="user", blocks=(Text("old"),), time="2020-01-01T00:00:00Z")
    with Journal.open(tmp_path / "gateway.db") as journal:
        for name, format_name in (("gw-old", "gateway"), ("mine", "firsthand")):
            journal.create(name, format=format_name)
            journal.append(name, [Entry(id=f"{name}-1", role="user", blocks=old.blocks, time=old.time)])
    with InProcess(tmp_path, retention_days=30) as gateway:
        gateway.ask("openai-chat", [user("openai-chat", "new")])
        for _ in range(500):
            rows = gateway.do(gateway._client.get("/_firsthand/sessions")).json()["sessions"]
            if "gw-old" not in [row["session"] for row in rows]:
                break
    with Journal.open(tmp_path / "gateway.db") as journal:
        names = {info.id for info in journal.sessions()}
    assert "gw-old" not in names
    assert "mine" in names
    assert len(names) == 2


# What is remembered


@EACH_WIRE
def test_another_form_of_a_message_is_a_revision_and_no_branch(tmp_path: Path, wire: str) -> None:
    messages = [user(wire, "go"), *step(wire, "call_00000123456789abc", "out"), said(wire, "done"), user(wire, "next")]
    changed = json.loads(json.dumps(messages))
    parts = {"openai-responses": "input_text"}.get(wire, "text")
    changed[0]["content"] = [{"type": parts, "text": "go"}]
    changed[1]["id"] = "item_new"
    with InProcess(tmp_path, windows=WINDOW) as gateway:
        first = gateway.ask(wire, messages)
        second = gateway.ask(wire, changed)
        assert second.headers["x-firsthand-session"] == first.headers["x-firsthand-session"]
    with Journal.open(tmp_path / "gateway.db") as journal:
        entries = list(journal.entries(first.headers["x-firsthand-session"]))
        from firsthand.gateway.store import GatewayStore

        revisions = GatewayStore(journal, strategy_by_name("recorded")).revisions(
            first.headers["x-firsthand-session"], entries[0].id
        )
    assert len(entries) == len(messages)
    assert revisions == [json.dumps(changed[0]).encode()]


@EACH_WIRE
def test_another_message_is_a_branch_that_shares_the_beginning(tmp_path: Path, wire: str) -> None:
    beginning = [user(wire, "go"), said(wire, "where?")]
    with InProcess(tmp_path, windows=WINDOW) as gateway:
        sessions = [
            gateway.ask(wire, [*beginning, user(wire, text)]).headers["x-firsthand-session"]
            for text in ("left", "right", "left")
        ]
    assert sessions[0] == sessions[2] != sessions[1]
    with Journal.open(tmp_path / "gateway.db") as journal:
        assert journal.session(sessions[1]).forked_from == sessions[0]
        texts = {name: [entry.blocks[0].text for entry in journal.entries(name)] for name in sessions}
    assert texts == {sessions[0]: ["go", "where?", "left"], sessions[1]: ["go", "where?", "right"]}


def test_a_history_resumed_under_another_key_keeps_its_checkpoint(tmp_path: Path) -> None:
    with InProcess(tmp_path, FakeServer(cache=False), windows=WINDOW) as gateway:
        messages = long("openai-chat")
        gateway.ask("openai-chat", messages, {"x-session-id": "a"})
        first = gateway.arrived.body
        messages = [*messages, said("openai-chat", "ok"), user("openai-chat", "next")]
        answer = gateway.ask("openai-chat", messages, {"x-session-id": "b"})
        assert answer.headers["x-firsthand-decision"] == "projected"
        assert gateway.arrived.body.startswith(first[: first.rindex(b"]")])


# Summaries, pages, command line


def test_a_strategy_may_ask_the_upstream_for_a_summary(tmp_path: Path) -> None:
    summary = "## Goal\nFind MARK\n## Constraints\nnone\n## Progress\nx\n## Decisions\ny\n## Next steps\nz\n## Critical context\nw"
    lane = Lane((Reply(summary),), pattern="(?i)handoff")
    strategy = strategy_by_name("futureos-summarized")
    with (
        FakeServer(lanes=[lane], cache=False, validate=False) as server,
        running(tmp_path, server, windows=WINDOW, strategy=strategy, summaries=True) as both,
    ):
        got = both.ask("openai-chat", long("openai-chat"), {"authorization": "Bearer sk-client"})
        assert (got.status, got.decision) == (200, "compacted")
        assert len(server.turns) == 2
        assert server.turns[0].key == "sk-client"


def test_status_and_metrics_tell_what_was_saved(tmp_path: Path) -> None:
    with FakeServer(cache=False) as server, running(tmp_path, server, windows=WINDOW) as both:
        both.ask("openai-chat", long("openai-chat"))
        status = both.post("/_firsthand/status", None, method="GET").json
        assert status["totals"]["tokens_before"] > status["totals"]["tokens_after"] > 0
        assert status["sessions"][0]["checkpoints"] == 1
        page = both.post("/metrics", None, method="GET").body.decode()
        assert 'firsthand_gateway_requests_total{decision="compacted",status="200",wire="openai-chat"} 1.0' in page


def test_clients_of_one_address_do_not_mix(tmp_path: Path) -> None:
    """Eight conversations at a time, streamed in pieces: every byte arrives at the one who asked."""

    def answer(got: Any) -> Reply:
        return Reply(f"for {got.messages[0]['content']} " * 30, chunk_size=70)

    with FakeServer(answer) as server, running(tmp_path, server, windows=WINDOW) as both:
        seen: dict[int, bytes] = {}

        def one(number: int) -> None:
            connection = http.client.HTTPConnection(both.gateway.url.removeprefix("http://"), timeout=30)
            for _ in range(3):
                body = json.dumps(
                    {"model": "m", "stream": True, "messages": [user("openai-chat", f"client-{number:02d}")]}
                )
                connection.request("POST", PATHS["openai-chat"], body, {"content-type": "application/json"})
                seen[number] = connection.getresponse().read()
            connection.close()

        threads = [threading.Thread(target=one, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for number, body in seen.items():
        assert body.count(b"client-") == body.count(f"client-{number:02d}".encode()) == 30
        assert b"[DONE]" in body


def test_the_failure_answer_of_the_wire(tmp_path: Path) -> None:
    with FakeServer([Failure("malformed")]) as server, running(tmp_path, server) as both:
        got = both.ask("openai-chat", [user("openai-chat", "go")])
        assert got.status == 200
        assert got.body


@EACH_WIRE
def test_a_count_that_was_too_high_does_not_put_compactions_off(tmp_path: Path, wire: str) -> None:
    """The first request looks too large for any compaction; the provider's report says that it was not, and later ones are judged anew."""
    tools = {
        "openai-chat": {"type": "function", "function": {"name": "bash"}},
        "openai-responses": {"type": "function", "name": "bash"},
    }
    offered = [{**tools.get(wire, {"name": "bash", "input_schema": {}}), "description": "a tool " * 3_500}]
    with InProcess(tmp_path, FakeServer(cache=False), windows={"*": 16_000}) as gateway:
        decisions = []
        for messages in agent_session(wire, 14):
            answer = gateway.ask(wire, messages, tools=offered)
            decisions.append(answer.headers["x-firsthand-decision"])
            assert len(decisions) == 1 or int(answer.headers["x-firsthand-tokens-after"]) <= 16_000 - 1_000 - 500
        assert decisions[0] == "forwarded"
        assert "compacted" in decisions


def test_what_was_forgotten_is_read_again_from_the_journal(tmp_path: Path) -> None:
    with InProcess(tmp_path, FakeServer(cache=False), windows=WINDOW) as gateway:
        paths = gateway.app.state.engine.paths
        paths._most = 40
        messages = long("openai-chat")
        first = gateway.ask("openai-chat", messages)
        for number in range(30):
            gateway.ask(
                "openai-chat",
                [user("openai-chat", f"another {number}"), said("openai-chat", "x"), user("openai-chat", "y")],
            )
        known = paths.tenant("local")
        assert first.headers["x-firsthand-session"] not in known.paths
        assert len(known.paths) < 20
        assert len(known.by_chain) <= 2 * 60
        answer = gateway.ask("openai-chat", [*messages, said("openai-chat", "ok"), user("openai-chat", "next")])
        assert answer.headers["x-firsthand-session"] == first.headers["x-firsthand-session"]
        assert answer.headers["x-firsthand-decision"] == "projected"


def test_a_request_that_does_not_arrive_is_given_up(tmp_path: Path) -> None:
    import socket

    with FakeServer() as server, running(tmp_path, server, client_timeout=0.2) as both:
        host, port = both.gateway.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=10) as connection:
            connection.sendall(b"POST /v1/messages HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 100\r\n\r\n{")
            answer = b""
            while piece := connection.recv(4_096):
                answer += piece
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"timeout_error" in answer
    assert server.requests == []


@EACH_WIRE
def test_why_nothing_could_be_done_stands_in_the_answer(tmp_path: Path, wire: str) -> None:
    with InProcess(tmp_path, FakeServer(cache=False), windows=WINDOW) as gateway:
        tools = {
            "openai-chat": {"type": "function", "function": {"name": "bash"}},
            "openai-responses": {"type": "function", "name": "bash"},
        }
        offered = [{**tools.get(wire, {"name": "bash", "input_schema": {}}), "description": "a tool " * 10_000}]
        answer = gateway.ask(wire, long(wire), tools=offered)
        assert answer.headers["x-firsthand-decision"] == "forwarded"
        assert answer.headers["x-firsthand-reason"].startswith("a compaction was due and came to nothing: ")
        assert "tokens" in answer.headers["x-firsthand-reason"]
