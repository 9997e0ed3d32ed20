"""What a session's steps share: its settings, what is held in memory of it, and how both are kept in step with the journal."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..budget import Budget, Occupancy
from ..checkpoint import CheckpointStore
from ..codec import compact_json
from ..errors import EntryNotFoundError
from ..journal import Journal
from ..strategies import is_current
from ..transcript import Entry
from .effects import Steps, Store
from .events import Event
from .features import rows_of
from .frame import Frame, front_of
from .occupancy import occupancy
from .requests import Attachment
from .settings import Settings
from .store import SessionStore

__all__ = ["Ask", "SessionState"]

_log = logging.getLogger("firsthand")


@dataclass
class Ask:
    """What `prepare` was told, kept so that the same request can be made again after a refusal."""

    system: Any = None
    tools: Sequence[Any] | None = None
    max_output: int | None = None


class SessionState:
    """One session as its steps see it. The methods that touch the journal are steps themselves."""

    def __init__(self, journal: Journal, session_id: str, settings: Settings) -> None:
        self.journal = journal
        self.id = session_id
        self.settings = settings
        self.checkpoints = CheckpointStore(journal, session_id)
        self.store = SessionStore(journal, session_id)
        self.frame = Frame()
        self.learned: dict[str, int] = {}
        self.ask = Ask()
        self.overflows = 0
        """Refusals of the request that is being made."""
        self.new_context = False
        """The model asked for a fresh window."""
        self.warned_under: str | None = None
        """The checkpoint under which `NearTrigger` was sent; so the next ones."""
        self.postponed_under: str | None = None
        self.before: dict[str, tuple[int, float]] = {}
        """Occupancy before each compaction that this object made, and what its summaries cost, by checkpoint."""
        self.tried_at: int | None = None
        """Occupancy at the newest automatic attempt, when it came to nothing."""
        self._token: tuple[Any, ...] | None = None
        self._undone = False
        self._lifted: tuple[Any, ...] | None = None
        # Steps of one session object take turns; other objects and processes meet in the journal.
        self.lock = threading.RLock()

    # --- what is known -------------------------------------------------------------------------------------------------------------------

    @property
    def checkpoint_id(self) -> str:
        """The checkpoint in force; '' for none."""
        return self.frame.checkpoint.id if self.frame.checkpoint else ""

    @property
    def put_off(self) -> bool:
        """Whether the next automatic compaction waits for the input limit: it was postponed, or the newest checkpoint was taken back."""
        return self.postponed_under == self.checkpoint_id or (self._undone and self._lifted != self._token)

    def change(self, settings: Settings) -> None:
        """Other settings: what was undone or came to nothing under the old ones may be tried again."""
        self.settings = settings
        self.tried_at = None
        self._lifted = self._token

    @property
    def window_name(self) -> str:
        """Under what a learned limit is kept: it holds for this model as it is configured, and for no other (OV-01)."""
        return f"window/{self.settings.window}/{self.settings.model or ''}"

    def window(self) -> int:
        """The window that counts: the configured one, or the limit that was learned."""
        return min(self.settings.window, self.learned.get(self.window_name, self.settings.window))

    def asked_output(self) -> int | None:
        """The output to ask for. A limit that was only just learned must not make a session unusable, so there it is a quarter of it at most."""
        asked = self.ask.max_output or self.settings.output_ceiling
        window = self.window()
        return asked if asked is None or window == self.settings.window else min(asked, window // 4)

    def budget(self) -> Budget:
        """The budget of the next request."""
        settings = self.settings
        counter = settings.used_counter
        ask = self.ask
        parts = (ask.system, list(ask.tools) if ask.tools else None)
        fixed = sum(counter.count(part if isinstance(part, str) else compact_json(part)) for part in parts if part)
        return Budget.of(
            self.window(),
            self.asked_output(),
            fixed=fixed,
            counter=counter,
            target=settings.target,
            threshold=None if settings.threshold is None else min(settings.threshold, self.window()),
        )

    def occupancy(self, shown: Sequence[Entry], budget: Budget) -> Occupancy:
        """Tokens that a request with these entries would take."""
        checkpoint = self.frame.checkpoint
        baseline = checkpoint.baseline if checkpoint else 0
        return occupancy(shown, self.frame.fresh, budget, baseline, self.learned.get("fixed"))

    def sizes(self) -> dict[str, int]:
        """What an error about size names."""
        budget = self.budget()
        shown, _ = self.frame.shown()
        return {"estimated": self.occupancy(shown, budget).tokens, "input_limit": budget.input_limit}

    def emit(self, event: Event) -> None:
        """Tells whoever listens."""
        if self.settings.on_event is None:
            return
        try:
            self.settings.on_event(event)
        except Exception:
            _log.exception("a listener raised when it was told of %s; the session goes on", type(event).__name__)

    # --- the journal ---------------------------------------------------------------------------------------------------------------------

    def learn(self, numbers: Mapping[str, int]) -> Steps[None]:
        """Remembers numbers, here and in the journal."""
        self.learned.update(numbers)
        yield Store("learn", lambda: self.store.learn(numbers))

    def appended(self, entries: Sequence[Entry]) -> Steps[tuple[Entry, ...]]:
        """Stores entries, and with them what the strategy wants to know of them."""
        if not entries:
            return ()
        strategy = self.settings.strategy

        def append() -> list[Entry]:
            return self.journal.append(self.id, entries, features=rows_of(strategy, entries))

        stored = yield Store("append", append)
        parents = [self.frame.leaf, *(entry.id for entry in stored[:-1])]
        if [entry.parent for entry in stored] == parents:
            self.frame = self.frame.appended(stored)
        else:
            # Another writer was faster and what it wrote comes first, or the session goes on from an earlier entry.
            yield from self.synced()
        return tuple(stored)

    def attached(self, new: Sequence[Attachment]) -> Steps[None]:
        """Stores attachments, before the request that shows them is sent."""
        checkpoint_id = self.checkpoint_id
        yield Store("attach", lambda: self.store.attach(checkpoint_id, new))
        self.frame = self.frame.with_attachments(new)

    def synced(self) -> Steps[None]:
        """Brings the frame up to date with the journal: entries and checkpoints of other writers, or of before a restart."""
        checkpoint_id = self.checkpoint_id
        found = yield Store("look at the session", lambda: self.store.state(checkpoint_id))
        self._undone = found.undone
        if found.token != self._token:
            yield from self._reloaded(found.token)
        elif found.leaf != self.frame.leaf:
            after = self.frame.leaf
            new = yield Store("read new entries", lambda: self._entries_after(after))
            if new is None:
                yield from self._reloaded(found.token)
            else:
                self.frame = self.frame.appended(new)
        if len(self.frame.attachments) != found.attachments and self.checkpoint_id == checkpoint_id:
            stored = yield Store("read attachments", lambda: self.store.attachments(checkpoint_id))
            self.frame = replace(self.frame, attachments=stored)

    def _entries_after(self, after: str | None) -> tuple[Entry, ...] | None:
        """The entries behind `after`, or None when it is not on the active path any more (the session went on from an earlier entry)."""
        try:
            new = tuple(self.journal.entries(self.id, after=after))
        except EntryNotFoundError:
            return None
        return new if new and new[0].parent == after else None

    def _reloaded(self, token: tuple[Any, ...]) -> Steps[None]:
        def load() -> Frame:
            checkpoint = self.checkpoints.newest(is_current)
            front = front_of(self.journal, checkpoint) if checkpoint else None
            if checkpoint is None or front is None:
                tail = tuple(self.journal.entries(self.id))
                return Frame(None, (), tail, self.store.attachments(""), tail[-1].id if tail else None)
            tail = tuple(self.journal.entries(self.id, after=checkpoint.plan.cutoff))
            leaf = tail[-1].id if tail else checkpoint.plan.cutoff
            return Frame(checkpoint, front, tail, self.store.attachments(checkpoint.id), leaf)

        self.frame = yield Store("load", load)
        self._token = token
