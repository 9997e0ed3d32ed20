"""GW-01 to GW-18: the inputs that have broken gateways, one test each."""

from __future__ import annotations

import gzip
import json
import zlib
from pathlib import Path
from typing import Any

import msgspec
import pytest
from gatewayed import PATHS, WIRES, Raw, agent_session, running, said, step, user
from in_process import InProcess

from firsthand.formats.wire import wire_by_name
from firsthand.journal import Journal
from firsthand.testing.server import Call, Failure, FakeServer, Reply
from firsthand.testing.validate import validate

WINDOW = {"*": 8_000}
PNG = "iVBORw0KGgo="
EPHEMERAL = {"type": "ephemeral"}


def above(tmp_path: Path, wire: str, tail: list[Raw], **more: Any) -> Any:
    """What arrives upstream when a long session ends with these messages: projected, checked by the server's validator."""
    with InProcess(tmp_path, FakeServer(cache=False), windows=WINDOW) as gateway:
        *_, messages = agent_session(wire, 14)
        answer = gateway.ask(wire, [*messages, *tail], **more)
        assert answer.status_code == 200, answer.text
        assert answer.headers["x-firsthand-decision"] == "compacted", dict(answer.headers)
        assert gateway.arrived.violations == ()
        return gateway.arrived.json


def shown(body: Any) -> list[Raw]:
    return body.get("messages") or body["input"]


def test_gw_01_parallel_results_stand_in_one_message(tmp_path: Path) -> None:
    tail: list[Raw] = [
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": f"c{n}", "name": "bash", "input": {}} for n in (1, 2)],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "one"}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c2", "content": "two"}]},
    ]
    last = shown(above(tmp_path, "anthropic", tail))[-1]
    assert [block["tool_use_id"] for block in last["content"]] == ["c1", "c2"]


def test_gw_02_halves_of_pairs_are_completed_or_shown_as_data(tmp_path: Path) -> None:
    tail: list[Raw] = [
        user("openai-responses", "and now"),
        {"type": "function_call", "call_id": "call_open0123456789", "name": "bash", "arguments": "{}"},
        user("openai-responses", "never mind"),
        {"type": "function_call_output", "call_id": "call_lost0123456789", "output": "OUTPUT-WITHOUT-CALL"},
        user("openai-responses", "go on"),
    ]
    items = shown(above(tmp_path, "openai-responses", tail))
    outputs = {item["call_id"]: item["output"] for item in items if item.get("type") == "function_call_output"}
    assert "outcome is unknown" in outputs["call_open0123456789"]
    assert "call_lost0123456789" not in outputs
    assert "late tool result, data only" in json.dumps(items)


@pytest.mark.parametrize("wire", WIRES)
def test_gw_03_nothing_empty_is_rendered_and_the_original_is_kept(tmp_path: Path, wire: str) -> None:
    with InProcess(tmp_path, FakeServer(cache=False), windows=WINDOW) as gateway:
        messages = [user(wire, "go"), *step(wire, "call_empty0123456789", "")]
        messages += [message for n in range(14) for message in step(wire, f"call_{n:05d}0123456789ab", "line\n" * 400)]
        answer = gateway.ask(wire, messages)
        assert (answer.status_code, answer.headers["x-firsthand-decision"]) == (200, "compacted")
        assert gateway.arrived.violations == ()
        session = answer.headers["x-firsthand-session"]
    with Journal.open(tmp_path / "gateway.db") as journal:
        stored = [wire_by_name(wire).write([entry]).messages[0] for entry in journal.entries(session)]
    assert validate(wire, shown(gateway.arrived.json)) == []
    assert len(stored) == len(messages)


def test_gw_04_broken_arguments_are_never_rendered_as_a_call(tmp_path: Path) -> None:
    broken = '{"cmd": "ls'
    call = {"id": "call_broken0123456789", "type": "function", "function": {"name": "bash", "arguments": broken}}
    messages = [
        user("openai-chat", "go"),
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_broken0123456789", "content": "not executed"},
    ]
    messages += [m for n in range(14) for m in step("openai-chat", f"call_{n:05d}0123456789ab", "line\n" * 400)]
    # Whether a provider takes such a call below the trigger is its own affair.
    with InProcess(tmp_path, FakeServer(cache=False), windows=WINDOW) as gateway:
        answer = gateway.ask("openai-chat", messages)
        assert (answer.status_code, answer.headers["x-firsthand-decision"]) == (200, "compacted")
    for message in shown(gateway.arrived.json):
        for made in message.get("tool_calls", ()):
            json.loads(made["function"]["arguments"])
    with Journal.open(tmp_path / "gateway.db") as journal:
        entries = list(journal.entries(answer.headers["x-firsthand-session"]))
    assert any(getattr(block, "arguments", None) == broken for entry in entries for block in entry.blocks)


