"""The table of overflow errors: every row, the number formats, and all that must not be taken for an overflow."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firsthand.errors import UnknownNameError
from firsthand.session.overflow.classifying import Classified, classify, length_stop, silent_truncation
from firsthand.session.overflow.table import SHAPES, Shape, shape_named

LIMIT, REQUESTED = 131_072, 140_019

ROWS = pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)


def expected(shape: Shape) -> tuple[str, int | None, int | None]:
    return ("overflow", LIMIT if shape.tells_limit else None, REQUESTED if shape.tells_requested else None)


def known(classified: Classified) -> tuple[str, int | None, int | None]:
    return classified.kind, classified.limit, classified.requested


def sent(body: Any) -> str:
    """A body as it travels."""
    return body if isinstance(body, str) else json.dumps(body, indent=1)


# --- OV-05, OV-06: every row of the table -------------------------------------------------------------------------------


@ROWS
def test_row_is_overflow_with_the_sizes_it_tells(shape: Shape) -> None:
    body = shape.example(LIMIT, REQUESTED)
    assert known(classify(shape.status, body)) == expected(shape)
    assert known(classify(shape.status, sent(body), shape.headers)) == expected(shape)
    assert known(classify(shape.status, sent(body).encode(), dict(shape.headers))) == expected(shape)


@ROWS
def test_row_hints_at_its_provider_or_at_nobody(shape: Shape) -> None:
    body = shape.example(LIMIT, REQUESTED)
    nobody = shape.provider == "other"
    assert classify(shape.status, body).provider_hint in ((None,) if nobody else (shape.provider, None))
    if shape.headers:
        assert classify(shape.status, body, shape.headers).provider_hint == shape.provider


def test_every_named_row_tells_its_provider_without_headers() -> None:
    silent = [
        shape.name
        for shape in SHAPES
        if shape.provider != "other" and classify(shape.status, shape.example(LIMIT, REQUESTED)).provider_hint is None
    ]
    assert silent == []


@ROWS
def test_row_survives_a_proxy_that_quotes_it(shape: Shape) -> None:
    if isinstance(shape.body, str):
        return
    body = json.dumps(shape.example(LIMIT, REQUESTED))
    wrapped = {
        "error": {"message": f"upstream.BadRequestError: BackendException - {body}", "type": None, "code": "400"}
    }
    assert known(classify(400, wrapped)) == expected(shape)


@ROWS
def test_row_with_a_throttling_or_server_status_is_never_overflow(shape: Shape) -> None:
    """OV-08."""
    body = shape.example(LIMIT, REQUESTED)
    for status, kind in ((429, "rate_limit"), (500, "server"), (502, "server"), (503, "server"), (529, "server")):
        assert known(classify(status, body)) == (kind, None, None)
        assert known(classify(status, None)) == (kind, None, None)


@ROWS
def test_text_of_a_row_that_is_only_echoed_is_not_overflow(shape: Shape) -> None:
    """OV-09."""
    text = sent(shape.example(LIMIT, REQUESTED))
    for body in (
        {"error": {"message": f"messages.7.content: expected a list, got {json.dumps(text)}", "code": None}},
        {"error": {"message": f"tool arguments are no object: {json.dumps({'said': text})}", "code": None}},
        {"error": {"message": "the model made an invalid call", "code": "tool_use_failed", "failed_generation": text}},
        {"detail": [{"loc": ["body", "messages", 7], "msg": "not a string", "type": "string_type", "input": text}]},
    ):
        assert classify(400, body).kind == "other", body
    for reply in (
        {"choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": text}}]},
        {"type": "message", "content": [{"type": "text", "text": text}], "stop_reason": "end_turn"},
        {"status": "completed", "error": None, "output": [{"type": "function_call", "arguments": text}]},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}},
    ):
        assert classify(200, reply).kind == "other", reply


def test_names_are_unique_and_found() -> None:
    assert len({shape.name for shape in SHAPES}) == len(SHAPES)
    assert shape_named("anthropic/with-output").name == "anthropic/with-output"
    assert shape_named("openai").name == "openai/chat"
    with pytest.raises(UnknownNameError, match=r"llama\.cpp"):
        shape_named("nobody")


def test_every_provider_of_the_task_has_a_row() -> None:
    wanted = (
        "openai azure anthropic google bedrock mistral groq openrouter together fireworks deepseek xai cohere vllm sglang tgi llama.cpp "
        "ollama lmstudio litellm"
    )
    assert set(wanted.split()) <= {shape.provider for shape in SHAPES}


@pytest.mark.parametrize(
    ("text", "limit", "requested"),
    [
        ("prompt is too long: 2113402 tokens > 1000000 maximum", 1_000_000, 2_113_402),
        ("Your input exceeds the context window of this model", None, None),
        ("context_length_exceeded", None, None),
        ("tokens in request more than max tokens allowed", None, None),
        ("context_overflow", None, None),
        ("the request exceeds the available context size", None, None),
        ("input length and `max_tokens` exceed context limit: 187254 + 20000 > 204798", 204_798, 207_254),
        ("Context window exceeded", None, None),
        ("context length exceeded: the model takes a maximum of 8192 tokens", 8_192, None),
    ],
)
def test_known_texts(text: str, limit: int | None, requested: int | None) -> None:
    """The list under OV-05, as plain text, as a message, and behind an SDK's prefix."""
    for body in (
        text,
        {"error": {"message": text}},
        {"message": text},
        f"Error code: 400 - {{'error': {{'message': '{text}'}}}}",
    ):
        assert known(classify(400, body)) == ("overflow", limit, requested)


