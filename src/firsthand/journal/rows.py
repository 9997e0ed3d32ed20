"""Entries and markers as rows, and back: payload, hashes, time, counts.

A payload is `codec.encode(entry)`, packed with zlib where that is worth it (a packed one starts with `x`, a plain one with `{`). The
content hash is the SHA-256 of the plain payload; the chain hash is the SHA-256 of the parent's chain hash and the content hash, so that
the chain hash of an entry vouches for its whole path.
"""

from __future__ import annotations

import zlib
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import NamedTuple, TypeVar

import msgspec

from ..codec import decode_as, encode, wire_safe
from ..errors import JournalDamagedError, JournalError
from ..transcript import Entry, Marker, ToolCall, ToolResult, typed_text

__all__ = [
    "Counts",
    "chain_hash",
    "check_id",
    "content_hash",
    "counts_of",
    "encoded",
    "entry_from",
    "marker_from",
    "packed",
    "time_ms",
    "unpacked",
]

_T = TypeVar("_T")
# Packing half of all payloads, the shorter ones, would save 6 % of a session's size and cost a third of the time that packing takes.
_PACKED_FROM = 1_024
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LONGEST_ID = 256


class Counts(NamedTuple):
    """What one entry adds to the counters of its session."""

    texts: int
    calls: int
    results: int


def packed(payload: bytes) -> bytes:
    """The bytes to store for a payload: zlib's where they are at least a tenth shorter."""
    if len(payload) < _PACKED_FROM:
        return payload
    # Level 1: the higher ones save 2 % more of a session and take half as long again.
    smaller = zlib.compress(payload, 1)
    return smaller if len(smaller) * 10 <= len(payload) * 9 else payload


def unpacked(stored: bytes) -> bytes:
    """The payload behind stored bytes.

    Raises:
        JournalDamagedError: the bytes cannot be unpacked.
    """
    if not stored.startswith(b"x"):
        return stored
    try:
        return zlib.decompress(stored)
    except zlib.error as error:
        raise JournalDamagedError(f"a stored payload of {len(stored):,} bytes cannot be unpacked: {error}") from error


def content_hash(payload: bytes) -> bytes:
    """SHA-256 of a plain payload: 32 bytes."""
    return sha256(payload).digest()


def chain_hash(parent: bytes | None, content: bytes) -> bytes:
    """SHA-256 of the parent's chain hash (nothing for a root) and the content hash: 32 bytes."""
    return sha256((parent or b"") + content).digest()


def entry_from(entry_id: str, stored: bytes, expected: bytes) -> Entry:
    """The entry behind a row, checked against the hash that was stored at append.

    Raises:
        JournalDamagedError: the bytes are not those that were stored; names the entry.
    """
    return _checked(f"entry {entry_id!r}", stored, expected, Entry)


def marker_from(marker_id: str, stored: bytes, expected: bytes) -> Marker:
    """The marker behind a row, checked like an entry.

    Raises:
        JournalDamagedError: the bytes are not those that were stored; names the marker.
    """
    return _checked(f"marker {marker_id!r}", stored, expected, Marker)


def _checked(what: str, stored: bytes, expected: bytes, kind: type[_T]) -> _T:
    try:
        if not isinstance(stored, bytes):  # SQLite stores any type in any column, if somebody writes it there
            raise JournalDamagedError(f"its payload is a {type(stored).__name__}, not bytes")
        payload = unpacked(stored)
        if content_hash(payload) == expected:
            return decode_as(payload, kind)
        reason = "its stored bytes do not match the hash that was stored with them"
    except (JournalDamagedError, msgspec.ValidationError, ValueError) as error:
        reason = str(error)
    raise JournalDamagedError(
        f"{what} is damaged: {reason}; nothing was changed; `firsthand verify` lists all damage, a backup or the session's own file "
        "holds the original"
    )


def encoded(value: Entry | Marker) -> bytes:
    """The plain payload of an entry or a marker.

    Raises:
        JournalError: it cannot be written as JSON; names it.
    """
    try:
        return encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError) as error:
        raise JournalError(f"{type(value).__name__.lower()} {value.id!r} cannot be stored as JSON: {error}") from error


def counts_of(entry: Entry) -> Counts:
    """Typed texts that are not blank, tool calls and tool results of an entry."""
    calls = sum(isinstance(block, ToolCall) for block in entry.blocks)
    results = sum(isinstance(block, ToolResult) for block in entry.blocks)
    return Counts(sum(1 for _ in typed_text(entry)), calls, results)


def time_ms(time: str | None) -> int | None:
    """Milliseconds since 1970 of an ISO 8601 time; without an offset it is taken as UTC; None for what is no such time."""
    if time is None:
        return None
    try:
        moment = datetime.fromisoformat(time)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return (moment - _EPOCH) // timedelta(milliseconds=1)
    except (ValueError, OverflowError):
        return None


def check_id(what: str, name: str) -> None:
    """Refuse what cannot be an id.

    Raises:
        JournalError: it is empty, longer than 256 characters, or holds half of a surrogate pair.
    """
    if not 1 <= len(name) <= _LONGEST_ID:
        raise JournalError(f"{what} id of {len(name):,} characters; an id has 1 to {_LONGEST_ID}")
    if wire_safe(name) != name:
        raise JournalError(f"{what} id {name!r} holds a lone surrogate; choose an id of valid characters")
