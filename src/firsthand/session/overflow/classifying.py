"""What a provider's answer means for a request that may have been too large.

Everything here is a pure decision about one answer; what is then done (one compaction, one retry, a learned limit) is the
runtime's. Failure kinds OV-05 to OV-09, OV-11 to OV-13 and GW-09; the shapes themselves are in `table`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from .error_text import ErrorText, parsed_body, read_error
from .shape import Shape, number
from .table import GENERAL_NUMBERS, OUTPUT_LIMITS, OVERFLOW_CODES, SHAPES

__all__ = ["Classified", "Kind", "classify", "length_stop", "silent_truncation"]

Kind: TypeAlias = Literal[
    "overflow", "rate_limit", "server", "auth", "output_limit", "invalid_encrypted_content", "other"
]
"""What an answer means:

* `overflow`: the request is too large for the window; a compaction may mend it.
* `rate_limit`: too much in too short a time, or a quota spent; wait. Never an overflow, even where the text counts tokens (OV-08).
* `server`: the provider failed or is overloaded (5xx, 529, 408); wait and try again. Never an overflow.
* `auth`: the key is missing, wrong or not allowed.
* `output_limit`: the output, not the input: more was asked for than the model gives, or a reply stopped at its limit with nothing said (OV-13).
* `invalid_encrypted_content`: the provider refuses an opaque reasoning part; leave those parts out and try once (GW-09).
* `other`: nothing that firsthand can mend; also every answer that is no error.
"""


@dataclass(frozen=True)
class Classified:
    """The meaning of one answer."""

    kind: Kind
    limit: int | None = None
    """Tokens that the provider named as the most it takes: of the whole window for `overflow`, of the output for `output_limit`."""
    requested: int | None = None
    """Tokens that the refused request had by the provider's count; with the output it asked for where the provider adds that."""
    provider_hint: str | None = None
    """Who probably answered; None where the shape is shared by several providers."""


# Codes and types by meaning, as `error_text.normal_code` writes them.
_RATE_CODES = re.compile(
    r"rate_?limit|throttl|too_many_requests|insufficient_quota|resource_exhausted|quota_exceeded|toomanyrequests"
)
_SERVER_CODES = re.compile(
    r"^(?:overloaded(?:_error)?|api_error|server_error|internal_?server_?error|internal|unavailable|timeout_error|"
    r"serviceunavailable(?:exception|error)?|modelnotreadyexception|service_unavailable(?:_error)?)$"
)
_AUTH_CODES = re.compile(
    r"^(?:authentication_error|permission_error|permission_denied|unauthenticated|(?:invalid_api_key|api_key_invalid)|accessdeniedexception|unauthorized)$"
)
# Errors about something else, whose text may echo what the model or the person wrote (OV-09).
_UNRELATED_CODES = re.compile(
    r"^(?:tool_use_failed|json_validate_failed|output_parse_failed|unsupported_(?:parameter|value|country.*)|unknown_parameter|"
    r"missing_required_parameter|invalid_type|invalid_function_parameters|invalid_json(?:_schema)?|content_filter|"
    r"content_policy_violation|model_not_found|model_decommissioned|not_found(?:_error)?|invalid_image.*|billing_error|"
    r"previous_response_not_found|duplicate_.*)$"
)
_RATE_TEXT = re.compile(
    r"^\s*(?:throttling|service[ _]?unavailable)|rate[ _-]?limit|too many requests|tokens per (?:minute|min|day)|quota exceeded|"
    r"please wait before trying",
    re.IGNORECASE,
)
_AUTH_TEXT = re.compile(r"(?:incorrect|invalid) api key|api key (?:is )?not valid", re.IGNORECASE)
_ENCRYPTED_TEXT = re.compile(
    r"encrypted[ _]content\b.{0,80}\bcould not be (?:verified|decrypted|parsed)|invalid `?signature`? in `?thinking`? block|"
    r"thought[ _]signature is not valid|invalid thought[ _]signature",
    re.IGNORECASE | re.DOTALL,
)
_REFUSING = frozenset({400, 413, 422})
_STOPS = frozenset({"model_context_window_exceeded", "context_window_exceeded"})

_HEADERS: tuple[tuple[str, str], ...] = (
    ("x-litellm-", "litellm"),
    ("llm_provider-", "litellm"),
    ("apim-request-id", "azure"),
    ("x-ms-", "azure"),
    ("x-amzn-", "bedrock"),
    ("anthropic-", "anthropic"),
    ("x-groq-", "groq"),
    ("x-goog-", "google"),
    ("x-gemini-", "google"),
    ("fireworks-", "fireworks"),
    ("x-together-", "together"),
    ("x-debug-trace-id", "cohere"),
    ("x-ds-", "deepseek"),
    ("openai-", "openai"),
)


