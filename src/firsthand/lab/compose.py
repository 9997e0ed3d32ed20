"""What fills the window: records, characters and tokens of sessions by kind and by tool, and in the published study's way of counting.

Only what a model sees is counted: texts, readable reasoning, arguments of calls, text of results. Opaque reasoning, base64 and the display
copies that clients write are not. A whole session is counted, also what its client later compacted away; what the client's own compactions
showed instead of the history is a kind of its own, `recorded`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from ..codec import compact_json
from ..tokens import Counter, block_cost
from ..transcript import Block, Entry, Media, Reasoning, Text, ToolCall, ToolResult, Transcript

__all__ = ["KINDS", "STUDY_FLOOR", "Amount", "Composition", "Published", "ToolAmount", "compose", "total"]

KINDS: tuple[str, ...] = (
    "user",
    "assistant",
    "reasoning",
    "tool call",
    "tool output",
    "injected",
    "media",
    "other",
    "recorded",
)
"""Kinds in the order of tables. `injected` is what a client put in: system prompts, rule files, reminders; `recorded` what its compactions made."""

_UNNAMED = "(no name recorded)"
STUDY_FLOOR = 93.2
"""Lowest share of tool output, in per cent, that the published study reports for a chain of its own (futureos.md 8.9)."""


class Amount(msgspec.Struct, frozen=True):
    """How much there is of one kind."""

    records: int = 0
    """Blocks: texts, calls, results."""
    characters: int = 0
    """Unicode characters of what the model sees; of a call those of its arguments, without its name."""
    tokens: int = 0
    """By the counter that the composition names; of a call with its name, of an image the flat charge."""

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.records + other.records, self.characters + other.characters, self.tokens + other.tokens)


class ToolAmount(msgspec.Struct, frozen=True):
    """What one tool takes."""

    tool: str
    calls: int = 0
    results: int = 0
    errors: int = 0
    argument_characters: int = 0
    output_characters: int = 0
    argument_tokens: int = 0
    output_tokens: int = 0

    @property
    def tokens(self) -> int:
        """Arguments and output together."""
        return self.argument_tokens + self.output_tokens

    def __add__(self, other: ToolAmount) -> ToolAmount:
        sums = (getattr(self, name) + getattr(other, name) for name in self.__struct_fields__[1:])
        return ToolAmount(self.tool, *sums)


class Published(msgspec.Struct, frozen=True, kw_only=True):
    """The published study's way of counting (futureos.md 8.9).

    Four types of record; characters of text; a call is a record but its arguments are not counted.
    """

    records: dict[str, int]
    """By type: tool output, assistant, user, tool call."""
    characters: dict[str, int]
    """By type; without calls."""

    @property
    def tool_share(self) -> float | None:
        """Per cent of the characters that tool output takes; None where there are none."""
        whole = sum(self.characters.values())
        return 100 * self.characters["tool output"] / whole if whole else None


class Composition(msgspec.Struct, frozen=True, kw_only=True):
    """What one session, or several together, consist of."""

    source: str
    """Name of the file; of a sum what it sums."""
    session: str
    format: str
    counter: str
    """Name of the counter that made the tokens."""
    sessions: int = 1
    entries: int = 0
    off_path: int = 0
    """Of the entries, those that are not on the active path (abandoned branches)."""
    kinds: dict[str, Amount]
    """By kind, in the order of `KINDS`; kinds that do not occur are left out."""
    tools: tuple[ToolAmount, ...]
    """The heaviest first."""

    @property
    def counted(self) -> Amount:
        """All kinds together, but what the client's own compactions made."""
        return sum((amount for kind, amount in self.kinds.items() if kind != "recorded"), Amount())

    @property
    def published(self) -> Published:
        """The same session as the published study would count it."""
        counted = {kind: self.kinds.get(kind, Amount()) for kind in ("tool output", "assistant", "user", "tool call")}
        return Published(
            records={kind: amount.records for kind, amount in counted.items()},
            characters={kind: amount.characters for kind, amount in counted.items() if kind != "tool call"},
        )


