"""Images, documents and sounds between data URLs and base64 sources."""

from __future__ import annotations

import re
from typing import Any

from ...transcript import Extra, Media

__all__ = ["AUDIO_FORMATS", "IMAGE_TYPES", "as_url", "from_url", "is_web"]

IMAGE_TYPES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
"""Image types that all three providers take."""

AUDIO_FORMATS = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/wave": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}
"""Sound types that Chat Completions takes, by media type."""

_DATA_URL = re.compile(r"data:([^;,]+);base64,")


def from_url(kind: str, url: str, extra: Extra | None = None) -> Media:
    """A medium given by URL. A plain data URL is taken apart; one with parameters stays a URL, so that it can be given back."""
    found = _DATA_URL.match(url)
    if found is None:
        return Media(kind, url=url, extra=extra)
    return Media(kind, found[1], url[found.end() :], extra=extra)


def as_url(media: Media) -> str | None:
    """The medium as a URL: a data URL when the data is there, else where it is; None when there is neither."""
    if media.data is not None:
        return f"data:{media.media_type or default_type(media)};base64,{media.data}"
    return media.url


def default_type(media: Media) -> str:
    """A type for data that came without one, told from the first bytes where they tell."""
    starts = {
        "iVBOR": "image/png",
        "/9j/": "image/jpeg",
        "R0lGOD": "image/gif",
        "UklGR": "image/webp",
        "JVBER": "application/pdf",
    }
    data: Any = media.data or ""
    return next((kind for start, kind in starts.items() if data.startswith(start)), f"{media.kind}/octet-stream")


def is_web(media: Media) -> bool:
    """Whether a provider could fetch it."""
    return media.data is None and media.url is not None and media.url.startswith(("https://", "http://"))
