"""The steps of a session as generators of effects; `Session` and `AsyncSession` drive the same ones."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal
from uuid import uuid4

import msgspec

from ..budget import Budget, Occupancy
from ..checkpoint import Checkpoint, CheckpointStore
from ..codec import compact_json
from ..errors import (
    ContextOverflowError,
    EntryNotFoundError,
    OutputLimitError,
    ProviderError,
    RequestTooLargeError,
    SessionExistsError,
    SessionNotFoundError,
)
from ..formats.files.base import entry_id
from ..formats.wire import wire_by_name
from ..formats.wire.response import finish_reason, response_entries, said_nothing
from ..journal import Journal
from ..projection.boundaries import has_result
from ..projection.report import Report, report_of
from ..strategies import is_current
from ..strategies.contract import CompactionRequest, DueState, Phase, Plan, Trigger
from ..summary.request import request_body
from ..tokens import total_cost
from ..transcript import Entry, Text, ToolCall, View
from .compaction import Job, Outcome, compaction
from .cost import Carrying, carrying, usage_cost
from .effects import Steps, Store
from .events import Event, LimitLearned, NearTrigger, TruncationSuspected, Undone
from .frame import Frame, front_of
from .occupancy import occupancy
from .overflow.classifying import classify, length_stop, silent_truncation
from .requests import Attachment
from .settings import Settings
from .store import SessionStore

__all__ = ["Prepared", "SessionSteps"]

_log = logging.getLogger("firsthand")

_LEAST_WINDOW = 512
"""A smaller limit that a provider's text seems to name is not believed."""


@dataclass(frozen=True)
class Prepared:
    """The next request, and what was decided about it."""

    body: dict[str, Any]
    """System prompt, tools, messages and output limit in the session's wire; add what else your call needs."""
    messages: list[dict[str, Any]]
    """The messages in it (`input` of the Responses API)."""
    entries: tuple[Entry, ...]
    """The entries behind them, repaired."""
    occupancy: Occupancy
    budget: Budget
    outcome: Outcome | None = None
    """How the compaction ended that this request needed; None when it needed none."""
    cost: Carrying | None = None
    """What going on costs; None without prices."""


@dataclass
class _Ask:
    """What `prepare` was told, kept so that the same request can be made again after a refusal."""

    system: Any = None
    tools: Sequence[Any] | None = None
    max_output: int | None = None


