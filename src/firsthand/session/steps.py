"""The steps of a session as generators of effects; `Session` and `AsyncSession` drive the same ones.

Each job has a module of its own: `state` (what is held in memory, in step with the journal), `incoming`, `preparing`, `compacting`, `recalling`,
`replies`. This one is their face.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from ..checkpoint import Checkpoint, CheckpointStore
from ..errors import ProviderError, SessionExistsError, SessionNotFoundError
from ..journal import Journal
from ..projection.plan import Plan
from ..projection.report import Report
from ..transcript import Entry
from . import compacting, incoming, preparing, replies
from .compaction import Outcome
from .effects import Steps, Store
from .events import Undone
from .frame import Frame
from .preparing import Prepared
from .settings import Settings
from .state import Ask, SessionState

__all__ = ["Prepared", "SessionSteps"]


class SessionSteps:
    """One session's steps. Not used directly: see `Session` and `AsyncSession`."""

    def __init__(self, journal: Journal, session_id: str, settings: Settings) -> None:
        self.state = SessionState(journal, session_id, settings)
        self.lock = self.state.lock

    @property
    def id(self) -> str:
        """The session's id."""
        return self.state.id

    @property
    def journal(self) -> Journal:
        """The journal that holds it."""
        return self.state.journal

    @property
    def settings(self) -> Settings:
        """How it is set up."""
        return self.state.settings

    @property
    def checkpoints(self) -> CheckpointStore:
        """Its checkpoints and operations."""
        return self.state.checkpoints

    @property
    def frame(self) -> Frame:
        """What is held in memory."""
        return self.state.frame

    def opened(self) -> Steps[None]:
        """Makes the session when the journal has none of that id, and reads what is needed of it."""
        state = self.state

        def look() -> bool:
            try:
                state.journal.meta(state.id)
            except SessionNotFoundError:
                return False
            return True

        def create() -> None:
            # Somebody else may make it between the look and this.
            with suppress(SessionExistsError):
                state.journal.create(state.id, model=state.settings.model, window=state.settings.window)

        if not (yield Store("look for the session", look)):
            yield Store("create", create)
        state.learned = yield Store("read what was learned", state.store.learned)
        yield from state.synced()

    def append(self, items: Iterable[Entry | Mapping[str, Any]]) -> Steps[tuple[Entry, ...]]:
        """Stores entries, or messages in the session's wire."""
        entries = tuple(incoming.read(self.state, list(items)))
        return (yield from self.state.appended(entries))

    def prepare(self, system: Any, tools: Sequence[Any] | None, max_output: int | None) -> Steps[Prepared]:
        """The next request; compacts first when that is due."""
        self.state.ask = Ask(system, tools, max_output)
        self.state.overflows = 0
        return (yield from preparing.prepared(self.state, "automatic"))

    def recover(self, error: ProviderError) -> Steps[Prepared]:
        """After the provider refused the prepared request: one compaction and the request again, if it was too large; else the error."""
        return (yield from replies.recover(self.state, error))

    def retry(self, response: Mapping[str, Any]) -> Steps[Prepared | None]:
        """The request to send once more after a reply that stopped because the window was full; None for any other."""
        return (yield from replies.retry(self.state, response))

    def record(self, response: Mapping[str, Any], complete: bool) -> Steps[tuple[Entry, ...]]:
        """Stores the model's response with its usage."""
        return (yield from replies.record(self.state, response, complete))

    def compact(self, instructions: str | None, system: Any, tools: Sequence[Any] | None) -> Steps[Outcome]:
        """A compaction now, whatever the occupancy."""
        state = self.state
        if system is not None or tools is not None:
            ask = state.ask
            state.ask = replace(
                ask, system=ask.system if system is None else system, tools=ask.tools if tools is None else tools
            )
        yield from state.synced()
        return (yield from compacting.compacted(state, "manual", "standalone", instructions))

    def preview(self, instructions: str | None) -> Steps[tuple[Plan | None, Report]]:
        """What a compaction would keep now; no plan is stored and no model is asked."""
        return (yield from compacting.preview(self.state, instructions))

    def undo(self) -> Steps[Checkpoint | None]:
        """Takes the newest checkpoint back; the one before it, or the whole history, is shown again.

        The next automatic compaction waits for the input limit, in every process (`SessionState.put_off`): else it would make the same one again.
        """
        state = self.state
        undone: Checkpoint | None = yield Store("undo", state.checkpoints.undo)
        if undone is not None:
            state.emit(Undone(session=state.id, checkpoint=undone.id))
            yield from state.synced()
        return undone

    def postpone(self) -> None:
        """Puts automatic compaction off until the input limit, or until the next checkpoint."""
        self.state.postponed_under = self.state.checkpoint_id

    def change(self, settings: Settings) -> None:
        """Other settings: what was undone or came to nothing under the old ones may be tried again."""
        self.state.change(settings)

    def request_new_context(self) -> None:
        """The model asked for a fresh window: the strategy is told at the next `prepare`."""
        self.state.new_context = True
