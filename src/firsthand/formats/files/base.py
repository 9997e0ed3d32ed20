"""What every reader of session files shares: the input, the contract of a reader, lines with their damage, and ids."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any, Protocol

from ...codec import decode
from ...errors import FormatError
from ...transcript import Damage, Transcript

__all__ = ["Input", "Reader", "Record", "entry_id", "json_records"]

_SNIFFED = 65_536
_BITE = 256


@dataclass(frozen=True)
class Input:
    """What a reader is given: the bytes of a file, unpacked, and where they came from.

    Make one from a path with `Input.open`, or from bytes directly.
    """

    name: str
    data: bytes
    path: Path | None = None
    broken: str | None = None
    """Where a gzip stream broke off and why, when not all of it could be unpacked; `data` is then what came before."""

    @classmethod
    def open(cls, path: Path) -> Input:
        """The file at `path`, unpacked when it is gzip (told by its first bytes, not by its name).

        What a reader has to open by its path comes with little or no data: of a folder nothing is read, of an SQLite database the 16
        bytes that tell that it is one (its newest data may stand in another file, and it may be large).

        Raises:
            FormatError: the file cannot be read or its gzip stream cannot be unpacked.
        """
        try:
            if path.is_dir():
                return cls(path.name, b"", path)
            with path.open("rb") as file:
                data = file.read(16)
                if data != b"SQLite format 3\x00":
                    data += file.read()
        except OSError as error:
            raise FormatError(f"cannot read {path}: {error.strerror or error}") from error
        whole, broken = unpacked(data, str(path))
        return cls(path.name, whole, path, broken)

    @cached_property
    def head(self) -> str:
        """The first 64 KiB as text, for telling formats apart; undecodable bytes become U+FFFD."""
        return self.data[:_SNIFFED].decode("utf-8", "replace").lstrip("﻿").lstrip()


def unpacked(data: bytes, name: str) -> tuple[bytes, str | None]:
    """`data`, unpacked when it starts like a gzip stream, and what is wrong with the stream, if anything.

    Of a stream that breaks off or is damaged on the way, what came before is returned (failure kind IM-01: the rest is read, and what is
    missing is said).

    Raises:
        FormatError: nothing of the stream could be unpacked.
    """
    if data[:2] != b"\x1f\x8b":
        return data, None
    try:
        return gzip.decompress(data), None
    except (OSError, EOFError, zlib.error) as error:
        rescued = _rescued(data)
        if not rescued:
            raise FormatError(f"{name} looks like gzip but cannot be unpacked: {error}") from error
        return rescued, f"the gzip stream breaks off after {len(rescued):,} unpacked bytes ({error})"


def _rescued(data: bytes) -> bytes:
    """What stands before the damage in a gzip stream, which may have several members."""
    pieces: list[bytes] = []
    try:
        while data[:2] == b"\x1f\x8b":
            member = zlib.decompressobj(wbits=31)
            # In small bites, since an error takes the whole bite's output with it.
            for at in range(0, len(data), _BITE):
                pieces.append(member.decompress(data[at : at + _BITE]))
                if member.eof:
                    data = member.unused_data + data[at + _BITE :]
                    break
            else:
                break
    except zlib.error:
        pass
    return b"".join(pieces)


class Reader(Protocol):
    """Reads one session-file format. Readers are pure: bytes in, transcripts out, the same every time.

    A reader never fails on damage: what it cannot read becomes `Transcript.damaged` with its line, what it does not know is kept in
    `extra` or `Unknown`, and the rest is read.
    """

    name: str
    """Short name, as in `--format`."""
    title: str
    """The agent's name, for people."""

    def sniff(self, source: Input) -> bool:
        """Whether the content is this format. Looks at `source.head` (and the path for what is no single file), not at names."""
        ...

    def read(self, source: Input) -> list[Transcript]:
        """All sessions in the input, a parent before its sub-agents.

        Raises:
            EmptySessionError: it holds records, but no entry could be made of any.
        """
        ...


@dataclass(frozen=True)
class Record:
    """One JSON value of a line-oriented file."""

    line: int
    value: dict[str, Any]


@dataclass
class json_records:  # noqa: N801 - used like a function: `for record in (records := json_records(data))`
    """Iterates over the JSON objects of a line-oriented file; collects what could not be read in `damaged`.

    Two objects run together on one line (an interrupted write) are both read. Blank lines are nothing. A line is damaged when it holds no
    JSON object, or something beside its objects.
    """

    data: bytes
    damaged: list[Damage] = field(default_factory=list)

    def __iter__(self) -> Iterator[Record]:
        for number, line in enumerate(self.data.split(b"\n"), start=1):
            line = line.strip(b"\r \t\x00\xef\xbb\xbf") if number == 1 else line.strip()
            if not line:
                continue
            try:
                value = decode(line)
            except (ValueError, RecursionError) as error:
                yield from self._rescue(number, line, str(error))
                continue
            if isinstance(value, dict):
                yield Record(number, value)
            else:
                self.damaged.append(
                    Damage(line=number, reason=f"a JSON {type(value).__name__} where an object belongs")
                )

    def _rescue(self, number: int, line: bytes, reason: str) -> Iterator[Record]:
        """The objects of a line that is not one JSON value; the line counts as damaged unless they are all there is.

        A crash can leave a run of NULs where lines were lost, and the next line is written right behind it.
        """
        import json

        text = line.decode("utf-8", "replace")
        decoder = json.JSONDecoder()
        at = len(text) - len(text.lstrip(" \t\r\x00"))
        nulls = text.count("\x00", 0, at)
        found: list[Record] = []
        while at < len(text) and text[at] == "{":
            try:
                value, at = decoder.raw_decode(text, at)
            except (ValueError, RecursionError):
                break
            found.append(Record(number, value))
            while at < len(text) and text[at] in " \t\r\x00":
                at += 1
        if at < len(text) or not found:
            self.damaged.append(Damage(line=number, reason=reason))
        elif nulls:
            self.damaged.append(Damage(line=number, reason=f"{nulls:,} NUL bytes stood before its object"))
        elif "�" in text and b"\xef\xbf\xbd" not in line:
            self.damaged.append(Damage(line=number, reason="bytes that are not UTF-8 were replaced"))
        yield from found


def entry_id(session: str, native: str | int) -> str:
    """The id of an entry whose client gave it `native` (its own id, or its line) in `session`: `e` and 16 hex digits.

    Depends on nothing else, so importing the same file again, or the same file grown longer, gives the same ids.
    """
    return "e" + blake2b(f"{session}\0{native}".encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
