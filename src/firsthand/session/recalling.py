"""Recall in a running session: the block that the newest message brings, stored as an attachment so that the prefix stays."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from ..projection.boundaries import has_result
from ..tokens import FRAMING
from ..transcript import Entry, ToolResult, typed_text
from .effects import Steps, Store
from .recall.stored import recall_stored
from .requests import Attachment
from .state import SessionState

__all__ = ["recalled"]


def recalled(state: SessionState, shown: Sequence[Entry], room: int) -> Steps[bool]:
    """Attaches what the newest message asks for of the covered history; whether there is anything to show.

    Looked for once, when the message is first sent: typed user text, and results that are errors. That nothing was found is remembered too, so
    that the message is never sent in two forms.

    Args:
        state: the session.
        shown: the entries of the request, repaired.
        room: tokens that the request may still grow by.
    """
    frame = state.frame
    most = state.settings.recall
    if most is None or frame.checkpoint is None or not frame.tail:
        return False
    newest = frame.tail[-1]
    sent = {item.entry for item in frame.attachments if item.kind == "recall"}
    asking = list(_unsent(frame.tail, sent))
    text = "\n".join(part for entry in asking for part in _asks(entry))
    if not text:
        return False
    cutoff = frame.checkpoint.plan.cutoff
    most = min(most, room - FRAMING)
    counter = state.settings.used_counter
    own = {entry.id for entry in asking}
    before = [entry for entry in shown if entry.id not in own]
    block = None
    if most > 0:
        block = yield Store(
            "recall", lambda: recall_stored(state.journal, state.id, cutoff, before, counter, most)(text)
        )
    yield from state.attached((Attachment(newest.id, "recall", block or ""),))
    return block is not None


def _unsent(tail: Sequence[Entry], sent: Collection[str]) -> Iterator[Entry]:
    """The entries that the model has not seen yet: those behind its newest response, and behind what was looked up before."""
    first = len(tail)
    while first and tail[first - 1].id not in sent and (tail[first - 1].role == "user" or has_result(tail[first - 1])):
        first -= 1
    return iter(tail[first:])


def _asks(entry: Entry) -> Iterator[str]:
    if entry.role == "user":
        yield from typed_text(entry)
    for block in entry.blocks:
        if isinstance(block, ToolResult) and block.is_error:
            yield block.text
