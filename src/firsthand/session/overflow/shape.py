"""The form of a row in the table of overflow errors, and the small language of its patterns and bodies.

In patterns `<limit>`, `<requested>`, `<input>`, `<output>` and `<over>` stand for numbers of tokens, with or without separators; in
bodies `{limit}`, `{requested}` and `{over}` do.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = [
    "AT_MOST",
    "MAXIMUM",
    "REQUESTED",
    "RESULTED",
    "TOO_LONG",
    "Shape",
    "anthropic_body",
    "flat_body",
    "number",
    "openai_body",
    "pattern",
]

# Digits with or without separators of thousands (comma, point, underscore, apostrophe, spaces), and "128k". Bounded, so that a
# message of nothing but digits costs no more than another.
_NUMBER = r"(?<!\d)(?:\d{1,3}(?:[,._'’\u00a0\u202f ]\d{3}){1,4}(?!\d)|\d{1,15})(?:\s?[km](?![\w]))?"


def pattern(text: str) -> re.Pattern[str]:
    """A pattern from its readable form: spaces match any white space, `<name>` a number of tokens under that name."""
    spaced = text.replace(" ", r"\s+")
    named = re.sub(r"(?<!\?P)<(\w+)>", lambda name: f"(?P<{name.group(1)}>{_NUMBER})", spaced)
    return re.compile(named, re.IGNORECASE)


def number(text: str) -> int:
    """The number that `_NUMBER` matched: `131,072`, `131 072`, `131.072`, `128k`."""
    digits = int(re.sub(r"\D", "", text))
    suffix = text[-1].lower()
    return digits * {"k": 1_000, "m": 1_000_000}.get(suffix, 1)


@dataclass(frozen=True)
class Shape:
    """One way in which one provider refuses a request as too large."""

    name: str
    """Unique: the provider, with a suffix where it has several."""
    text: re.Pattern[str]
    """Matches the error's own text; its groups are the numbers that the text tells."""
    body: Any
    """The whole body as JSON value, `{limit}` and `{requested}` where the numbers stand; a string is a body of plain text."""
    status: int = 400
    headers: Mapping[str, str] = field(default_factory=dict)
    """Headers that tell the provider."""

    @property
    def provider(self) -> str:
        """The provider's name."""
        return self.name.partition("/")[0]

    @property
    def tells_limit(self) -> bool:
        """Whether the window can be read out of this shape."""
        return "{limit}" in repr(self.body)

    @property
    def tells_requested(self) -> bool:
        """Whether the size of the refused request can be read out of this shape."""
        body = repr(self.body)
        return "{requested}" in body or ("{over}" in body and self.tells_limit)

    def example(self, limit: int, requested: int) -> Any:
        """The body as the provider sends it for a request of `requested` tokens against a window of `limit` tokens."""
        return _filled(self.body, {"{limit}": limit, "{requested}": requested, "{over}": max(1, requested - limit)})


def _filled(template: Any, numbers: Mapping[str, int]) -> Any:
    if isinstance(template, dict):
        return {key: _filled(value, numbers) for key, value in template.items()}
    if isinstance(template, list):
        return [_filled(value, numbers) for value in template]
    if isinstance(template, str):
        if template in numbers:
            return numbers[template]
        for name, value in numbers.items():
            template = template.replace(name, str(value))
    return template


def openai_body(
    message: str, code: Any = "context_length_exceeded", kind: Any = "invalid_request_error", **more: Any
) -> Any:
    """The frame that OpenAI and its many followers use."""
    return {"error": {"message": message, "type": kind, "param": more.pop("param", None), "code": code, **more}}


def flat_body(message: str, kind: str = "BadRequestError", code: Any = 400) -> Any:
    """The frame without an inner object, as vLLM, SGLang and Mistral have used it."""
    return {"object": "error", "message": message, "type": kind, "param": None, "code": code}


def anthropic_body(message: str, kind: str = "invalid_request_error") -> Any:
    """Anthropic's frame."""
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}


MAXIMUM = "maximum context length is <limit> tokens"
RESULTED = pattern(f"{MAXIMUM}.{{0,40}}your messages resulted in <requested> tokens")
REQUESTED = pattern(f"{MAXIMUM}.{{0,40}}you requested (?:about )?<requested> tokens")
TOO_LONG = pattern(r"prompt is too long(?::? <requested> tokens > <limit> maximum)?")
AT_MOST = pattern(
    r"`inputs` (?:tokens \+ `max_new_tokens` must be <= <limit>\. given: <input> `inputs` tokens and <output> `max_new_tokens`"
    r"|must have less than \d+ tokens)"
)
