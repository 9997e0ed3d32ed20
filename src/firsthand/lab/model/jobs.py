"""Jobs that make paid calls, several at a time, with the outcome of one after the other.

A job is a question with all the calls that it takes. Jobs are begun in order and handed back in order, and what decides over money goes by
their order too, never by which reply comes first:

- A job reserves its first call only when all jobs before it have reserved theirs.
- A call that does not fit the budget waits for the calls in flight, which mostly cost less than was reserved for them; until it fits or is
  refused, no later job reserves anything. It is refused when nothing is in flight. So jobs of one call each spend a budget to the same call
  however many run at a time.
- Jobs run ahead of the oldest one that has not ended only so far, so that an endpoint that is down is noticed before it has cost much.
- The job that fails ends the run: later ones send nothing more, and what they found is left in the ledger.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any, Generic, TypeAlias, TypeVar

from ...errors import ProviderError
from .endpoint import Endpoint
from .ledger import Ledger
from .paid_calls import BudgetSpentError, Call, Reserved, UnresolvedCallError

__all__ = ["Ask", "Job", "Jobs", "Unanswered"]

T = TypeVar("T")

Ask: TypeAlias = Callable[[str, Mapping[str, Any]], Call]
"""The paid call of an identity and a body without `model`, as `Endpoint.ask` promises it."""
Job: TypeAlias = Callable[[Ask], T]
"""What one question does. It runs in a thread of its own, and shares nothing that it changes with other jobs."""

_FATAL = (401, 402, 403, 404)
"""Answers after which no other call would fare better."""
_FAILURES_ON_END = 5
_AHEAD = 2
"""How far jobs run ahead of the oldest one that has not ended, in times of what goes at a time: while that one hangs, nobody counts failures."""


class _Stopped(Exception):  # noqa: N818
    """Ends a job that a failure before it made pointless; nobody sees it."""


@dataclass(frozen=True)
class Jobs:
    """Who makes the calls of a run, and how many at a time.

    Args:
        endpoint: the model.
        ledger: pays.
        most: calls in flight at the very most; 1 makes them one after the other, in the thread that asks.
    """

    endpoint: Endpoint
    ledger: Ledger
    most: int = 1

    def in_order(self, jobs: Iterable[Job[T]]) -> Generator[T, None, None]:
        """What the jobs return, in their order. What one of them raises is raised in its place and ends the run.

        Close it (`contextlib.closing`) before the ledger: that ends the run, and waits for the calls in flight, since they are paid for. After
        an interrupt it does so too; a second interrupt does not wait.

        Raises:
            BudgetSpentError: a call does not fit the budget; nothing later is returned.
            ProviderError: the endpoint refuses the key, or knows no such model.
            LedgerError: a call cost more than its worst case.
        """
        run = _Run(self, iter(jobs))
        return run.inline() if self.most == 1 else run.threaded()


def _refused(endpoint: Endpoint, call: Call, times: int = 1) -> ProviderError:
    body = (call.reply or b"").decode("utf-8", "replace")
    on_end = f", {times} times on end" if times > 1 else ""
    return ProviderError(call.status, body, f"{endpoint.url} {call.reason}{on_end}; nothing more was sent")


@dataclass
class Unanswered:
    """Questions without a reply, in order.

    Args:
        endpoint: named when it is given up.
    """

    endpoint: Endpoint
    told: list[str] = field(default_factory=list)
    """Why there is none, one sentence for each call."""
    on_end: int = 0
    """Calls of this run that failed since the last one that was answered."""

    def add(self, found: Call | UnresolvedCallError) -> None:
        """One more: a call that failed now, or one of an earlier run.

        Raises:
            ProviderError: too many failed on end.
        """
        if isinstance(found, UnresolvedCallError):
            self.told.append(str(found))
            return
        self.told.append(f"the call {found.identity} {found.reason}; it is not sent again without --retry-unresolved")
        self.on_end += 1
        if self.on_end >= _FAILURES_ON_END:
            raise _refused(self.endpoint, found, self.on_end)

    def answered(self) -> None:
        """A question was answered."""
        self.on_end = 0


@dataclass(frozen=True)
class _Raised:
    error: BaseException


class _Run(Generic[T]):
    """One run over jobs. Everything below is read and written under `changed`."""

    def __init__(self, by: Jobs, jobs: Iterator[Job[T]]) -> None:
        self.by = by
        self.jobs = jobs
        self.taking = threading.Lock()
        self.changed = threading.Condition()
        self.taken = 0
        """Jobs taken so far; a job's number is how many were taken before it."""
        self.exhausted = False
        self.outcomes: dict[int, T | _Raised] = {}
        self.wanted = 0
        """The job whose outcome is waited for."""
        self.begun: set[int] = set()
        """Jobs that have reserved something, or ended; without those that `front` counts."""
        self.front = 0
        """How many jobs from the first one on have begun."""
        self.short: set[int] = set()
        """Jobs whose next call did not fit when it was tried."""
        self.last: float = inf
        """The last job that may reserve."""
        self.in_flight = 0
        self.landed = 0

    def inline(self) -> Generator[T, None, None]:
        for job in self.jobs:
            number = self.wanted = self.taken
            self.taken += 1
            outcome = job(self._asker(number))
            self._begin(number)
            yield outcome

    def threaded(self) -> Generator[T, None, None]:
        workers = [
            threading.Thread(target=self._work, daemon=True, name=f"firsthand-lab-call-{number}")
            for number in range(self.by.most)
        ]
        for worker in workers:
            worker.start()
        try:
            number = 0
            while (outcome := self._outcome(number)) is not None:
                if isinstance(outcome[0], _Raised):
                    raise outcome[0].error
                yield outcome[0]
                number += 1
        finally:
            self._stop_behind(-1)
            for worker in workers:
                worker.join()

    def _outcome(self, number: int) -> tuple[T | _Raised] | None:
        with self.changed:
            self.wanted = number
            self.changed.notify_all()
            self.changed.wait_for(lambda: number in self.outcomes or (self.exhausted and number >= self.taken))
            return (self.outcomes.pop(number),) if number in self.outcomes else None

    def _work(self) -> None:
        while True:
            with self.taking:
                taken = self._take()
            if taken is None:
                return
            number, job = taken
            try:
                outcome: T | _Raised = job(self._asker(number))
            except BaseException as error:  # it is raised again where the outcomes are read
                outcome = _Raised(error)
            self._end(number, outcome)

    def _take(self) -> tuple[int, Job[T]] | None:
        number = self.taken
        if self.exhausted or number > self.last:
            return None
        try:
            job = next(self.jobs, None)
        except BaseException as error:  # as above
            job = None
            self._end(number, _Raised(error))
        with self.changed:
            self.exhausted = job is None
            self.taken += job is not None
            self.changed.notify_all()
        return None if job is None else (number, job)

    def _end(self, number: int, outcome: T | _Raised) -> None:
        if isinstance(outcome, _Raised):
            self._stop_behind(number)
        with self.changed:
            self.outcomes[number] = outcome
        self._begin(number)

    def _begin(self, number: int) -> None:
        with self.changed:
            if number >= self.front:
                self.begun.add(number)
            while self.front in self.begun:
                self.begun.remove(self.front)
                self.front += 1
            self.changed.notify_all()

    def _stop_behind(self, number: int) -> None:
        with self.changed:
            self.last = min(self.last, number)
            self.changed.notify_all()

    def _asker(self, number: int) -> Ask:
        endpoint, ledger = self.by.endpoint, self.by.ledger

        def ask(identity: str, body: Mapping[str, Any]) -> Call:
            request, worst = endpoint.priced(body)
            try:
                reserved = self._reserved(number, lambda: ledger.reserve(identity, request, worst))
            finally:
                self._begin(number)
            if isinstance(reserved, Call):
                return reserved
            try:
                call = ledger.settle(reserved, endpoint.send(request))
                if call.state == "failed" and call.status in _FATAL:
                    raise _refused(endpoint, call)
            except BaseException:
                # Before the call lands: nobody behind it may reserve in between.
                self._stop_behind(number)
                raise
            finally:
                self._land()
            return call

        return ask

    def _reserved(self, number: int, reserve: Callable[[], Reserved | Call]) -> Reserved | Call:
        with self.changed:
            landed = -1
            try:
                while True:
                    self._wait(number, landed)
                    landed = self.landed
                    try:
                        made = reserve()
                    except BudgetSpentError:
                        if not self.in_flight:
                            self._stop_behind(number)
                            raise
                        self.short.add(number)
                        continue
                    self.in_flight += isinstance(made, Reserved)
                    return made
            finally:
                self.short.discard(number)
                self.changed.notify_all()

    def _wait(self, number: int, tried: int) -> None:
        """Until the job may reserve, and some call has landed since it tried in vain."""
        self.changed.wait_for(lambda: number > self.last or (self.landed != tried and self._may(number)))
        if number > self.last:
            raise _Stopped

    def _may(self, number: int) -> bool:
        """Whether it is a job's turn to reserve. The first call of all goes alone: a wrong key shows there."""
        alone = self.landed > 0 or self.in_flight == 0
        near = number < self.wanted + _AHEAD * self.by.most
        return alone and near and number <= self.front and not any(other < number for other in self.short)

    def _land(self) -> None:
        with self.changed:
            self.in_flight -= 1
            self.landed += 1
            self.changed.notify_all()
