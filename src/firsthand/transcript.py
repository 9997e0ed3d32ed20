"""Entries, blocks and views: what a session consists of, as values that compare by content.

Nothing here reads a file, knows a wire format or counts a token. A reader (floor 1) makes entries, the journal keeps them, a
strategy (floor 3) decides about them, and none of them ever edits one: every value is frozen. What a client wrote that we have
no word for is kept in `extra` (unknown fields) or `Unknown` (unknown blocks), so that it can be given back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, TypeAlias

import msgspec

__all__ = [
    "Block",
    "Counts",
    "Damage",
    "Entry",
    "Marker",
    "Media",
    "Origin",
    "Reasoning",
    "Role",
    "Source",
    "Status",
    "Text",
    "ToolCall",
    "ToolResult",
    "Transcript",
    "Unknown",
    "Usage",
    "View",
    "chained",
    "count",
    "path_to",
    "typed_text",
]

Role: TypeAlias = Literal["system", "developer", "user", "assistant", "tool"]

Origin: TypeAlias = Literal["typed", "injected", "summary"]
"""Where a text came from: *typed* by the author whom the role names, *injected* by a client (rule files, reminders, environment,
command echoes), or a *summary* of earlier history. Only typed text of the role `user` counts as user text."""

Status: TypeAlias = Literal["complete", "aborted", "error", "incomplete"]
"""How a model response ended: as it should, stopped by the person, failed at the provider, or cut off (a broken stream, a length limit)."""

Extra: TypeAlias = dict[str, Any]


class _Value(msgspec.Struct, frozen=True, omit_defaults=True):
    """Base of the values: frozen, compared by content, written without their defaults."""


class Text(_Value, frozen=True, tag="text"):
    """Plain text."""

    text: str
    origin: Origin = "typed"
    extra: Extra | None = None
    """Unknown fields of the block on its wire, such as annotations or cache marks."""


class Reasoning(_Value, frozen=True, tag="reasoning"):
    """Thinking of a model. The readable part may be empty; the opaque part is never edited."""

    text: str = ""
    opaque: Extra | None = None
    """Signature, encrypted content or redacted data as the provider gave it, by its field name; not counted, not shown, sent back exactly."""
    extra: Extra | None = None


class ToolCall(_Value, frozen=True, tag="tool_call"):
    """A call that the model made."""

    id: str
    name: str
    arguments: str = ""
    """The exact text of the arguments: JSON for function calls, free text for custom ones; possibly unterminated."""
    kind: str = "function"
    """`function`, `custom` (free text), `server` (run by the provider), or another name that a client uses."""
    extra: Extra | None = None


class Media(_Value, frozen=True, tag="media"):
    """An image, a document or a sound; by value (base64 as it came) or by reference."""

    kind: str = "image"
    media_type: str | None = None
    data: str | None = None
    url: str | None = None
    extra: Extra | None = None


class Unknown(_Value, frozen=True, tag="unknown"):
    """A block that we have no word for, kept as it is."""

    raw: Any
    """The whole block as JSON value, its own `type` included."""


class ToolResult(_Value, frozen=True, tag="tool_result"):
    """What came back from a call."""

    call_id: str
    content: tuple[Text | Media | Unknown, ...] = ()
    is_error: bool = False
    name: str | None = None
    """The tool's name, where the result itself carries it."""
    extra: Extra | None = None

    @property
    def text(self) -> str:
        """The result's text parts, joined by a newline where there are several."""
        if len(self.content) == 1 and isinstance(self.content[0], Text):
            return self.content[0].text
        return "\n".join(part.text for part in self.content if isinstance(part, Text))


Block: TypeAlias = Text | Reasoning | ToolCall | ToolResult | Media | Unknown


class Usage(_Value, frozen=True, kw_only=True):
    """Tokens of one model call as the provider counted them, brought to one meaning (failure kinds AC-05, AC-06).

    `input_tokens` is everything sent, cached parts included, whatever the provider calls it; so the size of the context after
    the call is `input_tokens + output_tokens`.
    """

    input_tokens: int
    output_tokens: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0

    @property
    def total(self) -> int:
        """Input plus output, in tokens."""
        return self.input_tokens + self.output_tokens


class Source(_Value, frozen=True):
    """Where an entry was read from."""

    format: str
    line: int | None = None
    """1-based line of the file, or index of the item where the format has no lines."""
    id: str | None = None
    """The id that the client itself gave to the record."""


class Entry(_Value, frozen=True, kw_only=True):
    """One message of a session as it happened.

    A model response is one entry where the client's format says which records belong to one response, and one entry per item
    where it does not (Codex and the Responses API). `parent` makes a session's entries a tree; a session is a path in it.
    """

    id: str
    """Unique in a journal; 1 to 256 characters; carries a letter, so that it is never mistaken for a number."""
    role: Role
    blocks: tuple[Block, ...] = ()
    parent: str | None = None
    sequence: int = 0
    """Position of arrival in its session, from 0. Order comes from it and from nothing else (JR-06: clocks go backwards)."""
    group: str | None = None
    """The provider's id of the response that this entry belongs to."""
    model: str | None = None
    time: str | None = None
    """As the client wrote it, in ISO 8601; times that were numbers are converted."""
    usage: Usage | None = None
    status: Status = "complete"
    source: Source | None = None
    wire: str | None = None
    """The wire format (or session-file format) whose unknown fields `extra` holds; writers of other wires leave them out."""
    extra: Extra | None = None


