"""A plain rendering for people: who speaks, what was said, and one line for each call and result. It is written, never read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ...errors import FormatError
from ...transcript import Block, Entry, Media, Reasoning, Text, ToolCall, ToolResult, Unknown
from .base import WireMessages
from .common import safe

__all__ = ["WIRE", "PlainText", "as_text"]

_LINE = 120


class PlainText:
    """Writes one message for each entry, whose content is what a person would want to see of it."""

    name = "text"

    def read(
        self, messages: Sequence[dict[str, Any]] | str, *, system: Any = None, session: str = ""
    ) -> tuple[Entry, ...]:
        """Refuses: the rendering leaves out what would be needed to read it.

        Raises:
            FormatError: always.
        """
        raise FormatError("text is for people and cannot be read back; choose the wire format that the messages are in")

    def write(self, entries: Iterable[Entry]) -> WireMessages:
        """One message for each entry, with its role and its rendering."""
        return WireMessages(
            [{"role": entry.role, "content": safe("\n".join(_lines(entry)))} for entry in entries if entry.blocks]
        )


WIRE = PlainText()


def as_text(entries: Iterable[Entry]) -> str:
    """The entries as one text, each under a line with its role and id."""
    return "\n\n".join(
        safe("\n".join((f"[{entry.role} {entry.id}]", *_lines(entry)))) for entry in entries if entry.blocks
    )


def _lines(entry: Entry) -> Iterator[str]:
    for block in entry.blocks:
        yield _shown(block)


def _shown(block: Block) -> str:
    match block:
        case Text(text=text, origin=origin):
            return text if origin == "typed" else f"({origin}) {text}"
        case Reasoning(text=text):
            return f"(thinking) {text or '[not readable]'}"
        case ToolCall(id=call_id, name=name, arguments=arguments):
            return f"-> {name} [{call_id}] {_one_line(arguments)}"
        case ToolResult(call_id=call_id, is_error=is_error):
            others = [_shown(part) for part in block.content if not isinstance(part, Text)]
            return f"<- [{call_id}]{' failed' if is_error else ''} {' '.join([_one_line(block.text), *others])}"
        case Media(kind=kind, media_type=media_type, data=data, url=url):
            size = f", {len(data):,} characters of base64" if data else f" at {_one_line(url)}" if url else ""
            return f"[{kind} {media_type or 'of unknown type'}{size}]"
        case Unknown(raw=raw):
            label = raw.get("type") if isinstance(raw, dict) else type(raw).__name__
            return f"[block of the type {label!r}]"


def _one_line(text: str) -> str:
    """The beginning of a text, and how long it is when that is not all."""
    first = text.strip().split("\n", 1)[0]
    shown = first[:_LINE]
    return shown if shown == text.strip() else f"{shown}… ({len(text):,} characters)"
