"""JSON documents as clients leave them behind: one value, or many in a row; whole, cut off, or damaged in the middle.

A line-oriented file loses a line where it is damaged; a document would lose everything. So what cannot be decoded as a whole is
taken apart: the members and elements in front of the damage are read one by one, and behind it reading goes on at the next element
that starts like its sisters. Only values that are complete are taken, down to the depth that a reader names: half an argument or
half a tool output is never passed on as if it were all.

Positions in `Damage` are 1-based lines; since such a document may well be a single line, the reason names the character too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ...codec import decode
from ...transcript import Damage

__all__ = ["Document", "JsonValue", "json_values", "read_document", "text_of"]

_SPACE = re.compile(r"[ \t\r\n\x00\ufeff]*")
# Some clients write control characters into strings as they are.
_LENIENT = json.JSONDecoder(strict=False)
_STRICT = json.JSONDecoder()
_WINDOW = 32_768


def text_of(data: bytes, damaged: list[Damage]) -> str:
    """`data` as text, without a byte order mark; bytes that are not UTF-8 become U+FFFD and are counted as damage."""
    data = data.removeprefix(b"\xef\xbb\xbf")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        damaged.append(
            Damage(line=line, reason=f"bytes that are not UTF-8 were replaced, first at byte {error.start:,}")
        )
        return data.decode("utf-8", "replace")


@dataclass
class Document:
    """What could be read of one JSON document."""

    value: Any = None
    """The value, without what is damaged in it; None when nothing could be read."""
    damaged: list[Damage] = field(default_factory=list)


def read_document(data: bytes, *, depth: int, arrays: tuple[str, ...] = ()) -> Document:
    """The JSON value that `data` holds, or as much of it as is complete.

    Args:
        data: the file.
        depth: how many levels of objects and arrays may be taken apart; what lies deeper is read whole or not at all.
        arrays: names of the members of the outermost object to look for behind damage that lies in front of them.
    """
    out = Document()
    try:
        out.value = decode(data.removeprefix(b"\xef\xbb\xbf"))
        return out
    except (ValueError, RecursionError):
        pass
    text = text_of(data, out.damaged)
    rescue = _Rescue(text, arrays, out.damaged)
    start = rescue.skip(0)
    if start == len(text):
        return out
    out.value, end, whole = rescue.value(start, depth)
    if whole and (rest := len(text) - rescue.skip(end)):
        out.damaged.append(rescue.damage(end, f"{rest:,} characters behind the end of the document were not read"))
    return out


def _stop(text: str) -> int:
    """Where the strict decoder stops. A string that lost its end runs on into the next line; this is where it should have ended."""
    try:
        return _STRICT.raw_decode(text)[1]
    except json.JSONDecodeError as error:
        return error.pos


class _Rescue:
    """Takes one text apart. Every damage is reported once, where it lies."""

    def __init__(self, text: str, arrays: tuple[str, ...], damaged: list[Damage]) -> None:
        self.text = text
        self.damaged = damaged
        self._names = re.compile(rf'"({"|".join(map(re.escape, arrays))})"\s*:\s*(?=\[)') if arrays else None
        self._resyncing = True
        self._end = len(text.rstrip())
        self._counted = (0, 1)

    def skip(self, at: int) -> int:
        found = _SPACE.match(self.text, at)
        return found.end() if found else at

    def damage(self, at: int, reason: str) -> Damage:
        start, line = self._counted if self._counted[0] <= at else (0, 1)
        self._counted = (at, line + self.text.count("\n", start, at))
        return Damage(line=self._counted[1], reason=f"{reason} (character {at:,})")

    def whole(self, at: int) -> tuple[Any, int, str | None]:
        """The complete value at `at`, its end, and no reason; or where reading it stopped, and why."""
        size = _WINDOW
        while True:
            # An error counts the lines before it, from the start of what is decoded; a window keeps that short.
            piece = self.text[at : at + size]
            last = at + size >= len(self.text)
            try:
                value, end = _LENIENT.raw_decode(piece)
                if last or end < len(piece):
                    return value, at + end, None
            except json.JSONDecodeError as error:
                # Cut at the window's end, a value looks unterminated, or wrong in its last few characters.
                if last or (error.pos < len(piece) - 16 and not error.msg.startswith("Unterminated")):
                    return None, at + min(error.pos, _stop(piece)), error.msg
            except RecursionError:
                return None, at, "nested too deeply"
            size *= 8

    def value(self, at: int, depth: int, outermost: bool = True) -> tuple[Any, int, bool]:
        """The value at `at`, or what is complete in it; where reading stopped; whether the value is whole."""
        value, end, reason = self.whole(at)
        if reason is None:
            return value, end, True
        opening = self.text[at : at + 1]
        if depth > 0 and opening == "{":
            return self._object(at, depth, outermost)
        if depth > 0 and opening == "[":
            return self._array(at, depth)
        cut = end >= self._end or reason.startswith("Unterminated")
        self.damaged.append(self.damage(end, f"{'the document breaks off: ' if cut else ''}{reason}"))
        return None, end, False

    def _object(self, at: int, depth: int, outermost: bool) -> tuple[dict[str, Any], int, bool]:
        out: dict[str, Any] = {}
        at = self.skip(at + 1)
        while self.text[at : at + 1] != "}":
            key, end, reason = self.whole(at)
            at = self.skip(end)
            if reason is not None or not isinstance(key, str) or self.text[at : at + 1] != ":":
                self.damaged.append(self.damage(at, reason or "no member where one belongs"))
            else:
                value, at, complete = self.value(self.skip(at + 1), depth - 1, outermost=False)
                if complete or value:
                    out[key] = value
                at = self.skip(at)
                if complete and self.text[at : at + 1] == ",":
                    at = self.skip(at + 1)
                    continue
                if complete and self.text[at : at + 1] == "}":
                    break
                if complete:
                    self.damaged.append(self.damage(at, "the object is not closed"))
            found = self._names.search(self.text, at) if outermost and self._names else None
            if found is None:
                return out, at, False
            at = found.start()
        return out, at + 1, True

    def _array(self, at: int, depth: int) -> tuple[list[Any], int, bool]:
        # Only the outermost array reads on behind damage: the elements of an inner one cannot be told from those of its cousins.
        resyncing, self._resyncing = self._resyncing, False
        out: list[Any] = []
        at = self.skip(at + 1)
        sister = self._signature(at)
        common: set[str] | None = None
        while self.text[at : at + 1] != "]":
            value, at, complete = self.value(at, depth - 1, outermost=False)
            if complete or value:
                out.append(value)
            if complete and isinstance(value, dict):
                common = set(value) if common is None else common & set(value)
            at = self.skip(at)
            if complete and self.text[at : at + 1] == ",":
                at = self.skip(at + 1)
                continue
            if complete and self.text[at : at + 1] == "]":
                break
            if complete:
                self.damaged.append(self.damage(at, "the array is not closed"))
            onward = self._next_sister(at, sister, common) if resyncing else None
            if onward is None:
                return out, at, False
            last = self.damaged[-1]
            self.damaged[-1] = Damage(
                line=last.line, reason=f"{last.reason}; {onward - at:,} characters were passed over"
            )
            at = onward
        return out, at + 1, True

    def _signature(self, at: int) -> str | None:
        """How the elements of an array start: the whitespace before them, the brace, and their first key."""
        found = re.compile(r'\{\s*"(?:[^"\\]|\\.){1,80}"\s*:').match(self.text, at)
        if found is None:
            return None
        before = at
        while before and self.text[before - 1] in " \t\r\n":
            before -= 1
        return self.text[before : found.end()]

    def _next_sister(self, at: int, sister: str | None, common: set[str] | None) -> int | None:
        """Where the next complete element starts behind `at`; it must have the keys that all its sisters so far have."""
        if sister is None:
            return None
        while (found := self.text.find(sister, at)) >= 0:
            start = found + sister.index("{")
            value, _, reason = self.whole(start)
            if reason is None and isinstance(value, dict) and (common is None or common <= set(value)):
                return start
            at = start + 1
        return None


@dataclass(frozen=True)
class JsonValue:
    """One value of a file that holds several in a row."""

    line: int
    """1-based line on which it starts."""
    value: Any


@dataclass
class json_values:  # noqa: N801 - used like a function, as `json_records` is
    """Iterates over the JSON values of a file, however they are spread over lines; collects what could not be read in `damaged`.

    Behind damage, reading goes on at the next line that starts with an opening brace or bracket, as values do that were printed with
    indentation.
    """

    data: bytes
    damaged: list[Damage] = field(default_factory=list)

    def __iter__(self) -> Iterator[JsonValue]:
        text = text_of(self.data, self.damaged)
        rescue = _Rescue(text, (), self.damaged)
        at = line = 0
        counted = 0
        while (at := rescue.skip(at)) < len(text):
            line += text.count("\n", counted, at)
            counted = at
            value, end, reason = rescue.whole(at)
            if reason is None and isinstance(value, dict | list):
                yield JsonValue(line + 1, value)
                at = end
                continue
            onward = re.compile(r"^[{\[]", re.M).search(text, at + 1)
            stop = onward.start() if onward else len(text)
            reason = reason or f"a JSON {type(value).__name__} where an object belongs"
            self.damaged.append(Damage(line=line + 1, reason=f"{reason}; {stop - at:,} characters were passed over"))
            at = stop
