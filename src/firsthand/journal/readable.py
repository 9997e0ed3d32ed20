"""The readable text of an entry: what search looks through and `history get` pages over, block by block.

Readable are texts, the readable part of reasoning, the exact arguments of calls and the text of results. Media, opaque reasoning and
blocks that we have no word for are not.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple, TypeAlias

from ..codec import wire_safe
from ..transcript import Block, Entry, Media, Reasoning, Text, ToolCall, ToolResult

__all__ = ["Kind", "Passage", "index_text", "kind_of", "passages"]

Kind: TypeAlias = Literal["text", "reasoning", "tool_call", "tool_result", "media", "unknown"]


class Passage(NamedTuple):
    """The readable text of one block."""

    block: int
    """Index of the block in its entry."""
    kind: Kind
    text: str
    call_id: str | None = None
    tool: str | None = None
    """The tool's name, where the block itself carries it."""
    is_error: bool = False


def kind_of(block: Block) -> Kind:
    """The kind of a block, by the name under which it is filtered and shown."""
    match block:
        case Text():
            return "text"
        case Reasoning():
            return "reasoning"
        case ToolCall():
            return "tool_call"
        case ToolResult():
            return "tool_result"
        case Media():
            return "media"
        case _:
            return "unknown"


def passages(entry: Entry) -> Iterator[Passage]:
    """The readable blocks of an entry, in order; empty ones included, so that a call without arguments can be found by its id."""
    for index, block in enumerate(entry.blocks):
        match block:
            case Text(text=text):
                yield Passage(index, "text", text)
            case Reasoning(text=text):
                yield Passage(index, "reasoning", text)
            case ToolCall():
                yield Passage(index, "tool_call", block.arguments, block.id, block.name)
            case ToolResult():
                yield Passage(index, "tool_result", block.text, block.call_id, block.name, block.is_error)
            case _:
                pass


def index_text(found: list[Passage]) -> str:
    """What the search index is given for one entry; '' when there is nothing to find.

    Two newlines end every part, so that a substring of one or two characters, too, begins some trigram. The tokenizer stops at NUL and
    cannot take lone surrogates, so both are replaced; the text itself decides in the end whether it matches.
    """
    parts = [part for passage in found for part in (passage.text, passage.call_id) if part]
    if not parts:
        return ""
    return wire_safe("\n\n".join((*parts, "")).replace("\0", "\ufffd"))
