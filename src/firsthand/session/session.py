"""A session that an agent's loop uses: append what happened, ask for the next request, report what the provider said.

    with Session.open("my-task", window=200_000, model="gpt-5.2") as session:
        session.append([{"role": "user", "content": "Fix the failing test."}])
        request = session.prepare(system=SYSTEM, tools=TOOLS, max_output=8_000)
        session.record(client.post("/chat/completions", json=request.body).json())

Everything is in the journal before it is sent; when a compaction is due, `prepare` makes it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, TypeVar

from ..checkpoint import Checkpoint, Operation
from ..errors import ProviderError
from ..journal import Journal
from ..projection.plan import Plan
from ..projection.report import Report
from ..transcript import Entry
from .compaction import Outcome
from .effects import Steps, run, run_async
from .settings import Settings
from .steps import Prepared, SessionSteps

__all__ = ["AsyncSession", "Session"]

T = TypeVar("T")


class _Common:
    """What both sessions share: identity, and what neither blocks nor waits."""

    def __init__(self, journal: Journal, session_id: str, settings: Settings, *, owns_journal: bool = False) -> None:
        self._steps = SessionSteps(journal, session_id, settings)
        self._owns_journal = owns_journal

    @property
    def id(self) -> str:
        """The session's id in the journal."""
        return self._steps.id

    @property
    def journal(self) -> Journal:
        """The journal that holds it."""
        return self._steps.journal

    @property
    def settings(self) -> Settings:
        """How it is set up; assign a changed copy to change it (another model, say)."""
        return self._steps.settings

    @settings.setter
    def settings(self, settings: Settings) -> None:
        self._steps.change(settings)

    @property
    def checkpoint(self) -> Checkpoint | None:
        """The checkpoint in force, as far as this object has looked; None when the whole history is shown."""
        return self._steps.frame.checkpoint

    def postpone(self) -> None:
        """Put automatic compaction off: up to the input limit, until the next checkpoint."""
        self._steps.postpone()

    def request_new_context(self) -> None:
        """The model itself asked for a fresh window; strategies that know such a request get it at the next `prepare`."""
        self._steps.request_new_context()


