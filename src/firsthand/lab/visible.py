"""Text of sessions made safe to look at. Transcripts are hostile input: they may hold terminal commands and marks that turn text around."""

from __future__ import annotations

import unicodedata

__all__ = ["visible"]

_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def visible(text: str, most: int | None = None) -> str:
    """The text on one line, with nothing in it that a terminal or a browser would act on.

    White space becomes one space; control characters, invisible and direction marks, and lone surrogates become U+FFFD.

    Args:
        text: anything.
        most: characters at most; what is longer is cut in the middle, with an ellipsis that shows it.
    """
    one_line = " ".join(text.split())
    if not one_line.isascii() or not one_line.isprintable():
        one_line = "".join("�" if unicodedata.category(char) in _HIDDEN else char for char in one_line)
    if most is not None and len(one_line) > most:
        front = (most - 1) * 2 // 3
        one_line = f"{one_line[:front]}…{one_line[len(one_line) - (most - 1 - front) :]}"
    return one_line
