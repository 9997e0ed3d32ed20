"""The fake model server, seen from a plain HTTP connection."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
import sys
import threading
import zlib
from collections.abc import Iterator
from typing import Any

import pytest
from served import PATHS, WIRES, ask, body, post

from firsthand.errors import ConfigError, MissingExtraError, UnknownNameError
from firsthand.session.overflow.classifying import classify
from firsthand.testing.server import Call, Cut, Failure, FakeServer, Lane, Raw, Received, Reply
from firsthand.transcript import Usage

EACH_WIRE = pytest.mark.parametrize("wire", WIRES)
CALLS = (Call("bash", {"cmd": "ls"}), Call("read"))


@pytest.fixture(scope="module")
def server() -> Iterator[FakeServer]:
    with FakeServer() as running:
        yield running


def exchange(server: FakeServer, wire: str, sent: dict[str, Any]) -> bytes:
    """Everything that comes back over a connection that is used once, headers and chunk sizes included."""
    data = json.dumps(sent).encode()
    host, port = server.url.removeprefix("http://").split(":")
    head = f"POST {PATHS[wire]} HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: {len(data)}\r\n\r\n"
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        connection.sendall(head.encode() + data)
        return b"".join(iter(lambda: connection.recv(65_536), b""))


# --- Streams ------------------------------------------------------------------------------------------------------------

SEQUENCES = {
    "openai-chat": [
        *("role", "reasoning_content", "content", "content"),
        *("tool_calls", "tool_calls", "tool_calls", "tool_calls", "tool_calls", "tool_calls"),
        *("finish:tool_calls", "usage", "[DONE]"),
    ],
    "openai-responses": [
        *("response.created", "response.in_progress"),
        *("response.output_item.added", "response.reasoning_summary_part.added", "response.reasoning_summary_text.delta"),
        *("response.reasoning_summary_text.done", "response.reasoning_summary_part.done", "response.output_item.done"),
        *("response.output_item.added", "response.content_part.added"),
        *("response.output_text.delta", "response.output_text.delta"),
        *("response.output_text.done", "response.content_part.done", "response.output_item.done"),
        *(
            "response.output_item.added",
            *("response.function_call_arguments.delta", "response.function_call_arguments.delta"),
            *("response.function_call_arguments.done", "response.output_item.done"),
        )
        * 2,
        "response.completed",
    ],
    "anthropic": [
        *("message_start", "ping"),
        *("content_block_start", "content_block_delta", "content_block_delta", "content_block_stop"),
        *("content_block_start", "content_block_delta", "content_block_delta", "content_block_stop"),
        *("content_block_start", "content_block_delta", "content_block_delta", "content_block_stop") * 2,
        *("message_delta", "message_stop"),
    ],
}  # fmt: skip


@EACH_WIRE
def test_sequence_of_events(server: FakeServer, wire: str) -> None:
    server.push(Reply("two words", reasoning="r", calls=CALLS))
    got = ask(server, wire, stream=True)
    assert got.kinds == SEQUENCES[wire]
    assert got.whole
    assert got.headers["content-type"].startswith("text/event-stream")
    if wire != "openai-chat":
        names = [line[7:] for line in got.body.decode().split("\n") if line.startswith("event: ")]
        assert names == got.kinds


# The cut, and how many events of the sequence above come before it.
CUTS: dict[Cut, dict[str, int]] = {
    "start": {"openai-chat": 0, "openai-responses": 0, "anthropic": 0},
    "text": {"openai-chat": 3, "openai-responses": 11, "anthropic": 8},
    "before_call": {"openai-chat": 4, "openai-responses": 15, "anthropic": 10},
    "in_call": {"openai-chat": 6, "openai-responses": 17, "anthropic": 12},
    "after_call": {"openai-chat": 10, "openai-responses": 25, "anthropic": 18},
    "before_finish": {"openai-chat": 10, "openai-responses": 25, "anthropic": 18},
    "before_end": {"openai-chat": 12, "openai-responses": 25, "anthropic": 19},
}


@EACH_WIRE
@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("cleanly", [False, True])
def test_cuts(server: FakeServer, wire: str, cut: Cut, cleanly: bool) -> None:
    """GW-13, OV-14: a stream that breaks off, and one that ends in good order without its marks."""
    server.push(Reply("two words", reasoning="r", calls=CALLS, cut=cut, cut_cleanly=cleanly))
    got = ask(server, wire, stream=True)
    assert got.status == 200
    assert got.kinds == SEQUENCES[wire][: CUTS[cut][wire]]
    assert got.whole is cleanly
    assert server.requests[-1].finished


@EACH_WIRE
def test_a_whole_body_is_cut_in_its_middle(server: FakeServer, wire: str) -> None:
    server.push(Reply("two words"), Reply("two words", cut="before_end"))
    full = ask(server, wire)
    got = ask(server, wire)
    assert not got.whole
    assert int(got.headers["content-length"]) == len(full.body)
    assert len(got.body) == len(full.body) // 2


@EACH_WIRE
@pytest.mark.parametrize("stream", [False, True])
def test_characters_split_over_chunks(wire: str, stream: bool) -> None:
    """GW-12: the same bytes, whatever the size of the writes; single bytes split every character."""
    text = "Grüße 漢字 🦉"
    bodies = set()
    for size in (None, 1, 7):
        with FakeServer([Reply(text, chunk_size=size)]) as server:
            bodies.add(ask(server, wire, stream=stream).body)
    (only,) = bodies
    assert "漢字".encode() in only
    with FakeServer([Reply(text, chunk_size=1)]) as server:
        assert exchange(server, wire, body(wire, stream=stream)).count(b"\r\n1\r\n") >= (len(only) - 1 if stream else 0)


@EACH_WIRE
@pytest.mark.parametrize("stream", [False, True])
def test_answers_depend_on_the_script_alone(wire: str, stream: bool) -> None:
    def once() -> list[bytes]:
        with FakeServer(["a b", Reply("c", reasoning="r", calls=CALLS), Failure("overflow")]) as server:
            return [exchange(server, wire, body(wire, stream=stream)) for _ in range(3)]

    first = once()
    assert first == once()
    assert len(set(first)) == 3


@EACH_WIRE
@pytest.mark.parametrize("stream", [False, True])
def test_gzip(server: FakeServer, wire: str, stream: bool) -> None:
    """GW-15."""
    server.push(Reply("x" * 500, encoding="gzip"))
    got = ask(server, wire, stream=stream)
    assert got.headers["content-encoding"] == "gzip"
    assert b"x" * 500 in gzip.decompress(got.body)
    server.push(Reply("one two three", encoding="gzip", cut="text"))
    got = ask(server, wire, stream=True)
    assert not got.whole
    assert b"one" in zlib.decompressobj(wbits=31).decompress(got.body)


@EACH_WIRE
def test_usage_that_was_chosen_or_left_out(server: FakeServer, wire: str) -> None:
    usage = Usage(input_tokens=100, output_tokens=7, cache_read=60, cache_write=10)
    server.push(Reply("a", usage=usage), Reply("a", usage=usage), Reply("a", report_usage=False))
    wanted = {
        "openai-chat": ("prompt_tokens", 100, "completion_tokens"),
        "openai-responses": ("input_tokens", 100, "output_tokens"),
        "anthropic": ("input_tokens", 30, "output_tokens"),
    }[wire]
    whole = ask(server, wire).json["usage"]
    events = ask(server, wire, stream=True).events
    last = {"openai-chat": -2, "openai-responses": -1, "anthropic": -2}[wire]
    streamed = events[last].get("usage") or events[last]["response"]["usage"]
    for told in (whole, streamed):
        assert (told[wanted[0]], told[wanted[2]]) == (wanted[1], 7)
    none = ask(server, wire).json.get("usage")
    assert none == ({"input_tokens": 0, "output_tokens": 0} if wire == "anthropic" else None)


# --- The script ---------------------------------------------------------------------------------------------------------


def texts(server: FakeServer, count: int) -> list[str]:
    return [ask(server, "anthropic", str(at)).json["content"][0]["text"] for at in range(count)]


def test_replies_in_order_then_the_default_then_a_refusal() -> None:
    with FakeServer(["one", "two"], default=Reply("again")) as server:
        assert texts(server, 4) == ["one", "two", "again", "again"]
        assert server.problems == []
    with FakeServer() as server:
        assert texts(server, 1) == ["ok"]
    with FakeServer(["one"]) as server:
        assert (texts(server, 1), server.left) == (["one"], 0)
        refused = ask(server, "openai-chat")
        assert (refused.status, refused.json["error"]["code"]) == (400, "script_exhausted")
        assert server.problems == ["the script has no reply left for request 2"]
        server.push("late")
        assert texts(server, 1) == ["late"]


def test_a_function_as_script_sees_the_request() -> None:
    def answer(got: Received) -> Reply:
        (name,) = got.tool_names
        return Reply(calls=(Call(name, {"turn": len(got.messages)}),))

    tools: Any = {
        "openai-chat": [{"type": "function", "function": {"name": "bash", "parameters": {}}}],
        "openai-responses": [{"type": "function", "name": "bash", "parameters": {}}],
        "anthropic": [{"name": "bash", "input_schema": {"type": "object"}}],
    }
    with FakeServer(answer) as server:
        for wire in WIRES:
            assert b"bash" in ask(server, wire, "a", "b", "c", tools=tools[wire]).body
            assert server.requests[-1].answer == Reply(calls=(Call("bash", {"turn": 3}),))


def test_an_exception_in_the_script_reaches_the_test() -> None:
    def answer(got: Received) -> Reply:
        raise LookupError(f"nothing for request {got.number}")

    server = FakeServer(answer)
    with pytest.raises(LookupError, match="nothing for request 1"), server:
        assert ask(server, "anthropic").status == 500
    with pytest.raises(ZeroDivisionError), FakeServer(answer) as server:
        _ = 1 // (ask(server, "anthropic").status - 500)  # the test's own failure comes first


def test_side_requests_have_their_own_lanes() -> None:
    """real-clients.md: a title request must not count as a turn."""
    lanes = [
        Lane(("a title",), pattern="Generate a .*title", default=Reply("another title")),
        Lane(("a summary",), tools=False, pattern="<conversation>"),
    ]
    with FakeServer(["turn one", "turn two"], lanes=lanes) as server:
        asked = ("hello", "Generate a short title", "more", "Generate a long title", "<conversation> ...")
        got = [ask(server, "anthropic", text).json["content"][0]["text"] for text in asked]
        assert got == ["turn one", "a title", "turn two", "another title", "a summary"]
        assert ask(server, "anthropic", "<conversation> again").status == 400


def test_raw_bytes(server: FakeServer) -> None:
    server.push(
        Raw(b"\xff\x00not json", status=418, content_type="text/plain", headers={"x-a": "b"}),
        Raw(b"data: {}\n\n", chunk_size=3, cut=True),
    )
    got = ask(server, "openai-chat")
    assert (got.status, got.body, got.headers["content-type"], got.headers["x-a"], got.whole) == (
        418,
        b"\xff\x00not json",
        "text/plain",
        "b",
        True,
    )
    got = ask(server, "openai-chat")
    assert (got.body, got.whole) == (b"data: {}\n\n", False)


def test_opaque_items_of_a_providers_own(server: FakeServer) -> None:
    item = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    server.push(Reply("a", items=(item,)), Reply("a", items=(item,)))
    assert ask(server, "openai-responses").json["output"][-1] == item
    assert ask(server, "openai-responses", stream=True).events[-1]["response"]["output"][-1] == item


def test_arguments_that_are_no_object(server: FakeServer) -> None:
    """GW-04: the exact text on the wires that carry text; on Anthropic's stream too."""
    broken = Reply(calls=(Call("bash", '{"cmd": "l'),))
    server.push(*[broken] * 4)
    assert (
        ask(server, "openai-chat").json["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"]
        == '{"cmd": "l'
    )
    assert ask(server, "openai-responses").json["output"][0]["arguments"] == '{"cmd": "l'
    assert ask(server, "anthropic").json["content"][0]["input"] == {"INVALID_JSON": '{"cmd": "l'}
    deltas = [event["delta"] for event in ask(server, "anthropic", stream=True).events if "delta" in event]
    parts = [delta["partial_json"] for delta in deltas if "partial_json" in delta]
    assert "".join(parts) == '{"cmd": "l'


