"""Entries as OpenCode's messages: what a person sent, or one model call with the results of its calls (opencode.md 1).

OpenCode keeps a call and its result in one part, so no cut between two messages can part them. Here they are blocks of different entries;
a message remembers which blocks it is made of, wherever they stand. Outside of all messages stand the *instructions*: system and developer
entries and what a client put in front of the first typed text (rule files, environment). OpenCode has these in the system prompt, which it
renders anew for each request, so a projection keeps them in place. Texts of the origin `summary` stand outside, too: the originals they cover
are in the view.

What a client puts in while a turn runs (reminders, output of hooks) is no message of its own in OpenCode, but a part of one; so it goes to the
user's message before it, or to the model's where a tool result came last. After an answer without calls it begins a turn, as OpenCode's own
"continue" does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from ...projection.boundaries import has_result, step_start, turn_start
from ...projection.plan import Kept, Plan
from ...projection.render import Shown, applies, shown
from ...transcript import Block, Entry, Text, ToolCall, ToolResult, View
from .prompts import CONTINUE

__all__ = ["Message", "Part", "Tool", "applying", "blocks_of_messages", "instructions", "messages"]


@dataclass(frozen=True, slots=True)
class Part:
    """One block of a message."""

    position: int
    """Position of its entry in the view."""
    number: int
    """Number of the block in its entry."""
    block: Block
    """As the current projection shows it."""
    entry: Entry
    replaced: bool = False
    """Whether the current projection shows another text in place of the original."""


@dataclass(slots=True)
class Tool:
    """A call and its result; one of the two may be missing."""

    call: Part | None
    result: Part | None = None

    def __iter__(self) -> Iterator[Part]:
        return (part for part in (self.call, self.result) if part is not None)


@dataclass(slots=True)
class Message:
    """One message as OpenCode would have stored it."""

    role: Literal["user", "assistant", "system"]
    parts: list[Part | Tool] = field(default_factory=list)

    def blocks(self) -> Iterator[Part]:
        """Every block of the message, calls before their results."""
        for part in self.parts:
            if isinstance(part, Tool):
                yield from part
            else:
                yield part

    @property
    def first(self) -> int:
        """Position of the earliest entry that it has a block of."""
        return min(part.position for part in self.blocks())

    @property
    def is_injected(self) -> bool:
        """Whether it holds nothing but texts that a client put there."""
        return all(isinstance(part.block, Text) and part.block.origin == "injected" for part in self.blocks())


def applying(previous: Plan | None, view: View, versions: Sequence[tuple[str, str]]) -> Plan | None:
    """`previous` if one of the named strategies and versions made it for a view like this one, else None: its range is covered again (IN-10)."""
    if previous is None or (previous.strategy, previous.version) not in versions or not applies(previous, view):
        return None
    return previous


def instructions(view: View) -> tuple[frozenset[int], int]:
    """Positions of the instructions, and how many entries stand before the first typed text or answer."""
    leading = len(view.entries)
    for position, entry in enumerate(view.entries):
        if entry.role == "assistant" or turn_start(entry) or has_result(entry):
            leading = position
            break
    found = (
        position
        for position, entry in enumerate(view.entries)
        if entry.role in ("system", "developer")
        or (position < leading and entry.role == "user" and blocks_of_messages(entry))
    )
    return frozenset(found), leading


def blocks_of_messages(entry: Entry) -> frozenset[int]:
    """Numbers of the blocks that belong to a message: all but summaries that a client wrote."""
    return frozenset(
        number
        for number, block in enumerate(entry.blocks)
        if not (isinstance(block, Text) and block.origin == "summary")
    )


def messages(view: View, previous: Plan | None = None, *, with_updates: bool = False) -> list[Message]:
    """The messages of the projection that `previous` makes of the view, summaries left out, in order.

    Args:
        view: the session.
        previous: the plan behind the current projection; None for the session as it was.
        with_updates: also the system and developer entries that came after the first typed text, as messages of the role `system`
            (opencode.md 3.2).
    """
    apart, leading = instructions(view)
    builder = _Builder()
    for part in shown(view, previous):
        if part.is_synthetic:
            continue
        position = view.positions[part.entry.id]
        if position not in apart:
            builder.add(part, position)
        elif with_updates and position >= leading:
            builder.add_update(part, position)
    return [message for message in builder.messages if message.parts]


class _Builder:
    """Collects messages, entry by entry."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self._answer: Message | None = None
        """The assistant message that the next result or item of the same response may belong to."""
        self._groups: dict[str, Message] = {}
        self._waiting: dict[str, Tool] = {}
        self._before: Entry | None = None
        self._running: Message | None = None
        """The message that a reminder goes to: the user's while the model has not answered, the model's while its tools are at work."""

    def add_update(self, shown_: Shown, position: int) -> None:
        self.messages.append(Message("system", list(_parts(shown_, position))))
        self._before = None

    def add(self, shown_: Shown, position: int) -> None:
        parts = list(_parts(shown_, position))
        if shown_.entry.role == "assistant":
            self._add_answer(shown_.entry, parts)
        else:
            self._add_other(shown_.entry, parts)
        self._before = shown_.entry

    def _add_answer(self, entry: Entry, parts: Sequence[Part]) -> None:
        message = self._groups.get(entry.group) if entry.group is not None else None
        if message is None and self._answer is not None and self._continues(entry):
            message = self._answer
        if message is None:
            message = self._new("assistant")
        self._answer = message
        if entry.group is not None:
            self._groups[entry.group] = message
        for part in parts:
            if isinstance(part.block, ToolCall):
                tool = Tool(part)
                message.parts.append(tool)
                self._waiting[part.block.id] = tool
            elif isinstance(part.block, ToolResult):
                self._add_result(part, part.block)
            else:
                message.parts.append(part)
        self._running = None

    def _continues(self, entry: Entry) -> bool:
        """Whether the entry is one more item of the response before it."""
        before = self._before
        return before is not None and before.role == "assistant" and step_start((before, entry), 1) == 0

    def _add_other(self, entry: Entry, parts: Sequence[Part]) -> None:
        texts: list[Part] = []
        for part in parts:
            if isinstance(part.block, ToolResult):
                self._add_result(part, part.block)
            else:
                texts.append(part)
        if not texts:
            return
        if self._running is not None and not _is_sent(texts):
            self._running.parts += texts
            return
        self._running = self._new("user")
        self._running.parts += texts
        self._answer = None
        self._groups = {}

    def _add_result(self, part: Part, result: ToolResult) -> None:
        tool = self._waiting.pop(result.call_id, None)
        if tool is not None:
            tool.result = part
        else:
            self._answer = self._answer or self._new("assistant")
            self._answer.parts.append(Tool(None, part))
        self._running = self._answer or self._running

    def _new(self, role: Literal["user", "assistant"]) -> Message:
        self.messages.append(Message(role))
        return self.messages[-1]


def _is_sent(parts: Sequence[Part]) -> bool:
    """Whether these are a message of their own: typed, attached, our own request to go on, or a message in OpenCode's own file."""
    return any(
        not isinstance(part.block, Text)
        or part.block.origin == "typed"
        or part.block.text.endswith(CONTINUE)
        or (part.entry.source is not None and part.entry.source.format == "opencode")
        for part in parts
    )


def _parts(shown_: Shown, position: int) -> Iterator[Part]:
    item = shown_.item if isinstance(shown_.item, Kept) else None
    entry = shown_.entry
    numbers = range(len(entry.blocks)) if item is None or item.blocks is None else item.blocks
    for number, block in zip(numbers, entry.blocks, strict=True):
        if not (isinstance(block, Text) and block.origin == "summary"):
            yield Part(position, number, block, entry, item is not None and number in item.replaced)