class Session(_Common):
    """A session of a journal, for a synchronous loop. Open one with `Session.open`.

    One object may be used from several threads, and several objects and processes may work on one session: they take turns. What was
    appended is durable when the call returns.
    """

    @classmethod
    def open(cls, session_id: str, *, journal: Journal | Path | str | None = None, **settings: Any) -> Session:
        """Open a session, or create it when the journal has none of that id.

        Args:
            session_id: 1 to 256 characters.
            journal: an open journal, or the path of one; default is the user's own (`FIRSTHAND_JOURNAL`, else the data directory).
            settings: fields of `Settings`; `window` is required.

        Raises:
            ConfigError: a setting cannot work.
            JournalError: the journal cannot be used.
        """
        owns = not isinstance(journal, Journal)
        store = journal if isinstance(journal, Journal) else Journal.open(journal)
        session = cls(store, session_id, Settings(**settings), owns_journal=owns)
        session._do(session._steps.opened())
        return session

    def close(self) -> None:
        """Close the journal, if this session opened it."""
        if self._owns_journal:
            self.journal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def append(self, items: Iterable[Entry | Mapping[str, Any]]) -> tuple[Entry, ...]:
        """Store what happened: messages in the session's wire (user messages, tool results), or entries; one without an id gets one.

        Returns:
            The entries as stored, with their ids.

        Raises:
            FormatError: a message is not of that wire; nothing was stored.
            JournalBusyError: another process held the write lock for too long; nothing was stored.
        """
        return self._do(self._steps.append(items))

    def prepare(
        self, *, system: Any = None, tools: Sequence[Any] | None = None, max_output: int | None = None
    ) -> Prepared:
        """The next request. Compacts first when that is due.

        Between two checkpoints each request is the one before plus what was appended, so a provider's prefix cache stays warm as long as
        `system` and `tools` stay the same.

        Args:
            system: the system prompt in the wire's shape, sent as it is.
            tools: the tool definitions in the wire's shape, sent as they are.
            max_output: output tokens to ask for.

        Raises:
            RequestTooLargeError: it does not fit and no compaction helps; nothing was sent, nothing is lost.
            OutputCeilingError: the output that is asked for leaves no room for input.
        """
        return self._do(self._steps.prepare(system, tools, max_output))

    def record(self, response: Mapping[str, Any], *, complete: bool = True) -> tuple[Entry, ...]:
        """Store the model's response and what the provider counted.

        Args:
            response: the response's JSON.
            complete: False for what had arrived of a stream that broke off; it is stored as incomplete (OV-14).

        Raises:
            FormatError: it is no response of the session's wire.
            OutputLimitError: it ended at its output limit and says nothing; it is stored all the same.
            ContextOverflowError: the window was full before it said anything; it is stored all the same.
        """
        return self._do(self._steps.record(response, complete))

    def recover(self, error: ProviderError) -> Prepared:
        """After the provider refused the prepared request as too large: compact once and prepare it again.

        Raises:
            ProviderError: the same error, when it says something else.
            ContextOverflowError: compaction is off, did not help, or was tried for this request already.
        """
        return self._do(self._steps.recover(error))

    def step(
        self,
        send: Callable[[dict[str, Any]], Mapping[str, Any]],
        *,
        system: Any = None,
        tools: Sequence[Any] | None = None,
        max_output: int | None = None,
    ) -> tuple[Entry, ...]:
        """One model step: prepare, send, recover from one overflow (a refusal, or a reply that stopped because the window was full), record.

        Args:
            send: takes the body and returns the response's JSON; raises `ProviderError` for an error response.
            system: as for `prepare`.
            tools: as for `prepare`.
            max_output: as for `prepare`.

        Raises:
            What `prepare`, `recover` and `record` raise, and what `send` raises beside overflow.
        """
        prepared = self.prepare(system=system, tools=tools, max_output=max_output)
        while True:
            try:
                response = send(prepared.body)
            except ProviderError as error:
                prepared = self.recover(error)
                continue
            again = self._do(self._steps.retry(response))
            if again is None:
                return self.record(response)
            prepared = again

    def compact(
        self, instructions: str | None = None, *, system: Any = None, tools: Sequence[Any] | None = None
    ) -> Outcome:
        """Compact now, whatever the occupancy.

        Args:
            instructions: your note on what matters; kept verbatim, and passed to the summary.
            system: of the next request, where `prepare` was not called yet.
            tools: likewise.
        """
        return self._do(self._steps.compact(instructions, system, tools))

    def preview(self, instructions: str | None = None) -> tuple[Plan | None, Report]:
        """What `compact` would keep now, without doing it; a strategy that needs a summary is previewed by rules alone."""
        return self._do(self._steps.preview(instructions))

    def undo(self) -> Checkpoint | None:
        """Take the newest checkpoint back; returns it, or None when this session has none. Nothing was ever deleted, so nothing is missing.

        The next automatic compaction is put off as by `postpone`, else it would make the same checkpoint again; other settings lift that.
        """
        return self._do(self._steps.undo())

    def pin(self, entry_id: str) -> None:
        """Keep an entry whole in every projection from the next checkpoint on.

        Raises:
            EntryNotFoundError: the session has no such entry.
        """
        self.journal.pin(self.id, entry_id)

    def fork(self, at: str | None = None, new_id: str | None = None) -> Session:
        """A session that shares this one's history up to the entry `at`, or all of it.

        Raises:
            EntryNotFoundError: the session has no entry `at`.
            SessionExistsError: `new_id` is taken.
        """
        child = Session(self.journal, self.journal.fork(self.id, at, new_id), self.settings)
        child._do(child._steps.opened())
        return child

    def operations(self) -> list[Operation]:
        """The receipts of this session's compactions, oldest first."""
        return self._steps.checkpoints.operations()

    def _do(self, steps: Steps[T]) -> T:
        with self._steps.lock:
            return run(steps)