@pytest.mark.parametrize(
    "make",
    [
        lambda: Reply("a", cut="in_call"),
        lambda: Reply(calls=CALLS, cut="text"),
        lambda: Reply("a", cut_cleanly=True),
        lambda: Reply("a", chunk_size=0),
        lambda: Reply("a", delta_size=0),
        lambda: Reply("a", delay=-1),
        lambda: Raw(b"a", chunk_delay=-1),
        lambda: Reply("a", headers={"x-a": "b\r\nx-c: d"}),
        lambda: Failure("overflow", limit=0),
        lambda: Failure("server", after="text"),
        lambda: FakeServer(window=0),
        lambda: FakeServer(lanes=[Lane(pattern="(")]),
        lambda: FakeServer(overflow="drop"),  # type: ignore[arg-type]
    ],
)
def test_scripts_that_cannot_work_are_refused_at_once(make: Any) -> None:
    with pytest.raises(ConfigError):
        make()


def test_unknown_providers_are_refused_with_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match="mistral"):
        Failure("overflow", provider="nobody")
    with pytest.raises(UnknownNameError, match="mistral"):
        FakeServer(provider="nobody")


# --- Failures -----------------------------------------------------------------------------------------------------------

STATUSES = {
    "rate_limit": 429,
    "overloaded": 529,
    "unavailable": 503,
    "server": 500,
    "auth": 401,
    "invalid_request": 400,
    "invalid_encrypted_content": 400,
    "overflow": 400,
}
MEANINGS = {"overloaded": "server", "unavailable": "server", "invalid_request": "other"}