@pytest.mark.parametrize("wire", WIRES)
def test_gw_05_the_first_message_is_the_users(tmp_path: Path, wire: str) -> None:
    first = shown(above(tmp_path, wire, step(wire, "call_last0123456789", "x")))[0]
    assert first["role"] == "user"


def test_gw_06_neighbours_of_one_role_are_one_message(tmp_path: Path) -> None:
    tail: list[Raw] = [
        user("anthropic", "FIRST"),
        user("anthropic", "AS-WELL"),
        *step("anthropic", "toolu_0123456789abc", "RESULT"),
        {"role": "user", "content": [{"type": "text", "text": "SECOND"}]},
    ]
    messages = shown(above(tmp_path, "anthropic", tail))
    assert [message["role"] for message in messages] == [("user", "assistant")[n % 2] for n in range(len(messages))]
    places = [json.dumps(messages).index(text) for text in ("FIRST", "AS-WELL", "RESULT", "SECOND")]
    assert places == sorted(places)
    assert [block["type"] for block in messages[-1]["content"]] == ["tool_result", "text"]
    assert json.dumps(messages).count("FIRST") == 1


def thinking_session() -> list[Raw]:
    messages: list[Raw] = [user("anthropic", "go")]
    for n in range(14):
        call, result = step("anthropic", f"toolu_{n:05d}0123456789", "line\n" * 400)
        call["content"].insert(0, {"type": "thinking", "thinking": f"THOUGHT-{n}", "signature": f"SIGNED-{n}"})
        messages += [call, result]
    return messages


def thoughts(body: Any) -> list[Raw]:
    return [
        block
        for message in body["messages"]
        if isinstance(message["content"], list)
        for block in message["content"]
        if block["type"] == "thinking"
    ]


def test_gw_07_signed_thinking_is_sent_as_it_was_or_dropped_whole(tmp_path: Path) -> None:
    with InProcess(tmp_path, FakeServer(cache=False), windows=WINDOW) as gateway:
        answer = gateway.ask("anthropic", messages := thinking_session())
        assert (answer.status_code, answer.headers["x-firsthand-decision"]) == (200, "compacted")
        assert gateway.arrived.violations == ()
    given = thoughts({"messages": messages})
    kept = thoughts(gateway.arrived.json)
    assert kept
    assert len(kept) < len(given)
    assert all(block in given for block in kept)
    assert "THOUGHT-0" not in json.dumps(gateway.arrived.json)


def test_gw_08_another_model_sees_no_covered_thinking(tmp_path: Path) -> None:
    with InProcess(tmp_path, FakeServer(cache=False), windows=WINDOW) as gateway:
        messages = thinking_session()
        first = gateway.ask("anthropic", messages)
        # Clients leave out foreign thinking of what they still show; what the checkpoint shows is ours.
        for message in messages:
            if isinstance(message["content"], list):
                message["content"] = [block for block in message["content"] if block["type"] != "thinking"]
        second = gateway.ask(
            "anthropic", [*messages, said("anthropic", "done"), user("anthropic", "next")], model="another"
        )
        assert [each.headers["x-firsthand-decision"] for each in (first, second)] == ["compacted", "projected"]
    assert gateway.arrived.violations == ()
    assert thoughts(gateway.arrived.json) == []


REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "OPAQUE"}


@pytest.mark.parametrize("times", [1, 2], ids=["once", "for ever"])
def test_gw_09_refused_opaque_reasoning_is_left_out_and_asked_again_once(tmp_path: Path, times: int) -> None:
    wire = "openai-responses"
    server = FakeServer([Failure("invalid_encrypted_content")] * times, default=Reply("ok"))
    with InProcess(tmp_path, server, windows={"*": 100_000}) as gateway:
        messages = [user(wire, "go"), REASONING, *step(wire, "call_0123456789abc", "x")]
        answer = gateway.ask(wire, messages)
        assert answer.status_code == (200 if times == 1 else 400)
    first, second = server.turns
    assert "OPAQUE" in first.body.decode()
    assert "OPAQUE" not in second.body.decode()
    assert [item for item in first.messages if item != REASONING] == second.messages


