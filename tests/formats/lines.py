"""Builders of session-file lines, and what the tests of all readers look at."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from firsthand.formats.files.base import Input, Reader
from firsthand.transcript import Block, Entry, Media, Reasoning, Text, ToolCall, ToolResult, Transcript, Unknown

Line = dict[str, Any] | str | bytes


def as_bytes(*lines: Line) -> bytes:
    """Lines as a file: objects as JSON, strings and bytes as they are."""
    out = []
    for line in lines:
        if isinstance(line, dict):
            out.append(json.dumps(line, separators=(",", ":")).encode())
        else:
            out.append(line.encode() if isinstance(line, str) else line)
    return b"\n".join(out) + b"\n"


def read(reader: Reader, *lines: Line) -> Transcript:
    """The one session in these lines."""
    (transcript,) = reader.read(Input("test", as_bytes(*lines)))
    return transcript


def unpacked(path: Path) -> bytes:
    data = path.read_bytes()
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def records_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in unpacked(path).split(b"\n") if line.strip()]


def shape(entries: tuple[Entry, ...]) -> list[tuple[str, list[str]]]:
    """Each entry as its role and its blocks in short: text by origin, `?` for reasoning, `name(arguments)`, `call = result`."""
    return [(entry.role, [_short(block) for block in entry.blocks]) for entry in entries]


def _short(block: Block) -> str:
    match block:
        case Text(text=text, origin=origin):
            return text if origin == "typed" else f"{origin}: {text}"
        case Reasoning(text=text):
            return f"? {text}"
        case ToolCall(name=name, arguments=arguments):
            return f"{name}({arguments})"
        case ToolResult(call_id=call_id):
            return f"{call_id} = {block.text}"
        case Media(kind=kind):
            return f"<{kind}>"
        case Unknown(raw=raw):
            return f"unknown {raw.get('type')}"


def texts(transcript: Transcript) -> list[str]:
    """The texts on the active path, one string for each entry."""
    return ["|".join(_short(block) for block in entry.blocks) for entry in transcript.path()]


def counted(transcripts: list[Transcript]) -> dict[str, int]:
    """Blocks of all entries by kind; texts by role and origin."""
    counts: Counter[str] = Counter()
    for transcript in transcripts:
        counts["entries"] += len(transcript.entries)
        counts["markers"] += len(transcript.markers)
        for entry in transcript.entries:
            for block in entry.blocks:
                match block:
                    case Text(origin=origin):
                        counts[f"{entry.role} {origin}"] += 1
                    case ToolCall(kind=kind):
                        counts["calls" if kind != "server" else "server calls"] += 1
                    case _:
                        counts[type(block).__name__] += 1
    return dict(counts)


def all_texts(transcripts: list[Transcript]) -> Iterator[str]:
    """Every text in entries and markers, also those in results, arguments and reasoning."""
    for transcript in transcripts:
        made = [shown for marker in transcript.markers for shown in marker.shown if isinstance(shown, Entry)]
        for entry in (*transcript.entries, *made):
            for block in entry.blocks:
                yield from _inside(block)


def _inside(block: Block) -> Iterator[str]:
    match block:
        case Text(text=text) | Reasoning(text=text):
            yield text
        case ToolCall(arguments=arguments):
            yield arguments
        case ToolResult(content=content):
            for part in content:
                yield from _inside(part)
        case Media(data=data):
            yield data or ""
        case Unknown(raw=raw):
            yield json.dumps(raw)


def check_whole(transcript: Transcript) -> None:
    """What must hold for every session: unique ids, parents before children, a path that ends at the leaf, every marker resolvable."""
    ids = [entry.id for entry in transcript.entries]
    assert len(set(ids)) == len(ids)
    assert [entry.sequence for entry in transcript.entries] == list(range(len(ids)))
    position = {name: at for at, name in enumerate(ids)}
    for at, entry in enumerate(transcript.entries):
        assert entry.parent is None or position[entry.parent] < at
    path = transcript.path()
    assert (path[-1].id if path else None) == transcript.leaf
    for marker in transcript.markers:
        assert marker.after is None or marker.after in position
        for shown in marker.shown:
            assert isinstance(shown, Entry) or shown in position
            assert not isinstance(shown, Entry) or shown.id not in position
