"""What the fake model server is told to answer: replies, failures and raw bytes, as values that a JSON file can hold as well."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

import msgspec

from ...codec import compact_json, decode, to_utf8
from ...errors import ConfigError
from ...session.overflow.table import shape_named
from ...transcript import Usage

__all__ = ["Answer", "Call", "Cut", "Failure", "FailureKind", "Lane", "Raw", "Reply", "Script", "read_script"]

_T = TypeVar("_T")

Cut: TypeAlias = Literal["start", "text", "before_call", "in_call", "after_call", "before_finish", "before_end"]
"""Where a stream breaks off: after the headers, after the first piece of text, before the first call, within its arguments, after the
last call, before the finish reason, or after it but before the mark that ends the stream (`[DONE]`, `message_stop`; the Responses
API tells both at once, so there the last two are one place)."""

FailureKind: TypeAlias = Literal[
    "overflow",
    "rate_limit",
    "overloaded",
    "unavailable",
    "server",
    "auth",
    "invalid_request",
    "invalid_encrypted_content",
    "malformed",
]
"""`overloaded` is 529, `unavailable` 503, `server` 500; `malformed` is a success whose JSON breaks off."""


class _Step(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Base of the answers: values that compare by content."""


class Call(_Step, frozen=True):
    """A tool call that the scripted model makes."""

    name: str
    arguments: str | dict[str, Any] = "{}"
    """The text of the arguments, also an invalid one, or an object that is written as compact JSON."""
    id: str = ""
    """The call's id; empty for one that is derived from the request's number."""
    kind: Literal["function", "custom"] = "function"
    """`custom` calls carry free text (OpenAI's wires; on Anthropic's they become ordinary calls)."""

    @property
    def text(self) -> str:
        """The arguments as text."""
        return self.arguments if isinstance(self.arguments, str) else compact_json(self.arguments)


class Reply(_Step, frozen=True):
    """An answer of the model: reasoning, then text, then calls.

    Raises:
        ConfigError: a number is out of range, or `cut` names a place that this reply does not have.
    """

    text: str = ""
    reasoning: str = ""
    opaque: str | None = None
    """Signature or encrypted content of the reasoning; by default one that is derived from the request's number."""
    calls: tuple[Call, ...] = ()
    items: tuple[dict[str, Any], ...] = ()
    """More output items (Responses) or content blocks (Anthropic), sent as they are after the calls."""
    usage: Usage | None = None
    """Usage to report, in firsthand's meaning (`input_tokens` holds everything sent); by default it is counted."""
    report_usage: bool = True
    """False: no usage at all, as some servers do (AC-13); Anthropic's wire then says zeros, since it has no form without."""
    finish: str | None = None
    """`stop`, `tool_calls`, `length`, `content_filter`, `context_window`, or a provider's own word; by default what the content says."""
    delay: float = 0.0
    """Seconds before the headers."""
    chunk_delay: float = 0.0
    """Seconds before each write of a stream."""
    chunk_size: int | None = None
    """Bytes of each write, so that characters split over writes; None: one event a write."""
    delta_size: int | None = None
    """Characters of each piece of text and arguments in a stream; None: words, and arguments in two halves."""
    cut: Cut | None = None
    """Where the connection breaks. An answer that is no stream breaks in the middle of its body, wherever that is."""
    cut_cleanly: bool = False
    """End the body in good order at `cut`, so that only the missing marks tell (GW-13)."""
    encoding: Literal["gzip"] | None = None
    """Content encoding of the answer (GW-15)."""
    headers: dict[str, str] = {}

    def __post_init__(self) -> None:
        _check_pace(self.delay, self.chunk_delay, self.chunk_size)
        _check_headers(self.headers)
        if self.delta_size is not None and self.delta_size < 1:
            raise ConfigError(f"delta_size is a number of characters, at least 1, not {self.delta_size}")
        if self.cut in ("before_call", "in_call", "after_call") and not self.calls:
            raise ConfigError(
                f"a reply without calls has no place {self.cut!r} to be cut at; give it calls or another cut"
            )
        if self.cut == "text" and not self.text:
            raise ConfigError("a reply without text cannot be cut in its text; give it text or another cut")
        if self.cut_cleanly and self.cut is None:
            raise ConfigError("cut_cleanly says how to end at a cut; name the cut")


class Failure(_Step, frozen=True):
    """An error answer in the shape of a provider.

    Raises:
        ConfigError: a number is out of range.
        UnknownNameError: the overflow table has no such provider.
    """

    kind: FailureKind
    provider: str | None = None
    """For `overflow`: a row of `firsthand.session.overflow.table`, such as `mistral` or `anthropic/with-output`; by default the
    provider of the wire that was called."""
    limit: int | None = None
    """For `overflow`: the window that the error names, in tokens; by default the server's, or one token less than the request."""
    requested: int | None = None
    """For `overflow`: the size that the error names; by default the request's by the server's count."""
    status: int | None = None
    message: str | None = None
    """The error's text instead of the usual one (not for `overflow`); `{key}` becomes the key that the client sent (GW-17)."""
    retry_after: str | None = None
    """Value of a `retry-after` header."""
    in_stream: bool = False
    """Answer a streaming request with 200 and tell the error as an event."""
    after: str = ""
    """With `in_stream`: text that is streamed before the error."""
    delay: float = 0.0
    headers: dict[str, str] = {}

    def __post_init__(self) -> None:
        _check_pace(self.delay, 0, None)
        _check_headers(self.headers)
        if self.provider is not None:
            shape_named(self.provider)
        if self.after and not self.in_stream:
            raise ConfigError("text before an error needs in_stream=True")
        for name, value in (("limit", self.limit), ("requested", self.requested)):
            if value is not None and value < 1:
                raise ConfigError(f"{name} is a number of tokens, at least 1, not {value}")


