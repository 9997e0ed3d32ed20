"""Sub-agents that old Claude Code clients wrote into the file of the session that started them.

Each becomes a session of its own. A sub-agent that was started with its parent's history repeats the parent's lines; those stay
where they came first and are not read twice (IM-05).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ....codec import decode
from ....transcript import Block, Text, ToolCall, ToolResult
from ..base import Record
from ..records import record_of, string_of
from .blocks import assistant_blocks, user_blocks
from .drafts import Conversation

__all__ = ["Sidechain", "call_that_started", "sidechains"]


@dataclass
class Sidechain:
    """The lines of one sub-agent."""

    key: str
    """What the client calls it: its agent id, or the id of its first line."""
    own: list[Record] = field(default_factory=list)
    replayed: list[Record] = field(default_factory=list)
    """Lines at its start that repeat the main conversation."""


def sidechains(records: list[Record], main: Conversation) -> list[Sidechain]:
    """The sub-agents among lines marked `isSidechain`, in order of their first line."""
    groups: dict[str, list[Record]] = {}
    group_of: dict[str, str] = {}
    newest: str | None = None
    for record in records:
        value = record.value
        uuid, parent = string_of(value.get("uuid")), string_of(value.get("parentUuid"))
        key = string_of(value.get("agentId")) or (group_of.get(parent) if parent else None)
        if key is None and parent is not None and parent not in main.above:
            key = newest  # the line above is damaged
        if key is None:
            key = uuid or f"line {record.line}"
        if uuid:
            group_of[uuid] = key
        groups.setdefault(key, []).append(record)
        newest = key
    known = _Known(main)
    return [_without_replay(key, lines, known) for key, lines in groups.items()]


class _Known:
    """What the main conversation holds, to recognise it again."""

    def __init__(self, main: Conversation) -> None:
        self.lines = main.above.keys()
        self.responses = {draft.group: draft.blocks for draft in main.drafts if draft.group}
        self.results: dict[str, ToolResult] = {}
        self.texts: set[str] = set()
        for draft in main.drafts:
            if draft.role != "assistant":
                self.results.update((block.call_id, block) for block in draft.blocks if isinstance(block, ToolResult))
                self.texts.add(_text(draft.blocks))

    def holds(self, value: dict[str, Any]) -> bool:
        """Whether the ids of this line show that it repeats one of the main conversation, and all of it is there."""
        if value.get("uuid") in self.lines:
            return True
        message = record_of(value.get("message"))
        response = self.responses.get(string_of(message.get("id")) or "")
        if response is not None:
            return all(block in response for block in assistant_blocks(message.get("content")))
        results = [block for block in user_blocks(message.get("content")) if isinstance(block, ToolResult)]
        return bool(results) and all(self.results.get(block.call_id) == block for block in results)

    def says(self, value: dict[str, Any]) -> bool:
        """Whether the main conversation has a user text like this one."""
        content = record_of(value.get("message")).get("content")
        return value.get("type") == "user" and _text(user_blocks(content)) in self.texts


def _text(blocks: list[Block] | tuple[Block, ...]) -> str:
    return "".join(block.text for block in blocks if isinstance(block, Text))


def _without_replay(key: str, lines: list[Record], known: _Known) -> Sidechain:
    """A text alone proves nothing (a task may be what the person typed), so texts count as replayed only before a line whose ids do."""
    chain = Sidechain(key)
    until = 0
    for position, record in enumerate(lines):
        if known.holds(record.value):
            until = position + 1
        elif not known.says(record.value) and record.value.get("type") in ("user", "assistant"):
            break
    for position, record in enumerate(lines):
        replayed = position < until and (known.holds(record.value) or known.says(record.value))
        (chain.replayed if replayed else chain.own).append(record)
    return chain


def call_that_started(main: Conversation, prompt: str) -> str | None:
    """The id of the call whose prompt a sub-agent was given."""
    for draft in main.drafts:
        for block in draft.blocks:
            if isinstance(block, ToolCall) and block.name in ("Agent", "Task"):
                arguments = record_of(decode(block.arguments))
                if arguments.get("prompt") == prompt:
                    return block.id
    return None
