"""Compactions that Claude Code made by itself, as markers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ....transcript import Entry, Marker
from ..base import entry_id
from ..records import record_of, string_of
from .drafts import Compaction, Conversation, Draft

__all__ = ["marker_of", "preserved_lines"]

_KNOWN = frozenset({"trigger", "preTokens", "postTokens", "preservedSegment", "preservedMessages"})


def marker_of(
    conversation: Conversation, compaction: Compaction, session: str, ids: Mapping[int, str], rank: Mapping[int, int]
) -> Marker:
    """The marker: the summary, then what was preserved, then what the client put back in (files, skills, listings).

    Args:
        conversation: all drafts, by index.
        compaction: the one to describe.
        session: id of the session.
        ids: entry id of each draft.
        rank: position of each draft among the entries.
    """
    places = (conversation.before(compaction), conversation.logical(compaction))
    after = max((place for place in places if place is not None), key=rank.__getitem__, default=None)
    shown: list[str | Entry] = []
    if compaction.summary is not None:
        shown.append(compaction.summary.entry(session))
    shown += _kept(conversation, compaction, session, ids)
    shown += [draft.entry(session) for draft in compaction.restored]
    details = compaction.details
    before, then = details.get("preTokens"), details.get("postTokens")
    return Marker(
        id=entry_id(session, compaction.native),
        after=None if after is None else ids[after],
        shown=tuple(shown),
        trigger=string_of(details.get("trigger")),
        tokens_before=before if isinstance(before, int) else None,
        tokens_after=then if isinstance(then, int) else None,
        time=compaction.time,
        extra={name: value for name, value in details.items() if name not in _KNOWN} or None,
    )


def _kept(
    conversation: Conversation, compaction: Compaction, session: str, ids: Mapping[int, str]
) -> Iterator[str | Entry]:
    """What the compaction left as it was: ids of whole entries, and a cut copy where only some lines of a response stayed."""
    lines = preserved_lines(conversation, compaction)
    kept = set(lines)
    done: set[int] = set()
    for line in lines:
        index = conversation.at.get(line)
        if index is None or index in done:
            continue
        done.add(index)
        draft = conversation.drafts[index]
        if all(piece in kept or not blocks for piece, blocks in draft.pieces):
            yield ids[index]
            continue
        cut = Draft(
            f"{compaction.native}#{line}", draft.line, draft.role, [], None, True, draft.time, draft.group, draft.model
        )
        position = 0
        for piece, blocks in draft.pieces:
            if piece in kept:
                cut.blocks += draft.blocks[position : position + blocks]
            position += blocks
        yield cut.entry(session)


def preserved_lines(conversation: Conversation, compaction: Compaction) -> list[str]:
    """The lines that a compaction says it preserved, oldest first: listed, or as the ends of a segment of the chain."""
    listed = record_of(compaction.details.get("preservedMessages")).get("uuids")
    if isinstance(listed, list):
        return [line for line in listed if isinstance(line, str)]
    segment = record_of(compaction.details.get("preservedSegment"))
    head, at = string_of(segment.get("headUuid")), string_of(segment.get("tailUuid"))
    lines: list[str] = []
    while head and at and len(lines) <= len(conversation.above):
        lines.append(at)
        if at == head:
            return lines[::-1]
        at = conversation.above.get(at)
    return []