class AsyncSession(_Common):
    """The same for an asynchronous loop: each method of `Session` as a coroutine. The journal is used in a thread, the model is awaited."""

    def __init__(self, journal: Journal, session_id: str, settings: Settings, *, owns_journal: bool = False) -> None:
        super().__init__(journal, session_id, settings, owns_journal=owns_journal)
        self._turn = asyncio.Lock()

    @classmethod
    async def open(
        cls, session_id: str, *, journal: Journal | Path | str | None = None, **settings: Any
    ) -> AsyncSession:
        """See `Session.open`."""
        owns = not isinstance(journal, Journal)
        store = journal if isinstance(journal, Journal) else await asyncio.to_thread(Journal.open, journal)
        session = cls(store, session_id, Settings(**settings), owns_journal=owns)
        await session._do(session._steps.opened())
        return session

    async def close(self) -> None:
        """See `Session.close`."""
        if self._owns_journal:
            await asyncio.to_thread(self.journal.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def append(self, items: Iterable[Entry | Mapping[str, Any]]) -> tuple[Entry, ...]:
        """See `Session.append`."""
        return await self._do(self._steps.append(items))

    async def prepare(
        self, *, system: Any = None, tools: Sequence[Any] | None = None, max_output: int | None = None
    ) -> Prepared:
        """See `Session.prepare`."""
        return await self._do(self._steps.prepare(system, tools, max_output))

    async def record(self, response: Mapping[str, Any], *, complete: bool = True) -> tuple[Entry, ...]:
        """See `Session.record`."""
        return await self._do(self._steps.record(response, complete))

    async def recover(self, error: ProviderError) -> Prepared:
        """See `Session.recover`."""
        return await self._do(self._steps.recover(error))

    async def step(
        self,
        send: Callable[[dict[str, Any]], Awaitable[Mapping[str, Any]]],
        *,
        system: Any = None,
        tools: Sequence[Any] | None = None,
        max_output: int | None = None,
    ) -> tuple[Entry, ...]:
        """See `Session.step`."""
        prepared = await self.prepare(system=system, tools=tools, max_output=max_output)
        while True:
            try:
                response = await send(prepared.body)
            except ProviderError as error:
                prepared = await self.recover(error)
                continue
            again = await self._do(self._steps.retry(response))
            if again is None:
                return await self.record(response)
            prepared = again

    async def compact(
        self, instructions: str | None = None, *, system: Any = None, tools: Sequence[Any] | None = None
    ) -> Outcome:
        """See `Session.compact`."""
        return await self._do(self._steps.compact(instructions, system, tools))

    async def preview(self, instructions: str | None = None) -> tuple[Plan | None, Report]:
        """See `Session.preview`."""
        return await self._do(self._steps.preview(instructions))

    async def undo(self) -> Checkpoint | None:
        """See `Session.undo`."""
        return await self._do(self._steps.undo())

    async def pin(self, entry_id: str) -> None:
        """See `Session.pin`."""
        await asyncio.to_thread(self.journal.pin, self.id, entry_id)

    async def fork(self, at: str | None = None, new_id: str | None = None) -> AsyncSession:
        """See `Session.fork`."""
        child_id = await asyncio.to_thread(self.journal.fork, self.id, at, new_id)
        child = AsyncSession(self.journal, child_id, self.settings)
        await child._do(child._steps.opened())
        return child

    async def operations(self) -> list[Operation]:
        """See `Session.operations`."""
        return await asyncio.to_thread(self._steps.checkpoints.operations)

    async def _do(self, steps: Steps[T]) -> T:
        async with self._turn:
            return await run_async(steps)
