"""One table of how providers say that a request is too large for the model's window (failure kinds OV-05, OV-06).

Each row is one shape: who sends it, with which status, the whole body as an example, and the pattern by which its text is known.
The rows serve three readers: `firsthand.session.overflow.classifying.classify` matches them, the fake model server of `firsthand.testing` sends
them, and the tests go through all of them. In patterns `<limit>`, `<requested>`, `<input>` and `<output>` stand for numbers of
tokens, with or without separators; in bodies `{limit}` and `{requested}` do. Most texts were collected from the providers' API
references and from the issue trackers of clients that met them; the conditions under which clients saw them are in pi.md 10.1,
opencode.md 5 and real-clients.md.
"""

from __future__ import annotations

import re

from ...errors import UnknownNameError
from .hosted import HOSTED
from .local import LOCAL
from .shape import MAXIMUM, Shape, pattern

__all__ = [
    "GENERAL_NUMBERS",
    "OUTPUT_LIMITS",
    "OVERFLOW_CODES",
    "SHAPES",
    "shape_named",
]

_GENERAL: tuple[Shape, ...] = (
    # Words that several smaller services use; they tell no provider.
    Shape(
        "other/tokens",
        pattern("tokens in request more than max tokens allowed"),
        {"message": "tokens in request more than max tokens allowed"},
    ),
    Shape("other/code-as-text", pattern(r"\bcontext[\s_-]?overflow\b"), {"error": "context_overflow"}),
    Shape("other/length-exceeded", pattern(r"context[\s_-]?length[\s_-]?exceeded"), "Error: Context length exceeded"),
    Shape(
        "other/window-exceeded",
        pattern("context window (?:size |limit )?(?:has been )?exceeded"),
        {"detail": "context window exceeded"},
    ),
    Shape("other/limit", pattern("token limit exceeded"), {"detail": "Token limit exceeded."}),
    Shape(
        "other/maximum-of",
        pattern(r"(?:<requested> tokens )?exceeds the (?:model's )?maximum context length (?:of |\()<limit>"),
        {"error": {"message": "Input of {requested} tokens exceeds the maximum context length of {limit} tokens"}},
    ),
    Shape(
        "other/maximum-is",
        pattern(MAXIMUM),
        {
            "error": {
                "message": "This model's maximum context length is {limit} tokens. Please reduce the length of the prompt"
            }
        },
    ),
    Shape(
        "other/prompt-length",
        pattern("maximum prompt length is <limit>"),
        {"error": {"message": "The maximum prompt length is {limit} tokens"}},
    ),
    Shape(
        "other/only",
        pattern("context length (?:is|of) only <limit>"),
        {"error": {"message": "The model's context length is only {limit} tokens"}},
    ),
    Shape(
        "other/exceeds",
        pattern(
            "exceeds? the (?:model's )?(?:maximum )?(?:allowed )?(?:context|input|prompt) (?:length|limit|size|window)"
        ),
        {"error": {"message": "Your prompt exceeds the model's maximum input length"}},
    ),
    Shape(
        "other/too-long",
        pattern("(?:prompt|input)(?: is)? too (?:long|large)\\b"),
        {"error": {"message": "Prompt too long"}},
    ),
    Shape(
        "other/too-many",
        pattern("too many (?:input |prompt )?tokens"),
        {"error": {"message": "Too many tokens in this request"}},
    ),
    Shape(
        "other/too-large",
        pattern("request(?: entity| body)? too large"),
        {"error": {"message": "Request too large"}},
    ),
)

SHAPES: tuple[Shape, ...] = (*HOSTED, *LOCAL, *_GENERAL)
"""The table. Of several rows that match, the one that tells most numbers decides, then the first."""

OVERFLOW_CODES = frozenset(
    {
        "context_length_exceeded",
        "context_overflow",
        "context_window_exceeded",
        "contextwindowexceedederror",
        "exceed_context_size_error",
        "max_context_length_exceeded",
        "model_context_window_exceeded",
        "model_max_prompt_tokens_exceeded",
        "request_too_large",
        "tokens_limit_reached",
    }
)
"""Codes and types that mean overflow whatever the text says, as `error_text.normal_code` writes them."""

GENERAL_NUMBERS: tuple[re.Pattern[str], ...] = (
    pattern(r"<requested> tokens? (?:>|exceeds?|is (?:greater|more|longer) than).{0,60}?<limit>"),
    # "exceeded by 900 tokens" tells no limit.
    pattern(r"(?:maximum|max\.?|limit|context (?:length|window|size))\b(?:(?!\bby\b)[^.\d]){0,40}<limit> tokens?"),
    pattern(r"context (?:length|window|size)(?: limit)?(?: is| of|:)? ?\(?<limit>"),
)
"""Where a known overflow tells its sizes in words of no row (OV-06)."""

OUTPUT_LIMITS: tuple[re.Pattern[str], ...] = (
    # OpenAI, Anthropic, Groq, DeepSeek, DashScope, Bedrock, Vertex, in this order.
    pattern(
        r"max_(?:completion_|output_)?tokens['`\"]? is too large: <requested>\. this model supports at most <limit>"
    ),
    pattern(r"max_tokens['`\"]?: <requested> > <limit>, which is the maximum allowed number of output tokens"),
    pattern(r"max_(?:completion_)?tokens['`\"]? must be less than or equal to ['`\"]?<limit>"),
    pattern(r"valid range of max_tokens is \[\d+, <limit>\]"),
    pattern(r"range of max_tokens should be \[\d+, <limit>\]"),
    pattern("maximum tokens you requested exceeds the model limit of <limit>"),
    pattern(r"maxoutputtokens value of <requested> but the supported range is .{1,40} to <limit>"),
)
"""Refusals of the requested output itself: a smaller output ceiling mends them, a compaction does not (OV-13)."""

_BY_NAME = {shape.name: shape for shape in SHAPES}


def shape_named(name: str) -> Shape:
    """The row of that name, or a provider's first row.

    Raises:
        UnknownNameError: there is none; the message lists the names.
    """
    found = _BY_NAME.get(name) or next((shape for shape in SHAPES if shape.provider == name), None)
    if found is None:
        raise UnknownNameError("overflow shape", name, _BY_NAME)
    return found
