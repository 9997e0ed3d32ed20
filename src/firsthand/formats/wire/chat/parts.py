"""Content parts of Chat Completions, both ways."""

from __future__ import annotations

from typing import Any

from ....errors import FormatError
from ....transcript import Block, Media, Text, Unknown
from ..media import AUDIO_FORMATS, IMAGE_TYPES, as_url, from_url, is_web
from ..placeholders import left_out
from ..shape import difference, hint, restored

__all__ = ["media_part", "own_part", "read_content"]


def read_content(content: Any, where: str) -> tuple[Text | Media | Unknown, ...]:
    """The blocks of a message's `content`: a string, a list of parts, or nothing.

    Raises:
        FormatError: it is something else.
    """
    if content is None:
        return ()
    if isinstance(content, str):
        return (Text(content),)
    if not isinstance(content, list) or not all(isinstance(part, dict) for part in content):
        raise FormatError(f"{where}: the content must be a string or a list of parts")
    return tuple(_read_part(part, where) for part in content)


def _read_part(raw: dict[str, Any], where: str) -> Text | Media | Unknown:
    part = _known_part(raw)
    if isinstance(part, Unknown):
        return part
    try:
        extra = difference(raw, own_part(part), where, part.extra)
    except FormatError:
        return Unknown(raw)
    return (
        Text(part.text, extra=extra)
        if isinstance(part, Text)
        else Media(part.kind, part.media_type, part.data, part.url, extra)
    )


def _known_part(raw: dict[str, Any]) -> Text | Media | Unknown:
    match raw:
        case {"type": "text", "text": str() as text}:
            return Text(text)
        case {"type": "refusal", "refusal": str() as text}:
            return Text(text, extra={"~as": "refusal"})
        case {"type": "image_url", "image_url": {"url": str() as url}}:
            return from_url("image", url)
        case {"type": "input_audio", "input_audio": {"data": str() as data, "format": str() as kind}}:
            return Media("audio", {"wav": "audio/wav", "mp3": "audio/mpeg"}.get(kind, f"audio/{kind}"), data)
        case {"type": "file", "file": {"file_data": str() as url}}:
            return from_url("document", url)
    return Unknown(raw)


def own_part(block: Block) -> dict[str, Any]:
    """A part as this wire's client wrote it, fields that only the client knows aside."""
    match block:
        case Text(text=text, extra=extra) if hint(extra, "as") == "refusal":
            return {"type": "refusal", "refusal": text}
        case Text(text=text):
            return {"type": "text", "text": text}
        case Media(kind="audio", media_type=kind, data=data):
            return {"type": "input_audio", "input_audio": {"data": data or "", "format": _audio_format(kind)}}
        case Media(kind="document"):
            return {"type": "file", "file": {"file_data": as_url(block) or ""}}
        case Media():
            return {"type": "image_url", "image_url": {"url": as_url(block) or ""}}
        case Unknown(raw=dict() as raw):
            return dict(raw)
    raise AssertionError(f"no part for {type(block).__name__}")


def _audio_format(media_type: str | None) -> str:
    return AUDIO_FORMATS.get(media_type or "", (media_type or "").removeprefix("audio/"))


def media_part(media: Media, *, own: bool) -> dict[str, Any]:
    """A medium as a part of a user message; a text that names it when Chat Completions cannot carry it."""
    carried = {
        "image": is_web(media) or (media.data is not None and media.media_type in IMAGE_TYPES),
        "audio": media.data is not None and media.media_type in AUDIO_FORMATS,
        "document": media.data is not None and media.media_type == "application/pdf",
    }
    # What this wire's own client sent as a file may be of any type, and may be data without a data URL.
    if own and media.kind == "document":
        carried["document"] = bool(media.data or media.url)
    if not carried.get(media.kind):
        return {"type": "text", "text": left_out(media)}
    part = own_part(media)
    if own:
        return restored(part, media.extra)
    if media.kind == "document":
        part["file"] = {"filename": (media.extra or {}).get("filename") or "document.pdf", **part["file"]}
    return part