@pytest.mark.parametrize(
    "code", ["context_length_exceeded", "model_max_prompt_tokens_exceeded", "context-length-exceeded"]
)
def test_known_codes_decide_without_any_text(code: str) -> None:
    assert classify(400, {"error": {"code": code, "message": ""}}).kind == "overflow"
    assert classify(400, {"error": {"code": code, "message": "no room: limit is 8192 tokens"}}).limit == 8_192


@pytest.mark.parametrize(
    "written", ["131072", "131,072", "131.072", "131_072", "131'072", "131 072", "131\u00a0072", "131\u202f072"]
)
def test_number_formats(written: str) -> None:
    """OV-06."""
    text = (
        f"This model's maximum context length is {written} tokens. However, your messages resulted in 140,019 tokens."
    )
    assert known(classify(400, {"error": {"message": text}})) == ("overflow", LIMIT, REQUESTED)


def test_numbers_with_a_suffix_and_numbers_that_are_no_limit() -> None:
    assert classify(400, "maximum context length is 128k tokens").limit == 128_000
    assert classify(400, "maximum context length is 1M tokens").limit == 1_000_000
    # How far over the limit, or a limit in bytes, is no limit in tokens.
    assert classify(400, "prompt too long; exceeded max context length by 8928 tokens").limit is None
    assert classify(413, "request payload size exceeds the limit: 20971520 bytes") == Classified(
        "overflow", None, None, "google"
    )


# --- OV-07: overflow told by a success ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        {"type": "message", "content": [{"type": "text", "text": "a"}], "stop_reason": "model_context_window_exceeded"},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "model_context_window_exceeded"},
            "usage": {"output_tokens": 1},
        },
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "model_context_window_exceeded"}]},
        {"output": {"message": {"content": []}}, "stopReason": "model_context_window_exceeded"},
        {"type": "response.failed", "response": {"status": "failed", "error": {"code": "context_length_exceeded"}}},
        {"type": "error", "sequence_number": 3, "code": "context_length_exceeded", "message": "", "param": None},
        'data: {"error":{"code":"context_length_exceeded","message":""}}\n\ndata: [DONE]\n\n',
        'event: error\ndata: {"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 9 tokens > 8 maximum"}}\n\n',
        {
            "error": {
                "code": 400,
                "message": "Provider returned error",
                "metadata": {"raw": "prompt is too long: 9 tokens > 8 maximum"},
            }
        },
    ],
)
def test_overflow_inside_a_success(body: Any) -> None:
    assert classify(200, body).kind == "overflow"


# --- OV-08, OV-09 and the other kinds -----------------------------------------------------------------------------------

