"""What the official SDKs make of the fake server equals the script: on each wire, streamed and not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firsthand.session.overflow.classifying import classify
from firsthand.session.overflow.table import SHAPES, Shape
from firsthand.testing.server import Call, Failure, FakeServer, Reply
from firsthand.transcript import Usage

openai = pytest.importorskip("openai", reason="needs the openai SDK")
anthropic = pytest.importorskip("anthropic", reason="needs the anthropic SDK")

USER = [{"role": "user", "content": "hello"}]
USAGE = Usage(input_tokens=1_200, output_tokens=34, cache_read=1_000, cache_write=50, reasoning=5)
FULL = Reply(
    "Grüße, 漢字 and 🦉.",
    reasoning="think first",
    calls=(Call("bash", {"cmd": "ls -l"}), Call("read", '{"path": "a b"}', id="call_mine")),
    usage=USAGE,
)


@pytest.fixture(scope="module")
def server() -> Iterator[FakeServer]:
    with FakeServer(cache=False) as running:
        yield running


@pytest.fixture(scope="module")
def gpt(server: FakeServer) -> Iterator[Any]:
    with openai.OpenAI(base_url=server.url + "/v1", api_key="a-key", max_retries=0, timeout=20) as client:
        yield client


@pytest.fixture(scope="module")
def claude(server: FakeServer) -> Iterator[Any]:
    with anthropic.Anthropic(base_url=server.url, api_key="a-key", max_retries=0, timeout=20) as client:
        yield client


def expected(reply: Reply, start: str, number: int) -> dict[str, Any]:
    """The script, in the words in which each test tells what an SDK gave."""
    ids = [call.id or f"{start}_{number:06d}_{index}" for index, call in enumerate(reply.calls)]
    return {
        "text": reply.text,
        "reasoning": reply.reasoning,
        "calls": [(i, call.name, json.loads(call.text)) for i, call in zip(ids, reply.calls, strict=True)],
    }


def from_chat(message: Any) -> dict[str, Any]:
    return {
        "text": message.content or "",
        "reasoning": getattr(message, "reasoning_content", ""),
        "calls": [(c.id, c.function.name, json.loads(c.function.arguments)) for c in message.tool_calls or ()],
    }


def from_response(response: Any) -> dict[str, Any]:
    summaries = [part.text for item in response.output if item.type == "reasoning" for part in item.summary]
    calls = [item for item in response.output if item.type == "function_call"]
    return {
        "text": response.output_text,
        "reasoning": "".join(summaries),
        "calls": [(call.call_id, call.name, json.loads(call.arguments)) for call in calls],
    }


def from_message(message: Any) -> dict[str, Any]:
    return {
        "text": "".join(block.text for block in message.content if block.type == "text"),
        "reasoning": "".join(block.thinking for block in message.content if block.type == "thinking"),
        "calls": [(block.id, block.name, block.input) for block in message.content if block.type == "tool_use"],
    }


# --- OpenAI Chat Completions --------------------------------------------------------------------------------------------


def test_chat(server: FakeServer, gpt: Any) -> None:
    server.push(FULL)
    got = gpt.chat.completions.create(model="a-model", messages=USER)
    assert from_chat(got.choices[0].message) == expected(FULL, "call", len(server.requests))
    assert (got.model, got.choices[0].finish_reason) == ("a-model", "tool_calls")
    assert got.usage.prompt_tokens == 1_200
    assert got.usage.completion_tokens == 34
    assert got.usage.total_tokens == 1_234
    assert got.usage.prompt_tokens_details.cached_tokens == 1_000
    assert got.usage.completion_tokens_details.reasoning_tokens == 5


def test_chat_stream(server: FakeServer, gpt: Any) -> None:
    server.push(FULL)
    with gpt.chat.completions.stream(model="a-model", messages=USER, stream_options={"include_usage": True}) as stream:
        final = stream.get_final_completion()
    assert from_chat(final.choices[0].message)["text"] == FULL.text
    assert from_chat(final.choices[0].message)["calls"] == expected(FULL, "call", len(server.requests))["calls"]
    assert final.choices[0].finish_reason == "tool_calls"
    assert (final.usage.prompt_tokens, final.usage.completion_tokens) == (1_200, 34)


def test_chat_stream_without_asking_for_usage(server: FakeServer, gpt: Any) -> None:
    server.push("short")
    chunks = list(gpt.chat.completions.create(model="a-model", messages=USER, stream=True))
    assert [chunk.usage for chunk in chunks] == [None] * 3
    assert chunks[-1].choices[0].finish_reason == "stop"


def test_chat_custom_call(server: FakeServer, gpt: Any) -> None:
    server.push(Reply(calls=(Call("exec", "free\ntext", kind="custom"),)))
    call = gpt.chat.completions.create(model="a-model", messages=USER).choices[0].message.tool_calls[0]
    assert (call.type, call.custom.name, call.custom.input) == ("custom", "exec", "free\ntext")


# --- OpenAI Responses ---------------------------------------------------------------------------------------------------


def test_responses(server: FakeServer, gpt: Any) -> None:
    server.push(FULL)
    got = gpt.responses.create(model="a-model", input="hello", include=["reasoning.encrypted_content"])
    assert from_response(got) == expected(FULL, "call", len(server.requests))
    assert got.status == "completed"
    assert [item.type for item in got.output] == ["reasoning", "message", "function_call", "function_call"]
    assert got.output[0].encrypted_content
    usage = got.usage
    assert (usage.input_tokens, usage.output_tokens, usage.total_tokens) == (1_200, 34, 1_234)
    assert (usage.input_tokens_details.cached_tokens, usage.output_tokens_details.reasoning_tokens) == (1_000, 5)


def test_responses_stream(server: FakeServer, gpt: Any) -> None:
    reply = Reply(FULL.text, reasoning="r", calls=(*FULL.calls, Call("exec", "free text", kind="custom")), delta_size=3)
    server.push(reply)
    with gpt.responses.stream(model="a-model", input=USER) as stream:
        events = list(stream)
        final = stream.get_final_response()
    assert from_response(final)["text"] == reply.text
    assert from_response(final)["calls"] == expected(FULL, "call", len(server.requests))["calls"]
    assert [(item.name, item.input) for item in final.output if item.type == "custom_tool_call"] == [
        ("exec", "free text")
    ]
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == reply.text
    assert [event.sequence_number for event in events] == list(range(len(events)))


def test_responses_cut_for_length(server: FakeServer, gpt: Any) -> None:
    server.push(Reply("half a", finish="length"), Reply("half a", finish="length"))
    whole = gpt.responses.create(model="a-model", input="hello")
    *_, last = gpt.responses.create(model="a-model", input="hello", stream=True)
    assert last.type == "response.incomplete"
    for got in (whole, last.response):
        assert (got.status, got.incomplete_details.reason) == ("incomplete", "max_output_tokens")


def test_responses_compaction_by_trigger_and_by_path(server: FakeServer, gpt: Any) -> None:
    """A trigger gets exactly one opaque item (real-clients.md); the path gives the user messages and one."""
    server.push("what the item holds")
    trigger = [*USER, {"type": "compaction_trigger"}]
    *_, last = gpt.responses.create(model="a-model", input=trigger, stream=True)
    (item,) = last.response.output
    assert item.type == "compaction"
    assert item.encrypted_content.endswith("what the item holds")
    compacted = gpt.responses.compact(model="a-model", input=[*USER, {"role": "assistant", "content": "hi"}, *USER])
    assert [item.type for item in compacted.output][-1] == "compaction"
    assert len(compacted.output) == 3


# --- Anthropic Messages -------------------------------------------------------------------------------------------------


def test_messages(server: FakeServer, claude: Any) -> None:
    server.push(FULL)
    got = claude.messages.create(model="a-model", max_tokens=100, messages=USER)
    assert from_message(got) == expected(FULL, "toolu", len(server.requests))
    assert got.stop_reason == "tool_use"
    usage = got.usage
    assert (usage.input_tokens, usage.cache_read_input_tokens, usage.cache_creation_input_tokens) == (150, 1_000, 50)
    assert usage.output_tokens == 34


def test_messages_stream(server: FakeServer, claude: Any) -> None:
    server.push(FULL)
    with claude.messages.stream(model="a-model", max_tokens=100, messages=USER) as stream:
        texts = list(stream.text_stream)
        final = stream.get_final_message()
    assert "".join(texts) == FULL.text
    assert from_message(final) == expected(FULL, "toolu", len(server.requests))
    assert final.content[0].signature == f"signature_{len(server.requests):06d}"
    assert (final.usage.input_tokens, final.usage.cache_read_input_tokens, final.usage.output_tokens) == (
        150,
        1_000,
        34,
    )


@pytest.mark.parametrize(
    ("finish", "told"),
    [
        ("length", "max_tokens"),
        ("content_filter", "refusal"),
        ("context_window", "model_context_window_exceeded"),
        ("pause_turn", "pause_turn"),
    ],
)
def test_stop_reasons(server: FakeServer, claude: Any, finish: str, told: str) -> None:
    server.push(Reply("text", finish=finish))
    assert claude.messages.create(model="a-model", max_tokens=100, messages=USER).stop_reason == told


def test_count_tokens_equals_the_usage_that_is_reported(server: FakeServer, claude: Any) -> None:
    tools: Any = [{"name": "bash", "description": "runs", "input_schema": {"type": "object"}}]
    counted = claude.messages.count_tokens(model="a-model", system="be brief", messages=USER, tools=tools)
    server.push("ok")
    got = claude.messages.create(model="a-model", max_tokens=9, system="be brief", messages=USER, tools=tools)
    assert got.usage.input_tokens == counted.input_tokens > 20


def test_models(gpt: Any, claude: Any) -> None:
    assert [model.id for model in gpt.models.list()] == ["fake-model"]
    assert gpt.models.retrieve("fake-model").id == "fake-model"
    assert [model.id for model in claude.models.list()] == ["fake-model"]
    with pytest.raises(openai.NotFoundError):
        gpt.models.retrieve("another")


# --- Failures -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("rate_limit", "RateLimitError"),
        ("auth", "AuthenticationError"),
        ("invalid_request", "BadRequestError"),
        ("invalid_encrypted_content", "BadRequestError"),
        ("server", "InternalServerError"),
        ("unavailable", None),
        ("overloaded", None),
    ],
)
def test_failures_are_the_sdks_own_errors(
    server: FakeServer, gpt: Any, claude: Any, kind: Any, error: str | None
) -> None:
    server.push(Failure(kind), Failure(kind))
    with pytest.raises(getattr(openai, error) if error else openai.InternalServerError):
        gpt.chat.completions.create(model="a-model", messages=USER)
    with pytest.raises(getattr(anthropic, error) if error else anthropic.APIStatusError):
        claude.messages.create(model="a-model", max_tokens=9, messages=USER)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_each_providers_overflow_is_recognised_in_the_sdks_exception(
    server: FakeServer, gpt: Any, shape: Shape
) -> None:
    server.push(Failure("overflow", provider=shape.name, limit=8_192, requested=9_001))
    if shape.status == 200:
        body = gpt.chat.completions.with_raw_response.create(model="a-model", messages=USER).text
        assert classify(200, body).kind == "overflow"
        return
    with pytest.raises(openai.APIStatusError) as caught:
        gpt.chat.completions.create(model="a-model", messages=USER)
    response = caught.value.response
    found = classify(response.status_code, response.text, response.headers)
    assert (found.kind, found.limit) == ("overflow", 8_192 if shape.tells_limit else None)


def test_failure_inside_a_stream(server: FakeServer, gpt: Any, claude: Any) -> None:
    server.push(*[Failure("overloaded", in_stream=True, after="some text")] * 3)
    with pytest.raises(openai.APIError, match="Overloaded"):
        list(gpt.chat.completions.create(model="a-model", messages=USER, stream=True))
    *_, last = gpt.responses.create(model="a-model", input="hello", stream=True)
    assert (last.type, last.response.error.code) == ("response.failed", "overloaded")
    with (
        pytest.raises(anthropic.APIStatusError, match="Overloaded"),
        claude.messages.stream(model="a-model", max_tokens=9, messages=USER) as stream,
    ):
        stream.get_final_message()


def test_a_broken_stream_is_a_connection_error(server: FakeServer, gpt: Any, claude: Any) -> None:
    server.push(
        Reply("text", calls=(Call("bash"),), cut="after_call"), Reply("text", calls=(Call("bash"),), cut="in_call")
    )
    with pytest.raises(openai.APIConnectionError) as chat:
        list(gpt.chat.completions.create(model="a-model", messages=USER, stream=True))
    assert "incomplete chunked read" in str(chat.value.__cause__)
    with (
        pytest.raises(Exception, match="incomplete chunked read") as message,
        claude.messages.stream(model="a-model", max_tokens=9, messages=USER) as stream,
    ):
        stream.get_final_message()
    assert message.type.__name__ == "RemoteProtocolError"


# --- Any reply ----------------------------------------------------------------------------------------------------------

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
ARGUMENTS = st.dictionaries(TEXT, TEXT | st.integers(-(2**53), 2**53) | st.booleans() | st.none(), max_size=3)
REPLIES = st.builds(
    Reply,
    text=TEXT,
    reasoning=TEXT,
    calls=st.lists(st.builds(Call, st.sampled_from(["bash", "read"]), ARGUMENTS), max_size=3).map(tuple),
    delta_size=st.none() | st.integers(1, 9),
    chunk_size=st.none() | st.integers(1, 50),
    encoding=st.sampled_from([None, "gzip"]),
)


@given(REPLIES, st.booleans())
@settings(max_examples=15, deadline=None)
def test_any_reply_comes_through_each_sdk(
    server: FakeServer, gpt: Any, claude: Any, reply: Reply, stream: bool
) -> None:
    number = len(server.requests)
    server.push(reply, reply, reply)
    if stream:
        with gpt.chat.completions.stream(model="a-model", messages=USER) as chat_stream:
            chat = chat_stream.get_final_completion()
        with gpt.responses.stream(model="a-model", input=USER) as response_stream:
            response = response_stream.get_final_response()
        with claude.messages.stream(model="a-model", max_tokens=9, messages=USER) as message_stream:
            message = message_stream.get_final_message()
    else:
        chat = gpt.chat.completions.create(model="a-model", messages=USER)
        response = gpt.responses.create(model="a-model", input=USER)
        message = claude.messages.create(model="a-model", max_tokens=9, messages=USER)
    assert from_message(message) == expected(reply, "toolu", number + 3)
    assert from_response(response) == expected(reply, "call", number + 2)
    found = from_chat(chat.choices[0].message)
    wanted = expected(reply, "call", number + 1)
    assert (found["text"], found["calls"]) == (wanted["text"], wanted["calls"])
