"""Cutting UTF-8 without cutting a character. Lone surrogates count as the three bytes that `codec.to_utf8` gives them."""

from __future__ import annotations

from ..codec import wire_safe

__all__ = ["boundary_after", "boundary_before", "exact_text", "shown_text"]


def _inside(data: bytes, at: int) -> bool:
    return 0 < at < len(data) and data[at] & 0xC0 == 0x80


def boundary_before(data: bytes, at: int) -> int:
    """The last position at or before `at` where a character starts or the data ends."""
    at = min(max(at, 0), len(data))
    while _inside(data, at):
        at -= 1
    return at


def boundary_after(data: bytes, at: int) -> int:
    """The first position at or after `at` where a character starts or the data ends."""
    at = min(max(at, 0), len(data))
    while _inside(data, at):
        at += 1
    return at


def exact_text(data: bytes) -> str:
    """The text of whole characters, lone surrogates included."""
    return data.decode("utf-8", "surrogatepass")


def shown_text(data: bytes) -> str:
    """The text of whole characters as it may be shown: lone surrogates become U+FFFD."""
    return wire_safe(exact_text(data))