def compose(transcript: Transcript, counter: Counter, *, source: str = "") -> Composition:
    """What the session consists of.

    Args:
        transcript: the session; its abandoned branches are counted too.
        counter: counts the tokens.
        source: name of the file, for tables.
    """
    kinds: dict[str, Amount] = {}
    tools: dict[str, ToolAmount] = {}
    called: dict[str, str] = {}
    for entry in transcript.entries:
        for block in entry.blocks:
            kind = _kind(entry, block)
            tokens = block_cost(block, counter)
            characters = _characters(block)
            # An empty result is a result all the same; an empty text, or reasoning that only the provider can read, is nothing to see.
            if characters or isinstance(block, (ToolCall, ToolResult, Media)):
                kinds[kind] = kinds.get(kind, Amount()) + Amount(1, characters, tokens)
            if isinstance(block, ToolCall):
                called[block.id] = block.name
            found = _tool(block, called, characters, tokens)
            if found is not None:
                tools[found.tool] = tools[found.tool] + found if found.tool in tools else found
    kinds["recorded"] = sum((_of_marker(entry, counter) for entry in _made(transcript)), Amount())
    if transcript.system:
        # Where a system prompt is recorded apart it is no entry, but the model saw it.
        kinds["injected"] = kinds.get("injected", Amount()) + Amount(
            1, len(transcript.system), counter.count(transcript.system)
        )
    on_path = {entry.id for entry in transcript.path()}
    return Composition(
        source=source,
        session=transcript.id,
        format=transcript.format,
        counter=counter.name,
        entries=len(transcript.entries),
        off_path=len(transcript.entries) - len(on_path),
        kinds={kind: kinds[kind] for kind in KINDS if kinds.get(kind, Amount()).records},
        tools=_sorted(tools.values()),
    )


def total(parts: Sequence[Composition], source: str = "all sessions") -> Composition:
    """Several sessions together.

    Args:
        parts: at least one, all counted by the same counter.
        source: what to call the sum.

    Raises:
        ValueError: no parts, or parts by different counters.
    """
    counters = {part.counter for part in parts}
    if len(counters) != 1:
        raise ValueError(f"cannot add compositions by {len(counters)} counters: {', '.join(sorted(counters))}")
    tools: dict[str, ToolAmount] = {}
    for part in parts:
        for tool in part.tools:
            tools[tool.tool] = tools[tool.tool] + tool if tool.tool in tools else tool
    formats = sorted({part.format for part in parts})
    return Composition(
        source=source,
        session="",
        format=", ".join(formats),
        counter=parts[0].counter,
        sessions=sum(part.sessions for part in parts),
        entries=sum(part.entries for part in parts),
        off_path=sum(part.off_path for part in parts),
        kinds={
            kind: sum((part.kinds[kind] for part in parts if kind in part.kinds), Amount())
            for kind in KINDS
            if any(kind in part.kinds for part in parts)
        },
        tools=_sorted(tools.values()),
    )


def _kind(entry: Entry, block: Block) -> str:
    match block:
        case Text(origin="typed") if entry.role in ("user", "assistant"):
            return entry.role
        case Text():
            return "injected"
        case Reasoning():
            return "reasoning"
        case ToolCall():
            return "tool call"
        case ToolResult():
            return "tool output"
        case Media():
            return "media"
        case _:
            return "other"


def _characters(block: Block) -> int:
    match block:
        case Text(text=text) | Reasoning(text=text):
            return len(text) if text.strip() else 0
        case ToolCall(arguments=arguments):
            return len(arguments)
        case ToolResult():
            return len(block.text)
        case Media():
            return 0
        case _:
            return len(compact_json(block.raw))


def _tool(block: Block, called: dict[str, str], characters: int, tokens: int) -> ToolAmount | None:
    if isinstance(block, ToolCall):
        return ToolAmount(block.name or _UNNAMED, calls=1, argument_characters=characters, argument_tokens=tokens)
    if isinstance(block, ToolResult):
        return ToolAmount(
            called.get(block.call_id) or block.name or _UNNAMED,
            results=1,
            errors=int(block.is_error),
            output_characters=characters,
            output_tokens=tokens,
        )
    return None


def _made(transcript: Transcript) -> Iterator[Entry]:
    return (shown for marker in transcript.markers for shown in marker.shown if isinstance(shown, Entry))


def _of_marker(entry: Entry, counter: Counter) -> Amount:
    seen = [
        block
        for block in entry.blocks
        if _characters(block) and isinstance(block, (Text, Reasoning, ToolCall, ToolResult))
    ]
    return Amount(len(seen), sum(map(_characters, seen)), sum(block_cost(block, counter) for block in seen))


def _sorted(tools: Iterable[ToolAmount]) -> tuple[ToolAmount, ...]:
    return tuple(sorted(tools, key=lambda tool: (-tool.tokens, tool.tool)))
