"""Between the paths in memory and the journal: what a request adds is handed over, and paths are read again when they are asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from .context import Context
from .paths import Match, Path, Paths, Tenant
from .recorder import Recorder
from .store import GatewayStore, Recording

__all__ = ["Memory"]

_MOST_ROOTS = 50_000


class Memory:
    """Keeps paths and journal together. All methods are called in one event loop."""

    def __init__(self, store: GatewayStore, paths: Paths, recorder: Recorder, log: Callable[..., None]) -> None:
        self.store = store
        self.paths = paths
        self.recorder = recorder
        self._log = log

    async def loaded(self, tenant: Tenant, root: bytes) -> None:
        """Reads the paths that begin with this message from the journal, once."""
        if len(tenant.loaded) > _MOST_ROOTS:
            tenant.loaded = {known: task for known, task in tenant.loaded.items() if task is not None}
        if root not in tenant.loaded:
            tenant.loaded[root] = asyncio.ensure_future(self._load(tenant, root))
        task = tenant.loaded[root]
        if task is not None:
            # A client that goes away must not stop what others wait for.
            await asyncio.shield(task)

    async def _load(self, tenant: Tenant, root: bytes) -> None:
        try:
            found = await asyncio.to_thread(self.store.load, tenant.id, root)
        except BaseException:
            # The next request looks again.
            tenant.loaded.pop(root, None)
            raise
        for path in found:
            self.paths.put(tenant, path)
        tenant.loaded[root] = None

    def record(self, tenant: Tenant, context: Context, match: Match) -> None:
        """Hands what the request shows for the first time to the journal."""
        path, request = match.path, context.request
        start = match.length - match.new
        if not (match.new or match.revised or match.created):
            return
        numbers = range(start, match.length)
        new = Recording(
            path,
            request.model,
            start,
            [request.item(context.head + n) for n in numbers],
            path.facts[start : match.length],
            path.entries[start : match.length],
            path.entries[start - 1] if start else None,
            match.created,
            match.forked_at,
            self._replies(path, start),
            [(path.entries[n], path.facts[n].exact, request.item(context.head + n)) for n in match.revised],
        )

        def failed(error: BaseException) -> None:
            self._log("record failed", error=type(error).__name__, session=path.session)
            # Read again from the journal when it is asked for next, as far as it was stored.
            self.paths.forget(tenant, path)

        self.recorder.submit(lambda: self.store.record(new), failed)

    def _replies(self, path: Path, start: int) -> dict[int, Any]:
        """What is known of the pending reply, by the place of its last message among the new ones."""
        if path.pending is None or path.pending[0].sent != start:
            return {}
        anchor, complete = path.pending
        last = start
        while last < len(path.facts) and path.facts[last].role == "assistant":
            last += 1
        path.pending = None
        if last == start:
            return {}
        usage = anchor.usage if anchor.usage.input_tokens else None
        return {last - 1 - start: (usage, "complete" if complete else "incomplete")}
