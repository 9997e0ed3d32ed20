"""The content of a message in canonical form: what its clients write anew with each request is left out.

The table of volatile parts (design.md 9): cache marks, ids of items, status, metadata; a text may be a string or a list of one part; arguments
are compared parsed. Reminders glued to the newest message are handled by `bare_texts`, the billing line stands in no message.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ...codec import decode, encode
from ..scan import ScanError, fields, items

__all__ = ["VOLATILE", "parsed", "parts_of", "with_part", "without"]

VOLATILE = frozenset(
    {"cache_control", "id", "index", "internal_chat_message_metadata_passthrough", "metadata", "phase", "status"}
)
"""Fields of messages, items and parts that clients set, move and drop between two requests."""

_TEXTS = ("text", "input_text", "output_text")


def without(value: Mapping[str, Any], names: Iterable[str] = ()) -> dict[str, Any]:
    """An object without its volatile fields, without `names`, and without what is null or empty."""
    dropped = VOLATILE.union(names)
    return {name: given for name, given in value.items() if name not in dropped and given not in (None, [], {})}


def parts_of(content: Any) -> list[Any]:
    """A content as a list of parts, texts in one form."""
    if content is None:
        return []
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    if not isinstance(content, list):
        return [content]
    return [_part(part) for part in content]


def _part(part: Any) -> Any:
    if not isinstance(part, dict):
        return part
    if part.get("type") in _TEXTS and isinstance(part.get("text"), str):
        return {"type": "text", "text": part["text"]}
    return without(part)


def parsed(arguments: Any) -> Any:
    """Arguments as a value where they are JSON text, else as they are."""
    if not isinstance(arguments, str):
        return arguments
    try:
        return decode(arguments)
    except (ValueError, RecursionError):
        return arguments


def with_part(raw: bytes, name: str, kind: str, text: str, *, strings: bool) -> bytes | None:
    """A message with one text part more at the end of its content, all else the bytes that came.

    Args:
        raw: the message.
        name: its field with the content.
        kind: the type of a text part.
        text: the text.
        strings: whether a content that is a string may become a list of parts.

    Returns:
        None where the content is no list, or a string that must stay one.
    """
    try:
        span = fields(raw)[name]
        content = span.of(raw)
        if content.startswith(b"["):
            parts = [found.of(content) for found in items(content)]
        elif content.startswith(b'"') and strings:
            parts = [b'{"type":' + encode(kind) + b',"text":' + content + b"}"] if content != b'""' else []
        else:
            return None
    except (ScanError, KeyError):
        return None
    parts.append(encode({"type": kind, "text": text}))
    return raw[: span.start] + b"[" + b",".join(parts) + b"]" + raw[span.end :]
