"""Compactions that Codex made by itself, as markers.

A `compacted` record repeats the whole new history. An item of it that equals an original is that original, by its id; only what the
client made anew (a summary, a cut text, an opaque item) becomes an entry of the marker's own (IM-08).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from ....codec import to_utf8
from ....transcript import Entry, Marker, Text, typed_text
from ..base import entry_id
from ..records import string_of
from .items import OPAQUE, entry_of, item_key
from .typed import Typed

__all__ = ["Originals", "marker_of"]

_KEPT_BY_OLD_CLIENTS = 20_000
"""Tokens of user messages that a local compaction keeps, at four bytes a token (codex.md 10, rule 4)."""


class Originals:
    """The items seen so far, to recognise them in a replacement history."""

    def __init__(self) -> None:
        self._ids: defaultdict[str, list[str]] = defaultdict(list)

    def add(self, item: dict[str, Any], entry: str) -> None:
        """One item of the log and the entry that it became."""
        if item.get("type") == "message":
            self._ids[item_key(item)].append(entry)

    def match(self, history: Sequence[Any]) -> list[str | None]:
        """For each item of a replacement history the entry that it equals; of equal ones the newest, each only once."""
        used: Counter[str] = Counter()
        found: list[str | None] = [None] * len(history)
        for position in range(len(history) - 1, -1, -1):
            item = history[position]
            if not isinstance(item, dict) or item.get("type") != "message":
                continue
            key = item_key(item)
            ids = self._ids.get(key, [])
            if used[key] < len(ids):
                used[key] += 1
                found[position] = ids[-used[key]]
        return found


def marker_of(
    payload: dict[str, Any],
    *,
    session: str,
    line: int,
    time: str | None,
    path: Sequence[Entry],
    originals: Originals,
    tokens_before: int | None,
) -> Marker:
    """The marker for one `compacted` record.

    Args:
        payload: the record.
        session: id of the session.
        line: 1-based line of the record.
        time: when it was written.
        path: the active path before it.
        originals: the items before it.
        tokens_before: size of the context before it, as the provider last counted it.
    """
    history = payload.get("replacement_history")
    message = string_of(payload.get("message"))
    if isinstance(history, list):
        shown = tuple(_shown(history, message, session, line, time, originals))
    else:
        shown = tuple(_rebuilt(path, message, session, line, time))
    opaque = isinstance(history, list) and any(
        isinstance(item, dict) and item.get("type") in OPAQUE for item in history
    )
    notes = {
        name: value for name, value in payload.items() if name != "message" and isinstance(value, str | int | float)
    }
    return Marker(
        id=entry_id(session, f"compacted {line}"),
        after=path[-1].id if path else None,
        shown=shown,
        tokens_before=tokens_before,
        time=time,
        readable=not opaque,
        extra=notes or None,
    )


def _shown(
    history: list[Any], message: str | None, session: str, line: int, time: str | None, originals: Originals
) -> Iterator[str | Entry]:
    nobody = Typed()
    for position, (item, original) in enumerate(zip(history, originals.match(history), strict=True)):
        if original is not None:
            yield original
        elif isinstance(item, dict):
            made = entry_of(
                item, id=entry_id(session, f"compacted {line}.{position}"), typed=nobody, line=line, time=time
            )
            yield _as_summary(made) if message and _ends_with(made, message) else made


def _ends_with(entry: Entry, message: str) -> bool:
    """Whether an item is the summary: the client puts an introduction of its own before the text that the model wrote."""
    text = "".join(block.text for block in entry.blocks if isinstance(block, Text))
    return entry.role == "user" and (text.endswith(message) or (message.endswith(text) and bool(text)))


def _as_summary(entry: Entry) -> Entry:
    blocks = tuple(
        Text(block.text, "summary", block.extra) if isinstance(block, Text) else block for block in entry.blocks
    )
    return msgspec.structs.replace(entry, blocks=blocks)


def _rebuilt(
    path: Sequence[Entry], message: str | None, session: str, line: int, time: str | None
) -> Iterator[str | Entry]:
    """What old clients, which recorded no history, went on with: the newest user messages, then the summary."""
    room = _KEPT_BY_OLD_CLIENTS
    kept: list[str] = []
    for entry in reversed(path):
        if entry.role == "user" and (texts := list(typed_text(entry))):
            room -= -(-sum(len(to_utf8(text)) for text in texts) // 4)
            if room < 0:
                break
            kept.append(entry.id)
    yield from reversed(kept)
    if message:
        yield Entry(
            id=entry_id(session, f"compacted {line}.summary"),
            role="user",
            blocks=(Text(message, "summary"),),
            time=time,
            wire="openai-responses",
        )
