"""Cache marks of the Messages API: at most four in a request (GW-11)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

__all__ = ["MOST_MARKS", "with_few_marks"]

MOST_MARKS = 4
"""How many `cache_control` fields the API allows in system prompt, tools and messages together."""

Raw = dict[str, Any]


def with_few_marks(messages: list[Raw], system: Any, at_most: int = MOST_MARKS) -> tuple[list[Raw], Any]:
    """Messages and system prompt with at most `at_most` cache marks: those of the system prompt, then the newest.

    Marks on tool definitions count as well; whoever sends those passes what is left. Everything else stays as it is, and so does a request
    that has no more than allowed.
    """
    in_system = list(_marked(system)) if isinstance(system, list) else []
    in_messages = [block for message in messages for block in _marked(message.get("content"))]
    if len(in_system) + len(in_messages) <= at_most:
        return messages, system
    spare = {id(block) for block in in_system[at_most:]}
    room = max(0, at_most - len(in_system))
    spare |= {id(block) for block in in_messages[: len(in_messages) - room]}
    return [_without(message, spare) for message in messages], _without(system, spare)


def _marked(content: Any) -> Iterator[Raw]:
    """The blocks with a mark, in order, those inside tool results included."""
    if isinstance(content, list):
        for block in content:
            if isinstance(block, dict):
                yield from _marked(block.get("content"))
                if block.get("cache_control"):
                    yield block


def _without(value: Any, spare: set[int]) -> Any:
    if isinstance(value, list):
        return [_without(item, spare) for item in value]
    if isinstance(value, dict):
        marked = id(value) in spare
        return {
            name: _without(item, spare) if name == "content" else item
            for name, item in value.items()
            if not (marked and name == "cache_control")
        }
    return value
