"""What the readers and writers of all wires do alike."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from ...codec import compact_json, wire_safe
from ...errors import FormatError
from ...transcript import Block, Entry, Media, Text, ToolCall, ToolResult, Unknown
from .placeholders import LOOSE

__all__ = ["foreign_text", "has_words", "items_of", "no_system", "results_and_rest", "safe", "server_call_ids"]

_OPAQUE = frozenset({"compaction", "compaction_summary", "compaction_trigger", "item_reference", "reasoning"})
"""Types of blocks that mean something to their own provider only."""


def items_of(messages: Sequence[dict[str, Any]] | str) -> list[dict[str, Any]]:
    """The messages as a list of objects; a string is one message of the user.

    Raises:
        FormatError: an item is no object; names its index.
    """
    if isinstance(messages, str):
        return [{"role": "user", "content": messages}]
    for index, item in enumerate(messages):
        if not isinstance(item, dict):
            raise FormatError(f"message {index} is a {type(item).__name__}, and a message must be a JSON object")
    return list(messages)


def no_system(wire: str, system: Any) -> None:
    """Refuses a separate system prompt on a wire that has none.

    Raises:
        FormatError: `system` is there.
    """
    if system is not None:
        raise FormatError(
            f"{wire} has no system prompt beside its messages; put it into the messages as a system message"
        )


def results_and_rest(entry: Entry) -> tuple[list[ToolResult], list[Block]]:
    """The results of an entry that is no assistant's, and its other blocks.

    A text that stands loose in a tool's entry is the tool's, not the user's: it goes to the end of the last result there, or gets a label.
    """
    results = [block for block in entry.blocks if isinstance(block, ToolResult)]
    rest: list[Block] = [block for block in entry.blocks if not isinstance(block, ToolResult | ToolCall)]
    if entry.role == "tool" and results and rest:
        loose = tuple(block for block in rest if isinstance(block, Text | Media | Unknown))
        results[-1] = msgspec.structs.replace(results[-1], content=results[-1].content + loose)
        rest = []
    elif entry.role == "tool" and rest:
        rest.insert(0, Text(LOOSE, "injected"))
    return results, rest


def foreign_text(block: Unknown, *, by_model: bool) -> Text | None:
    """A block that only another wire has a word for, as JSON text; None when nobody could read it.

    What a model made is left out as well: prose that looks like provider data is something it would learn to write (SE-16).
    """
    kind = block.raw.get("type") if isinstance(block.raw, dict) else None
    if by_model or str(kind) in _OPAQUE:
        return None
    return Text(compact_json(block.raw), "injected")


def has_words(blocks: Iterable[Block]) -> bool:
    """Whether a block among them has text of its own to show."""
    return any(isinstance(block, Text) and block.text for block in blocks)


def server_call_ids(entries: Iterable[Entry]) -> set[str]:
    """Ids of the calls that a provider ran itself."""
    return {
        block.id
        for entry in entries
        if entry.role == "assistant"
        for block in entry.blocks
        if isinstance(block, ToolCall) and block.kind == "server"
    }


def safe(value: Any) -> Any:
    """A copy of a JSON value with every lone surrogate replaced (IM-02). Being a copy, it shares nothing with the frozen entries."""
    if isinstance(value, str):
        return value if value.isascii() else wire_safe(value)
    if isinstance(value, list):
        return [safe(item) for item in value]
    if isinstance(value, dict):
        return {safe(name): safe(item) for name, item in value.items()}
    return value
