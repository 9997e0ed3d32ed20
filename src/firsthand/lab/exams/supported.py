"""`supported`: whether some passage of the projection says what a value was about (measures.md, "Exams")."""

from __future__ import annotations

from collections.abc import Iterable

from ..passages import HomeWords, Passages, home_words
from ..values import Value

__all__ = ["askable", "supported"]


def askable(values: Iterable[Value]) -> dict[str, HomeWords]:
    """The values that can be asked, with the words to look for; one that stands alone on its home line has nothing that could support it."""
    found = {value.text: home_words(value) for value in values}
    return {text: words for text, words in found.items() if words}


def supported(values: Iterable[Value], words: dict[str, HomeWords], passages: Passages) -> set[str]:
    """Those of the askable values that a passage supports."""
    return {value.text for value in values if value.text in words and passages.supports(value, words[value.text])}
