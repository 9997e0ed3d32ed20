"""The copy of an answer: read the same however its bytes are cut, and never in the way of the client."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firsthand.gateway.replies import EventSplitter, ReplyReader
from firsthand.gateway.wires import CHAT, MESSAGES, RESPONSES, GatewayWire

STREAM = "text/event-stream; charset=utf-8"


def sse(*events: Any, end: str = "\n\n") -> bytes:
    return "".join(
        f"data: {event if isinstance(event, str) else json.dumps(event, ensure_ascii=False)}{end}" for event in events
    ).encode()


CHAT_STREAM = sse(
    {"choices": [{"delta": {"content": "日本語 🙂"}, "finish_reason": None}]},
    {"choices": [{"delta": {}, "finish_reason": "stop"}]},
    {
        "choices": [],
        "usage": {"prompt_tokens": 70, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 60}},
    },
    "[DONE]",
)
RESPONSES_STREAM = sse(
    {"type": "response.created", "response": {"usage": None}},
    {"type": "response.output_text.delta", "delta": "日本語 🙂"},
    {"type": "response.completed", "response": {"usage": {"input_tokens": 70, "output_tokens": 5, "input_tokens_details": {"cached_tokens": 60}}}},
)  # fmt: skip
MESSAGES_STREAM = sse(
    {
        "type": "message_start",
        "message": {"usage": {"input_tokens": 10, "cache_read_input_tokens": 60, "output_tokens": 1}},
    },
    {"type": "content_block_delta", "delta": {"text": "日本語 🙂"}},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 5}},
    {"type": "message_stop"},
)
STREAMS = [(CHAT, CHAT_STREAM), (RESPONSES, RESPONSES_STREAM), (MESSAGES, MESSAGES_STREAM)]


@pytest.mark.parametrize(("wire", "stream"), STREAMS, ids=["chat", "responses", "messages"])
@given(cuts=st.lists(st.integers(0, 600), max_size=12), crlf=st.booleans())
def test_however_a_stream_is_cut_it_says_the_same(
    wire: GatewayWire, stream: bytes, cuts: list[int], crlf: bool
) -> None:
    if crlf:
        stream = stream.replace(b"\n", b"\r\n")
    reader = ReplyReader(wire, STREAM, "")
    at = 0
    for cut in [*sorted(cuts), len(stream)]:
        reader.feed(stream[at:cut])
        at = max(at, cut)
    assert reader.finished
    assert reader.failed is None
    usage = reader.usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens, usage.cache_read) == (70, 5, 60)


@given(st.binary(max_size=200), st.sampled_from(["", "gzip", "br"]), st.sampled_from([STREAM, "application/json"]))
def test_whatever_comes_is_read_or_left_alone(data: bytes, encoding: str, kind: str) -> None:
    for wire in (CHAT, RESPONSES, MESSAGES):
        reader = ReplyReader(wire, kind, encoding)
        reader.feed(data)
        reader.feed(b"data: " + data + b"\n\n")
        reader.ended()
        assert reader.usage is None or reader.usage.input_tokens >= 0


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n")), max_size=4), st.data())
def test_events_come_whole(texts: list[str], data: st.DataObject) -> None:
    stream = b": a comment\n\nevent: x\n" + sse(*texts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=5)))
    splitter = EventSplitter()
    found = [
        event
        for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)
        for event in splitter.feed(stream[start:end])
    ]
    assert [event.decode() for event in found] == texts


@pytest.mark.parametrize(
    "event",
    [
        {"type": "response.failed", "response": {"error": {"code": "context_length_exceeded"}}},
        {"type": "error", "code": "context_length_exceeded"},
    ],
)
def test_a_refusal_behind_opening_events_is_seen_before_any_content(event: Any) -> None:
    reader = ReplyReader(RESPONSES, STREAM, "")
    assert reader.opening(sse({"type": "response.created", "response": {}}))
    assert reader.opening(b"data: {")
    assert not reader.opening(sse(event)[len(b"data: {") :])
    assert reader.failed == event
