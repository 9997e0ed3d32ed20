"""Which format a file is, told from its content and never from its name, and the one call that reads any of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec

from ..errors import EmptySessionError, UnknownFormatError
from ..transcript import Damage, Transcript
from .files import READERS, Input, Reader, format_names, reader_by_name, third_party_readers
from .files.base import unpacked
from .files.messages import wire_of
from .files.records import first_records

__all__ = ["detect", "read_sessions", "wire_of"]


def read_sessions(source: Path | bytes | Input, *, format: str | None = None) -> list[Transcript]:  # noqa: A002
    """All sessions in a file (or folder, or bytes), a parent before its sub-agents.

    Args:
        source: the path of a file, plain or gzip, of a database or a folder where a client keeps one; or a file's bytes.
        format: name of the format, as in `firsthand.formats.files`; told from the content when None.

    Raises:
        UnknownFormatError: no reader recognises the content; says what was looked at.
        UnknownNameError: there is no format of that name.
        EmptySessionError: recognised, but no entry could be read; nothing is ever imported silently empty (IM-09).
        FormatError: the file cannot be opened or unpacked.
    """
    given = _input(source)
    if format is not None:
        return _with_break(reader_by_name(format).read(given), given)
    first: EmptySessionError | None = None
    for reader in _candidates(given):
        try:
            return _with_break(reader.read(given), given)
        except EmptySessionError as error:
            first = first or error
    raise first or UnknownFormatError(_unknown(given))


def detect(source: Path | bytes | Input) -> Reader:
    """The reader of the format that `source` is in.

    Raises:
        UnknownFormatError: no reader recognises the content; says what was looked at.
        FormatError: the file cannot be opened or unpacked.
    """
    given = _input(source)
    for reader in _candidates(given):
        return reader
    raise UnknownFormatError(_unknown(given))


def _input(source: Path | bytes | Input) -> Input:
    if isinstance(source, Input):
        return source
    if isinstance(source, bytes):
        data, broken = unpacked(source, "the given bytes")
        return Input("the given bytes", data, broken=broken)
    return Input.open(Path(source))


def _with_break(sessions: list[Transcript], source: Input) -> list[Transcript]:
    """The sessions; where their file broke off inside its gzip stream, the last one says so, even if its last line happens to be whole."""
    if source.broken is None or not sessions:
        return sessions
    *others, last = sessions
    end = Damage(line=source.data.count(b"\n") + 1, reason=source.broken)
    return [*others, msgspec.structs.replace(last, damaged=(*last.damaged, end))]


def _candidates(source: Input) -> Iterator[Reader]:
    """The readers that recognise the content, the likeliest first; other packages' only where none of ours does."""
    known = False
    for reader in READERS:
        if reader.sniff(source):
            known = True
            yield reader
    if not known:
        yield from (reader for reader in third_party_readers() if reader.sniff(source))


def _unknown(source: Input) -> str:
    """What was looked at, in words, and what would have been known."""
    where = str(source.path or source.name)
    known = f"known formats: {', '.join(format_names())}"
    if source.path is not None and source.path.is_dir():
        return f"{where} is a folder in which no client's sessions were found; name a file. Of folders, OpenCode's are known"
    if not source.data.strip(b"\r\n\t \x00"):
        return f"{where} is empty ({len(source.data):,} bytes); {known}"
    records = first_records(source)
    if records:
        keys = Counter(key for record in records for key in record)
        common = ", ".join(repr(key) for key, _ in keys.most_common(8))
        seen = f"looked at its first {len(records)} JSON objects, whose commonest keys are {common}"
    else:
        seen = f"looked at its first {min(len(source.data), 65_536):,} bytes, which start {source.head[:40]!r}"
    return f"{where} ({len(source.data):,} bytes) is in no known format: {seen}; {known}. Name one if it is one of them"
