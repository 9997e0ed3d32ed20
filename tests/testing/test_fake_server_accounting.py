"""What the fake server counts: input tokens, a simulated window, and what a prefix cache would serve."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from real_sessions import shared
from served import PATHS, WIRES, ask, body, post

from firsthand.formats import read_sessions
from firsthand.formats.wire import wire_by_name
from firsthand.projection.repair import repair
from firsthand.session.overflow.classifying import classify, silent_truncation
from firsthand.testing.server import FakeServer, Reply
from firsthand.testing.server.accounting import PrefixCache, request_pieces
from firsthand.tokens import FRAMING, MEDIA_TOKENS, CalibratedCounter, EstimateCounter, total_cost

EACH_WIRE = pytest.mark.parametrize("wire", WIRES)
COUNTER = EstimateCounter()


def tokens(sent: dict[str, Any]) -> int:
    return sum(piece.tokens for piece in request_pieces(sent, COUNTER))


@pytest.mark.parametrize(
    ("sent", "wanted"),
    [
        ({"messages": [{"role": "user", "content": "x" * 40}]}, FRAMING + 10),
        ({"input": "x" * 40}, FRAMING + 10),
        ({"system": "x" * 40, "messages": []}, 10),
        ({"system": [{"type": "text", "text": "x" * 40}, {"type": "text", "text": "y" * 8}], "messages": []}, 12),
        ({"instructions": "x" * 40, "input": []}, 10),
        ({"messages": [{"role": "user", "content": [{"type": "text", "text": "漢字"}]}]}, FRAMING + 3),
        # An image is a flat charge, whatever its bytes (AC-12).
        ({"messages": [{"role": "user", "content": [{"type": "image", "source": {"data": "A" * 9_000}}]}]}, FRAMING + MEDIA_TOKENS),
        ({"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "data:..."}]}]}, FRAMING + MEDIA_TOKENS),
        # A call costs its name and arguments, its id nothing.
        ({"input": [{"type": "function_call", "call_id": "c" * 99, "name": "bash", "arguments": "x" * 40}]}, FRAMING + 11),
        ({"input": [{"type": "custom_tool_call", "call_id": "c", "name": "exec", "input": "x" * 40}]}, FRAMING + 11),
        ({"input": [{"type": "function_call_output", "call_id": "c" * 99, "output": "x" * 40}]}, FRAMING + 10),
        (
            {"messages": [{"role": "assistant", "content": None, "tool_calls": [{"id": "c", "function": {"name": "bash", "arguments": "{}"}}]}]},
            FRAMING + 2,
        ),
        ({"messages": [{"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "bash", "input": {"a": "b"}}]}]}, FRAMING + 1 + 3),
        ({"messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "x" * 40}]}]}, FRAMING + 10),
        ({"messages": [{"role": "tool", "tool_call_id": "c" * 99, "content": "x" * 40}]}, FRAMING + 10),
        # Opaque reasoning is free; a readable summary is not.
        ({"input": [{"type": "reasoning", "summary": [{"type": "summary_text", "text": "x" * 40}], "encrypted_content": "A" * 999}]}, FRAMING + 10),
        ({"messages": [{"role": "assistant", "content": [{"type": "thinking", "thinking": "x" * 40, "signature": "A" * 99}]}]}, FRAMING + 10),
        ({"tools": [{"name": "a"}], "messages": []}, 3),
        ({}, 0),
        ({"messages": "no list", "tools": 7, "system": None}, FRAMING + 2),
    ],
)  # fmt: skip
def test_input_tokens(sent: dict[str, Any], wanted: int) -> None:
    assert tokens(sent) == wanted


SESSIONS = ["claude-code/technocore-images.jsonl.gz", "codex/hk-compact2.jsonl.gz", "pi/pi-before-compaction.jsonl.gz"]


@EACH_WIRE
@pytest.mark.parametrize("path", SESSIONS)
def test_real_sessions_count_as_the_product_counts_them(wire: str, path: str) -> None:
    """So that a session's occupancy, anchored on this server's usage, is what the session itself would estimate."""
    format_ = wire_by_name(wire)
    written = format_.write(repair(read_sessions(shared(path))[0].path()).entries)
    name = "input" if wire == "openai-responses" else "messages"
    sent = {**body(wire), name: written.messages, **({"system": written.system} if written.system else {})}
    with FakeServer() as server:
        assert post(server, PATHS[wire], sent).status == 200, server.requests[0].violations
        counted = server.requests[0].tokens
    ours = total_cost(format_.read(written.messages, system=written.system), COUNTER)
    assert abs(counted - ours) * 200 <= ours, (counted, ours)


@EACH_WIRE
def test_usage_is_what_the_request_counts(wire: str) -> None:
    with FakeServer([Reply("x" * 40), Reply("x" * 40)], cache=False) as server:
        ask(server, wire, "y" * 400)
        assert server.requests[0].tokens == 100 + FRAMING
        twice = CalibratedCounter("twice", 200, 200, "")
        with FakeServer(counter=twice, cache=False) as doubled:
            ask(doubled, wire, "y" * 400)
            assert doubled.requests[0].tokens == 200 + FRAMING


# --- A simulated window -------------------------------------------------------------------------------------------------


@EACH_WIRE
@pytest.mark.parametrize("provider", [None, "mistral", "llama.cpp", "anthropic/with-output"])
def test_a_request_above_the_window_is_refused_in_the_providers_words(wire: str, provider: str | None) -> None:
    with FakeServer(["fits"], window=200, provider=provider) as server:
        small, large = "x" * (4 * (200 - FRAMING)), "x" * (4 * (200 - FRAMING) + 1)
        refused = ask(server, wire, large)
        found = classify(refused.status, refused.body, refused.headers)
        assert found.kind == "overflow"
        if provider or wire != "openai-responses":
            assert (found.limit, found.requested) == (200, 201)
        # The refused request used up no reply, and taught the cache nothing.
        assert server.left == 1
        assert ask(server, wire, small).status == 200
        assert [got.answer for got in server.requests] == [None, Reply("fits")]


def test_silent_truncation_reports_only_what_fits() -> None:
    """OV-12."""
    with FakeServer(window=200, overflow="truncate") as server:
        usage = ask(server, "openai-chat", "x" * 4_000).json["usage"]
        assert usage["prompt_tokens"] == 200
        assert silent_truncation(usage["prompt_tokens"], server.requests[0].tokens, 200)


# --- Prefix cache -------------------------------------------------------------------------------------------------------


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer() as running:
        yield running


@EACH_WIRE
def test_an_extended_request_is_served_what_came_before(server: FakeServer, wire: str) -> None:
    history = ("a" * 400, "b" * 400, "c" * 400)
    for count in (1, 2, 3, 3):
        ask(server, wire, *history[:count])
    one = 100 + FRAMING
    assert [got.tokens for got in server.requests] == [one, 2 * one, 3 * one, 3 * one]
    assert [got.cached for got in server.requests] == [0, one, 2 * one, 3 * one]
    usage = ask(server, wire, *history).json["usage"]
    cached = {
        "openai-chat": lambda: usage["prompt_tokens_details"]["cached_tokens"],
        "openai-responses": lambda: usage["input_tokens_details"]["cached_tokens"],
        "anthropic": lambda: usage["cache_read_input_tokens"],
    }[wire]()
    assert cached == 3 * one
    assert usage["input_tokens" if wire != "openai-chat" else "prompt_tokens"] == (
        0 if wire == "anthropic" else 3 * one
    )


def served(server: FakeServer, *sent: dict[str, Any]) -> list[int]:
    for one in sent:
        post(server, PATHS["anthropic"], {"model": "a-model", "max_tokens": 9, **one})
    return [got.cached for got in server.requests]


def test_what_keeps_the_prefix_and_what_breaks_it(server: FakeServer) -> None:
    tools = [{"name": "bash", "input_schema": {"type": "object"}}]
    first: dict[str, Any] = {"tools": tools, "system": "s" * 400, "messages": [{"role": "user", "content": "a" * 400}]}
    marked = [{"type": "text", "text": "s" * 400, "cache_control": {"type": "ephemeral"}}]
    tool_cost = tokens({"tools": tools})
    whole = tokens(first)
    (_, repeated, other_system, no_tools, other_model, later, unrelated) = served(
        server,
        first,
        dict(reversed(first.items())),  # the body's key order is not the order in which a model reads
        {**first, "system": "t" * 400},
        {**first, "tools": []},
        {**first, "model": "another"},
        {**first, "messages": [{"role": "user", "content": "a" * 400}, {"role": "assistant", "content": "b"}]},
        {"messages": [{"role": "user", "content": "z" * 400}]},
    )
    assert (repeated, other_system, no_tools, other_model, later, unrelated) == (whole, tool_cost, 0, 0, whole, 0)
    blocks = [{"type": "text", "text": "s" * 400}]
    assert served(server, {**first, "system": blocks}, {**first, "system": marked})[-1] == whole  # moved cache marks


def test_the_common_beginning_of_a_changed_message_counts(server: FakeServer) -> None:
    ask(server, "anthropic", "same " * 100 + "one")
    ask(server, "anthropic", "same " * 100 + "two")
    assert 120 <= server.requests[1].cached < server.requests[1].tokens
    with FakeServer(cache=False) as without:
        assert [ask(without, "anthropic", "same").status for _ in range(2)] == [200, 200]
        assert [got.cached for got in without.requests] == [0, 0]


MESSAGES = st.lists(
    st.builds(
        lambda role, text: {"role": role, "content": text},
        st.sampled_from(["user", "assistant"]),
        st.text("ab漢", max_size=8),
    ),
    max_size=4,
)


@given(st.lists(MESSAGES, min_size=1, max_size=6))
@settings(max_examples=200)
def test_cache_equals_the_longest_common_prefix_with_any_earlier_request(requests: list[list[dict[str, str]]]) -> None:
    cache = PrefixCache()
    earlier: list[list[dict[str, str]]] = []
    for messages in requests:
        pieces = request_pieces({"messages": messages}, COUNTER)
        served = cache.serve(pieces, COUNTER)
        whole = [
            next(
                (n for n, (one, two) in enumerate(zip(messages, other, strict=False)) if one != two),
                min(len(messages), len(other)),
            )
            for other in earlier
        ]
        at = max(whole, default=0)
        least = sum(piece.tokens for piece in pieces[:at])
        assert least <= served <= least + (pieces[at].tokens - 1 if at < len(pieces) else 0)
        assert cache.serve(pieces, COUNTER) == sum(piece.tokens for piece in pieces)
        earlier.append(messages)


def test_a_real_session_grows_in_its_cache() -> None:
    """Each request of a session that only grows is served all that the one before it held."""
    lines = gzip.decompress(shared("claude-code/technocore-images.jsonl.gz").read_bytes()).splitlines()
    records = [json.loads(line) for line in lines]
    messages = [record["message"] for record in records if record.get("type") in ("user", "assistant")]
    messages = [{"role": message["role"], "content": message["content"]} for message in messages]
    steps = range(40, min(len(messages), 440), 80)
    with FakeServer(validate=False) as server:
        for count in steps:
            sent = {**body("anthropic"), "messages": messages[:count]}
            assert post(server, "/v1/messages", sent).status == 200
        got = server.requests
    assert [one.cached for one in got] == [0, *(one.tokens for one in got[:-1])]
    assert len({one.tokens for one in got}) == len(steps) >= 4