@EACH_WIRE
@pytest.mark.parametrize("kind", STATUSES)
def test_failures_mean_what_they_are_called(server: FakeServer, wire: str, kind: Any) -> None:
    """OV-08: what the server sends under a name, `classify` gives that name back, as an answer and inside a stream."""
    server.push(Failure(kind, retry_after="7"), Failure(kind, in_stream=True, after="some text"))
    got = ask(server, wire)
    assert got.status == STATUSES[kind]
    assert got.headers["retry-after"] == "7"
    assert classify(got.status, got.body, got.headers).kind == MEANINGS.get(kind, kind)
    streamed = ask(server, wire, stream=True)
    assert streamed.status == 200
    assert streamed.whole
    assert streamed.kinds[-1] in ("error", "response.failed")
    assert classify(200, streamed.events[-1]).kind == MEANINGS.get(kind, kind)
    assert b"some" in streamed.body


def test_overflow_sizes(server: FakeServer) -> None:
    server.push(
        Failure("overflow", provider="mistral", limit=32_768, requested=40_000),
        Failure("overflow", provider="vllm/input", limit=8_192),
        Failure("overflow"),
    )
    found = [classify(got.status, got.body) for got in (ask(server, "openai-chat") for _ in range(3))]
    assert [(one.limit, one.requested, one.provider_hint) for one in found] == [
        (32_768, 40_000, "mistral"),
        (8_192, 8_193, "vllm"),
        (server.requests[-1].tokens - 1, server.requests[-1].tokens, "openai"),
    ]


