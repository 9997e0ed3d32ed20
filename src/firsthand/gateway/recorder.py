"""Journal writes behind the requests: one thread, in order, so that what a fork needs is there before it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeAlias

__all__ = ["Recorder"]

_MOST_WAITING = 2_000
_BEHIND = 0.03
"""Seconds by which a write stays behind its request, so that both do not want the interpreter at once."""

_Write: TypeAlias = tuple[Callable[[], None], Callable[[BaseException], None]]


class Recorder:
    """Carries writes out one after the other. A write that fails is told to `failed` and stops nothing.

    All methods are called in one event loop.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="firsthand-recorder")
        self._held: deque[_Write] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._waiting = 0

    @property
    def waiting(self) -> int:
        """Writes that were not carried out yet."""
        return self._waiting

    def submit(self, write: Callable[[], None], failed: Callable[[BaseException], None]) -> None:
        """Carry a write out soon; `failed` is told in the event loop."""
        self._waiting += 1
        self._held.append((write, failed))
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_BEHIND, self._release)

    async def flush(self) -> None:
        """Wait until everything submitted so far was carried out."""
        self._release()
        await asyncio.wrap_future(self._thread.submit(lambda: None))

    async def make_room(self) -> None:
        """Wait when a disk does not keep up, so that memory stays bounded."""
        if self._waiting > _MOST_WAITING:
            await self.flush()

    async def close(self) -> None:
        """Carry out what waits, and stop."""
        await self.flush()
        await asyncio.to_thread(self._thread.shutdown)

    def _release(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        loop = asyncio.get_running_loop()
        while self._held:
            write, failed = self._held.popleft()
            self._thread.submit(write).add_done_callback(self._ending(loop, failed))

    def _ending(
        self, loop: asyncio.AbstractEventLoop, failed: Callable[[BaseException], None]
    ) -> Callable[[Future[None]], None]:
        def over(error: BaseException | None) -> None:
            self._waiting -= 1
            if error is not None:
                failed(error)

        def done(future: Future[None]) -> None:
            error = None if future.cancelled() else future.exception()
            # Nobody is told any more when the loop has closed meanwhile.
            if not loop.is_closed():
                loop.call_soon_threadsafe(over, error)

        return done