class Raw(_Step, frozen=True):
    """Bytes that are sent as they are.

    Raises:
        ConfigError: a number is out of range.
    """

    body: bytes
    """In a JSON script a text."""
    status: int = 200
    content_type: str = "text/event-stream"
    delay: float = 0.0
    chunk_delay: float = 0.0
    chunk_size: int | None = None
    cut: bool = False
    """Break the connection after the body instead of ending it in good order."""
    headers: dict[str, str] = {}

    def __post_init__(self) -> None:
        _check_pace(self.delay, self.chunk_delay, self.chunk_size)
        _check_headers(self.headers)


Answer: TypeAlias = Reply | Failure | Raw
"""What one request can be answered with."""


class Lane(_Step, frozen=True):
    """A queue of its own for side requests (titles, summaries), so that they do not use up the main one's replies."""

    replies: tuple[Answer | str, ...] = ()
    """A text is a reply with that text."""
    default: Answer | None = None
    """What is answered when `replies` are used up; None: the request is refused."""
    pattern: str | None = None
    """Regular expression that is searched for in the request's body."""
    tools: bool | None = None
    """True: only requests that offer tools; False: only those that offer none."""


class _Which(_Step, frozen=True):
    """The fields of a lane that tell its requests, as a script's file has them."""

    pattern: str | None = None
    tools: bool | None = None


class Script(_Step, frozen=True):
    """A whole script: what `read_script` makes of a file."""

    replies: tuple[Answer, ...] = ()
    default: Answer | None = None
    lanes: tuple[Lane, ...] = ()


def _check_headers(headers: dict[str, str]) -> None:
    for name, value in headers.items():
        if not name or not re.fullmatch(r"[\x20-\x7e\xa0-\xff\t]*", name + value):
            raise ConfigError(f"a header holds printable Latin-1 characters only: {name!r}")


def _check_pace(delay: float, chunk_delay: float, chunk_size: int | None) -> None:
    if delay < 0 or chunk_delay < 0:
        raise ConfigError(f"a delay is a number of seconds, not negative: {min(delay, chunk_delay)}")
    if chunk_size is not None and chunk_size < 1:
        raise ConfigError(f"chunk_size is a number of bytes, at least 1, not {chunk_size}")


def read_script(path: Path) -> Script:
    """The script in a JSON file: a list of answers, or an object with `replies`, `default` and `lanes`.

    An answer with `kind` is a `Failure`, one with `body` is `Raw`, any other a `Reply`; their fields are those of the classes, and a
    plain string is a reply with that text.

    Raises:
        ConfigError: the file cannot be read or is no such script; says where.
    """
    try:
        value = decode(path.read_bytes())
    except OSError as error:
        raise ConfigError(f"cannot read the script {path}: {error.strerror or error}") from error
    except ValueError as error:
        raise ConfigError(f"the script {path} is no JSON: {error}") from error
    if isinstance(value, list):
        value = {"replies": value}
    if not isinstance(value, dict):
        raise ConfigError(
            f"the script {path} holds a {type(value).__name__}; a list of answers or an object belongs there"
        )
    unknown = value.keys() - {"replies", "default", "lanes"}
    if unknown:
        raise ConfigError(f"the script {path} has unknown fields: {', '.join(sorted(unknown))}")
    lanes = value.get("lanes") or []
    if not isinstance(lanes, list):
        raise ConfigError(f"the script {path}: lanes must be a list")
    return Script(*_queue(value, "the script"), tuple(_lane(lane, f"lanes[{i}]") for i, lane in enumerate(lanes)))


def _lane(value: Any, where: str) -> Lane:
    if not isinstance(value, dict):
        raise ConfigError(f"{where} must be an object")
    replies, default = _queue(value, where)
    rest = {key: inner for key, inner in value.items() if key not in ("replies", "default")}
    which = _convert(rest, _Which, where)
    return Lane(replies, default, which.pattern, which.tools)


def _queue(value: dict[str, Any], where: str) -> tuple[tuple[Answer, ...], Answer | None]:
    replies = value.get("replies") or []
    if not isinstance(replies, Sequence) or isinstance(replies, str):
        raise ConfigError(f"{where}: replies must be a list")
    default = value.get("default")
    return (
        tuple(_answer(item, f"{where}, replies[{i}]") for i, item in enumerate(replies)),
        None if default is None else _answer(default, f"{where}, default"),
    )


def _answer(value: Any, where: str) -> Answer:
    if isinstance(value, str):
        return Reply(value)
    if not isinstance(value, dict):
        raise ConfigError(f"{where} must be an object or a text")
    if "kind" in value:
        return _convert(value, Failure, where)
    if "body" in value:
        body = value["body"]
        if not isinstance(body, str):
            raise ConfigError(f"{where}: body must be a text")
        # msgspec takes a text for `bytes` as base64; here it is meant as it stands.
        return msgspec.structs.replace(_convert({**value, "body": ""}, Raw, where), body=to_utf8(body))
    return _convert(value, Reply, where)


def _convert(value: dict[str, Any], kind: type[_T], where: str) -> _T:
    try:
        return msgspec.convert(value, kind)
    except (msgspec.ValidationError, ConfigError) as error:
        raise ConfigError(f"{where}: {error}") from error