class Damage(_Value, frozen=True):
    """A part of a file that could not be read. The rest of the file was."""

    line: int
    """1-based line, or the byte offset where the format has no lines."""
    reason: str


class Marker(_Value, frozen=True, kw_only=True):
    """A compaction that a client made by itself, as its session file records it (a *recorded* checkpoint).

    The entries that it covered stay in the transcript; the marker says what the client showed in their place.
    """

    id: str
    after: str | None
    """Id of the newest entry before the compaction; None when it came before any entry."""
    shown: tuple[str | Entry, ...] = ()
    """The client's new context at that moment, oldest first: ids of originals shown whole, and entries (summary, cut text) of its own making."""
    trigger: str | None = None
    tokens_before: int | None = None
    tokens_after: int | None = None
    time: str | None = None
    readable: bool = True
    """False when the summary is an opaque item that only the provider can read."""
    extra: Extra | None = None


class Transcript(_Value, frozen=True, kw_only=True):
    """One session as a reader found it: all its entries, also those off the active path, and what is known about it."""

    id: str
    format: str
    entries: tuple[Entry, ...]
    """All entries in order of arrival; a parent stands before its children."""
    leaf: str | None = None
    """Id of the newest entry of the active path."""
    markers: tuple[Marker, ...] = ()
    title: str | None = None
    cwd: str | None = None
    model: str | None = None
    client: str | None = None
    """Version of the client that wrote the file."""
    time: str | None = None
    window: int | None = None
    """The model's context window in tokens, where the file says so."""
    system: str | None = None
    """The system prompt, where it is recorded apart from the messages."""
    tools: tuple[Any, ...] | None = None
    """Tool definitions, where they are recorded."""
    parent_session: str | None = None
    """The session that started this one as a sub-agent."""
    forked_from: str | None = None
    """The session or file that this one was branched from."""
    damaged: tuple[Damage, ...] = ()
    warnings: tuple[str, ...] = ()
    extra: Extra | None = None

    def path(self) -> tuple[Entry, ...]:
        """The entries of the active path, oldest first.

        Raises:
            ValueError: `leaf` or a parent names no entry, or parents form a cycle.
        """
        return path_to(self.entries, self.leaf)

    def view(self) -> View:
        """The active path as a strategy sees it, with the markers whose position lies on it."""
        entries = self.path()
        ids = {entry.id for entry in entries}
        return View(entries=entries, markers=tuple(m for m in self.markers if m.after is None or m.after in ids))


def path_to(entries: Sequence[Entry], leaf: str | None) -> tuple[Entry, ...]:
    """The entries from the root to `leaf`, oldest first; () for no leaf.

    Raises:
        ValueError: `leaf` or a parent names no entry, or parents form a cycle.
    """
    by_id = {entry.id: entry for entry in entries}
    path: list[Entry] = []
    at = leaf
    while at is not None:
        if at not in by_id:
            raise ValueError(
                f"no entry {at!r} (parent of {path[-1].id!r})" if path else f"no entry {at!r} to end the path at"
            )
        if len(path) == len(by_id):
            raise ValueError(f"the parents of {leaf!r} form a cycle")
        path.append(by_id[at])
        at = by_id[at].parent
    path.reverse()
    return tuple(path)


@dataclass(frozen=True)
class View:
    """The entries of one session's active path that a strategy is allowed to see, oldest first, and what goes with them."""

    entries: tuple[Entry, ...]
    pins: frozenset[str] = frozenset()
    """Ids of entries that the user wants whole in every projection."""
    markers: tuple[Marker, ...] = ()
    features: Mapping[str, bytes] = field(default_factory=dict)
    """Stored derived rows by entry id; a strategy works the same without them, only slower."""

    @cached_property
    def positions(self) -> Mapping[str, int]:
        """Position of each entry in `entries`, by id."""
        return {entry.id: position for position, entry in enumerate(self.entries)}

    def __getitem__(self, entry_id: str) -> Entry:
        return self.entries[self.positions[entry_id]]

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)


def typed_text(entry: Entry) -> Iterator[str]:
    """The texts of `entry` that the author whom its role names wrote, in order; blank ones left out."""
    return (
        block.text
        for block in entry.blocks
        if isinstance(block, Text) and block.origin == "typed" and block.text.strip()
    )


def chained(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """The same entries as one path: each one's parent is the one before it, sequences count from 0."""
    out: list[Entry] = []
    for sequence, entry in enumerate(entries):
        parent = out[-1].id if out else None
        if entry.parent != parent or entry.sequence != sequence:
            entry = msgspec.structs.replace(entry, parent=parent, sequence=sequence)
        out.append(entry)
    return tuple(out)


class Counts(_Value, frozen=True, kw_only=True):
    """How many of what a session holds, as a person counts: texts that someone wrote, calls and results."""

    user_texts: int = 0
    assistant_texts: int = 0
    reasoning: int = 0
    tool_calls: int = 0
    tool_results: int = 0


def count(entries: Iterable[Entry]) -> Counts:
    """Non-blank typed texts of user and assistant entries, reasoning blocks, calls and results, block by block."""
    user = assistant = reasoning = calls = results = 0
    for entry in entries:
        for block in entry.blocks:
            match block:
                case Text(text=text, origin="typed") if text.strip():
                    user += entry.role == "user"
                    assistant += entry.role == "assistant"
                case Reasoning():
                    reasoning += 1
                case ToolCall():
                    calls += 1
                case ToolResult():
                    results += 1
                case _:
                    pass
    return Counts(
        user_texts=user, assistant_texts=assistant, reasoning=reasoning, tool_calls=calls, tool_results=results
    )
