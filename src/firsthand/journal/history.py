"""Paging through the readable text of one entry, byte for byte, never cutting a character (futureos.md 7.3, failure kind CL-05)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ..codec import to_utf8
from ..errors import ConfigError
from ..transcript import Entry, Role
from .readable import Kind, Passage, kind_of, passages
from .utf8 import boundary_after, boundary_before, exact_text

__all__ = ["LARGEST_PAGE", "Chunk", "Page", "page"]

LARGEST_PAGE = 1_048_576


@dataclass(frozen=True)
class Chunk:
    """The part of one block that lies on a page."""

    block: int
    kind: Kind
    call_id: str | None
    tool: str | None
    is_error: bool
    block_offset: int
    """Byte in the block at which `text` starts."""
    block_total: int
    """Bytes of the whole block."""
    text: str


@dataclass(frozen=True)
class Page:
    """A piece of an entry's readable text: texts, readable reasoning, arguments and results, in block order, without separators."""

    entry: str
    role: Role
    time: str | None
    block: int | None
    """The block that was asked for; offsets count in it then, else in the whole entry."""
    offset: int
    total: int
    """Bytes of everything there is to page over."""
    chunks: tuple[Chunk, ...]
    next_offset: int | None
    """Where the next page starts; None at the end."""
    omitted: tuple[Kind, ...]
    """Kinds of blocks without readable text, in order, each once: they are in the entry, but not here."""

    @property
    def has_more(self) -> bool:
        """Whether there is a next page."""
        return self.next_offset is not None

    @property
    def text(self) -> str:
        """The page as one text."""
        return "".join(chunk.text for chunk in self.chunks)


def page(entry: Entry, *, offset: int = 0, limit: int = 8_192, block: int | None = None) -> Page:
    """The bytes from `offset`, at most `limit` of them but always one whole character, so that pages make progress.

    Raises:
        ConfigError: an offset outside the text or inside a character, a limit that is not 1 to 1,048,576, a block that is not there or has
            no readable text.
    """
    if not 1 <= limit <= LARGEST_PAGE:
        raise ConfigError(f"a page of {limit} bytes; ask for 1 to {LARGEST_PAGE:,}")
    parts = _parts(entry, block)
    total = sum(len(part.data) for part in parts)
    if not 0 <= offset <= total:
        raise ConfigError(
            f"offset {offset} of entry {entry.id!r}, which has {total:,} readable bytes here; give 0 to {total}"
        )
    chunks: list[Chunk] = []
    at, end = offset, offset + limit
    for part in parts:
        stop = part.start + len(part.data)
        # An empty block belongs to the page that ends where it stands.
        if stop < offset or (stop == offset and (part.data or offset)):
            continue
        begin = at - part.start
        if boundary_before(part.data, begin) != begin:
            raise ConfigError(
                f"offset {offset} of entry {entry.id!r} lies inside a character; the one before starts at "
                f"{part.start + boundary_before(part.data, begin)}"
            )
        until = boundary_before(part.data, end - part.start)
        if until <= begin and part.data:
            if at > offset:
                break
            until = boundary_after(part.data, begin + 1)
        chunks.append(_chunk(part, begin, until))
        at = part.start + until
        if until < len(part.data):
            break
    return Page(
        entry=entry.id,
        role=entry.role,
        time=entry.time,
        block=block,
        offset=offset,
        total=total,
        chunks=tuple(chunks),
        next_offset=at if at < total else None,
        omitted=tuple(dict.fromkeys(_omitted(entry))),
    )


class _Part(NamedTuple):
    passage: Passage
    start: int
    data: bytes


def _parts(entry: Entry, block: int | None) -> list[_Part]:
    found = [passage for passage in passages(entry) if block in (None, passage.block)]
    if block is not None and not found:
        if not 0 <= block < len(entry.blocks):
            raise ConfigError(f"entry {entry.id!r} has no block {block}; it has {len(entry.blocks)}, counted from 0")
        raise ConfigError(
            f"block {block} of entry {entry.id!r} is {kind_of(entry.blocks[block])} and has no readable text"
        )
    parts: list[_Part] = []
    start = 0
    for passage in found:
        data = to_utf8(passage.text)
        parts.append(_Part(passage, start, data))
        start += len(data)
    return parts


def _chunk(part: _Part, begin: int, until: int) -> Chunk:
    passage = part.passage
    return Chunk(
        block=passage.block,
        kind=passage.kind,
        call_id=passage.call_id,
        tool=passage.tool,
        is_error=passage.is_error,
        block_offset=begin,
        block_total=len(part.data),
        text=exact_text(part.data[begin:until]),
    )


def _omitted(entry: Entry) -> Iterator[Kind]:
    readable = {passage.block for passage in passages(entry)}
    return (kind_of(block) for index, block in enumerate(entry.blocks) if index not in readable)