@EACH_WIRE
def test_malformed_bodies_are_no_json(server: FakeServer, wire: str) -> None:
    server.push(Failure("malformed"), Failure("malformed"))
    got = ask(server, wire)
    assert got.status == 200
    with pytest.raises(ValueError, match=r"Expecting|Unterminated"):
        _ = got.json
    assert isinstance(ask(server, wire, stream=True).events[0], str)


def test_a_refused_key_is_echoed_where_a_test_wants_it(server: FakeServer) -> None:
    """GW-17."""
    server.push(Failure("auth", message="no such key: {key}"), Failure("auth", message="no such key: {key}"))
    got = post(server, PATHS["openai-chat"], body("openai-chat"), headers={"authorization": "Bearer key-to-hide"})
    assert got.json["error"]["message"] == "no such key: key-to-hide"
    got = post(server, PATHS["anthropic"], body("anthropic"), headers={"x-api-key": "key-to-hide"})
    assert got.json["error"]["message"] == "no such key: key-to-hide"
    assert "key-to-hide" not in repr(server.requests)


# --- Requests -----------------------------------------------------------------------------------------------------------


def test_the_log() -> None:
    sent = json.dumps(body("openai-chat", "漢字"), indent=2).encode()
    with FakeServer() as server:
        post(server, "/chat/completions?beta=true", sent, headers={"X-Session": "s1"})
        post(server, "/v1/models", b"", method="GET")
        got, listed = server.requests
    assert (got.number, got.method, got.path, got.query, got.wire) == (
        1,
        "POST",
        "/chat/completions",
        "beta=true",
        "openai-chat",
    )
    assert (got.body, got.json, got.headers["x-session"]) == (sent, json.loads(sent), "s1")
    assert (got.violations, got.status, got.finished, got.answer) == ((), 200, True, Reply("ok"))
    assert (listed.number, listed.method, listed.json, listed.wire) == (2, "GET", None, None)
    assert server.turns == [got]


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_compressed_requests(server: FakeServer, encoding: str) -> None:
    plain = json.dumps(body("anthropic")).encode()
    packed = gzip.compress(plain) if encoding == "gzip" else zlib.compress(plain)
    assert post(server, "/v1/messages", packed, headers={"content-encoding": encoding}).status == 200
    assert (server.requests[-1].body, server.requests[-1].json) == (packed, json.loads(plain))