def test_gw_09_signed_thinking_of_messages_as_well(tmp_path: Path) -> None:
    server = FakeServer([Failure("invalid_encrypted_content")], default=Reply("ok"))
    with InProcess(tmp_path, server, windows={"*": 100_000}) as gateway:
        answer = gateway.ask("anthropic", thinking_session()[:5])
        assert answer.status_code == 200, answer.text
    assert thoughts(server.turns[0].json)
    assert thoughts(server.turns[1].json) == []


@pytest.mark.parametrize("wire", WIRES)
def test_gw_10_without_a_checkpoint_between_the_second_request_extends_the_first(tmp_path: Path, wire: str) -> None:
    with InProcess(tmp_path, FakeServer(cache=False), windows=WINDOW) as gateway:
        *_, messages = agent_session(wire, 14)
        gateway.ask(wire, messages)
        first = gateway.arrived.body
        answer = gateway.ask(wire, [*messages, said(wire, "well"), user(wire, "next")])
        assert answer.headers["x-firsthand-decision"] == "projected"
    end = first.rindex(b"]")
    assert gateway.arrived.body[:end] == first[:end]


def test_gw_11_never_more_than_four_cache_marks(tmp_path: Path) -> None:
    system = [{"type": "text", "text": "Be careful.", "cache_control": EPHEMERAL}]
    tools = [{"name": "bash", "input_schema": {"type": "object"}, "cache_control": EPHEMERAL}]
    with InProcess(tmp_path, FakeServer(cache=False), windows=WINDOW) as gateway:
        *_, messages = agent_session("anthropic", 14)
        messages = json.loads(json.dumps(messages))
        messages[2]["content"][0]["cache_control"] = EPHEMERAL
        messages[-1]["content"][0]["cache_control"] = EPHEMERAL
        for number in range(3):
            answer = gateway.ask("anthropic", messages, system=system, tools=tools)
            assert answer.status_code == 200
            assert 3 <= gateway.arrived.body.count(b'"cache_control"') <= 4
            messages += [
                said("anthropic", f"well {number}"),
                {"role": "user", "content": [{"type": "text", "text": "on", "cache_control": EPHEMERAL}]},
            ]
            del messages[-3]["content"][0]["cache_control"]
    assert gateway.arrived.json["system"] == system
    assert gateway.arrived.json["tools"] == tools


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("encoding", [None, "gzip"])
def test_gw_12_characters_split_over_chunks_arrive_whole(tmp_path: Path, wire: str, encoding: Any) -> None:
    text = "日本語 🙂 done"
    usage = {"stream_options": {"include_usage": True}} if wire == "openai-chat" else {}
    reply = Reply(text, chunk_size=1, delta_size=1, encoding=encoding)
    with FakeServer([reply, "ok"]) as server, running(tmp_path, server, windows={"*": 100_000}) as both:
        got = both.ask(wire, [user(wire, "go")], {"accept-encoding": "gzip"}, stream=True, **usage)
        plain = gzip.decompress(got.body) if encoding else got.body
        assert got.whole
        assert "\ufffd" not in plain.decode()
        assert all(char in json.dumps(plain.decode(), ensure_ascii=False) for char in "日本語🙂")
        both.ask(wire, [user(wire, "go"), said(wire, text), user(wire, "next")])
        session = got.headers["x-firsthand-session"]
    with Journal.open(tmp_path / "gateway.db") as journal:
        entries = list(journal.entries(session))
    assert [block.text for block in entries[1].blocks] == [text]
    # The usage that the stream told is the reply's.
    assert entries[1].usage is not None
    assert entries[1].usage.input_tokens > 0


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("cleanly", [True, False], ids=["orderly end", "broken"])
@pytest.mark.parametrize("place", ["text", "in_call"])
def test_gw_13_a_stream_without_its_terminal_mark_breaks_at_the_client(
    tmp_path: Path, wire: str, cleanly: bool, place: Any
) -> None:
    cut = Reply("half a sentence", calls=(Call("bash", {"cmd": "rm"}),), cut=place, cut_cleanly=cleanly)
    with FakeServer([cut, "ok"]) as server, running(tmp_path, server, windows={"*": 100_000}) as both:
        got = both.ask(wire, [user(wire, "go")], stream=True)
        assert (got.status, got.whole) == (200, False)
        both.ask(wire, [user(wire, "go"), said(wire, "half a"), user(wire, "next")])
    with Journal.open(tmp_path / "gateway.db") as journal:
        entries = list(journal.entries(got.headers["x-firsthand-session"]))
    assert [entry.status for entry in entries] == ["complete", "incomplete", "complete"]


