"""Text exports of Cursor: one message a line, with a role and text parts.

Such an export has no calls, results, ids, usage or times, so neither have the entries. A part that is no text is kept as it is. A user
text that holds a `<user_query>` counts as typed; one that only holds other tags is what the client added.
"""

from __future__ import annotations

import re
from typing import Any

from ...transcript import Block, Entry, Source, Text, Transcript, chained
from .base import Input, entry_id, json_records
from .chat_messages import content_blocks
from .records import Names, Tally, first_records, has_keys, record_of
from .values import made_id

__all__ = ["CursorReader"]

_FORMAT = "cursor"
_FOREIGN = ("type", "payload", "sessionId", "uuid", "parentUuid", "id", "instance_id")
_TAG = re.compile(r"\s*<([a-z][\w-]*)[\s>]")


class CursorReader:
    """Reads text exports of Cursor."""

    name = _FORMAT
    title = "Cursor"

    def sniff(self, source: Input) -> bool:
        """Whether the first lines have a role and a message with content, and none of the fields that other formats have."""
        records = first_records(source, 5)
        return (bool(records) or has_keys(source, "role", "message", "content")) and all(map(_is_message, records))

    def read(self, source: Input) -> list[Transcript]:
        """The one session in the file.

        Raises:
            EmptySessionError: no line holds a message.
        """
        records = json_records(source.data)
        tally = Tally()
        found = list(records)
        # The opening never changes while the file grows, but two sessions may share it, so the name counts as well.
        session = made_id(_FORMAT, source.name.removesuffix(".gz"), record_of(found[0].value) if found else "")
        entries: list[Entry] = []
        names = Names()
        for record in found:
            role = record.value.get("role")
            if role not in ("user", "assistant") or not _is_message(record.value):
                tally.unknown[str(role or record.value.get("type") or "record without a role")] += 1
                continue
            content = record.value["message"]["content"]
            blocks = tuple(map(_with_origin, content_blocks(content))) if role == "user" else content_blocks(content)
            if blocks:
                entries.append(
                    Entry(
                        id=entry_id(session, names.give(None, record.line)),
                        role="user" if role == "user" else "assistant",
                        blocks=blocks,
                        source=Source(_FORMAT, line=record.line),
                    )
                )
        if not entries:
            raise tally.empty(source, self.title, records.damaged)
        path = chained(entries)
        return [
            Transcript(
                id=session,
                format=_FORMAT,
                entries=path,
                leaf=path[-1].id,
                damaged=tuple(records.damaged),
                warnings=tally.warnings(),
            )
        ]


def _is_message(record: dict[str, Any]) -> bool:
    message = record.get("message")
    return (
        "role" in record
        and isinstance(message, dict)
        and "content" in message
        and not any(name in record for name in _FOREIGN)
    )


def _with_origin(block: Block) -> Block:
    if not isinstance(block, Text):
        return block
    tagged = _TAG.match(block.text)
    client = tagged is not None and tagged[1] != "user_query" and "<user_query>" not in block.text
    return Text(block.text, "injected", block.extra) if client else block