class SessionSteps:
    """One session's state and steps. Not used directly: see `Session` and `AsyncSession`."""

    def __init__(self, journal: Journal, session_id: str, settings: Settings) -> None:
        self.journal = journal
        self.id = session_id
        self.settings = settings
        self.checkpoints = CheckpointStore(journal, session_id)
        self.store = SessionStore(journal, session_id)
        self._frame = Frame()
        self._token: tuple[Any, ...] | None = None
        self._learned: dict[str, int] = {}
        self._warned_under: str | None = None
        self._postponed_under: str | None = None
        self._undone_to: str | None = None
        self._ask = _Ask()
        self._overflows = 0
        self._new_context = False
        self._before: dict[str, tuple[int, float]] = {}
        self._tried_at: int | None = None
        """Occupancy at the newest automatic attempt, when it came to nothing."""
        # Steps of one session object take turns; other objects and processes meet in the journal.
        self.lock = threading.RLock()

    # --- what the person calls ---------------------------------------------------------------------------------------------------------

    def opened(self) -> Steps[None]:
        """Makes the session when the journal has none of that id, and reads what is needed of it."""
        settings = self.settings

        def look() -> bool:
            try:
                self.journal.meta(self.id)
            except SessionNotFoundError:
                return False
            return True

        def create() -> None:
            # Somebody else may make it between the look and this.
            with suppress(SessionExistsError):
                self.journal.create(self.id, model=settings.model, window=settings.window)

        if not (yield Store("look for the session", look)):
            yield Store("create", create)
        self._learned = yield Store("read what was learned", self.store.learned)
        yield from self._synced()

    def append(self, items: Iterable[Entry | Mapping[str, Any]]) -> Steps[tuple[Entry, ...]]:
        """Stores entries, or messages in the session's wire."""
        entries = tuple(self._read(list(items)))
        return (yield from self._appended(entries))

    def prepare(self, system: Any, tools: Sequence[Any] | None, max_output: int | None) -> Steps[Prepared]:
        """The next request; compacts first when that is due."""
        self._ask = _Ask(system, tools, max_output)
        self._overflows = 0
        return (yield from self._prepared("automatic"))

    def recover(self, error: ProviderError) -> Steps[Prepared]:
        """After the provider refused the prepared request: one compaction and the request again, if it was too large; else the error."""
        found = classify(error.status or 0, error.body)
        if found.kind != "overflow":
            raise error
        sizes = self._sizes()
        if found.limit is not None:
            sizes["limit"] = found.limit
        if found.limit is not None and _LEAST_WINDOW <= found.limit < self._window():
            self._emit(LimitLearned(session=self.id, limit=found.limit, window=self._window()))
            yield from self._learn({self._window_name: found.limit})
        return (yield from self._smaller("the provider refused the request as too large", sizes))

    def retry(self, response: Mapping[str, Any]) -> Steps[Prepared | None]:
        """The request to send once more after a reply that stopped because the window was full; None for any other (OV-07, OV-13).

        What the reply said is kept in the journal, and left out of the request: the model begins its answer anew.
        """
        if self._overflows or not self.settings.auto:
            return None
        read = self._response(response)
        if self._stop(read, response) != "overflow" or any(isinstance(b, ToolCall) for e in read for b in e.blocks):
            return None
        yield from self._appended([msgspec.structs.replace(entry, status="error") for entry in read])
        return (yield from self._smaller("the reply stopped because the window was full", self._sizes()))

    def record(self, response: Mapping[str, Any], complete: bool) -> Steps[tuple[Entry, ...]]:
        """Stores the model's response with its usage."""
        read = self._response(response)
        if not complete:
            read = tuple(msgspec.structs.replace(entry, status="incomplete") for entry in read)
        shown, _ = self._frame.shown()
        budget = self._budget()
        estimated = budget.fixed + total_cost(shown, budget.counter)
        usage = read[-1].usage if read else None
        if usage is not None and silent_truncation(usage.input_tokens, estimated, self._window()):
            self._emit(TruncationSuspected(session=self.id, reported=usage.input_tokens, estimated=estimated))
        stored = yield from self._appended(read)
        yield from self._learn({"last_window": self._window()} | ({"fixed": budget.fixed} if usage else {}))
        stop = self._stop(read, response)
        if stop is not None and said_nothing(read):
            if stop == "overflow":
                raise ContextOverflowError(
                    "the window was full before the answer said anything; compact, or use a model with a larger window",
                    self._sizes(),
                )
            raise OutputLimitError(
                f"the answer reached its limit of {budget.output_ceiling:,} output tokens before it said anything; ask for more output or "
                "for less reasoning"
            )
        return stored

    def compact(self, instructions: str | None, system: Any, tools: Sequence[Any] | None) -> Steps[Outcome]:
        """A compaction now, whatever the occupancy."""
        if system is not None or tools is not None:
            ask = self._ask
            self._ask = replace(
                ask, system=ask.system if system is None else system, tools=ask.tools if tools is None else tools
            )
        yield from self._synced()
        return (yield from self._compacted("manual", "standalone", instructions))

    def preview(self, instructions: str | None) -> Steps[tuple[Plan | None, Report]]:
        """What a compaction would keep now; nothing is stored and no model is asked."""
        yield from self._synced()
        view: View = yield Store("read the view", lambda: self.journal.view(self.id))
        budget = self._budget()
        request = CompactionRequest(trigger="manual", phase="standalone", instructions=instructions)
        previous = self._frame.checkpoint.plan if self._frame.checkpoint else None
        strategy = self.settings.strategy
        decision = strategy.plan(view, budget, request, previous)
        if not isinstance(decision, Plan) and self.settings.fallback is not None and hasattr(decision, "requests"):
            strategy = self.settings.fallback
            decision = strategy.plan(view, budget, request, previous)
        plan = decision if isinstance(decision, Plan) else None
        shown, _ = self._frame.shown()
        before = self._occupancy(shown, budget).tokens
        reason = None if plan else getattr(decision, "reason", None) or getattr(decision, "message", None)
        return plan, report_of(view, plan, budget, strategy.name, before, plan.tokens_after if plan else before, reason)

    def undo(self) -> Steps[Checkpoint | None]:
        """Takes the newest checkpoint back; the one before it, or the whole history, is shown again."""
        undone: Checkpoint | None = yield Store("undo", self.checkpoints.undo)
        if undone is not None:
            self._emit(Undone(session=self.id, checkpoint=undone.id))
            yield from self._synced()
            # Else the next request would make the same checkpoint again.
            self._undone_to = self._checkpoint_id
        return undone

    def postpone(self) -> None:
        """Puts automatic compaction off until the input limit, or until the next checkpoint."""
        self._postponed_under = self._checkpoint_id

    def change(self, settings: Settings) -> None:
        """Other settings: what was undone or came to nothing under the old ones may be tried again."""
        self.settings = settings
        self._undone_to = self._tried_at = None

    def request_new_context(self) -> None:
        """The model asked for a fresh window: the strategy is told at the next `prepare`."""
        self._new_context = True

    # --- inside ------------------------------------------------------------------------------------------------------------------------

    def _response(self, response: Mapping[str, Any]) -> tuple[Entry, ...]:
        return response_entries(self.settings.wire, response, session=f"{self.id}/{uuid4().hex}")

    def _stop(self, read: tuple[Entry, ...], response: Mapping[str, Any]) -> Literal["overflow", "output_limit"] | None:
        """Whether a reply stopped because the window was full, or at its output limit with nothing said; None when all is well."""
        if classify(200, response).kind == "overflow":
            return "overflow"
        if finish_reason(self.settings.wire, response) not in ("length", "max_tokens", "max_output_tokens"):
            return None
        usage = read[-1].usage if read else None
        sent = usage.input_tokens if usage and usage.input_tokens else self._sizes()["estimated"]
        return length_stop(sent, usage.output_tokens if usage else 0, self._window(), said=not said_nothing(read))

    def _sizes(self) -> dict[str, int]:
        budget = self._budget()
        shown, _ = self._frame.shown()
        return {"estimated": self._occupancy(shown, budget).tokens, "input_limit": budget.input_limit}

    def _smaller(self, what: str, sizes: dict[str, int]) -> Steps[Prepared]:
        """The request once more, after one compaction; a typed error when that is off, was tried already, or does not help (OV-01, OV-10)."""
        self._overflows += 1
        if not self.settings.auto:
            raise ContextOverflowError(
                f"{what} and automatic compaction is off; call compact(), or use a model with a larger window", sizes
            )
        if self._overflows > 1:
            raise ContextOverflowError("the provider refused the compacted request as too large, too", sizes)
        prepared = yield from self._prepared("provider_context_limit")
        outcome = prepared.outcome
        if outcome is None or outcome.checkpoint is None:
            raise ContextOverflowError(
                f"{what}, and {outcome.reason if outcome else 'nothing could be compacted'}", sizes
            )
        return prepared

    def _learn(self, numbers: Mapping[str, int]) -> Steps[None]:
        self._learned.update(numbers)
        yield Store("learn", lambda: self.store.learn(numbers))

    @property
    def frame(self) -> Frame:
        """What is held in memory."""
        return self._frame

    @property
    def _checkpoint_id(self) -> str:
        return self._frame.checkpoint.id if self._frame.checkpoint else ""

    def _read(self, items: Sequence[Entry | Mapping[str, Any]]) -> Iterable[Entry]:
        wire = wire_by_name(self.settings.wire)
        run: list[dict[str, Any]] = []
        for item in items:
            if isinstance(item, Entry):
                yield from self._read_run(wire, run)
                run = []
                yield item if item.id else msgspec.structs.replace(item, id=f"e{uuid4().hex}")
            else:
                run.append(dict(item))
        yield from self._read_run(wire, run)

    def _read_run(self, wire: Any, run: list[dict[str, Any]]) -> Iterable[Entry]:
        if run:
            for entry in wire.read(run, session=f"{self.id}/{uuid4().hex}"):
                yield msgspec.structs.replace(entry, parent=None, sequence=0)

    def _appended(self, entries: Sequence[Entry]) -> Steps[tuple[Entry, ...]]:
        if not entries:
            return ()
        stored = yield Store("append", lambda: self.journal.append(self.id, entries))
        parents = [self._frame.leaf, *(entry.id for entry in stored[:-1])]
        if [entry.parent for entry in stored] == parents:
            self._frame = self._frame.appended(stored)
        else:
            # Another writer was faster and what it wrote comes first, or the session goes on from an earlier entry.
            yield from self._synced()
        return tuple(stored)

    def _synced(self) -> Steps[None]:
        """Brings the frame up to date with the journal: entries and checkpoints of other writers, or of before a restart."""
        checkpoint_id = self._checkpoint_id
        leaf, token, count = yield Store("look at the session", lambda: self.store.state(checkpoint_id))
        if token != self._token:
            yield from self._reloaded(token)
        elif leaf != self._frame.leaf:
            after = self._frame.leaf
            new = yield Store("read new entries", lambda: self._entries_after(after))
            if new is None:
                yield from self._reloaded(token)
            else:
                self._frame = self._frame.appended(new)
        if len(self._frame.attachments) != count and self._checkpoint_id == checkpoint_id:
            stored = yield Store("read attachments", lambda: self.store.attachments(checkpoint_id))
            self._frame = replace(self._frame, attachments=stored)

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

        self._frame = yield Store("load", load)
        self._token = token

    @property
    def _window_name(self) -> str:
        """Under what a learned limit is kept: it holds for this model as it is configured, and for no other (OV-01)."""
        return f"window/{self.settings.window}/{self.settings.model or ''}"

    def _window(self) -> int:
        return min(self.settings.window, self._learned.get(self._window_name, self.settings.window))

    def _asked_output(self) -> int | None:
        """The output to ask for. A limit that was only just learned must not make a session unusable, so there it is a quarter of it at most."""
        asked = self._ask.max_output or self.settings.output_ceiling
        window = self._window()
        return asked if asked is None or window == self.settings.window else min(asked, window // 4)

    def _budget(self) -> Budget:
        settings = self.settings
        counter = settings.used_counter
        ask = self._ask
        parts = (ask.system, list(ask.tools) if ask.tools else None)
        fixed = sum(counter.count(part if isinstance(part, str) else compact_json(part)) for part in parts if part)
        return Budget.of(
            self._window(),
            self._asked_output(),
            fixed=fixed,
            counter=counter,
            target=settings.target,
            threshold=None if settings.threshold is None else min(settings.threshold, self._window()),
        )

    def _occupancy(self, shown: Sequence[Entry], budget: Budget) -> Occupancy:
        checkpoint = self._frame.checkpoint
        baseline = checkpoint.baseline if checkpoint else 0
        return occupancy(shown, self._frame.fresh, budget, baseline, self._learned.get("fixed"))

    def _prepared(self, trigger: Trigger) -> Steps[Prepared]:
        yield from self._synced()
        budget = self._budget()
        shown, new = self._frame.shown()
        used = self._occupancy(shown, budget)
        outcome = None
        wanted = self._due(used, budget) if trigger == "automatic" else trigger
        if wanted is None and self.settings.auto and used.tokens > budget.input_limit:
            # The strategy would wait, but there is nothing to wait for: this request cannot be sent.
            wanted = "provider_context_limit"
        if wanted is not None:
            outcome = yield from self._compacted(wanted, self._phase(), None)
            self._tried_at = None if outcome.checkpoint else used.tokens
            shown, new = self._frame.shown()
            used = self._occupancy(shown, budget)
        elif (yield from self._noticed(used, budget)):
            shown, new = self._frame.shown()
            used = self._occupancy(shown, budget)
        elif used.tokens >= budget.trigger * self.settings.warn_at and self._warned_under != self._checkpoint_id:
            self._warned_under = self._checkpoint_id
            self._emit(
                NearTrigger(session=self.id, tokens=used.tokens, trigger=budget.trigger, input_limit=budget.input_limit)
            )
        if used.tokens > budget.input_limit:
            reason = f": {outcome.reason}" if outcome and outcome.reason else ""
            sizes = {"size": used.tokens, "input_limit": budget.input_limit, **(outcome.sizes if outcome else {})}
            raise RequestTooLargeError(
                f"the next request takes {used.tokens:,} tokens and the input limit is {budget.input_limit:,}{reason}; nothing was sent",
                sizes,
            )
        if new:
            yield from self._attached(new)
        return self._request(shown, used, budget, outcome)

    def _attached(self, new: Sequence[Attachment]) -> Steps[None]:
        checkpoint_id = self._checkpoint_id
        yield Store("attach", lambda: self.store.attach(checkpoint_id, new))
        self._frame = self._frame.with_attachments(new)

    def _request(self, shown: tuple[Entry, ...], used: Occupancy, budget: Budget, outcome: Outcome | None) -> Prepared:
        ask, settings = self._ask, self.settings
        body = request_body(
            settings.wire,
            shown,
            model=settings.model,
            system=ask.system,
            tools=ask.tools,
            max_output=budget.output_ceiling if settings.wire == "anthropic" else self._asked_output(),
        )
        cost = None
        if settings.prices is not None:
            checkpoint = self._frame.checkpoint
            known = (checkpoint.plan.tokens_before if checkpoint else None, 0.0)
            before, spent = self._before.get(self._checkpoint_id, known)
            cost = carrying(used.tokens, settings.prices, before=before, spent=spent)
        messages = body["input" if settings.wire == "openai-responses" else "messages"]
        return Prepared(body, messages, shown, used, budget, outcome, cost)

    def _due_state(self, budget: Budget) -> DueState:
        last = self._learned.get("last_window")
        start = self._notice_id("")
        return DueState(
            phase=self._phase(),
            auto=self.settings.auto,
            previous=self._frame.checkpoint.plan if self._frame.checkpoint else None,
            previous_window=last if last != budget.window else None,
            new_context_requested=self._new_context,
            notices=frozenset(entry.id.removeprefix(start) for entry in self._frame.tail if entry.id.startswith(start)),
        )

    def _notice_id(self, notice: str) -> str:
        return f"notice-{entry_id(self.id, self._checkpoint_id)}-{notice}"

    def _due(self, used: Occupancy, budget: Budget) -> Trigger | None:
        trigger = self.settings.strategy.due(used, budget, self._due_state(budget))
        if trigger != "automatic" or used.tokens > budget.input_limit:
            return trigger
        if self._checkpoint_id in (self._postponed_under, self._undone_to):
            return None
        # What could not be made smaller is not tried again, and not summarised again, before there is something new to cover (OV-02).
        checkpoint = self._frame.checkpoint
        least = max(self._tried_at or 0, checkpoint.baseline if checkpoint else 0)
        return trigger if not least or used.tokens >= least + budget.keep_recent // 2 else None

    def _noticed(self, used: Occupancy, budget: Budget) -> Steps[bool]:
        """Appends what the strategy reminds the model of at this occupancy, each once for a checkpoint; whether there was anything."""
        notices = self.settings.strategy.notices(used, budget, self._due_state(budget))
        entries = tuple(
            Entry(
                id=self._notice_id(notice.id),
                role=notice.item.role,
                blocks=(Text(notice.item.text, origin=notice.item.origin),),
            )
            for notice in notices
        )
        yield from self._appended(entries)
        return bool(entries)

    def _phase(self) -> Phase:
        newest = self._frame.tail[-1] if self._frame.tail else None
        return "mid_turn" if newest is not None and (has_result(newest) or newest.role == "assistant") else "pre_turn"

    def _compacted(self, trigger: Trigger, phase: Phase, instructions: str | None) -> Steps[Outcome]:
        view: View = yield Store("read the view", lambda: self.journal.view(self.id))
        if not view.entries:
            return Outcome("unchanged", "the session is empty")
        head = view.entries[-1].id
        chain: bytes = yield Store("read the chain hash", lambda: self.journal.chain(head))
        budget = self._budget()
        shown, _ = self._frame.shown()
        used = self._occupancy(shown, budget)
        settings = self.settings
        outcome = yield from compaction(
            Job(
                session=self.id,
                store=self.checkpoints,
                view=view,
                chain=chain.hex(),
                strategy=settings.strategy,
                fallback=settings.fallback,
                budget=budget,
                request=CompactionRequest(trigger=trigger, phase=phase, instructions=instructions, auto=settings.auto),
                previous=self._frame.checkpoint,
                occupancy=used,
                wire=settings.wire,
                model=settings.model,
                system=self._ask.system,
                tools=self._ask.tools,
                attachments=self._frame.attachments,
                summariser=settings.summariser,
                output_cap=settings.output_ceiling,
                deadline=settings.summary_deadline,
                emit=self._emit,
                price=lambda usage: usage_cost(usage, settings.prices) if settings.prices else None,
            )
        )
        if outcome.checkpoint is not None:
            self._new_context = False
            spent = usage_cost(outcome.usage, settings.prices) if settings.prices else 0.0
            self._before.setdefault(outcome.checkpoint.id, (used.tokens, spent))
            yield from self._synced()
            yield from self._followed_up(outcome)
        return outcome

    def _followed_up(self, outcome: Outcome) -> Steps[None]:
        """Appends what the plan's client appends after a compaction (a "continue" message), once."""
        checkpoint = outcome.checkpoint
        if checkpoint is None or outcome.reused or not checkpoint.plan.follow_up:
            return
        entries = tuple(
            Entry(id=f"f{number}-{checkpoint.id}", role=item.role, blocks=(Text(item.text, origin=item.origin),))
            for number, item in enumerate(checkpoint.plan.follow_up)
        )
        yield from self._appended(entries)

    def _emit(self, event: Event) -> None:
        if self.settings.on_event is None:
            return
        try:
            self.settings.on_event(event)
        except Exception:
            _log.exception("a listener raised when it was told of %s; the session goes on", type(event).__name__)