def test_gw_13_what_ends_after_the_finish_reason_is_whole(tmp_path: Path) -> None:
    reply = Reply("done", cut="before_end", cut_cleanly=True)
    with FakeServer([reply]) as server, running(tmp_path, server) as both:
        assert both.ask("openai-chat", [user("openai-chat", "go")], stream=True).whole


MEDIA: dict[str, list[Raw]] = {
    "anthropic": [
        {"type": "tool_result", "tool_use_id": "toolu_0123456789abc", "content": [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}]},
        {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}, "title": "a"},
        {"type": "container_upload", "file_id": "file_1"},
    ],
    "openai-chat": [
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}", "detail": "low"}},
        {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
        {"type": "file", "file": {"file_data": "data:application/pdf;base64,JVBERi0=", "filename": "a.pdf"}},
    ],
    "openai-responses": [
        {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}", "detail": "auto"},
        {"type": "input_file", "file_data": "data:application/pdf;base64,JVBERi0=", "filename": "a.pdf"},
    ],
}  # fmt: skip


@pytest.mark.parametrize("wire", WIRES)
def test_gw_14_media_and_unknown_blocks_pass_and_are_stored_unchanged(tmp_path: Path, wire: str) -> None:
    message = {"role": "user", "content": MEDIA[wire]}
    calling = step(wire, "toolu_0123456789abc", "")[:1] if wire == "anthropic" else []
    # A newest step above a quarter of the target is excerpted, as any strategy may; this one is not.
    *_, messages = agent_session(wire, 150)
    with InProcess(tmp_path, FakeServer(cache=False), windows={"*": 100_000}, target=40_000) as gateway:
        answer = gateway.ask(wire, [*messages, *calling, message])
        assert (answer.status_code, answer.headers["x-firsthand-decision"]) == (200, "compacted"), answer.text
        assert shown(gateway.arrived.json)[-1] == message
    with Journal.open(tmp_path / "gateway.db") as journal:
        stored = list(journal.entries(answer.headers["x-firsthand-session"]))[-1]
    written = wire_by_name(wire).write([stored]).messages[-1]["content"] if wire != "anthropic" else None
    assert written in (None, MEDIA[wire])
    assert PNG in json.dumps(msgspec.to_builtins(stored))


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("asked", ["gzip", "br, gzip;q=0.5", "br", ""])
def test_gw_15_headers_match_the_body(tmp_path: Path, stream: bool, asked: str) -> None:
    with FakeServer(default=Reply("compressed", encoding="gzip")) as server, running(tmp_path, server) as both:
        got = both.ask("openai-chat", [user("openai-chat", "go")], {"accept-encoding": asked}, stream=stream)
        assert got.headers["content-encoding"] == "gzip"
        plain = zlib.decompress(got.body, wbits=47)
        assert b"compressed" in plain
        assert got.whole
        assert int(got.headers.get("content-length", len(got.body))) == len(got.body)
        # Whatever the client takes, the upstream is asked for what can be read here.
        assert both.last.headers["accept-encoding"] in ("gzip", "identity")


def test_gw_15_error_bodies_as_well(tmp_path: Path) -> None:
    from firsthand.testing.server import Raw as RawAnswer

    body = gzip.compress(b'{"error": {"message": "no such thing", "type": "invalid_request_error"}}')
    bad = RawAnswer(body, status=422, content_type="application/json", headers={"content-encoding": "gzip"})
    with FakeServer([bad]) as server, running(tmp_path, server) as both:
        got = both.ask("openai-chat", [user("openai-chat", "go")])
        assert (got.status, got.body, got.headers["content-encoding"]) == (422, body, "gzip")


