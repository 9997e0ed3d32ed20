"""One session as lines of JSON that any tool can read and `FirsthandReader` reads back to equal entries.

The first line names the format and holds what is known about the session; then come the entries in order of arrival, the markers, the pins,
and a last line that counts them, so that a file cut short is noticed. docs/journal.md shows each line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..codec import encode
from ..formats.files.firsthand import FORMAT, VERSION
from ..transcript import Entry, Marker, Transcript

__all__ = ["export_lines"]


def export_lines(
    head: Transcript, entries: Iterable[Entry], pins: Iterable[str], revisions: Mapping[str, str]
) -> Iterator[bytes]:
    """The lines of an export, each with its line end.

    Args:
        head: the session without its entries.
        entries: all its entries, in order of arrival.
        pins: ids of pinned entries.
        revisions: for each entry that is a newer version, the id that its file gave it.
    """
    yield _line({"type": FORMAT, "version": VERSION, "session": _without_defaults(head)})
    counted = 0
    for entry in entries:
        line: dict[str, Any] = {"type": "entry", "entry": entry}
        if entry.id in revisions:
            line["revises"] = revisions[entry.id]
        yield _line(line)
        counted += 1
    markers: tuple[Marker, ...] = head.markers
    for marker in markers:
        yield _line({"type": "marker", "marker": marker})
    pinned = 0
    for pin in pins:
        yield _line({"type": "pin", "entry": pin})
        pinned += 1
    yield _line({"type": "end", "entries": counted, "markers": len(markers), "pins": pinned})


def _without_defaults(head: Transcript) -> dict[str, Any]:
    values = {name: getattr(head, name) for name in head.__struct_fields__ if name not in ("entries", "markers")}
    # An empty list of tools says something that no list does not.
    return {name: value for name, value in values.items() if value is not None and (value != () or name == "tools")}


def _line(value: dict[str, Any]) -> bytes:
    return encode(value) + b"\n"
