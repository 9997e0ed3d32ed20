"""Overflow errors of hosted providers, one row per shape; see `table`."""

from __future__ import annotations

from .shape import (
    AT_MOST,
    MAXIMUM,
    REQUESTED,
    RESULTED,
    TOO_LONG,
    Shape,
    anthropic_body,
    flat_body,
    openai_body,
    pattern,
)

__all__ = ["HOSTED"]

HOSTED: tuple[Shape, ...] = (
    # OpenAI. The window counts input and requested output on Chat, input alone on Responses, which names no numbers.
    Shape(
        "openai/chat",
        RESULTED,
        openai_body(
            "This model's maximum context length is {limit} tokens. However, your messages resulted in {requested} tokens. "
            "Please reduce the length of the messages.",
            param="messages",
        ),
    ),
    Shape(
        "openai/completion",
        REQUESTED,
        openai_body(
            "This model's maximum context length is {limit} tokens. However, you requested {requested} tokens "
            "(1000 in the messages, 96 in the completion). Please reduce the length of the messages or completion.",
            param="messages",
        ),
    ),
    Shape(
        "openai/responses",
        pattern("exceeds the context window"),
        openai_body(
            "Your input exceeds the context window of this model. Please adjust your input and try again.",
            param="input",
        ),
    ),
    Shape(
        "openai/string",
        # One string above ten million characters; shorter maxima of that sentence are limits of names and ids, which no compaction mends.
        pattern(r"string too long\. expected a string with maximum length \d{7,}"),
        openai_body(
            "Invalid 'input[3].output': string too long. Expected a string with maximum length 10485760, "
            "but instead got a string with length 12000000 instead.",
            code="string_above_max_length",
            param="input[3].output",
        ),
    ),
    Shape(
        "azure",
        pattern(f"{MAXIMUM}, however you requested <requested> tokens"),
        openai_body(
            "This model's maximum context length is {limit} tokens, however you requested {requested} tokens "
            "(1000 in your prompt; 96 for the completion). Please reduce your prompt; or completion length.",
            code=None,
        ),
        headers={"apim-request-id": "1", "x-ms-region": "somewhere"},
    ),
    Shape(
        "github-models",
        pattern("request body too large for .{1,80} max size: <limit> tokens"),
        {
            "error": {
                "code": "tokens_limit_reached",
                "message": "Request body too large for a-model model. Max size: {limit} tokens.",
                "details": "Request body too large for a-model model. Max size: {limit} tokens.",
            }
        },
        status=413,
    ),
    Shape(
        "github-copilot",
        pattern("prompt token count of <requested> exceeds the limit of <limit>"),
        {
            "error": {
                "message": "prompt token count of {requested} exceeds the limit of {limit}",
                "code": "model_max_prompt_tokens_exceeded",
            }
        },
    ),
    # Anthropic. The long window's own tier answers 413 for bytes; Vertex and Bedrock pass the first row through, sometimes without numbers.
    Shape(
        "anthropic",
        TOO_LONG,
        anthropic_body("prompt is too long: {requested} tokens > {limit} maximum"),
        headers={"anthropic-organization-id": "1"},
    ),
    Shape(
        "anthropic/with-output",
        pattern(r"input length and `?max_tokens`? exceed context limit: <input> \+ <output> > <limit>"),
        anthropic_body(
            "input length and `max_tokens` exceed context limit: {requested} + 0 > {limit}, "
            "decrease input length or `max_tokens` and try again"
        ),
    ),
    Shape(
        "anthropic/bytes",
        pattern("request exceeds the maximum size|request size exceeds"),
        anthropic_body("Request exceeds the maximum size", kind="request_too_large"),
        status=413,
    ),
    # Google: Gemini API, its OpenAI-compatible front (which wraps the body in a list), Vertex.
    Shape(
        "google",
        pattern(r"input token count \(?<requested>\)? exceeds the maximum number of tokens allowed \(?<limit>\)?"),
        {
            "error": {
                "code": 400,
                "message": "The input token count ({requested}) exceeds the maximum number of tokens allowed ({limit}).",
                "status": "INVALID_ARGUMENT",
            }
        },
    ),
    Shape(
        "google/openai-compatible",
        pattern(r"input token count \(?<requested>\)? exceeds the maximum number of tokens allowed \(?<limit>\)?"),
        [
            {
                "error": {
                    "code": 400,
                    "message": "The input token count ({requested}) exceeds the maximum number of tokens allowed ({limit}).",
                    "status": "INVALID_ARGUMENT",
                }
            }
        ],
    ),
    Shape(
        "google/vertex",
        pattern("input token count is <requested> but (?:the )?model only supports up to <limit>"),
        {
            "error": {
                "code": 400,
                "message": "Unable to submit request because the input token count is {requested} but model only supports up to "
                "{limit}. Reduce the input token count and try again.",
                "status": "INVALID_ARGUMENT",
            }
        },
    ),
    Shape(
        "google/bytes",
        pattern(r"request payload size exceeds the limit: \d+ bytes"),
        {
            "error": {
                "code": 400,
                "message": "Request payload size exceeds the limit: 20971520 bytes.",
                "status": "INVALID_ARGUMENT",
            }
        },
    ),
    # Bedrock words it per model family, always as a ValidationException.
    Shape(
        "bedrock",
        pattern("input is too long for (?:the )?requested model"),
        {"message": "Input is too long for requested model."},
        headers={"x-amzn-errortype": "ValidationException"},
    ),
    Shape(
        "bedrock/anthropic",
        TOO_LONG,
        {
            "message": "The model returned the following errors: prompt is too long: {requested} tokens > {limit} maximum"
        },
        headers={"x-amzn-errortype": "ValidationException"},
    ),
    Shape(
        "bedrock/titan",
        pattern("too many input tokens. max input tokens: <limit>, request input token count: <requested>"),
        {
            "message": "400 Bad Request: Too many input tokens. Max input tokens: {limit}, request input token count: {requested}"
        },
        headers={"x-amzn-errortype": "ValidationException"},
    ),
    Shape(
        "bedrock/nova",
        pattern("number of input tokens exceeds maximum length"),
        {
            "message": "Input Tokens Exceeded: Number of input tokens exceeds maximum length. Please update the input to try again."
        },
        headers={"x-amzn-errortype": "ValidationException"},
    ),
    Shape(
        "mistral",
        pattern(
            "prompt contains <requested> tokens(?: and <output> draft tokens)?, too large for model with <limit> maximum context length"
        ),
        flat_body(
            "Prompt contains {requested} tokens and 0 draft tokens, too large for model with {limit} maximum context length",
            kind="invalid_request_prompt",
            code="3051",
        ),
    ),
    Shape(
        "groq",
        pattern("reduce the length of the messages"),
        openai_body("Please reduce the length of the messages or completion.", param="messages"),
        headers={"x-groq-region": "somewhere"},
    ),
    Shape(
        "cerebras",
        pattern("current length is <requested> while limit is <limit>"),
        {
            "message": "Please reduce the length of the messages or completion. Current length is {requested} while limit is {limit}",
            "type": "invalid_request_error",
            "param": "messages",
            "code": "context_length_exceeded",
        },
    ),
    # OpenRouter words its own check, and hands a backend's body on inside `metadata.raw`.
    Shape(
        "openrouter",
        pattern(f"endpoint's {MAXIMUM}.{{0,40}}you requested about <requested> tokens"),
        {
            "error": {
                "message": "This endpoint's maximum context length is {limit} tokens. However, you requested about {requested} tokens "
                "(1000 of text input, 96 in the output). Please reduce the length of either one.",
                "code": 400,
                "metadata": {"provider_name": None},
            }
        },
    ),
    Shape(
        "openrouter/backend",
        pattern("(?:input length <requested> exceeds the )?maximum allowed input length of <limit> tokens"),
        {
            "error": {
                "message": "Provider returned error",
                "code": 400,
                "metadata": {
                    "raw": '{"error":{"message":"Input length {requested} exceeds the maximum allowed input length of {limit} tokens.",'
                    '"type":"invalid_request_error"}}',
                    "provider_name": "Backend",
                },
            }
        },
    ),
    Shape(
        "together",
        pattern(r"input \(<requested> tokens\) is longer than the model's context length \(<limit> tokens\)"),
        openai_body(
            "The input ({requested} tokens) is longer than the model's context length ({limit} tokens).", code=None
        ),
    ),
    Shape(
        "together/validation",
        AT_MOST,
        {
            "id": "1",
            "error": {
                "message": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= {limit}. "
                "Given: {requested} `inputs` tokens and 0 `max_new_tokens`",
                "type": "invalid_request_error",
                "param": "max_tokens",
                "code": None,
            },
        },
        status=422,
    ),
    Shape(
        "fireworks",
        pattern("prompt is too long: <requested>, model maximum context length: <limit>"),
        {
            "error": {
                "object": "error",
                "type": "invalid_request_error",
                "code": "invalid_request_error",
                "message": "The prompt is too long: {requested}, model maximum context length: {limit}",
            }
        },
    ),
    Shape(
        "deepseek",
        REQUESTED,
        openai_body(
            "This model's maximum context length is {limit} tokens. However, you requested {requested} tokens "
            "(1000 in the messages, 96 in the completion). Please reduce the length of the messages or completion.",
            code="invalid_request_error",
        ),
    ),
    Shape(
        "xai",
        pattern("maximum prompt length is <limit> but the request contains <requested> tokens"),
        {
            "code": "Client specified an invalid argument",
            "error": "This model's maximum prompt length is {limit} but the request contains {requested} tokens.",
        },
    ),
    Shape(
        "cohere",
        pattern("too many tokens: total number of tokens in the prompt cannot exceed <limit> - received <requested>"),
        {
            "message": "too many tokens: total number of tokens in the prompt cannot exceed {limit} - received {requested}. "
            "Try using a shorter prompt."
        },
        headers={"x-debug-trace-id": "1"},
    ),
    Shape(
        "cohere/v2",
        pattern("too many tokens: size limit exceeded by <over> tokens.{0,80} limit for this model is <limit> tokens"),
        {
            "id": "1",
            "message": "too many tokens: size limit exceeded by {over} tokens. Try using shorter or fewer inputs. "
            "The limit for this model is {limit} tokens.",
        },
        headers={"x-debug-trace-id": "1"},
    ),
    # Others that agents meet through OpenAI-compatible addresses.
    Shape(
        "moonshot",
        pattern(r"exceeded model token limit:? <limit>(?: \(requested: <requested>\))?"),
        openai_body(
            "Invalid request: Your request exceeded model token limit: {limit} (requested: {requested})", code=None
        ),
    ),
    Shape(
        "minimax",
        pattern("context window exceeds limit"),
        {"base_resp": {"status_code": 2013, "status_msg": "invalid params, context window exceeds limit"}},
        status=200,
    ),
    Shape(
        "zai", pattern("prompt exceeds max length"), {"error": {"code": "1261", "message": "Prompt exceeds max length"}}
    ),
    Shape(
        "dashscope",
        pattern(r"range of input length should be \[\d+, <limit>\]"),
        openai_body(
            "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, {limit}]",
            code="invalid_parameter_error",
        ),
    ),
    Shape(
        "watsonx",
        pattern("number of input tokens <requested> cannot exceed the total tokens limit <limit>"),
        {
            "errors": [
                {
                    "code": "invalid_input_argument",
                    "message": "Invalid input argument for Model 'a-model': the number of input tokens {requested} cannot exceed the "
                    "total tokens limit {limit} for this model",
                }
            ],
            "trace": "1",
            "status_code": 400,
        },
    ),
    Shape(
        "cloudflare",
        pattern(
            r"input and maximum output tokens \(<requested>\) exceeded this model context window limit \(<limit>\)"
        ),
        {
            "errors": [
                {
                    "message": "AiError: The estimated number of input and maximum output tokens ({requested}) exceeded this model context "
                    "window limit ({limit}).",
                    "code": 5021,
                }
            ],
            "success": False,
            "result": {},
            "messages": [],
        },
        status=413,
    ),
    Shape(
        "databricks",
        RESULTED,
        {
            "error_code": "BAD_REQUEST",
            "message": '{"message": "This model\'s maximum context length is {limit} tokens. However, your messages resulted in '
            '{requested} tokens.", "code": 400}',
        },
    ),
    Shape(
        "ds4",
        pattern("prompt has <requested> tokens, but the configured context size is <limit> tokens"),
        {"error": {"message": "prompt has {requested} tokens, but the configured context size is {limit} tokens"}},
    ),
)