@EACH_WIRE
@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"model": None}, "model"),
        ({"model": 7}, "model"),
        ({"stream": "yes"}, "stream"),
        ({"messages": [], "input": []}, "at least one message"),
        ({"messages": "x", "input": 3}, "at least one message"),
    ],
)
def test_requests_that_lack_what_an_api_demands(server: FakeServer, wire: str, change: Any, named: str) -> None:
    left = server.left
    got = post(server, PATHS[wire], {**body(wire), **change})
    assert got.status == 400
    assert named in got.body.decode()
    kind = got.json["error"]["type"]
    assert kind == "invalid_request_error"
    assert (got.json.get("type") == "error") is (wire == "anthropic")
    assert named in server.requests[-1].violations[0]
    assert server.requests[-1].answer is None
    assert server.left == left
    assert classify(got.status, got.body).kind == "other"


@pytest.mark.parametrize(
    ("sent", "headers", "reason"),
    [
        (b"{nope", {}, "no JSON"),
        (b"[1]", {}, "no JSON object"),
        (b"", {}, "no JSON object"),
        (b"\x1f\x8bjunk", {"content-encoding": "gzip"}, "no JSON"),
        (b"{}", {"content-encoding": "br"}, "not understood"),
        (b"[" * 100_000, {}, "no JSON"),
    ],
)
def test_bodies_that_cannot_be_read(server: FakeServer, sent: bytes, headers: dict[str, str], reason: str) -> None:
    for path in PATHS.values():
        got = post(server, path, sent, headers=headers)
        assert got.status == 400
        assert reason in server.requests[-1].violations[0]
        assert reason in got.json["error"]["message"]
        assert server.requests[-1].body == sent


ORPHANS: dict[str, Any] = {
    "openai-chat": {"role": "tool", "tool_call_id": "call_1", "content": "a result"},
    "openai-responses": {"type": "function_call_output", "call_id": "call_1", "output": "a result"},
    "anthropic": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_1", "content": "a result"}]},
}


@EACH_WIRE
@pytest.mark.parametrize("stream", [False, True])
def test_messages_that_break_the_providers_rules(wire: str, stream: bool) -> None:
    """A result without its call is answered with the provider's own kind of 400, recorded, and uses up no reply."""
    sent = body(wire, stream=stream)
    name = "input" if wire == "openai-responses" else "messages"
    sent[name] = [ORPHANS[wire]]
    with FakeServer(["unused"]) as server:
        got = post(server, PATHS[wire], sent)
        assert (got.status, got.json["error"]["type"], server.left) == (400, "invalid_request_error", 1)
        assert got.headers["content-type"] == "application/json"
        assert f"{name}.0" in got.body.decode()
        (violation,) = server.requests[0].violations
        assert violation.startswith(f"{name}.0: orphan-result: ")
        assert classify(got.status, got.body).kind == "other"
    with FakeServer(["used"], validate=False) as server:
        assert post(server, PATHS[wire], sent).status == 200
        assert server.requests[0].violations == ()


def test_max_tokens_is_demanded_by_anthropic_alone(server: FakeServer) -> None:
    without = {key: value for key, value in body("anthropic").items() if key != "max_tokens"}
    assert "max_tokens" in post(server, "/v1/messages", without).json["error"]["message"]
    assert post(server, "/v1/chat/completions", without).status == 200


def test_other_paths_are_refused_quickly(server: FakeServer) -> None:
    """real-clients.md: a WebSocket upgrade gets 426, unknown paths a 404."""
    upgrade = {"upgrade": "websocket", "connection": "Upgrade", "sec-websocket-key": "x", "sec-websocket-version": "13"}
    assert post(server, "/v1/responses", b"", method="GET", headers=upgrade).status == 426
    assert post(server, "/", b"", method="HEAD").status == 404
    assert post(server, "/v1/nothing", {}).status == 404
    assert post(server, "/v1/messages", b"", method="GET").status == 404
    assert post(server, "/v1/messages/count_tokens", b"x").status == 400


