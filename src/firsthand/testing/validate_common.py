"""What the rules of all providers share: how a violation is told, and what names, arguments and images look like."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, TypeAlias

import msgspec

__all__ = ["Found", "Violation", "bad_arguments", "bad_image_url", "is_name", "objects", "word"]

Found: TypeAlias = tuple[int, str, str]
"""Index of the message, rule, explanation."""


class Violation(msgspec.Struct, frozen=True):
    """A rule that a request breaks."""

    index: int
    """Index of the message or item; -1 for the request as a whole and its system prompt."""
    rule: str
    """Short name, the same in every release."""
    explanation: str


_NAME = re.compile(r"[a-zA-Z0-9_-]+")
_IMAGE = re.compile(r"data:image/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/=_-]+")
_WEB = re.compile(r"https?://\S+")


def is_name(value: Any, longest: int) -> bool:
    """Whether the value is a tool name that providers accept."""
    return isinstance(value, str) and _NAME.fullmatch(value) is not None and len(value) <= longest


def bad_arguments(value: Any) -> str | None:
    """What is wrong with the arguments of a call, which must be JSON as text; None when nothing is."""
    if not isinstance(value, str):
        return f"arguments are a {type(value).__name__} and must be JSON as text"
    try:
        json.loads(value, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        return f"arguments are no valid JSON: {error}"
    return None


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def bad_image_url(url: Any) -> str | None:
    """What is wrong with the URL of an image; None when nothing is."""
    if not isinstance(url, str):
        return "the URL must be a string"
    if url.startswith("data:"):
        return None if _IMAGE.fullmatch(url) else "a data URL must hold a png, jpeg, gif or webp image in base64"
    return None if _WEB.fullmatch(url) else "the URL must be a data URL or begin with http"


def word(value: Any, name: str) -> str | None:
    """The field of an object when it is a string; None for any other value, and for what is no object."""
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, str) else None


def objects(value: Any) -> Iterator[dict[str, Any]]:
    """The objects of a list; nothing for what is none."""
    if isinstance(value, list):
        yield from (item for item in value if isinstance(item, dict))
