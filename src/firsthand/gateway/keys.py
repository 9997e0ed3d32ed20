"""Exact hashes and match keys of messages, and the chain of keys that names a path (design.md 9).

The key of a message is its role and the ids of its calls and results; otherwise, and beside ids that another conversation may have as well
(`call_0`), the hash of its canonical content. Same key, other bytes: a revision of the same entry. Other key: a branch.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import Any, NamedTuple

import msgspec

from .wires.base import Outline

__all__ = ["Keys", "chain", "exact_hash", "keys_of"]

_SIZE = 16
_UNGUESSABLE = re.compile(r"(?=[A-Za-z]*[0-9])[A-Za-z0-9]{12,}")
_encoder = msgspec.json.Encoder(order="deterministic")


class Keys(NamedTuple):
    """How one message is told from another."""

    key: bytes
    content: bytes
    """Hash of the canonical content alone; differs between revisions that say something else."""


def exact_hash(data: bytes | memoryview) -> bytes:
    """The hash of a message's very bytes."""
    return blake2b(data, digest_size=_SIZE).digest()


def keys_of(outline: Outline) -> Keys:
    """Match key and content hash of one message."""
    content = blake2b(_canonical(outline.content), digest_size=_SIZE).digest()
    ids = (*outline.calls, *outline.results)
    parts: list[Any] = [outline.role, outline.calls, outline.results]
    named = bool(ids) and all(_UNGUESSABLE.search(call_id) for call_id in ids)
    hashed = blake2b(_canonical(parts), digest_size=_SIZE)
    if not named:
        hashed.update(content)
    return Keys(hashed.digest(), content)


def chain(keys: Iterable[bytes], start: bytes) -> Iterator[bytes]:
    """For each key the name of the path that ends with it: equal exactly where all keys up to it are equal."""
    for key in keys:
        start = blake2b(start + key, digest_size=_SIZE).digest()
        yield start


def _canonical(value: Any) -> bytes:
    try:
        return _encoder.encode(value)
    except (UnicodeEncodeError, OverflowError):
        # Lone surrogates, and numbers beyond 64 bits.
        return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