def classify(status: int, body: object = None, headers: Mapping[str, str] | None = None) -> Classified:
    """What an HTTP answer, or one event of a stream, means.

    Text is only believed where the answer is an error, and only the provider's own words: quoted and echoed content, and anything a
    model said, is left out (OV-09).

    Args:
        status: the HTTP status; 200 for an event of a stream and for a body that came with a success.
        body: the body as text, bytes or parsed JSON; None where there is none.
        headers: the response's headers, in any case.
    """
    value = parsed_body(body)
    names = {name.lower(): text for name, text in (headers or {}).items()}
    error = read_error(value, failed=status >= 400)
    error = _with_header_code(error, names)
    hint = _header_hint(names)
    embedded = status < 400
    if embedded:
        if error.empty:
            return _of_success(value, hint)
        # An error inside a success: what the body names counts as its status.
        status = error.status or 400
    kind = _kind_by_status(status, error, embedded)
    if kind is not None:
        return Classified(kind, provider_hint=hint or _shape_hint(status, value))
    return _refusal(status, value, error, hint)


def silent_truncation(reported: int, estimated: int, limit: int | None) -> bool:
    """Whether a server seems to have cut a request down to its window and answered as if nothing had happened (OV-12).

    Servers that do this (Ollama, older llama.cpp, some proxies) drop the oldest messages or half the window at once, so what they
    report lies between half the window and the whole of it. Flagged when the request by our count does not fit, and the reported
    prompt is at most two thirds of it: no calibrated counter is off by that much for a whole request.

    Args:
        reported: prompt tokens that the provider reported, cached ones included.
        estimated: tokens of the request by our own counter.
        limit: the window in force; None where it is unknown, which is never flagged.
    """
    if limit is None or limit < 1 or reported < 1:
        return False
    return limit < estimated and limit <= 2 * reported <= 2 * limit and 3 * reported <= 2 * estimated


def length_stop(
    input_tokens: int, output_tokens: int, limit: int | None, *, said: bool
) -> Literal["overflow", "output_limit"] | None:
    """What a reply that stopped for length means (OV-13).

    Args:
        input_tokens: prompt tokens that the provider reported, cached ones included.
        output_tokens: output tokens that it reported, reasoning included.
        limit: the window in force, None where it is unknown.
        said: whether the reply holds any text or call.

    Returns:
        None when something was said: the reply is a cut one, not a failure. `overflow` when the window was full (at least 99 % of it,
        or, where the window is unknown, not one token of output); otherwise `output_limit`: all output went into reasoning.
    """
    if said:
        return None
    if limit is None:
        return "overflow" if output_tokens == 0 else "output_limit"
    return "overflow" if 100 * (input_tokens + output_tokens) >= 99 * limit else "output_limit"


def _kind_by_status(status: int, error: ErrorText, embedded: bool) -> Kind | None:
    """The kind that status and codes decide alone; None when the words have to be read."""
    if status == 429:
        return "rate_limit"
    if status >= 500 or status == 408:
        return "server"
    if status in (401, 403):
        return "auth"
    if OVERFLOW_CODES.intersection(error.codes):
        return None
    if error.status == 429 or any(_RATE_CODES.search(code) for code in error.codes):
        return "rate_limit"
    if embedded and any(_SERVER_CODES.search(code) for code in error.codes):
        return "server"
    if any(_AUTH_CODES.search(code) for code in error.codes) or any(_AUTH_TEXT.search(text) for text in error.texts):
        return "auth"
    return None


def _refusal(status: int, value: Any, error: ErrorText, hint: str | None) -> Classified:
    """The meaning of a request that the provider would not take."""
    coded = bool(OVERFLOW_CODES.intersection(error.codes))
    if "invalid_encrypted_content" in error.codes or any(_ENCRYPTED_TEXT.search(text) for text in error.texts):
        return Classified("invalid_encrypted_content", provider_hint=hint)
    if not coded:
        if any(_RATE_TEXT.search(text) for text in error.texts):
            return Classified("rate_limit", provider_hint=hint)
        for form in OUTPUT_LIMITS:
            if found := _first(form, error.texts):
                return Classified("output_limit", *_sizes(found, ErrorText()), hint)
        if status not in _REFUSING or any(_UNRELATED_CODES.search(code) for code in error.codes):
            return Classified("other", provider_hint=hint)
    matched = [(shape, found) for shape in SHAPES if (found := _first(shape.text, error.texts))]
    if not (matched or coded or status == 413):
        return Classified("other", provider_hint=hint)
    told = [match for _, match in matched]
    if not any(_known(_sizes(match, error)) for match in told):
        # Told to be an overflow by a code or by words without numbers; the sizes may stand elsewhere in the text (OV-06).
        told = [match for form in GENERAL_NUMBERS if (match := _first(form, error.texts))]
    limit, requested = max((_sizes(match, error) for match in (*told, None)), key=_known)
    return Classified("overflow", limit, requested, hint or _hint(matched, status, value))


