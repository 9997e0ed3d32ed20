"""Where the values of a JSON text begin and end, so that parts of a request can be sent on as the very bytes that came.

The parser finds the values, in C; this only adds up the whitespace, colons and commas between them and checks each place against the bytes that
the parser gave. What cannot be placed beyond doubt (a name that comes twice, say) is refused, and the request then goes
through as it came.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple, TypeAlias

import msgspec

from ..codec import decode

__all__ = ["ScanError", "Span", "fields", "items"]

_fields: msgspec.json.Decoder[dict[str, msgspec.Raw]] = msgspec.json.Decoder(dict[str, msgspec.Raw])
_items: msgspec.json.Decoder[list[msgspec.Raw]] = msgspec.json.Decoder(list[msgspec.Raw])

_SPACE = re.compile(rb"[ \t\n\r]*")
_NAME = re.compile(rb'[ \t\n\r]*,?[ \t\n\r]*("(?:[^"\\]|\\.)*")[ \t\n\r]*:[ \t\n\r]*', re.DOTALL)
_BETWEEN = re.compile(rb"[ \t\n\r]*,?[ \t\n\r]*")
_slow = json.JSONDecoder()


class ScanError(ValueError):
    """The text is no JSON value of the wanted kind, or its parts cannot be placed beyond doubt."""


class Span(NamedTuple):
    """A stretch of bytes, end exclusive."""

    start: int
    end: int

    def of(self, data: bytes) -> bytes:
        """The bytes there."""
        return data[self.start : self.end]


Fields: TypeAlias = dict[str, Span]


def fields(data: bytes) -> Fields:
    """The spans of an object's values by name, in order.

    Raises:
        ScanError: `data` is no JSON object, or a name stands in it twice.
    """
    try:
        values = _fields.decode(data)
    except (msgspec.DecodeError, UnicodeError):
        return _slow_fields(data)
    at = _opened(data, b"{")
    found: Fields = {}
    while (name := _NAME.match(data, at)) is not None:
        key = _string(name[1])
        if key in found:
            raise ScanError(f"the name {key[:40]!r} stands twice in one object")
        at = name.end()
        found[key] = Span(at, at := _placed(data, at, values[key]))
    _closed(data, at, b"}")
    if len(found) != len(values):
        raise ScanError("not all values of the object could be placed")
    return found


def items(data: bytes) -> list[Span]:
    """The spans of a list's items.

    Raises:
        ScanError: `data` is no JSON list.
    """
    try:
        values = _items.decode(data)
    except (msgspec.DecodeError, UnicodeError):
        return _slow_items(data)
    at = _opened(data, b"[")
    found: list[Span] = []
    for value in values:
        between = _BETWEEN.match(data, at)
        assert between is not None
        at = between.end()
        found.append(Span(at, at := _placed(data, at, value)))
    _closed(data, at, b"]")
    return found


def _opened(data: bytes, mark: bytes) -> int:
    space = _SPACE.match(data)
    at = space.end() if space else 0
    if data[at : at + 1] != mark:
        raise ScanError(f"the text does not begin with {mark.decode()}")
    return at + 1


def _closed(data: bytes, at: int, mark: bytes) -> None:
    space = _SPACE.match(data, at)
    at = space.end() if space else at
    if data[at : at + 1] != mark:
        raise ScanError("the last value does not end where the text does")


def _placed(data: bytes, at: int, value: msgspec.Raw) -> int:
    """Where the value that begins at `at` ends."""
    raw = bytes(value)
    if not data.startswith(raw, at):
        raise ScanError("a value does not stand where it should")
    return at + len(raw.rstrip(b" \t\n\r"))


def _string(raw: bytes) -> str:
    try:
        value: Any = decode(raw)
    except ValueError as error:
        raise ScanError(f"a name is no JSON string: {error}") from error
    assert isinstance(value, str)
    return value


# The parser in C refuses escapes of lone surrogates, which damaged clients write; the standard library takes them, and tells where a value ends.


class _Text:
    """A text with byte offsets for its characters, asked in rising order."""

    def __init__(self, data: bytes) -> None:
        try:
            self.text = data.decode()
        except UnicodeDecodeError as error:
            raise ScanError(f"the body is no UTF-8: {error}") from error
        self._chars = self._bytes = 0

    def offset(self, position: int) -> int:
        self._bytes += len(self.text[self._chars : position].encode())
        self._chars = position
        return self._bytes

    def skip(self, at: int, also: str = "") -> int:
        while at < len(self.text) and self.text[at] in " \t\n\r" + also:
            at += 1
        return at

    def value(self, at: int) -> tuple[Any, int]:
        try:
            return _slow.raw_decode(self.text, at)
        except (ValueError, RecursionError) as error:
            raise ScanError(f"the body is no JSON: {error}") from error


def _slow_fields(data: bytes) -> Fields:
    text = _Text(data)
    at = text.skip(0)
    if not isinstance(_whole(text, at), dict):
        raise ScanError("the text is no JSON object")
    at += 1
    found: Fields = {}
    while text.text[at := text.skip(at, ",")] != "}":
        name, at = text.value(at)
        at = text.skip(at, ":")
        _, end = text.value(at)
        if name in found:
            raise ScanError(f"the name {name[:40]!r} stands twice in one object")
        found[name] = Span(text.offset(at), text.offset(end))
        at = end
    return found


def _slow_items(data: bytes) -> list[Span]:
    text = _Text(data)
    at = text.skip(0)
    if not isinstance(_whole(text, at), list):
        raise ScanError("the text is no JSON list")
    at += 1
    found: list[Span] = []
    while text.text[at := text.skip(at, ",")] != "]":
        _, end = text.value(at)
        found.append(Span(text.offset(at), text.offset(end)))
        at = end
    return found


def _whole(text: _Text, at: int) -> Any:
    value, end = text.value(at)
    if text.skip(end) != len(text.text):
        raise ScanError("something stands behind the JSON value")
    return value