# --- The server itself --------------------------------------------------------------------------------------------------


def test_two_hundred_streams_at_once() -> None:
    """Each waits until all have arrived, so they are all open together; then each gets its own text."""
    clients = 200

    async def drive() -> list[bytes]:
        arrived = 0
        everybody = asyncio.Event()

        async def answer(got: Received) -> Reply:
            nonlocal arrived
            arrived += 1
            if arrived == clients:
                everybody.set()
            await asyncio.wait_for(everybody.wait(), 60)
            return Reply(f"for {got.messages[0]['content']} 漢字 and more", delta_size=2, chunk_size=64)

        with FakeServer(answer) as server:
            host, port = server.url.removeprefix("http://").split(":")

            async def one(number: int) -> bytes:
                wire = WIRES[number % 3]
                sent = json.dumps(body(wire, f"client-{number}", stream=True)).encode()
                reader, writer = await asyncio.open_connection(host, int(port))
                head = f"POST {PATHS[wire]} HTTP/1.0\r\ncontent-length: {len(sent)}\r\n\r\n"
                writer.write(head.encode() + sent)
                got = await reader.read()
                writer.close()
                await writer.wait_closed()
                return got

            return await asyncio.gather(*(one(number) for number in range(clients)))

    ended = {0: b"data: [DONE]", 1: b"event: response.completed", 2: b"event: message_stop"}
    for number, got in enumerate(asyncio.run(drive())):
        assert got.startswith(b"HTTP/1.1 200")
        assert ended[number % 3] in got
        deltas = [event for event in got.decode().split("\n\n") if '"delta"' in event]
        assert len(deltas) >= len(f"for client-{number} 漢字 and more") // 2


def test_stopping_breaks_off_what_is_slow() -> None:
    waiting = threading.Event()
    slow = [Reply("a", delay=3_600), Reply("one two", chunk_delay=3_600), Raw(b"a", delay=3_600)]
    with FakeServer(slow, on_request=lambda got: waiting.set() if got.number == 3 else None) as server:
        host, port = server.url.removeprefix("http://").split(":")
        open_ones = [socket.create_connection((host, int(port)), timeout=20) for _ in slow]
        for connection in open_ones:
            data = json.dumps(body("anthropic", stream=True)).encode()
            connection.sendall(
                b"POST /v1/messages HTTP/1.1\r\nhost: a\r\ncontent-length: %d\r\n\r\n" % len(data) + data
            )
        assert waiting.wait(20)
    answers = []
    for connection in open_ones:
        with connection:
            answers.append(b"".join(iter(lambda connection=connection: connection.recv(65_536), b"")))
    assert [answer[9:12] for answer in answers] == [b"500", b"200", b"500"]
    assert b"0\r\n\r\n" not in answers[1]
    assert [got.finished for got in server.requests] == [False] * 3
    server.stop()  # a second time: nothing happens


def test_a_client_that_leaves_does_no_harm() -> None:
    arrived = threading.Event()
    text = "x " * 200_000
    with FakeServer([text, "next"], on_request=lambda _: arrived.set()) as server:
        host, port = server.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=20) as connection:
            data = json.dumps(body("openai-chat", stream=True)).encode()
            connection.sendall(
                b"POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\ncontent-length: %d\r\n\r\n" % len(data) + data
            )
            assert arrived.wait(20)
        assert ask(server, "openai-chat").json["choices"][0]["message"]["content"] == "next"


def test_one_server_starts_once_and_at_a_free_port() -> None:
    with FakeServer() as one, FakeServer() as other:
        assert one.url != other.url
        with pytest.raises(ConfigError, match="starts once"):
            one.start()
        with pytest.raises(ConfigError, match="cannot listen at"):
            FakeServer(port=int(one.url.rpartition(":")[2])).start()


@pytest.mark.parametrize("package", ["uvicorn", "starlette"])
def test_without_the_extra(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    for name in ("serving", "app", "sending"):
        monkeypatch.delitem(sys.modules, f"firsthand.testing.server.{name}", raising=False)
    with pytest.raises(MissingExtraError, match=r"firsthand\[testing\]"):
        FakeServer().start()