def test_gw_16_headers_of_the_connection_do_not_travel(tmp_path: Path) -> None:
    sent = {
        "connection": "keep-alive, x-private", "x-private": "1", "te": "trailers", "proxy-authorization": "Basic eA==", "keep-alive": "9",
        "x-kept": "yes", "x-firsthand-mode": "on", "accept-encoding": "br",
    }  # fmt: skip
    with (
        FakeServer(default=Reply("ok", headers={"x-theirs": "1", "keep-alive": "timeout=5"})) as server,
        running(tmp_path, server) as both,
    ):
        *_, messages = agent_session("openai-chat", 14)
        got = both.ask("openai-chat", messages, sent)
        arrived = both.last.headers
        assert not {"x-private", "te", "proxy-authorization", "keep-alive", "x-firsthand-mode"} & set(arrived)
        assert arrived["x-kept"] == "yes"
        assert arrived["host"] == server.url.removeprefix("http://")
        assert int(arrived["content-length"]) == len(both.last.body)
        assert got.headers["x-theirs"] == "1"
        assert "keep-alive" not in got.headers


def test_gw_16_streams_arrive_piece_by_piece(tmp_path: Path) -> None:
    import http.client

    with FakeServer(default=Reply("one two three four", chunk_delay=0.15)) as server, running(tmp_path, server) as both:
        connection = http.client.HTTPConnection(both.gateway.url.removeprefix("http://"), timeout=20)
        body = json.dumps({"model": "m", "stream": True, "messages": [user("openai-chat", "go")]})
        connection.request("POST", PATHS["openai-chat"], body, {"content-type": "application/json"})
        response = connection.getresponse()
        first = response.read1(65_536)
        # What is there already is a beginning: the server is still sending.
        assert first
        assert not server.turns[-1].finished
        assert b"[DONE]" in first + response.read()
        connection.close()


def test_gw_17_keys_are_in_no_log_error_or_journal(tmp_path: Path) -> None:
    key = "sk-secret-0123456789abcdef"
    with FakeServer([Failure("auth"), "ok"]) as server, running(tmp_path, server, windows=WINDOW) as both:
        for _ in range(2):
            got = both.ask(
                "openai-chat", [user("openai-chat", "go")], {"authorization": f"Bearer {key}", "x-api-key": key}
            )
            assert not any(key in value for value in got.headers.values())
        assert server.turns[0].key == key
        log = both.log.getvalue()
        status = both.post("/_firsthand/status", None, method="GET").body.decode()
        metrics = both.post("/metrics", None, method="GET").body.decode()
    assert log
    assert key not in log + status + metrics
    for file in tmp_path.iterdir():
        assert key.encode() not in file.read_bytes()


@pytest.mark.parametrize(
    "headers", [({}, {}), ({"x-session-id": "a"}, {"x-session-id": "b"})], ids=["no keys", "session keys"]
)
@pytest.mark.parametrize("wire", WIRES)
def test_gw_18_identical_openings_are_two_sessions(tmp_path: Path, wire: str, headers: Any) -> None:
    with InProcess(tmp_path, FakeServer(cache=False), windows=WINDOW) as gateway:
        opening = [user(wire, "hello, the same for both")]
        # Weak ids are the same in both, as small servers count them.
        lines = [
            [m for n in range(14) for m in step(wire, f"call_{n}", f"{mark} line\n" * 500)] for mark in ("ALICE", "BOB")
        ]
        sessions: list[set[str]] = [set(), set()]
        for cut in range(2, 29, 2):
            for number, line in enumerate(lines):
                answer = gateway.ask(wire, [*opening, *line[:cut]], headers[number])
                assert answer.status_code == 200
                sessions[number].add(answer.headers["x-firsthand-session"])
                assert ("ALICE", "BOB")[1 - number] not in json.dumps(gateway.arrived.json)
        assert answer.headers["x-firsthand-decision"] in ("projected", "compacted")
    assert not sessions[0] & sessions[1]
    with Journal.open(tmp_path / "gateway.db") as journal:
        for number, mark in enumerate(("BOB", "ALICE")):
            for session in sessions[number]:
                assert all(mark not in str(entry) for entry in journal.entries(session))