TPM = "Request too large for a-model on tokens per minute (TPM): Limit 6000, Requested 9000, please reduce your message size"


@pytest.mark.parametrize(
    ("kind", "status", "body"),
    [
        ("rate_limit", 429, {"error": {"message": TPM, "code": "rate_limit_exceeded"}}),
        ("rate_limit", 413, {"error": {"message": TPM, "type": "tokens", "code": "rate_limit_exceeded"}}),
        ("rate_limit", 400, {"__type": "ThrottlingException", "message": "Too many tokens, please wait before trying again."}),
        ("rate_limit", 400, {"message": "Too many tokens, please wait before trying again."}),
        ("rate_limit", 200, {"type": "error", "error": {"type": "rate_limit_error", "message": "slow down"}}),
        ("rate_limit", 200, {"error": {"code": 429, "message": "prompt is too long"}}),
        ("rate_limit", 200, {"type": "response.failed", "response": {"error": {"code": "rate_limit_exceeded", "message": "m"}}}),
        ("server", 529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
        ("server", 200, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
        ("server", 200, {"type": "response.failed", "response": {"error": {"code": "server_error", "message": "m"}}}),
        ("server", 408, None),
        ("auth", 401, {"error": {"message": "the key's context window exceeded"}}),
        ("auth", 403, {"message": "prompt is too long"}),
        ("auth", 400, {"code": "Client specified an invalid argument", "error": "Incorrect API key provided."}),
        ("other", 400, None),
        ("other", 400, ""),
        ("other", 400, {"error": {"message": "Unknown parameter: 'context_window'.", "code": "unknown_parameter"}}),
        ("other", 400, {"error": {"message": "Invalid schema for function 'context_window_exceeded'"}}),
        ("other", 400, {"error": {"message": "context window must be a positive integer"}}),
        ("other", 404, {"error": {"message": "no model with a context window exceeded"}}),
        ("other", 402, {"error": {"message": "You requested up to 64000 tokens, but can only afford 2000", "code": 402}}),
        ("other", 400, {"error": {"message": "Invalid 'input[2].id': string too long. Expected a string with maximum length 64"}}),
        ("other", 200, {"choices": [], "usage": {"prompt_tokens": 5}}),
        ("other", 200, "prompt is too long: 9 tokens > 8 maximum"),
        ("overflow", 413, None),
        ("overflow", 413, "<html>413 Request Entity Too Large</html>"),
        ("output_limit", 400, {"error": {"message": "max_tokens is too large: 99. This model supports at most 50 completion tokens"}}),
        ("output_limit", 400, {"type": "error", "error": {"message": "max_tokens: 99 > 50, which is the maximum allowed number of output tokens for m"}}),
        (
            "output_limit",
            400,
            {"error": {"message": "`max_tokens` must be less than or equal to `50`, the maximum value for it is less than the `context_window`"}},
        ),
        ("output_limit", 400, {"error": {"message": "Invalid max_tokens value, the valid range of max_tokens is [1, 50]"}}),
        ("invalid_encrypted_content", 400, {"error": {"code": "invalid_encrypted_content", "message": "m"}}),
        ("invalid_encrypted_content", 400, {"error": {"message": "The encrypted content for item rs_1 could not be verified."}}),
        ("invalid_encrypted_content", 400, {"error": {"message": "messages.1.content.0: Invalid `signature` in `thinking` block"}}),
    ],
)  # fmt: skip
def test_kinds(kind: str, status: int, body: Any) -> None:
    found = classify(status, body)
    assert found.kind == kind
    if kind == "output_limit":
        assert found.limit == 50
    assert known(classify(status, body if body is None else sent(body))) == known(found)


# --- OV-12, OV-13 -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reported", "estimated", "limit", "flagged"),
    [
        (4_096, 9_000, 4_096, True),  # cut to the window exactly
        (4_001, 60_000, 4_096, True),  # whole messages dropped
        (2_100, 60_000, 4_096, True),  # half the window dropped at once
        (2_000, 60_000, 4_096, False),  # not at the limit
        (4_096, 5_000, 4_096, False),  # within a counter's error
        (30_000, 60_000, 200_000, False),  # far below the estimate, but it would have fitted
        (5_000, 60_000, 4_096, False),  # above the limit in force: the limit is wrong, nothing was cut
        (60_000, 60_000, 65_536, False),
        (0, 60_000, 4_096, False),  # no usage reported
        (4_096, 60_000, None, False),
    ],
)
def test_silent_truncation(reported: int, estimated: int, limit: int | None, flagged: bool) -> None:
    assert silent_truncation(reported, estimated, limit) is flagged


@pytest.mark.parametrize(
    ("input_tokens", "output_tokens", "limit", "said", "meaning"),
    [
        (7_000, 1_192, 8_192, False, "overflow"),  # the window was full
        (8_191, 0, 8_192, False, "overflow"),
        (1_000, 4_000, 8_192, False, "output_limit"),  # reasoning ate the output
        (1_000, 0, 8_192, False, "output_limit"),
        (1_000, 0, None, False, "overflow"),
        (1_000, 4_000, None, False, "output_limit"),
        (8_191, 1, 8_192, True, None),  # a cut reply is not a failed one
    ],
)
def test_length_stop(input_tokens: int, output_tokens: int, limit: int | None, said: bool, meaning: str | None) -> None:
    assert length_stop(input_tokens, output_tokens, limit, said=said) == meaning


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ({"choices": [{"finish_reason": "length", "message": {"content": ""}}]}, "output_limit"),
        ({"choices": [{"finish_reason": "length", "message": {"content": None, "reasoning_content": "a"}}]}, "output_limit"),
        ({"choices": [{"finish_reason": "length", "message": {"content": "a"}}]}, "other"),
        ({"choices": [{"finish_reason": "length", "message": {"content": "", "tool_calls": [{"id": "c"}]}}]}, "other"),
        ({"choices": [{"finish_reason": "length", "delta": {}}]}, "other"),  # an event does not know what came before it
        ({"type": "message", "content": [], "stop_reason": "max_tokens"}, "output_limit"),
        ({"type": "message", "content": [{"type": "thinking", "thinking": "a"}], "stop_reason": "max_tokens"}, "output_limit"),
        ({"type": "message", "content": [{"type": "text", "text": "a"}], "stop_reason": "max_tokens"}, "other"),
        ({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}, "output": [{"type": "reasoning"}]}, "output_limit"),
        ({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}, "output": [{"type": "message"}]}, "other"),
        ({"type": "response.incomplete", "response": {"incomplete_details": {"reason": "max_output_tokens"}, "output": []}}, "output_limit"),
    ],
)  # fmt: skip
def test_length_without_output(body: Any, kind: str) -> None:
    assert classify(200, body).kind == kind


