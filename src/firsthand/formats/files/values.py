"""Small conversions that the readers of documents share: arguments, media, provider usage, and ids for files that have none."""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import Any

from ...codec import compact_json
from ...transcript import Extra, Media, Usage
from .records import count, record_of

__all__ = ["arguments_of", "chat_usage", "items_of", "made_id", "media_of", "usage_of"]

_DATA_URL = re.compile(r"data:([^;,]*)(?:;[^;,]+)*;base64,", re.I)


def items_of(value: Any) -> list[Any]:
    """`value` when it is a JSON array, else an empty one."""
    return value if isinstance(value, list) else []


def arguments_of(value: Any) -> str:
    """The arguments of a call as text: strings as they are, other JSON values written compactly with their keys in order."""
    if value is None:
        return ""
    return value if isinstance(value, str) else compact_json(value)


def media_of(media_type: str | None, url: str | None, data: str | None = None, extra: Extra | None = None) -> Media:
    """An image, document or sound, by value when the data or a data URL is there, else by reference."""
    if data is None and url is not None and (found := _DATA_URL.match(url)):
        media_type = media_type or found[1] or None
        data, url = url[found.end() :], None
    family = (media_type or "").partition("/")[0]
    kind = {"image": "image", "audio": "audio", "video": "video"}.get(family, "document" if media_type else "image")
    return Media(kind=kind, media_type=media_type, data=data, url=url, extra=extra)


def usage_of(sent: int, received: int, *, read: int = 0, written: int = 0, reasoning: int = 0) -> Usage | None:
    """A `Usage`, or None when all its numbers are 0: clients write zeros for a call that never came to its end (AC-07)."""
    if not sent and not received:
        return None
    return Usage(input_tokens=sent, output_tokens=received, cache_read=read, cache_write=written, reasoning=reasoning)


def chat_usage(usage: Any) -> Usage | None:
    """Usage as OpenAI's APIs report it, cached tokens inside the input (AC-05); both their spellings."""
    given = record_of(usage)
    sent = record_of(given.get("prompt_tokens_details") or given.get("input_tokens_details"))
    received = record_of(given.get("completion_tokens_details") or given.get("output_tokens_details"))
    return usage_of(
        count(given.get("prompt_tokens", given.get("input_tokens"))),
        count(given.get("completion_tokens", given.get("output_tokens"))),
        read=count(sent.get("cached_tokens")),
        reasoning=count(received.get("reasoning_tokens")),
    )


def made_id(prefix: str, *parts: object) -> str:
    """A session id for a file that holds none: the prefix and a hash of what will not change as the session grows."""
    text = "\0".join(map(str, parts))
    return f"{prefix}-{blake2b(text.encode('utf-8', 'surrogatepass'), digest_size=6).hexdigest()}"
