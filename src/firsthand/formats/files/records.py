"""Small tools that the readers of line-oriented formats share: the first records, safe field access, and what was left out."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from ...codec import decode
from ...errors import EmptySessionError
from ...transcript import Damage
from .base import Input

__all__ = ["Names", "Tally", "count", "extra_of", "first_records", "has_keys", "iso_time", "record_of", "string_of"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def first_records(source: Input, limit: int = 60) -> list[dict[str, Any]]:
    """The JSON objects on the first `limit` lines that are not blank, for telling formats apart.

    A first line longer than `source.head` is still read whole (IM-03); lines that hold no object are passed over.
    """
    out: list[dict[str, Any]] = []
    data = source.data
    at = looked_at = 0
    while at < len(data) and looked_at < limit:
        end = data.find(b"\n", at)
        end = len(data) if end < 0 else end
        line = data[at:end].strip(b"\r \t\x00\xef\xbb\xbf")
        at = end + 1
        if not line:
            continue
        looked_at += 1
        if not line.startswith(b"{"):
            continue
        try:
            value = decode(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            out.append(value)
    return out


def has_keys(source: Input, *names: str) -> bool:
    """Whether the first 64 KiB hold all these keys, not counting keys inside quoted JSON. For files whose first lines are damaged."""
    return all(re.search(rf'(?<!\\)"{re.escape(name)}"\s*:', source.head) for name in names)


def string_of(value: Any) -> str | None:
    """`value` when it is a string that is not empty, else None."""
    return value if isinstance(value, str) and value else None


def record_of(value: Any) -> dict[str, Any]:
    """`value` when it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}


def count(value: Any) -> int:
    """`value` as a number of tokens; 0 for what is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    return int(value) if 0 <= value < 2**53 else 0


def extra_of(record: Mapping[str, Any], known: frozenset[str]) -> dict[str, Any] | None:
    """The fields of `record` that are not in `known`, or None when there are none."""
    rest = {name: value for name, value in record.items() if name not in known}
    return rest or None


def iso_time(value: Any) -> str | None:
    """A time as ISO 8601: strings as they are, numbers as milliseconds since 1970 (seconds when they are too small for that)."""
    if isinstance(value, str):
        return value or None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 4e12:
        return None
    milliseconds = value if value > 1e11 else value * 1000
    moment = _EPOCH + timedelta(milliseconds=round(milliseconds))
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Names:
    """Names for the entries of one session, none given twice: the client's own id, else the line, else both and a number."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def give(self, native: str | None, line: int) -> str | int:
        """The name of a record that its client calls `native` and that stands on `line`."""
        name: str | int = native or line
        number = 1
        while str(name) in self._taken:
            number += 1
            name = f"{native or 'line'}#{line}.{number}"
        self._taken.add(str(name))
        return name


@dataclass
class Tally:
    """What a reader did not make into entries, by kind, and what it wants said."""

    left_out: Counter[str] = field(default_factory=Counter)
    """Records that are known and are no part of the conversation."""
    unknown: Counter[str] = field(default_factory=Counter)
    """Records of types that the reader has no word for."""
    notes: list[str] = field(default_factory=list)
    """Warnings of the reader's own."""

    def warnings(self) -> tuple[str, ...]:
        """One line for each unknown type, then the notes."""
        lines = [
            f"{number:,} record{'s' if number > 1 else ''} of unknown type {name!r}"
            for name, number in sorted(self.unknown.items())
        ]
        return (*lines, *self.notes)

    def extra(self) -> dict[str, Any] | None:
        """The counts of what was left out, for `Transcript.extra`."""
        return {"left_out": dict(sorted(self.left_out.items()))} if self.left_out else None

    def empty(self, source: Input, title: str, damaged: list[Damage]) -> EmptySessionError:
        """The error for a file that held records but no entry (IM-09); says what it held."""
        held = [f"{number:,} x {name!r}" for name, number in sorted((self.left_out + self.unknown).items())]
        lines = f"{len(damaged):,} damaged line{'s' if len(damaged) != 1 else ''}"
        return EmptySessionError(
            f"{source.name} looks like a session of {title}, but no entry could be read from it: "
            f"{', '.join(held) if held else 'no records'}, {lines}. Nothing was imported; if the client is newer than this "
            f"reader, report the record types above"
        )
