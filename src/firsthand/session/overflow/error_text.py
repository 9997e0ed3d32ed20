"""What a provider's error body says about itself: its own words and codes, and none of the text that it echoes.

Providers wrap one another (a proxy quotes the backend's body inside its own message), wrap errors in lists, in `detail`, in
`metadata.raw`, in Python literals. This reads through all of that, and leaves out what a message quotes: a validation error that
repeats a tool result saying "prompt is too long" is not an overflow (failure kind OV-09). Pure; bad input gives no error.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...codec import decode

__all__ = ["ErrorText", "parsed_body", "read_error"]

READ = 8_000
"""Characters of one message that are looked at; a provider says what is wrong in its first sentences."""

_DEPTH = 6
_BRACES = 12
_TEXT_KEYS = ("message", "msg", "detail", "error_description", "status_msg", "Message", "errorMessage")
_CODE_KEYS = (
    "code",
    "type",
    "status",
    "reason",
    "error_code",
    "error_type",
    "errorCode",
    "__type",
    "status_code",
)
_NESTED_KEYS = ("error", "errors", "innererror", "inner_error", "base_resp", "response", "metadata", "fault", "detail")
_MARKERS = ("error", "errors", "error_code", "error_type", "__type", "fault")

# What stands before a body that a proxy put into its own message: nothing, or words that announce it.
_WRAPPED = re.compile(
    r"""(?:^|\b(?:\w*exception|\w*errors?|code|status|http|error code|error):?\s*(?:\d{3})?\s*[-:,]?\s*(?:b?['"])?\[?)$""",
    re.IGNORECASE,
)
# The start of a body, or a quoted span: in the order in which they open, so that a brace inside quotes opens nothing.
_SPAN = re.compile(
    r"""\{|```.*?```|`[^`]*`|(?<!\w)"(?:[^"\\]|\\.)*"|(?<![\w"])'(?:[^'\\]|\\.)*'(?!\w)|“[^”]*”""",
    re.DOTALL,
)
# Fields of a body that is no JSON: a Python literal, or cut short.
_LOOSE = re.compile(r"""["'](message|code|type)["']\s*:\s*(?:"((?:[^"\\]|\\.)*)|'((?:[^'\\]|\\.)*))""")
# The value of an SSE `data:` field of an error event.
_DATA = re.compile(r"^data:[ ]?(.*)$", re.MULTILINE)


@dataclass(frozen=True)
class ErrorText:
    """What an error body says, in reading order."""

    texts: tuple[str, ...] = ()
    """The provider's own words, echoed text taken out."""
    codes: tuple[str, ...] = ()
    """Codes and types: lower case, spaces and dashes as underscores."""
    numbers: Mapping[str, int] = field(default_factory=dict)
    """Whole numbers that stand as fields of their own, by name."""
    status: int | None = None
    """An HTTP status that the body names, 400 to 599 (OpenRouter sends errors inside a 200)."""

    @property
    def empty(self) -> bool:
        """Whether the body is no error at all."""
        return not (self.texts or self.codes)


def parsed_body(body: object) -> Any:
    """A response body as a JSON value: text and bytes are parsed, of SSE events the last one that is JSON; other text stays text."""
    if isinstance(body, (bytes, bytearray, memoryview)):
        body = bytes(body).decode("utf-8", "replace")
    if not isinstance(body, str):
        return body
    text = body.lstrip("\ufeff").strip()
    for candidate in (text, *(reversed(_DATA.findall(text)[-8:]) if "data:" in text else ())):
        try:
            return decode(candidate)
        except (ValueError, RecursionError):
            continue
    return text


def read_error(value: Any, *, failed: bool = True) -> ErrorText:
    """The error that a parsed body tells of.

    Args:
        value: a JSON value or plain text, from `parsed_body`.
        failed: whether the response's status already says that it is an error; otherwise the body must have an error's shape.
    """
    reading = _Reading()
    if failed or _is_error(value):
        reading.value(value, 0)
    return ErrorText(tuple(reading.texts), tuple(dict.fromkeys(reading.codes)), reading.numbers, reading.status)


def _is_error(value: Any) -> bool:
    """Whether a JSON value has the shape of an error, whatever status it came with."""
    if isinstance(value, list):
        return bool(value) and _is_error(value[0])
    if not isinstance(value, dict):
        return False
    if value.get("type") in ("error", "response.failed") or value.get("object") == "error":
        return True
    base = value.get("base_resp")
    if isinstance(base, dict) and base.get("status_code") not in (None, 0):
        return True
    return any(value.get(key) for key in _MARKERS)


class _Reading:
    """Collects texts, codes and numbers from a nested error."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.codes: list[str] = []
        self.numbers: dict[str, int] = {}
        self.status: int | None = None

    def value(self, value: Any, depth: int) -> None:
        if depth > _DEPTH:
            return
        if isinstance(value, str):
            self.text(value, depth + 1)
        elif isinstance(value, list):
            for item in value[:8]:
                self.value(item, depth + 1)
        elif isinstance(value, dict):
            self.mapping(value, depth)

    def mapping(self, value: Mapping[str, Any], depth: int) -> None:
        for key in _CODE_KEYS:
            self.code(value.get(key))
        for key, number in value.items():
            if isinstance(number, int) and not isinstance(number, bool):
                self.numbers.setdefault(key, number)
        for key in _TEXT_KEYS:
            if isinstance(value.get(key), str):
                self.text(value[key], depth + 1)
        for key in _NESTED_KEYS:
            inner = value.get(key)
            if isinstance(inner, (dict, list)) or (isinstance(inner, str) and key in ("error", "fault")):
                self.value(inner, depth + 1)
        # OpenRouter keeps the backend's body in `error.metadata.raw`.
        if isinstance(value.get("raw"), (str, dict)):
            self.value(parsed_body(value["raw"]), depth + 1)

    def code(self, code: object) -> None:
        if isinstance(code, str) and code.isascii() and code.isdigit():
            self.status_code(int(code))
        if isinstance(code, int) and not isinstance(code, bool):
            self.status_code(code)
        elif isinstance(code, str) and code.strip():
            self.codes.append(normal_code(code))

    def status_code(self, code: int) -> None:
        if self.status is None and 400 <= code <= 599:
            self.status = code

    def text(self, text: str, depth: int) -> None:
        """Takes a message apart; `depth` bounds how often bodies may nest in messages."""
        text = text.strip()
        own: list[str] = []
        for part in _own_parts(text[:READ]):
            if isinstance(part, str):
                own.append(part)
            else:
                self.value(part, depth)
        words = "".join(own).strip()
        if words:
            self.texts.append(words)


def normal_code(code: str) -> str:
    """A code in the form in which codes are compared: the last part of a dotted or namespaced name, lower case, underscores."""
    code = re.split(r"[#/:]", code.strip())[-1] if "://" not in code else code
    return re.sub(r"[\s\-]+", "_", code.strip()).lower()


def _own_parts(text: str) -> Iterator[str | dict[str, Any]]:
    """`text` in pieces: its own words as strings, bodies of other errors that were put into it as JSON values."""
    at = 0
    search_from = 0
    braces = 0
    while found := _SPAN.search(text, search_from):
        start = found.start()
        search_from = found.end()
        opening = found.group()
        wrapped = _WRAPPED.search(text[at:start])
        if opening[0] != "{" and not (wrapped and len(opening) > 1 and opening[1] in "{["):
            yield text[at:start] + _without_echo(opening)
            at = search_from
            continue
        brace = text.find("{", start)
        braces += 1
        try:
            if braces > _BRACES:
                raise ValueError
            value, end = json.JSONDecoder().raw_decode(text, brace)
        except (ValueError, RecursionError):
            search_from = brace + 1
            if wrapped:
                yield text[at:start]
                yield from ({key: double or single} for key, double, single in _LOOSE.findall(text, start))
                return
            continue
        yield text[at:start]
        # JSON that no words of a proxy announce is text that somebody sent (OV-09).
        if wrapped:
            yield value
        at = search_from = end
    yield text[at:]


def _without_echo(quoted: str) -> str:
    """What stays of a quoted span: a single word is a name (`max_tokens`), anything longer is somebody's text."""
    return quoted if len(quoted) <= 64 and not re.search(r"\s", quoted) else " … "
