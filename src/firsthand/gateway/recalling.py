"""Recall behind the gateway: what the newest message asks for of the covered history, as one text more in that message.

As in a running session (`session/recalling.py`): looked for once, when a message is first sent behind a checkpoint; the block, or that there is
none, is stored and sent again until the next checkpoint. The client never sees it, so no key and no entry knows of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from ..budget import Budget, Occupancy
from ..codec import decode
from ..formats.files.claude_code.blocks import prompt_blocks
from ..formats.wire import wire_by_name
from ..journal import Journal
from ..session.recall.stored import recall_stored
from ..session.requests import Attachment
from ..tokens import FRAMING, Counter
from ..transcript import Entry, ToolResult, typed_text
from .attached import AttachedTo
from .context import Context
from .paths import Front
from .request import read_entry
from .wires.base import GatewayWire, reminders_removed

__all__ = ["Recaller", "with_recalls"]

_PATIENCE = 2.0
"""Seconds that a look-up may take; then the message goes without a block."""


def with_recalls(wire: GatewayWire, raws: Sequence[bytes], ids: Sequence[str], under: AttachedTo) -> list[bytes]:
    """The messages as they are sent: those with a block with it as their last text."""
    return [
        (wire.with_text(raw, text) or raw) if (text := under.recalls.get(entry_id)) else raw
        for raw, entry_id in zip(raws, ids, strict=True)
    ]


class Recaller:
    """Looks for blocks, in threads of its own and within a time. All methods are called in one event loop."""

    def __init__(self, journal: Journal, most: int) -> None:
        self._journal = journal
        self._most = most
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="firsthand-recall")
        self._running: dict[tuple[str, str], asyncio.Future[str | None]] = {}

    async def found(
        self, context: Context, front: Front, budget: Budget | None, used: Occupancy, under: AttachedTo
    ) -> Attachment | None:
        """The decision about the request's newest message, where it is to be made now: a block, or that there is none; else None.

        Args:
            context: the request, with the checkpoint in force.
            front: that checkpoint.
            budget: bounds what the request may grow to; None where that is unknown: nothing is added then.
            used: tokens of the request without a block.
            under: what was attached under the checkpoint.

        Raises:
            Exception: the look-up failed or took too long. The decision is then to be that there is none.
        """
        if self._most <= 0 or budget is None or context.arrived.headers.get("x-firsthand-recall", "").lower() == "off":
            return None
        asking = _unsent(context, front)
        wire, request = context.request.wire, context.request
        raws = {number: request.item(context.head + number) for number in asking}
        carrier = next((n for n in reversed(asking) if wire.with_text(raws[n], "") is not None), None)
        if carrier is None or context.path.entries[carrier] in under.recalls:
            return None
        text = "\n".join(part for number in asking for part in _asks(read_entry(wire, raws[number])[1]))
        if not text.strip():
            return None
        entry = context.path.entries[carrier]
        most = min(self._most, budget.input_limit - used.tokens - FRAMING)
        if most <= 0:
            return Attachment(entry, "recall", "")
        numbers = [n for n in range(front.covered, context.length) if n not in raws]
        others = with_recalls(
            wire,
            [request.item(context.head + n) for n in numbers],
            [context.path.entries[n] for n in numbers],
            under,
        )
        key = (front.checkpoint.id, entry)
        looking = self._running.get(key)
        if looking is None:
            # Another request with the same message, at the same time, must be sent in the same form.
            loop = asyncio.get_running_loop()
            looking = loop.run_in_executor(
                self._threads, self._look, wire.name, front, others, text, budget.counter, most
            )
            self._running[key] = looking
            looking.add_done_callback(lambda done: (self._running.pop(key, None), done.cancelled() or done.exception()))
        async with asyncio.timeout(_PATIENCE):
            block = await asyncio.shield(looking)
        return Attachment(entry, "recall", block or "")

    def no_more(self, context: Context, front: Front) -> Attachment | None:
        """The decision that the newest message goes without a block, after a look-up that failed."""
        asking = _unsent(context, front)
        return Attachment(context.path.entries[asking[-1]], "recall", "") if asking else None

    def close(self) -> None:
        """Wait for what is being looked up."""
        self._threads.shutdown(cancel_futures=True)

    def _look(
        self, wire: str, front: Front, others: Sequence[bytes], text: str, counter: Counter, most: int
    ) -> str | None:
        shown = wire_by_name(wire).read([decode(raw) for raw in (*front.messages, *others)])
        checkpoint = front.checkpoint
        return recall_stored(self._journal, checkpoint.session, checkpoint.plan.cutoff, shown, counter, most)(text)


def _unsent(context: Context, front: Front) -> list[int]:
    """The messages that no request has sent yet, behind the model's newest answer: typed ones and results."""
    facts = context.path.facts
    first = context.length
    while first > max(front.covered, context.path.sent) and facts[first - 1].role != "assistant":
        first -= 1
    return [n for n in range(first, context.length) if facts[n].role == "user" or facts[n].results]


def _asks(entry: Entry) -> Iterator[str]:
    """What the person typed, and errors; without what clients glue to them."""
    if entry.role == "user":
        for text in typed_text(entry):
            typed = "".join(part.text for part in prompt_blocks(text) if part.origin == "typed")
            yield reminders_removed(typed)
    for block in entry.blocks:
        if isinstance(block, ToolResult) and block.is_error:
            yield reminders_removed(block.text)
