"""Content parts of the Responses API, both ways."""

from __future__ import annotations

from typing import Any

from ....errors import FormatError
from ....transcript import Block, Media, Role, Text, Unknown
from ..media import AUDIO_FORMATS, IMAGE_TYPES, as_url, from_url, is_web
from ..placeholders import left_out
from ..shape import difference, hint, restored

__all__ = ["media_part", "own_part", "read_parts", "text_part"]


def read_parts(content: list[Any], role: Role, where: str) -> tuple[Text | Media | Unknown, ...]:
    """The blocks of a list of parts.

    Raises:
        FormatError: a part is no object.
    """
    if not all(isinstance(part, dict) for part in content):
        raise FormatError(f"{where}: each part of the content must be an object")
    return tuple(_read_part(part, role, where) for part in content)


def _read_part(raw: dict[str, Any], role: Role, where: str) -> Text | Media | Unknown:
    part = _known_part(raw, role)
    if isinstance(part, Unknown):
        return part
    try:
        extra = difference(raw, own_part(part, role), where, part.extra)
    except FormatError:
        return Unknown(raw)
    return (
        Text(part.text, extra=extra)
        if isinstance(part, Text)
        else Media(part.kind, part.media_type, part.data, part.url, extra)
    )


def _known_part(raw: dict[str, Any], role: Role) -> Text | Media | Unknown:
    match raw:
        case {"type": "input_text" | "output_text" | "text" as kind, "text": str() as text}:
            return Text(text, extra=None if kind == _text_type(role) else {"~type": kind})
        case {"type": "refusal", "refusal": str() as text}:
            return Text(text, extra={"~type": "refusal"})
        case {"type": "input_image", "image_url": str() as url}:
            return from_url("image", url)
        case {"type": "input_image", "file_id": str()}:
            return Media("image")
        case {"type": "input_file", "file_data": str() as url}:
            return from_url("document", url)
        case {"type": "input_file", "file_url": str() as url}:
            return Media("document", url=url, extra={"~field": "file_url"})
        case {"type": "input_file", "file_id": str()}:
            return Media("document")
        case {"type": "input_audio", "input_audio": {"data": str() as data, "format": str() as kind}}:
            return Media("audio", {"wav": "audio/wav", "mp3": "audio/mpeg"}.get(kind, f"audio/{kind}"), data)
    return Unknown(raw)


def _text_type(role: Role) -> str:
    return "output_text" if role == "assistant" else "input_text"


def text_part(text: str, role: Role) -> dict[str, Any]:
    """A text as a part of a message of that role."""
    return {"type": _text_type(role), "text": text}


def own_part(block: Block, role: Role) -> dict[str, Any]:
    """A part as this wire's client wrote it, fields that only the client knows aside."""
    match block:
        case Text(text=text, extra=extra) if hint(extra, "type") == "refusal":
            return {"type": "refusal", "refusal": text}
        case Text(text=text, extra=extra):
            return {"type": hint(extra, "type") or _text_type(role), "text": text}
        case Media(kind="audio", media_type=kind, data=data):
            name = AUDIO_FORMATS.get(kind or "", (kind or "").removeprefix("audio/"))
            return {"type": "input_audio", "input_audio": {"data": data or "", "format": name}}
        case Media(kind=kind):
            url = as_url(block)
            field = "image_url" if kind == "image" else hint(block.extra, "field") or "file_data"
            return {"type": "input_image" if kind == "image" else "input_file", **({field: url} if url else {})}
        case Unknown(raw=dict() as raw):
            return dict(raw)
    raise AssertionError(f"no part for {type(block).__name__}")


def media_part(media: Media, *, own: bool) -> dict[str, Any]:
    """A medium as a part of the user's message or of an output; a text that names it when the Responses API cannot carry it."""
    if own and media.kind in ("image", "document", "audio") and not _refused(media):
        return restored(own_part(media, "user"), media.extra)
    if media.kind == "image" and (is_web(media) or (media.data is not None and media.media_type in IMAGE_TYPES)):
        return {**own_part(media, "user"), "detail": "auto"}
    if media.kind == "document" and is_web(media):
        return {"type": "input_file", "file_url": media.url}
    if media.kind == "document" and media.data is not None and media.media_type == "application/pdf":
        name = (media.extra or {}).get("filename") or "document.pdf"
        return {"type": "input_file", "filename": name, "file_data": as_url(media)}
    return text_part(left_out(media), "user")


def _refused(media: Media) -> bool:
    """Whether the API would refuse what a client of its own sent."""
    if (media.extra or {}).get("file_id"):
        return False
    if media.kind == "audio":
        return media.data is None
    if media.kind == "image":
        return media.media_type not in IMAGE_TYPES if media.data is not None else not is_web(media)
    return media.data is None and media.url is None
