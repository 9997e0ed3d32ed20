"""Overflow errors of servers and proxies that people run themselves, one row per shape; see `table`."""

from __future__ import annotations

from .shape import AT_MOST, MAXIMUM, RESULTED, TOO_LONG, Shape, flat_body, openai_body, pattern

__all__ = ["LOCAL"]

LOCAL: tuple[Shape, ...] = (
    # Servers that people run themselves. vLLM changed both the frame and the words over its versions.
    Shape(
        "vllm",
        pattern(f"{MAXIMUM}.{{0,40}}you requested <requested> tokens in the messages"),
        flat_body(
            "This model's maximum context length is {limit} tokens. However, you requested {requested} tokens in the messages, "
            "Please reduce the length of the messages."
        ),
    ),
    Shape(
        "vllm/input",
        pattern(f"{MAXIMUM}.{{0,40}}your request has <requested> input tokens"),
        {
            "error": {
                "message": "This model's maximum context length is {limit} tokens. However, your request has {requested} input tokens. "
                "Please reduce the length of the input messages.",
                "type": "BadRequestError",
                "param": "input_tokens",
                "code": 400,
            }
        },
    ),
    Shape(
        "vllm/with-output",
        pattern(f"is too large: <output>.{{0,20}}{MAXIMUM} and your request has <input> input tokens"),
        {
            "error": {
                "message": "'max_tokens' or 'max_completion_tokens' is too large: 0. This model's maximum context length is {limit} tokens "
                "and your request has {requested} input tokens (0 > {limit} - {requested}).",
                "type": "BadRequestError",
                "param": None,
                "code": 400,
            }
        },
    ),
    Shape(
        "vllm/passed",
        pattern(
            "passed <input> input tokens and requested <output> output tokens.{1,40} context length is only <limit> tokens"
        ),
        {
            "error": {
                "message": "You passed {requested} input tokens and requested 0 output tokens. However, the model's context length is only "
                "{limit} tokens, resulting in a maximum input length of {limit} tokens. Please reduce the length of the input prompt.",
                "type": "BadRequestError",
                "param": "input_tokens",
                "code": 400,
            }
        },
    ),
    Shape(
        "vllm/decoder",
        pattern(r"prompt \(length <requested>\) is longer than the maximum model length of <limit>"),
        flat_body(
            "The decoder prompt (length {requested}) is longer than the maximum model length of {limit}. "
            "Make sure that `max_model_len` is no smaller than the number of text tokens."
        ),
    ),
    Shape(
        "vllm/no-room",
        # The server takes what the prompt leaves of the window as the default output; below zero, the prompt alone is too large.
        pattern("max_tokens must be at least 1, got -<over>"),
        flat_body("max_tokens must be at least 1, got -{over}."),
    ),
    Shape(
        "sglang",
        pattern(r"input \(<requested> tokens\) is longer than the model's context length \(<limit> tokens\)"),
        flat_body("The input ({requested} tokens) is longer than the model's context length ({limit} tokens)."),
    ),
    Shape(
        "sglang/total",
        pattern(
            "exceeds the model's maximum context length of <limit> tokens.{0,20} you requested a total of <requested> tokens"
        ),
        flat_body(
            "Requested token count exceeds the model's maximum context length of {limit} tokens. You requested a total of {requested} "
            "tokens: 1000 tokens from the input messages and 96 tokens for the completion."
        ),
    ),
    Shape(
        "tgi",
        AT_MOST,
        {
            "error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= {limit}. "
            "Given: {requested} `inputs` tokens and 0 `max_new_tokens`",
            "error_type": "validation",
        },
        status=422,
    ),
    Shape(
        "tgi/inputs",
        pattern("`inputs` must have less than <limit> tokens. given: <requested>"),
        {
            "error": "Input validation error: `inputs` must have less than {limit} tokens. Given: {requested}",
            "error_type": "validation",
        },
        status=422,
    ),
    Shape(
        "llama.cpp",
        pattern(r"request \(<requested> tokens\) exceeds the available context size \(<limit> tokens\)"),
        {
            "error": {
                "code": 400,
                "message": "request ({requested} tokens) exceeds the available context size ({limit} tokens), try increasing it",
                "type": "exceed_context_size_error",
                "n_prompt_tokens": "{requested}",
                "n_ctx": "{limit}",
            }
        },
    ),
    Shape(
        "llama.cpp/fields",
        pattern("exceeds the available context size"),
        {
            "error": {
                "code": 400,
                "message": "the request exceeds the available context size, try increasing it",
                "type": "exceed_context_size_error",
                "n_prompt_tokens": "{requested}",
                "n_ctx": "{limit}",
            }
        },
    ),
    Shape(
        "ollama",
        pattern("prompt too long; exceeded (?:max )?context length(?: by <over> tokens)?"),
        {"error": "prompt too long; exceeded max context length by {over} tokens"},
    ),
    Shape(
        "ollama/input",
        pattern("input length exceeds (?:the |maximum )?context length"),
        {"error": "the input length exceeds the context length"},
    ),
    Shape(
        "lmstudio",
        pattern("(?:keep the first <requested> tokens.{1,80})?context length of only <limit> tokens"),
        {
            "error": "Trying to keep the first {requested} tokens when context the overflows. However, the model is loaded with context "
            "length of only {limit} tokens, which is not enough."
        },
    ),
    Shape(
        "lmstudio/keep",
        pattern("tokens to keep from the initial prompt is greater than the context length"),
        {"error": "The number of tokens to keep from the initial prompt is greater than the context length."},
    ),
    Shape(
        "litellm",
        RESULTED,
        openai_body(
            "litellm.ContextWindowExceededError: litellm.BadRequestError: ContextWindowExceededError: OpenAIException - This model's "
            "maximum context length is {limit} tokens. However, your messages resulted in {requested} tokens. Please reduce the length "
            "of the messages.\nmodel=a-model. context_window_fallbacks=None. fallbacks=None.",
            code="400",
            kind=None,
        ),
    ),
    Shape(
        "litellm/wrapped",
        TOO_LONG,
        openai_body(
            'litellm.BadRequestError: AnthropicException - b\'{"type":"error","error":{"type":"invalid_request_error",'
            '"message":"prompt is too long: {requested} tokens > {limit} maximum"}}\'',
            code="400",
            kind=None,
        ),
    ),
    Shape(
        "nginx",
        pattern("413 (?:request entity|payload|content) too large|request entity too large|payload too large"),
        "<html><head><title>413 Request Entity Too Large</title></head><body>413 Request Entity Too Large</body></html>",
        status=413,
    ),
)