# --- Invariants ---------------------------------------------------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["error", "errors", "message", "code", "type", "detail", "metadata", "raw", "choices", "delta", "x"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)  # fmt: skip


@given(st.integers(100, 599), JSON | st.text() | st.binary())
def test_any_answer_is_classified_and_waiting_statuses_are_never_overflow(status: int, body: Any) -> None:
    found = classify(status, body)
    if status == 429 or status >= 500:
        assert found.kind in ("rate_limit", "server")
    if found.kind not in ("overflow", "output_limit"):
        assert (found.limit, found.requested) == (None, None)


@given(st.sampled_from(SHAPES), st.integers(1, 10**9), st.integers(1, 10**9))
def test_sizes_come_back_as_they_were_told(shape: Shape, limit: int, over: int) -> None:
    found = classify(shape.status, shape.example(limit, limit + over))
    assert known(found) == (
        "overflow",
        limit if shape.tells_limit else None,
        limit + over if shape.tells_requested else None,
    )


@pytest.mark.parametrize(
    "evil", ["“", '"', "{", '{"a":', "`", "maximum ", "1", "1,111", "prompt contains ", "error: {", "\\"]
)
def test_hostile_bodies_cost_no_time(evil: str) -> None:
    for body in (evil * 500_000, {"error": {"message": evil * 500_000}}):
        began = time.process_time()
        classify(400, body)
        assert time.process_time() - began < 2
