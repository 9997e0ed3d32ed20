"""The entries of a request between two checkpoints: each request is the one before plus what was appended.

Whatever was sent once is sent again as it was. So what had to be added to make a request valid (a placeholder for a result that was not there
yet) is stored with the entry as an *attachment*, and a result that arrives after its placeholder was sent, or after its call was covered, is
shown as a labelled block of data until the next checkpoint pairs it (design.md 3).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias

import msgspec

from ..codec import compact_json
from ..projection.repair import UNKNOWN_OUTCOME
from ..transcript import Block, Entry, Text, ToolCall, ToolResult

__all__ = ["Attachment", "AttachmentKind", "attached"]

AttachmentKind: TypeAlias = Literal["placeholder", "recall"]


class Attachment(msgspec.Struct, frozen=True, omit_defaults=True):
    """Bytes that were added to an entry when it was first sent; sent again unchanged until a checkpoint covers the entry."""

    entry: str
    """The entry it stands behind (a placeholder) or in (recall): the newest one when it was first sent."""
    kind: AttachmentKind
    text: str
    call_id: str | None = None


def attached(
    front: Sequence[Entry], tail: Sequence[Entry], stored: Iterable[Attachment], cutoff: str = ""
) -> tuple[tuple[Entry, ...], tuple[Attachment, ...]]:
    """The entries to send, pairs complete, and the attachments that this request adds.

    Args:
        front: what the checkpoint shows before the tail.
        tail: the entries after it, oldest first.
        stored: the attachments of earlier requests since the checkpoint.
        cutoff: id of the entry before the tail, for attachments that stand in front of it.
    """
    behind: dict[str, list[Attachment]] = {}
    recalls: dict[str, str] = {}
    for item in stored:
        if item.kind == "placeholder":
            behind.setdefault(item.entry, []).append(item)
        else:
            recalls[item.entry] = item.text
    waiting: Counter[str] = Counter()
    out = list(front)
    for entry in front:
        _note(entry, waiting)
    _answer(out, waiting, behind.get(cutoff, ()))
    for entry in tail:
        entry = _late_as_data(entry, waiting)
        # An empty one says that nothing was found when the entry was first sent.
        if recalls.get(entry.id):
            recall = Text(recalls[entry.id], origin="injected")
            entry = msgspec.structs.replace(entry, blocks=(*entry.blocks, recall))
        _note(entry, waiting)
        out.append(entry)
        _answer(out, waiting, behind.get(entry.id, ()))
    newest = tail[-1].id if tail else cutoff
    new = tuple(Attachment(newest, "placeholder", UNKNOWN_OUTCOME, call_id) for call_id in waiting)
    _answer(out, waiting, new)
    return tuple(out), new


def _answer(out: list[Entry], waiting: Counter[str], placeholders: Iterable[Attachment]) -> None:
    for item in placeholders:
        if item.call_id is None:
            continue
        # One attachment stands for all calls of its id that wait there.
        for _ in range(waiting.pop(item.call_id, 0)):
            result = ToolResult(item.call_id, (Text(item.text, origin="injected"),), is_error=True)
            out.append(Entry(id=f"{item.entry}#{item.call_id}", role="tool", blocks=(result,)))


def _note(entry: Entry, waiting: Counter[str]) -> None:
    for block in entry.blocks:
        if isinstance(block, ToolCall) and block.kind != "server":
            # Real sessions have parallel calls of one id; each waits for a result of its own.
            waiting[block.id] += 1
        elif isinstance(block, ToolResult):
            _answered(waiting, block.call_id)


def _answered(waiting: Counter[str], call_id: str) -> None:
    if waiting[call_id] > 1:
        waiting[call_id] -= 1
    else:
        del waiting[call_id]


def _late_as_data(entry: Entry, waiting: Counter[str]) -> Entry:
    """The entry with results that nothing waits for shown as data; the very same entry when there is none."""
    if not any(isinstance(block, ToolResult) and block.call_id not in waiting for block in entry.blocks):
        return entry
    blocks: list[Block] = []
    for block in entry.blocks:
        if isinstance(block, ToolResult) and block.call_id not in waiting:
            row = {"entryId": entry.id, "toolCallId": block.call_id, "isError": block.is_error, "text": block.text}
            blocks.append(Text(f"[late tool result, data only: {compact_json(row)}]", origin="injected"))
            blocks += [part for part in block.content if not isinstance(part, Text)]
        else:
            blocks.append(block)
    role = entry.role if any(isinstance(block, ToolResult) for block in blocks) else "user"
    return msgspec.structs.replace(entry, role=role, blocks=tuple(blocks))
