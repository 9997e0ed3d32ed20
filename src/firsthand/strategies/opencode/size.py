"""What a span of messages counts in OpenCode: a quarter of the characters of the JSON that its SDK makes of them (opencode.md 2.2).

Characters are UTF-16 code units, as in JavaScript. Nothing is shortened: images count in full, reasoning with its provider's data. Where the
spec does not say how something is written (opaque parts of reasoning, media inside results, blocks that we have no word for), the raw value
counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from ...codec import compact_json
from ...transcript import Entry, Media, Reasoning, Text, ToolCall, ToolResult, Unknown
from ..javascript import arguments_of, js_json, length
from .messages import Message, Part, Tool

__all__ = ["CLEARED", "Sizes", "estimate", "json_text", "model_messages", "name_of", "type_of"]

CLEARED = "[Tool output cleared by pruning.]"
"""Stands for an output that was pruned; as long as the original's notice, so that it counts the same."""

_UNFINISHED = "[The tool did not finish]"


def estimate(units: int) -> int:
    """Tokens of a text of so many UTF-16 code units: a quarter, halves rounded up."""
    return (units + 2) // 4


def type_of(media: Media) -> str:
    """The media type, or the kind where the type is not known."""
    return media.media_type or media.kind


def name_of(media: Media, otherwise: str = "file") -> str:
    """The file's name, where the client recorded one."""
    for key in ("filename", "name", "title"):
        name = (media.extra or {}).get(key)
        if isinstance(name, str) and name:
            return name
    return otherwise


@dataclass(frozen=True)
class Sizes:
    """Sizes of a list of messages, so that any span of it can be counted at once."""

    units: tuple[int, ...]
    """Sum of the characters of the messages before each position; one more than there are messages."""
    counts: tuple[int, ...]
    """Likewise of the number of model messages."""

    @classmethod
    def of(cls, messages: Sequence[Message]) -> Sizes:
        """The sizes of `messages`. Reasoning of another model than the newest counts as plain text, without its provider's data."""
        model = next((m for m in (_model(message) for message in reversed(messages)) if m), None)
        made = [[length(json_text(part)) for part in model_messages(message, model)] for message in messages]
        return cls(
            tuple(accumulate((sum(sizes) for sizes in made), initial=0)),
            tuple(accumulate((len(sizes) for sizes in made), initial=0)),
        )

    def __len__(self) -> int:
        return len(self.units) - 1

    def tokens(self, start: int, end: int) -> int:
        """Estimated tokens of the messages from `start` to `end`, exclusive, as one JSON list."""
        commas = max(0, self.counts[end] - self.counts[start] - 1)
        return estimate(self.units[end] - self.units[start] + commas + 2)


def json_text(value: Any) -> str:
    """`value` as JavaScript writes it; what nests too deeply for that, as it would be without care for JavaScript's numbers."""
    try:
        return js_json(value)
    except RecursionError:
        return compact_json(value)


def _model(message: Message) -> str | None:
    return next((part.entry.model for part in message.blocks() if part.entry.role == "assistant"), None)


def model_messages(message: Message, model: str | None = None) -> list[dict[str, Any]]:
    """The messages of the SDK that OpenCode makes of one of its own: none, one, or an assistant message and one with its results.

    Args:
        message: the message.
        model: the model that is going to read it; reasoning of others becomes text.
    """
    content: list[Any] = []
    results: list[Any] = []
    for part in message.parts:
        if isinstance(part, Tool):
            if part.call is not None and not _failed(part.call.entry):
                content.append(_call(part.call.block))
            result = _result(part)
            if result is not None:
                results.append(result)
        elif not _failed(part.entry):
            content += _content(part, model)
    made: list[dict[str, Any]] = [{"role": message.role, "content": content}] if content else []
    if results:
        made.append({"role": "tool", "content": results})
    return made


def _failed(entry: Entry) -> bool:
    """Whether the provider failed in it: such an answer is not sent again (opencode.md 2.7)."""
    return entry.role == "assistant" and entry.status == "error"


def _content(part: Part, model: str | None) -> Iterable[Any]:
    match part.block:
        case Text(text=text):
            return ({"type": "text", "text": text},) if text else ()
        case Reasoning(text=text, opaque=opaque):
            if model is not None and part.entry.model not in (None, model):
                return ({"type": "text", "text": text},) if text else ()
            made: dict[str, Any] = {"type": "reasoning", "text": text}
            return (made | {"providerOptions": opaque} if opaque else made,)
        case Media() as media:
            name = name_of(media, "")
            file = {"type": "file", "mediaType": type_of(media)} | ({"filename": name} if name else {})
            return (file | {"data": _data(media)},)
        case Unknown(raw=raw):
            return (raw,)
        case _:
            return ()


def _data(media: Media) -> str:
    return media.url or f"data:{type_of(media)};base64,{media.data or ''}"


def _call(block: object) -> Any:
    call = block if isinstance(block, ToolCall) else ToolCall("", "")
    return {
        "type": "tool-call",
        "toolCallId": call.id,
        "toolName": call.name,
        "input": arguments_of(call.arguments),
    }


def _result(tool: Tool) -> Any:
    """The result part; None for a call of the provider's own that has none, and for one that failed on its way here."""
    call = tool.call.block if tool.call is not None and isinstance(tool.call.block, ToolCall) else None
    if tool.result is None:
        if call is None or call.kind == "server" or (tool.call is not None and _failed(tool.call.entry)):
            return None
        return _result_part(call.id, call.name, {"type": "error-text", "value": _UNFINISHED})
    block = tool.result.block
    if not isinstance(block, ToolResult):
        return None
    name = call.name if call is not None else block.name or ""
    others = [piece for piece in block.content if not isinstance(piece, Text)]
    output: dict[str, Any] = {"type": "error-text" if block.is_error else "text", "value": block.text}
    if others and not block.is_error:
        output = {"type": "content", "value": [{"type": "text", "text": block.text}, *map(_attached, others)]}
    return _result_part(block.call_id, name, output)


def _attached(piece: Media | Text | Unknown) -> Any:
    if isinstance(piece, Media):
        return {"type": "media", "mediaType": type_of(piece), "data": piece.data or piece.url or ""}
    return piece.raw if isinstance(piece, Unknown) else piece.text


def _result_part(call_id: str, name: str, output: dict[str, Any]) -> Any:
    return {"type": "tool-result", "toolCallId": call_id, "toolName": name, "output": output}
