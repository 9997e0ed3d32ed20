"""What the tests of the readers share: reading, listing what entries hold, and what must be true of every transcript."""

from __future__ import annotations

import gzip
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from firsthand.codec import decode_as, encode
from firsthand.formats.files.base import Input, Reader
from firsthand.transcript import Entry, Media, Reasoning, Text, ToolCall, ToolResult, Transcript, Unknown


def opened(data: bytes | str, name: str = "session") -> Input:
    return Input(name, data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data)


def raw(path: Path) -> str:
    data = path.read_bytes()
    return (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode()


def one(reader: Reader, source: Input) -> Transcript:
    (transcript,) = reader.read(source)
    return transcript


def blocks(transcripts: Iterable[Transcript], kind: type) -> list[Any]:
    return [b for t in transcripts for e in t.entries for b in e.blocks if isinstance(b, kind)]


def counts(transcripts: Iterable[Transcript]) -> Counter[str]:
    """Blocks by kind; texts by role and origin."""
    out: Counter[str] = Counter()
    for transcript in transcripts:
        for entry in transcript.entries:
            for block in entry.blocks:
                kind = type(block).__name__
                out[f"{entry.role} {block.origin}" if isinstance(block, Text) else kind] += 1
    return out


def shape(entry: Entry) -> tuple[Any, ...]:
    """An entry in one line, for tables of expected output."""
    return (entry.role, *map(_shape, entry.blocks))


def _shape(block: Any) -> Any:
    match block:
        case Text(text=text, origin="typed"):
            return text
        case Text(text=text, origin=origin):
            return f"{origin}: {text}"
        case Reasoning(text=text):
            return f"thinks: {text}"
        case ToolCall(id=call, name=name, arguments=arguments):
            return ("call", call, name, arguments)
        case ToolResult(call_id=call, content=content, is_error=failed):
            return ("failed" if failed else "result", call, *map(_shape, content))
        case Media(kind=kind, media_type=media_type, data=data, url=url):
            return (kind, media_type, data or url)
        case Unknown(raw=value):
            return value
    raise AssertionError(block)


def shapes(transcript: Transcript) -> list[tuple[Any, ...]]:
    return [shape(entry) for entry in transcript.entries]


def check(transcript: Transcript) -> None:
    """What must be true of everything that a reader returns."""
    ids = [entry.id for entry in transcript.entries]
    assert len(set(ids)) == len(ids), "ids are unique"
    assert all(re.fullmatch(r"e[0-9a-f]{16}", name) for name in ids)
    assert [entry.sequence for entry in transcript.entries] == list(range(len(ids)))
    seen: set[str] = set()
    calls: set[str] = set()
    for entry in transcript.entries:
        assert entry.parent is None or entry.parent in seen, "a parent stands before its children"
        assert entry.blocks or entry.status != "complete", "an entry holds something"
        seen.add(entry.id)
        for block in entry.blocks:
            if isinstance(block, ToolCall):
                assert entry.role == "assistant"
                calls.add(block.id)
            if isinstance(block, ToolResult):
                assert entry.role == "tool"
                assert block.call_id in calls, "a result stands behind its call"
    assert transcript.path()[-1].id == transcript.leaf
    for marker in transcript.markers:
        assert marker.after is None or marker.after in seen
        assert all(item in seen for item in marker.shown if isinstance(item, str))
    assert len(transcript.view().markers) == len(transcript.markers)
    assert decode_as(encode(transcript), Transcript) == transcript, "it survives JSON"
    assert msgspec.to_builtins(transcript)


def values_in(text: str) -> Iterator[Any]:
    """The JSON values of a text that holds several in a row, read without any of our code."""
    import json

    decoder, at = json.JSONDecoder(), 0
    while (at := len(text) - len(text[at:].lstrip())) < len(text):
        value, at = decoder.raw_decode(text, at)
        yield value


def subset(part: Transcript, whole: Transcript) -> None:
    """Every entry of `part` is one of `whole`, with the same first blocks: nothing was made up, nothing was cut in the middle."""
    known = {entry.id: entry for entry in whole.entries}
    for entry in part.entries:
        full = known[entry.id]
        assert entry.role == full.role
        assert entry.blocks == full.blocks[: len(entry.blocks)]
