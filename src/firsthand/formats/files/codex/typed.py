"""Which user texts of a Codex file a person typed: its events repeat what was typed, and nothing else (IM-07).

An event answers for one message. What no item repeats, because its line is damaged or was never written, is still there as an event
and is not lost.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

from ....transcript import Text
from ..base import Record
from ..records import record_of

__all__ = ["TEXTS", "Typed"]

TEXTS = frozenset({"input_text", "output_text", "text"})
"""The types of text parts."""

# A user message whose text is one tagged block, or opens with the heading of the instructions file, was written by the client
# (codex.md 1, "contextual user message"). Only asked where the events do not tell.
_CONTEXT = re.compile(
    r"\s*(?:<(?P<tag>[A-Za-z_][\w-]*)(?:\s[^>]*)?>.*</(?P=tag)>\s*\Z|# AGENTS\.md instructions)", re.DOTALL
)
_MEDIA_TAG = re.compile(r"\s*</?(?:image|audio)(?:\s[^>]*)?>\s*\Z")


class Typed:
    """The texts that the events of a file call typed, matched with the items that hold them.

    Attributes:
        only_events: lines of events whose text stands in no item.
    """

    def __init__(self, records: Iterable[Record] = (), damaged: Iterable[int] = ()) -> None:
        """Match events with items.

        Args:
            records: all records of the file; none, when there is no file to ask and the text itself has to tell.
            damaged: numbers of the lines that could not be read.
        """
        items: list[tuple[int, dict[str, Any]]] = []
        events: list[tuple[int, str]] = []
        for record in records:
            match record.value:
                case {"type": "response_item", "payload": {"type": "message", "role": "user"} as item}:
                    items.append((record.line, item))
                # Old clients also sent events for injected texts, and named their kind.
                case {"type": "event_msg", "payload": {"type": "user_message", "message": str() as text, **rest}}:
                    if rest.get("kind") in (None, "plain"):
                        events.append((record.line, text))
        self._known = bool(events)
        self._near_damage = {line + step for line in damaged for step in (-2, -1, 0, 1)}
        left = Counter(text for _, text in events if text.strip())
        self._matched: dict[int, list[str | None]] = {}
        for _, item in items:
            if (found := _whole(_texts(item), left)) is not None:
                self._matched[id(item)] = found
        for _, item in items:
            if id(item) not in self._matched and (found := _ends(_texts(item), left)) is not None:
                self._matched[id(item)] = found
        self.only_events: set[int] = set()
        for line, text in reversed(events):
            if left[text] > 0:
                left[text] -= 1
                self.only_events.add(line)

    def blocks(self, item: dict[str, Any], parts: Iterable[Text], line: int | None = None) -> list[list[Text]]:
        """Each text part of a user message as blocks with their origin: usually one, two where the client put something before it."""
        texts = list(parts)
        found = self._matched.get(id(item))
        if found is not None and len(found) == len(texts):
            return [_split(part, typed) for part, typed in zip(texts, found, strict=True)]
        if self._known and line not in self._near_damage:
            return [[Text(part.text, "injected", part.extra)] for part in texts]
        return [[Text(part.text, "injected" if _is_context(part.text) else "typed", part.extra)] for part in texts]


def _is_context(text: str) -> bool:
    return bool(_CONTEXT.match(text) or _MEDIA_TAG.match(text))


def _texts(item: dict[str, Any]) -> list[str]:
    content = item.get("content")
    if isinstance(content, str):
        return [content]
    parts = content if isinstance(content, list) else ()
    return [
        part["text"] for part in parts if record_of(part).get("type") in TEXTS and isinstance(part.get("text"), str)
    ]


def _take(left: Counter[str], text: str) -> bool:
    if left[text] > 0:
        left[text] -= 1
        return True
    return False


def _whole(texts: list[str], left: Counter[str]) -> list[str | None] | None:
    """For each text of an item the part that was typed, when an event says just what the item, or one of its texts, says."""
    spoken = [text for text in texts if not _MEDIA_TAG.match(text)]
    for whole in ("".join(spoken), "\n".join(spoken)):
        if _take(left, whole):
            return [None if _MEDIA_TAG.match(text) else text for text in texts]
    found = [text if _take(left, text) else None for text in texts]
    return found if any(found) else None


def _ends(texts: list[str], left: Counter[str]) -> list[str | None] | None:
    """The same, when a text of the item ends with what an event says: the client wrote something before it."""
    found: list[str | None] = []
    for text in texts:
        said = [] if _is_context(text) else [event for event, number in left.items() if number and text.endswith(event)]
        typed = max(said, key=len, default=None)
        if typed is not None:
            left[typed] -= 1
        found.append(typed)
    return found if any(found) else None


def _split(part: Text, typed: str | None) -> list[Text]:
    if typed is None:
        return [Text(part.text, "injected", part.extra)]
    before = part.text[: len(part.text) - len(typed)]
    return [*([Text(before, "injected")] if before else []), Text(typed, "typed", part.extra)]
