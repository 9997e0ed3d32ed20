"""Messages as the labelled text that OpenCode's summariser reads (opencode.md 2.6 and 3.4).

Each text that stands in it verbatim is noted with its place, so that a plan can say what it quotes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ...projection.plan import BlockRef, Excerpt, Span
from ...transcript import Media, Reasoning, Text, ToolCall, ToolResult, Unknown
from ..javascript import arguments_json, head, length
from .messages import Message, Part, Tool
from .size import json_text, name_of, type_of

__all__ = ["TRUNCATED", "Flavour", "Quote", "Serialized", "attached", "joined", "quoted", "serialized"]

TRUNCATED = "[truncated]"

Flavour: TypeAlias = Literal["V1", "V2"]


@dataclass(frozen=True, slots=True)
class Quote:
    """Where the beginning of a block stands in a text."""

    part: Part
    start: int
    """Character of the text at which it begins."""
    size: int
    """How many characters of the block stand there."""


@dataclass(frozen=True)
class Serialized:
    """One message as text, and what in it is verbatim."""

    message: Message
    text: str
    quotes: tuple[Quote, ...]
    named: tuple[Part, ...]
    """Blocks that it names without showing them as they are: attachments, arguments that were written anew."""


class _Writer:
    """Lines of one message."""

    def __init__(self) -> None:
        self.quotes: list[Quote] = []
        self.named: list[Part] = []
        self._pieces: list[str] = []
        self._at = 0

    def add(self, text: str) -> None:
        self._pieces.append(text)
        self._at += len(text)

    def line(self, label: str) -> None:
        if self._pieces:
            self.add("\n")
        self.add(label)

    def quote(self, part: Part, text: str, size: int | None = None) -> None:
        """Adds `text`, the first `size` characters of which are the block's own."""
        self.quotes.append(Quote(part, self._at, len(text) if size is None else size))
        self.add(text)

    @property
    def text(self) -> str:
        return "".join(self._pieces)


def serialized(message: Message, flavour: Flavour, limit: int) -> Serialized | None:
    """The message as text, or None where it has nothing to say.

    Args:
        message: the message.
        flavour: V2 also writes empty lines for users and answers, and labels what a client put in.
        limit: characters (UTF-16 code units) after which a tool's output is cut.
    """
    writer = _Writer()
    if message.role == "assistant":
        for part in message.parts:
            if isinstance(part, Tool):
                _tool(writer, part, flavour, limit)
            else:
                _answer(writer, part, flavour)
    else:
        _sent(writer, message, flavour)
    text = writer.text
    return Serialized(message, text, tuple(writer.quotes), tuple(writer.named)) if text else None


def _sent(writer: _Writer, message: Message, flavour: Flavour) -> None:
    """What a user sent, or a change of the instructions."""
    label = "[User]: "
    if message.role == "system":
        label = "[System update]: "
    elif flavour == "V2" and message.is_injected:
        label = "[Synthetic context]: "
    texts = [(part, part.block.text) for part in message.blocks() if isinstance(part.block, Text) and part.block.text]
    if texts or (flavour == "V2" and message.role == "user"):
        writer.line(label)
    for number, (part, text) in enumerate(texts):
        if number:
            writer.add("\n")
        writer.quote(part, text)
    for part in message.blocks():
        if isinstance(part.block, Media):
            writer.line(attached(part.block, flavour))
            writer.named.append(part)


def attached(media: Media, flavour: Flavour = "V1") -> str:
    """The line that stands for an attachment."""
    otherwise = media.url if flavour == "V2" and media.url and not media.url.startswith("data:") else "file"
    return f"[Attached {type_of(media)}: {name_of(media, otherwise)}]"


def _answer(writer: _Writer, part: Part, flavour: Flavour) -> None:
    match part.block:
        case Text(text=text) if part.entry.role != "assistant":
            writer.line("[Synthetic context]: " if flavour == "V2" else "[User]: ")
            writer.quote(part, text)
        case Text(text=text) if text or flavour == "V2":
            writer.line("[Assistant]: ")
            writer.quote(part, text)
        case Reasoning(text=text) if text:
            writer.line("[Assistant reasoning]: ")
            writer.quote(part, text)
        case Media() as media:
            writer.line(attached(media, flavour))
            writer.named.append(part)
        case _:
            pass


def _tool(writer: _Writer, tool: Tool, flavour: Flavour, limit: int) -> None:
    if tool.call is not None and isinstance(tool.call.block, ToolCall):
        call = tool.call.block
        written = arguments_json(call.arguments)
        writer.line(f"[Assistant tool call]: {call.name}(")
        if written == call.arguments:
            writer.quote(tool.call, written)
        else:
            writer.add(written)
            writer.named.append(tool.call)
        writer.add(")")
    if tool.result is not None and isinstance(tool.result.block, ToolResult):
        _result(writer, tool.result, tool.result.block, flavour, limit)


def _result(writer: _Writer, part: Part, result: ToolResult, flavour: Flavour, limit: int) -> None:
    if result.is_error:
        writer.line("[Tool error]: ")
        output = _output(result, flavour)
        shown = output
    else:
        writer.line("[Tool result]: ")
        output = _output(result, flavour)
        shown = output if length(output) <= limit else head(output, limit)
    own = result.text
    if own and output.startswith(own) and not part.replaced:
        writer.quote(part, shown, min(len(own), len(shown)))
    else:
        writer.add(shown)
        writer.named.append(part)
    if len(shown) < len(output):
        writer.line(TRUNCATED)


def _output(result: ToolResult, flavour: Flavour) -> str:
    """What the tool gave back: texts first in V1, in their order in V2; a line for each attachment."""
    pieces: Sequence[Text | Media | Unknown] = result.content
    if flavour == "V1":
        pieces = sorted(pieces, key=lambda piece: not isinstance(piece, Text))
    return "\n".join(
        piece.text
        if isinstance(piece, Text)
        else attached(piece, flavour)
        if isinstance(piece, Media)
        else json_text(piece.raw)
        for piece in pieces
    )


def joined(texts: Iterable[str]) -> str:
    """Serialized messages as one conversation."""
    return "\n\n".join(text for text in texts if text)


def quoted(text: Serialized, start: int = 0) -> tuple[list[Excerpt], list[BlockRef]]:
    """What a plan quotes and names of one serialized message that it shows from character `start` on."""
    excerpts: list[Excerpt] = []
    indexed: list[BlockRef] = []
    for quote in text.quotes:
        part = quote.part
        begin = max(0, start - quote.start)
        if begin < quote.size and not part.replaced:
            excerpts.append(Excerpt(part.entry.id, part.number, (Span(begin, quote.size),), "recent, as text"))
    if start == 0:
        indexed += [BlockRef(part.entry.id, part.number) for part in text.named]
    return excerpts, indexed
