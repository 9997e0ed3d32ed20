"""Builders of entries, so that a whole history fits on a line or two.

    session(user("fix it"), said("I look.", call("read", path="a.py")), result("c1", "text"), said("Done."))

`user`, `said`, `call` and the others each make one entry without an id; `session` chains them and gives them readable ids (`e1`,
`e2`, ...; calls `c1`, `c2`, ...). Where blocks are wanted, entries may stand as well: they contribute their blocks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias, TypedDict, Unpack

import msgspec

from ..codec import compact_json
from ..transcript import (
    Block,
    Entry,
    Extra,
    Marker,
    Media,
    Origin,
    Reasoning,
    Role,
    Source,
    Status,
    Text,
    ToolCall,
    ToolResult,
    Unknown,
    Usage,
    View,
    chained,
)

__all__ = [
    "EntryFields",
    "Part",
    "call",
    "developer",
    "entry",
    "filler",
    "image",
    "injected",
    "result",
    "said",
    "session",
    "summary",
    "system",
    "thought",
    "used",
    "user",
    "view",
]

Part: TypeAlias = str | Block | Entry
"""What a builder takes: a text, a block, or an entry whose blocks are taken."""


class EntryFields(TypedDict, total=False):
    """The fields of an entry that a builder passes on."""

    id: str
    parent: str | None
    group: str | None
    model: str | None
    time: str | None
    usage: Usage | None
    status: Status
    source: Source | None
    wire: str | None
    extra: Extra | None


def entry(role: Role, *parts: Part, origin: Origin = "typed", **fields: Unpack[EntryFields]) -> Entry:
    """One entry of any role. Bare strings become texts of the given origin."""
    blocks = tuple(_blocks(parts, origin))
    return msgspec.structs.replace(Entry(id="", role=role, blocks=blocks), **fields)


def user(*parts: Part, **fields: Unpack[EntryFields]) -> Entry:
    """A user entry; strings are typed text."""
    return entry("user", *parts, **fields)


def injected(*parts: Part, role: Role = "user", **fields: Unpack[EntryFields]) -> Entry:
    """An entry that a client put in: rule files, reminders, environment."""
    return entry(role, *parts, origin="injected", **fields)


def summary(*parts: Part, role: Role = "user", **fields: Unpack[EntryFields]) -> Entry:
    """An entry with a client's summary of earlier history."""
    return entry(role, *parts, origin="summary", **fields)


def system(*parts: Part, **fields: Unpack[EntryFields]) -> Entry:
    """A system entry."""
    return entry("system", *parts, **fields)


def developer(*parts: Part, **fields: Unpack[EntryFields]) -> Entry:
    """A developer entry."""
    return entry("developer", *parts, **fields)


def said(*parts: Part, **fields: Unpack[EntryFields]) -> Entry:
    """An assistant entry: prose, thoughts and calls in the given order."""
    return entry("assistant", *parts, **fields)


def call(name: str, text: str | None = None, /, *, id: str = "", kind: str = "function", **arguments: Any) -> Entry:  # noqa: A002
    """An assistant entry with one call.

    Args:
        name: the tool's name.
        text: the exact text of the arguments, for broken JSON and custom tools.
        id: the call's id; `session` numbers those without one (`c1`, `c2`, ...: the n-th call of the session is `cn`).
        kind: `function`, `custom` or `server`.
        arguments: the arguments by name, where no text is given.
    """
    return said(ToolCall(id, name, compact_json(arguments) if text is None else text, kind))


def result(
    call_id: str,
    *parts: str | Text | Media | Unknown,
    error: bool = False,
    name: str | None = None,
    **fields: Unpack[EntryFields],
) -> Entry:
    """A tool entry with one result. No parts: an empty result."""
    content = tuple(Text(part) if isinstance(part, str) else part for part in parts)
    return entry("tool", ToolResult(call_id, content, error, name), **fields)


def thought(text: str = "", **opaque: Any) -> Reasoning:
    """A reasoning block; the opaque part by field name: `thought("hm", signature="abc")`."""
    return Reasoning(text, opaque or None)


def image(data: str = "iVBORw0KGgo=", media_type: str = "image/png") -> Media:
    """A small image by value."""
    return Media("image", media_type, data)


def used(input_tokens: int, output_tokens: int = 0, **counts: int) -> Usage:
    """Usage of a model call: `said("Done.", usage=used(1_000, 20))`."""
    return Usage(input_tokens=input_tokens, output_tokens=output_tokens, **counts)


def filler(tokens: int, mark: str = "") -> str:
    """ASCII text of exactly `tokens` tokens by the quarter-token rule, in numbered lines that all differ and carry `mark`."""
    lines: list[str] = []
    length = 0
    while length < 4 * tokens:
        lines.append(f"{mark} line {len(lines) + 1} of plain filler text".strip())
        length += len(lines[-1]) + 1
    return "\n".join(lines)[: 4 * tokens].rstrip("\n").ljust(4 * tokens, ".")


def session(*parts: Entry | Iterable[Entry]) -> tuple[Entry, ...]:
    """The entries as one path: ids `e1`, `e2`, ... and call ids `c1`, `c2`, ... where there are none, parents and sequences set.

    Raises:
        ValueError: two entries have the same id.
    """
    numbered: list[Entry] = []
    calls = 0
    for position, item in enumerate(_entries(parts), start=1):
        blocks: list[Block] = []
        for block in item.blocks:
            if isinstance(block, ToolCall):
                calls += 1
                if not block.id:
                    block = msgspec.structs.replace(block, id=f"c{calls}")
            blocks.append(block)
        numbered.append(msgspec.structs.replace(item, id=item.id or f"e{position}", blocks=tuple(blocks)))
    counts = Counter(item.id for item in numbered)
    if twice := {entry_id for entry_id, times in counts.items() if times > 1}:
        raise ValueError(f"entry ids must differ within a session; these do not: {', '.join(sorted(twice))}")
    return chained(numbered)


def view(*parts: Entry | Iterable[Entry], pins: Iterable[str] = (), markers: Iterable[Marker] = ()) -> View:
    """The view over `session(*parts)`."""
    return View(session(*parts), frozenset(pins), tuple(markers))


def _blocks(parts: Iterable[Part], origin: Origin) -> Iterator[Block]:
    for part in parts:
        if isinstance(part, str):
            yield Text(part, origin)
        elif isinstance(part, Entry):
            yield from part.blocks
        else:
            yield part


def _entries(parts: Iterable[Entry | Iterable[Entry]]) -> Iterator[Entry]:
    for part in parts:
        if isinstance(part, Entry):
            yield part
        else:
            yield from part
