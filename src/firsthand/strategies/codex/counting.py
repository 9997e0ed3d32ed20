"""How Codex counts and cuts: four bytes a token, no tokenizer, texts cut in the middle (codex.md 2 and 7.1).

Shared by the Codex strategies. Nothing here looks at `Budget.counter`: what the original decides by its own rough rule is decided by it here too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

from ...codec import compact_json, to_utf8
from ...transcript import Block, Entry, Media, Reasoning, Text, ToolCall, ToolResult, Unknown

__all__ = [
    "IMAGE_TOKENS",
    "active_tokens",
    "block_bytes",
    "cut_middle",
    "cut_to_tokens",
    "entry_tokens",
    "history_tokens",
    "is_compaction",
    "is_model_generated",
    "media_tokens",
    "text_tokens",
]

BYTES_PER_TOKEN = 4
_IMAGE_BYTES = 7_373
IMAGE_TOKENS = 1_844
"""Flat charge for an image (codex.md 2.2); the larger one for images of detail "original" needs their dimensions and is not modelled."""
# Fixed overhead of an encrypted item that the original takes off its decoded length.
_ENVELOPE = 650


def text_tokens(text: str) -> int:
    """A quarter of the UTF-8 bytes, rounded up; 0 for the empty text (codex.md 2.1)."""
    return _quarter(len(text) if text.isascii() else len(to_utf8(text)))


def _quarter(size: int) -> int:
    return (size + BYTES_PER_TOKEN - 1) // BYTES_PER_TOKEN


def cut_middle(text: str, size: int, unit: Literal["tokens", "chars"] = "tokens") -> str:
    """`text` with its middle replaced by a marker, unless it has at most `size` bytes (codex.md 7.1).

    Half of `size` is kept at each end, in whole characters. The marker counts what was removed, in tokens or in characters, and comes on top.
    """
    data = to_utf8(text)
    if len(data) <= size:
        return text
    left = size // 2
    right = len(data) - (size - left)
    while left and _continues(data[left]):
        left -= 1
    while right < len(data) and _continues(data[right]):
        right += 1
    head, tail = (part.decode("utf-8", "surrogatepass") for part in (data[:left], data[right:]))
    removed = _quarter(len(data) - size) if unit == "tokens" else len(text) - len(head) - len(tail)
    return f"{head}…{removed} {unit} truncated…{tail}"


def cut_to_tokens(text: str, tokens: int) -> str:
    """`text` cut in the middle to `tokens` of four bytes each."""
    return cut_middle(text, BYTES_PER_TOKEN * tokens)


def _continues(byte: int) -> bool:
    """Whether a byte stands inside a UTF-8 character."""
    return byte & 0xC0 == 0x80


def media_tokens(media: Media) -> int:
    """What a medium is charged beside text: audio by the length of its data, everything else like an image."""
    return _quarter(block_bytes(media))


def block_bytes(block: Block) -> int:
    """Estimated bytes of one block (codex.md 2.2 at [N]: no framing, no ids of messages, no JSON escaping)."""
    match block:
        case Text(text=text):
            return len(to_utf8(text))
        case Media(kind="audio", data=data):
            return BYTES_PER_TOKEN * _quarter(len(data or ""))
        case Media():
            return _IMAGE_BYTES
        case Reasoning(opaque=opaque):
            return sum(_encrypted(value) for value in (opaque or {}).values() if isinstance(value, str))
        case ToolCall(name=name, arguments=arguments):
            return len(to_utf8(name)) + len(to_utf8(arguments))
        case ToolResult(call_id=call_id, name=name, content=content):
            return len(to_utf8(call_id)) + len(to_utf8(name or "")) + sum(map(block_bytes, content))
        case Unknown(raw=raw):
            return _unknown_bytes(raw)


def _encrypted(value: str) -> int:
    return max(0, len(value) * 3 // 4 - _ENVELOPE)


def _unknown_bytes(raw: Any) -> int:
    kind = raw.get("type") if isinstance(raw, dict) else None
    if kind == "compaction_trigger":
        return 0
    if is_compaction(raw):
        content = raw.get("encrypted_content")
        return _encrypted(content) if isinstance(content, str) else 0
    return len(to_utf8(compact_json(raw)))


def is_compaction(raw: Any) -> bool:
    """Whether a wire item is a compaction that its provider made and only it can read."""
    return isinstance(raw, dict) and raw.get("type") in ("compaction", "context_compaction", "compaction_summary")


def entry_tokens(entry: Entry) -> int:
    """Estimated tokens of an entry; texts and media are one item, every other block is an item of its own, and items are rounded up."""
    message = sum(block_bytes(block) for block in entry.blocks if isinstance(block, (Text, Media)))
    others = (block for block in entry.blocks if not isinstance(block, (Text, Media)))
    return _quarter(message) + sum(_quarter(block_bytes(block)) for block in others)


def history_tokens(entries: Iterable[Entry], fixed: int) -> int:
    """Estimate of a whole history (codex.md 2.3); `fixed` are the tokens of what is sent beside it."""
    return fixed + sum(map(entry_tokens, entries))


def is_model_generated(entry: Entry) -> bool:
    """Whether a model, or the provider's compaction, made the entry (codex.md 2.4)."""
    return entry.role == "assistant" or any(
        isinstance(block, Unknown) and is_compaction(block.raw) for block in entry.blocks
    )


def active_tokens(entries: Sequence[Entry], reported: int, last_turn: int = 0, *, counts_reasoning: bool = True) -> int:
    """Size of the context as Codex compares it with its limits (codex.md 2.4).

    Args:
        entries: the live history, oldest first.
        reported: input plus output of the last response, or the estimate that stands in its place after a compaction.
        last_turn: position of the newest entry that begins a turn.
        counts_reasoning: whether the provider's number covers the reasoning of earlier turns; if not, its estimate is added.
    """
    after = next((at + 1 for at in reversed(range(len(entries))) if is_model_generated(entries[at])), len(entries))
    total = reported + sum(map(entry_tokens, entries[after:]))
    if not counts_reasoning:
        blocks = (block for entry in entries[:last_turn] for block in entry.blocks)
        total += sum(_quarter(block_bytes(block)) for block in blocks if isinstance(block, Reasoning))
    return total
