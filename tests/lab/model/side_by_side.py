"""A fake model that answers several questions at a time in an order of its own, and looks at the ledger whenever one arrives."""

from __future__ import annotations

import asyncio
import sqlite3
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import closing
from hashlib import blake2b
from pathlib import Path

import msgspec
from reading_model import sees

from firsthand.testing.server import Answer, Received, Reply
from firsthand.transcript import Usage


def asks(got: Received) -> bool:
    """Whether a request puts a question; the others want a summary."""
    return "Before we go on, a question" in str(got.messages)


def billed(got: Received) -> Reply:
    """Reads literally, at a price that only the request decides."""
    cost = int.from_bytes(blake2b(got.body, digest_size=2).digest())
    reply = sees(got) if asks(got) else Reply("The port was 5001.")
    return msgspec.structs.replace(reply, usage=Usage(input_tokens=1 + cost % len(got.body), output_tokens=1))


class SideBySide:
    """Holds what it is asked until `most` questions wait, then answers the newest, and the next time the oldest.

    Args:
        ledger: the file, whose spent and reserved money is written down with each request.
        most: calls that the client may have in flight.
        answer: what is answered in the end.
        patience: seconds after which a question is answered that waits in vain for others, since no more can come.
    """

    def __init__(
        self, ledger: Path, most: int, answer: Callable[[Received], Answer] = billed, patience: float = 0.15
    ) -> None:
        self.ledger = ledger
        self.most = most
        self.answer = answer
        self.patience = patience
        self.waiting: list[asyncio.Event] = []
        self.widest = 0
        self.spent: list[int] = []
        self.reserved: list[int] = []
        """How many calls were reserved and not settled."""
        self.arrived: Counter[bytes] = Counter()

    def __call__(self, got: Received) -> Awaitable[Answer]:
        return self._answer(got)

    async def _answer(self, got: Received) -> Answer:
        self.arrived[got.body] += 1
        with closing(sqlite3.connect(self.ledger)) as file:
            row = file.execute("SELECT sum(coalesce(charged, reserved)), sum(state = 'reserved') FROM call").fetchone()
        self.spent.append(row[0])
        self.reserved.append(row[1])
        if got.number > 1:
            await self._held()
        return self.answer(got)

    async def _held(self) -> None:
        mine = asyncio.Event()
        self.waiting.append(mine)
        self.widest = max(self.widest, len(self.waiting))
        if len(self.waiting) >= self.most:
            self.waiting.pop(-(self.arrived.total() % 2)).set()
        _, rest = await asyncio.wait({asyncio.ensure_future(mine.wait())}, timeout=self.patience)
        for task in rest:
            task.cancel()
        if mine in self.waiting:
            self.waiting.remove(mine)
