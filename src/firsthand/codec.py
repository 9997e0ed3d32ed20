"""JSON in and out, lone surrogates included.

`msgspec` is several times faster than the standard library but refuses text with lone surrogates (half of an emoji, as damaged
clients write them). Whatever it refuses is tried with the standard library before it counts as damaged, and such text is
written with escapes, so that it comes back as it was.
"""

from __future__ import annotations

import json
import re
from typing import Any, TypeVar

import msgspec

__all__ = ["compact_json", "decode", "decode_as", "encode", "to_utf8", "wire_safe"]

T = TypeVar("T")

_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder()
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def encode(value: Any) -> bytes:
    """`value` (builtins or msgspec structs) as compact UTF-8 JSON, key order kept."""
    try:
        return _encoder.encode(value)
    except UnicodeEncodeError:
        return json.dumps(msgspec.to_builtins(value), separators=(",", ":"), ensure_ascii=True).encode("ascii")


def decode(data: bytes | str) -> Any:
    """One JSON value as builtins.

    Raises:
        ValueError: the data is not JSON, by either decoder.
    """
    try:
        return _decoder.decode(data)
    except (msgspec.DecodeError, UnicodeError):
        return json.loads(data)


def decode_as(data: bytes, kind: type[T]) -> T:
    """One JSON value as `kind`, a msgspec struct or any type msgspec knows.

    Raises:
        msgspec.ValidationError: the JSON has another shape.
        ValueError: the data is not JSON.
    """
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.ValidationError:
        raise
    except (msgspec.DecodeError, UnicodeError):
        return msgspec.convert(json.loads(data), kind)


def compact_json(value: Any) -> str:
    """`value` as one line of JSON: no spaces, key order kept, non-ASCII left as it is (futureos.md 1.3)."""
    try:
        return _encoder.encode(value).decode()
    except UnicodeEncodeError:
        return json.dumps(msgspec.to_builtins(value), separators=(",", ":"), ensure_ascii=False)


def wire_safe(text: str) -> str:
    """`text` as it may be sent: lone surrogates, which no valid request body can hold, become U+FFFD (failure kind IM-02)."""
    return _LONE_SURROGATE.sub("�", text)


def to_utf8(text: str) -> bytes:
    """The bytes of `text`, as they are counted, paged and searched; lone surrogates take the three bytes that WTF-8 gives them."""
    return text.encode("utf-8", "surrogatepass")