def _of_success(value: Any, hint: str | None) -> Classified:
    """The meaning of an answer that is no error: how the reply stopped, and whether it says anything (OV-07, OV-13)."""
    if isinstance(value, dict):
        reason, silent = _stop(value)
        if reason in _STOPS:
            return Classified("overflow", provider_hint=hint)
        if silent and reason in ("length", "max_tokens", "max_output_tokens"):
            return Classified("output_limit", provider_hint=hint)
    return Classified("other", provider_hint=hint)


def _stop(value: Mapping[str, Any]) -> tuple[str | None, bool]:
    """Why a reply or an event of a stream stopped, and whether it is a whole reply without text and calls."""
    inner = value.get("response")
    if value.get("type") in ("response.incomplete", "response.completed") and isinstance(inner, dict):
        value = inner
    details = value.get("incomplete_details")
    if isinstance(details, dict):
        output = value.get("output")
        spoken = isinstance(output, list) and any(
            isinstance(item, dict) and item.get("type") != "reasoning" for item in output
        )
        return _text(details.get("reason")), not spoken
    for choice in _dicts(value.get("choices")):
        message = choice.get("message")
        silent = isinstance(message, dict) and not (message.get("content") or message.get("tool_calls"))
        return _text(choice.get("finish_reason")), silent
    delta = value.get("delta")
    if isinstance(delta, dict):
        return _text(delta.get("stop_reason")), False
    content = value.get("content")
    spoken = any(block.get("type") not in ("thinking", "redacted_thinking") for block in _dicts(content))
    return _text(value.get("stop_reason") or value.get("stopReason")), isinstance(content, list) and not spoken


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _first(form: re.Pattern[str], texts: tuple[str, ...]) -> re.Match[str] | None:
    return next((found for text in texts if (found := form.search(text))), None)


def _sizes(found: re.Match[str] | None, error: ErrorText) -> tuple[int | None, int | None]:
    """Limit and request size in tokens, from the words or else from fields of their own (llama.cpp)."""
    groups = {name: number(text) for name, text in found.groupdict().items() if text} if found else {}
    limit = groups.get("limit") or error.numbers.get("n_ctx")
    requested = groups.get("requested")
    if requested is None and "input" in groups:
        requested = groups["input"] + groups.get("output", 0)
    if requested is None and limit and "over" in groups:
        requested = limit + groups["over"]
    return limit or None, requested or error.numbers.get("n_prompt_tokens") or None


def _known(sizes: tuple[int | None, int | None]) -> int:
    return sum(size is not None for size in sizes)


def _with_header_code(error: ErrorText, headers: Mapping[str, str]) -> ErrorText:
    """AWS names the error's type in a header, not in the body."""
    named = headers.get("x-amzn-errortype", "").partition(":")[0].strip().lower()
    return ErrorText(error.texts, (*error.codes, named), error.numbers, error.status) if named else error


def _header_hint(headers: Mapping[str, str]) -> str | None:
    return next((provider for start, provider in _HEADERS if any(name.startswith(start) for name in headers)), None)


def _hint(matched: list[tuple[Shape, re.Match[str]]], status: int, value: Any) -> str | None:
    """The provider of the matching rows, when words, status and structure leave only one."""
    keys = _keys(value)
    alike = [(shape, found) for shape, found in matched if shape.status == status and _keys(shape.body) == keys]
    for rows in (alike, matched):
        most = max((len(found.groupdict()) for _, found in rows), default=0)
        providers = {shape.provider for shape, found in rows if len(found.groupdict()) == most}
        if len(providers) == 1:
            return next((provider for provider in providers if provider != "other"), None)
    return None


def _shape_hint(status: int, value: Any) -> str | None:
    """Anthropic's frame is its own; the other providers' errors of these kinds look alike."""
    return "anthropic" if isinstance(value, dict) and value.get("type") == "error" and "error" in value else None


def _keys(value: Any, at: str = "", depth: int = 0) -> frozenset[str]:
    """The names of a body's fields with their places, and its codes: its structure without its texts."""
    if depth > 3:
        return frozenset()
    if isinstance(value, dict):
        below = [_keys(inner, f"{at}.{key}", depth + 1) for key, inner in value.items()]
        named = {f"{at}.{key}={inner}" if key in ("code", "type") else f"{at}.{key}" for key, inner in value.items()}
        return frozenset(named).union(*below)
    if isinstance(value, list):
        return frozenset({f"{at}[]"}).union(*(_keys(inner, f"{at}[]", depth + 1) for inner in value[:4]))
    return frozenset()
