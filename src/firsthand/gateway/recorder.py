"""Journal writes behind the requests: one thread, in order, so that what a fork needs is there before it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

__all__ = ["Recorder"]

_MOST_WAITING = 2_000


class Recorder:
    """Carries writes out one after the other. A write that fails is told to `failed` and stops nothing."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="firsthand-recorder")
        self._waiting = 0

    @property
    def waiting(self) -> int:
        """Writes that were not carried out yet."""
        return self._waiting

    def submit(self, write: Callable[[], None], failed: Callable[[BaseException], None]) -> None:
        """Carry a write out soon; called in the event loop, and so is `failed`."""
        loop = asyncio.get_running_loop()
        self._waiting += 1

        def done(future: Future[None]) -> None:
            error = None if future.cancelled() else future.exception()
            # Nobody is told any more when the loop has closed meanwhile.
            if not loop.is_closed():
                loop.call_soon_threadsafe(over, error)

        def over(error: BaseException | None) -> None:
            self._waiting -= 1
            if error is not None:
                failed(error)

        self._thread.submit(write).add_done_callback(done)

    async def flush(self) -> None:
        """Wait until everything submitted so far was carried out."""
        await asyncio.wrap_future(self._thread.submit(lambda: None))

    async def make_room(self) -> None:
        """Wait when a disk does not keep up, so that memory stays bounded."""
        if self._waiting > _MOST_WAITING:
            await self.flush()

    def close(self) -> None:
        """Carry out what waits, and stop."""
        self._thread.shutdown(wait=True)
