"""What is accepted as a summary (failure kinds SU-03 to SU-07, SU-12). Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ..errors import FormatError
from ..formats.wire.response import finish_reason, response_entries
from ..strategies.contract import Summary, SummaryRequest
from ..tokens import Counter
from ..transcript import Text, ToolCall

__all__ = ["accepted"]

_FINISHED = frozenset({"stop", "end_turn", "stop_sequence", "completed"})
_CALL_MARKUP = re.compile(
    r"<(?:antml:)?(?:function_calls|invoke|tool_call|tool_use|function)\b|^\s*\{\s*\"(?:name|tool|function)\"\s*:", re.I
)
_SCRIPTS = (
    re.compile("[\u3040-\u30ff\u4e00-\u9fff\u3400-\u4dbf]"),
    re.compile("[\uac00-\ud7af]"),
    re.compile("[\u0400-\u04ff]"),
    re.compile("[\u0600-\u06ff]"),
    re.compile("[\u0900-\u097f]"),
)
_LETTER = re.compile(r"[^\W\d_]")


def accepted(
    wire: str, response: Mapping[str, Any], request: SummaryRequest, counter: Counter, user_texts: Iterable[str] = ()
) -> Summary:
    """The summary in a response, or why it is none.

    Refused are: an answer that did not end by itself, a tool call or its markup, an empty text, missing or reordered headings (where the
    request requires them), a text above the request's output cap, and a text in another script than the person writes.
    """
    try:
        entries = response_entries(wire, response)
    except FormatError as error:
        return Summary(failure=str(error))
    reason = finish_reason(wire, response)
    if reason is not None and reason not in _FINISHED:
        return Summary(failure=f"the answer ended with {reason!r}")
    blocks = [block for entry in entries for block in entry.blocks]
    if any(isinstance(block, ToolCall) for block in blocks):
        return Summary(failure="the answer calls a tool")
    text = "\n".join(block.text for block in blocks if isinstance(block, Text)).strip()
    if not text:
        return Summary(failure="the answer holds no text")
    if _CALL_MARKUP.match(text):
        return Summary(failure="the answer is the markup of a tool call")
    if (missing := _missing(text, request.requires)) is not None:
        return Summary(failure=f"the answer lacks the heading {missing!r}, or has it out of order")
    if (size := counter.count(text)) > request.max_output:
        return Summary(failure=f"the answer takes {size:,} tokens, more than its cap of {request.max_output:,}")
    if _other_script(text, user_texts):
        return Summary(failure="the answer is in another language than the session")
    return Summary(text=text)


def _missing(text: str, headings: Iterable[str]) -> str | None:
    """The first heading that does not stand on a line of its own after the one before it."""
    lines = [line.strip().casefold().rstrip(": ") for line in text.splitlines()]
    at = 0
    for heading in headings:
        try:
            at = lines.index(heading.casefold(), at) + 1
        except ValueError:
            return heading
    return None


def _other_script(text: str, user_texts: Iterable[str]) -> bool:
    """Whether the person writes mostly in a script other than Latin of which the summary has next to nothing."""
    typed = "".join(user_texts)[:50_000]
    letters = len(_LETTER.findall(typed))
    if letters < 20:
        return False
    answer_letters = max(1, len(_LETTER.findall(text)))
    return any(
        len(script.findall(typed)) * 2 > letters and len(script.findall(text)) * 20 < answer_letters
        for script in _SCRIPTS
    )
