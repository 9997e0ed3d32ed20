"""Operations and receipts: installs a plan in one transaction, once, whoever asks for it.

    absent -> started -> completed   (checkpoint and receipt in one transaction)
              started -> failed      (the reason is recorded; the same request may be tried again)

An operation that is `started` while its process is gone is *unfinished*: it is reported and never taken for a success, and stays until a
person resolves it. Its key covers the history it was asked for, so a session that goes on is not held up by it (futureos.md 6.3, failure
kinds IN-01 to IN-10).
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Literal, TypeAlias
from uuid import uuid4

import msgspec
from sqlalchemy import Connection, Row, and_, false, func, insert, or_, select, update

from .codec import decode_as, encode
from .errors import JournalError
from .journal import Journal
from .journal.append import placed
from .journal.runtime_tables import checkpoints, operations
from .journal.schema import entries, sessions
from .journal.sessions import session_row
from .journal.tree import path_reach
from .projection.plan import Plan

__all__ = [
    "Checkpoint",
    "CheckpointStore",
    "Claim",
    "Operation",
    "OperationState",
    "fingerprint",
    "new_operation_id",
    "operation_over",
    "resolve",
]

OperationState: TypeAlias = Literal["started", "completed", "failed"]

UNFINISHED_AFTER_MS = 15 * 60 * 1_000
"""When an operation of another machine, whose processes nobody can see from here, counts as unfinished."""


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """A committed plan."""

    id: str
    session: str
    """The session that made it; another one where a fork inherited it."""
    operation: str
    plan: Plan
    head: str
    """Id of the newest entry that the plan was made for; what was recorded later is new to it."""
    window_number: int
    """1 for the first checkpoint of a session, counted up with each."""
    baseline: int
    """Tokens of the projection when it was committed, fixed tokens included."""
    created_ms: int


class Operation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One attempt to compact, and what came of it."""

    id: str
    session: str
    key: str
    state: OperationState
    owner: str
    trigger: str
    started_ms: int
    finished_ms: int | None = None
    receipt: dict[str, Any] | None = None
    unfinished: bool = False
    """Started, and its process is gone: nobody knows how far it came, but no checkpoint was committed."""


@dataclass(frozen=True)
class Claim:
    """The answer to a claim: whose turn it is.

    `new`: yours. `completed`: done before; `checkpoint` is its result, None where there was nothing to gain. `running`: somebody else is at it,
    wait. `unfinished`: somebody was, and is gone.
    """

    kind: Literal["new", "completed", "running", "unfinished"]
    operation: Operation
    checkpoint: Checkpoint | None = None


_ours: set[str] = set()
"""Ids of the operations that this process is working on. Started in this process and not among them: somebody gave up without a word."""


def new_operation_id() -> str:
    """An id for an operation that this process is about to claim; give it back with `operation_over` whatever happens."""
    operation_id = f"op{uuid4().hex[:16]}"
    _ours.add(operation_id)
    return operation_id


def operation_over(operation_id: str) -> None:
    """This process does no more for that operation."""
    _ours.discard(operation_id)


def fingerprint(*parts: Any) -> str:
    """A key over values: SHA-256 in hex of their JSON with sorted keys; equal for equal values whatever their key order."""
    return sha256(msgspec.json.encode([msgspec.to_builtins(part) for part in parts], order="deterministic")).hexdigest()


class CheckpointStore:
    """The checkpoints and operations of one session. Safe to use from several threads and processes."""

    def __init__(self, journal: Journal, session_id: str) -> None:
        self._journal = journal
        self._session = session_id

    def claim(self, key: str, trigger: str, operation_id: str) -> Claim:
        """Take on the operation with this key under the given id (see `new_operation_id`), or learn who has it.

        Raises:
            SessionNotFoundError: the session is gone.
            JournalBusyError: the write lock was not free in time.
        """
        with self._journal.write() as connection:
            session = session_row(connection, self._session)
            row = connection.execute(
                select(operations).where(
                    operations.c.session == session.n, operations.c.key == key, operations.c.state != "failed"
                )
            ).one_or_none()
            if row is None:
                values = {
                    "id": operation_id, "session": session.n, "key": key, "state": "started", "owner": _owner(),
                    "trigger": trigger, "started_ms": _now_ms(),
                }  # fmt: skip
                connection.execute(insert(operations).values(values))
                row = connection.execute(select(operations).where(operations.c.id == operation_id)).one()
                return Claim("new", self._operation(row))
            operation = self._operation(row)
            if row.state == "completed":
                return Claim("completed", operation, self._of_operation(connection, row))
            return Claim("unfinished" if operation.unfinished else "running", operation)

    def completed(self, key: str) -> Claim | None:
        """The completed operation with this key, if there is one."""
        with self._journal.read() as connection:
            session = session_row(connection, self._session)
            row = connection.execute(
                select(operations).where(
                    operations.c.session == session.n, operations.c.key == key, operations.c.state == "completed"
                )
            ).one_or_none()
            return (
                None if row is None else Claim("completed", self._operation(row), self._of_operation(connection, row))
            )

    def commit(self, operation_id: str, plan: Plan, *, head: str, baseline: int) -> Checkpoint:
        """Store the checkpoint and complete its operation, both or neither.

        Raises:
            JournalError: the operation is no longer started (it was resolved meanwhile); nothing was stored.
        """
        with self._journal.write() as connection:
            session = session_row(connection, self._session)
            row = connection.execute(select(operations).where(operations.c.id == operation_id)).one_or_none()
            if row is None or row.state != "started":
                raise JournalError(
                    f"operation {operation_id} is {row.state if row else 'unknown'}, not started, so its plan was not installed"
                )
            at_head, at_cutoff = placed(connection, head), placed(connection, plan.cutoff)
            if at_head is None or at_cutoff is None:
                raise JournalError(
                    f"entry {head if at_head is None else plan.cutoff} is gone, so the plan was not installed"
                )
            number = connection.scalar(
                select(func.count()).select_from(checkpoints).where(checkpoints.c.session == session.n)
            )
            now = _now_ms()
            checkpoint = Checkpoint(
                id=f"cp{uuid4().hex[:16]}",
                session=self._session,
                operation=operation_id,
                plan=plan,
                head=head,
                window_number=(number or 0) + 1,
                baseline=baseline,
                created_ms=now,
            )
            connection.execute(
                insert(checkpoints).values(
                    id=checkpoint.id,
                    session=session.n,
                    operation=row.n,
                    head=at_head.n,
                    cutoff=at_cutoff.n,
                    algorithm=_algorithm(plan),
                    window_number=checkpoint.window_number,
                    baseline=baseline,
                    created_ms=now,
                    plan=encode(plan),
                )
            )
            receipt = {
                "checkpoint": checkpoint.id,
                "tokens_before": plan.tokens_before,
                "tokens_after": plan.tokens_after,
            }
            connection.execute(
                update(operations)
                .where(operations.c.n == row.n)
                .values(state="completed", finished_ms=now, receipt=encode(receipt))
            )
            return checkpoint

    def fail(self, operation_id: str, reason: str) -> bool:
        """Record that a started operation failed, and why; false when it was not started any more."""
        return self._ended(operation_id, "failed", reason)

    def complete_unchanged(self, operation_id: str, reason: str) -> bool:
        """Complete an operation without a checkpoint: nothing was to be gained, and asking again would pay for the same answer."""
        return self._ended(operation_id, "completed", reason)

    def _ended(self, operation_id: str, state: OperationState, reason: str) -> bool:
        with self._journal.write() as connection:
            done = connection.execute(
                update(operations)
                .where(operations.c.id == operation_id, operations.c.state == "started")
                .values(state=state, finished_ms=_now_ms(), receipt=encode({"reason": reason}))
            )
            return done.rowcount == 1

    def newest(self, is_current: Callable[[str, str], bool]) -> Checkpoint | None:
        """The newest checkpoint that holds for the active path: not undone, its range on the path, its algorithm still in use.

        `is_current` is asked with a strategy's name and version; a checkpoint of a retired one is ignored and its range covered again (IN-10).

        A fork inherits those of the session it left whose range ends at or before the fork (JR-07).
        """
        with self._journal.read() as connection:
            for row in connection.execute(self._held(connection)):
                if is_current(*row.algorithm.split("/", 1)):
                    return self._checkpoint(connection, row)
            return None

    def undo(self) -> Checkpoint | None:
        """Take back the newest checkpoint of this session that holds; returns it, or None when there is none.

        Nothing is deleted: the checkpoint stays readable, marked with the time. One inherited from before a fork cannot be taken back here.
        """
        with self._journal.write() as connection:
            session = session_row(connection, self._session)
            rows = [row for row in connection.execute(self._held(connection)) if row.session == session.n]
            if not rows:
                return None
            found = self._checkpoint(connection, rows[0])
            connection.execute(update(checkpoints).where(checkpoints.c.n == rows[0].n).values(undone_ms=_now_ms()))
            # The same request may come again and must then be able to install a plan anew.
            connection.execute(
                update(operations)
                .where(operations.c.n == rows[0].operation)
                .values(state="failed", receipt=encode({"reason": "undone", "checkpoint": found.id}))
            )
            return found

    def operations(self, states: Iterable[OperationState] = ("started", "completed", "failed")) -> list[Operation]:
        """The operations of this session in these states, oldest first."""
        with self._journal.read() as connection:
            session = session_row(connection, self._session)
            rows = connection.execute(
                select(operations)
                .where(operations.c.session == session.n, operations.c.state.in_(list(states)))
                .order_by(operations.c.n)
            )
            return [self._operation(row) for row in rows]

    def _held(self, connection: Connection) -> Any:
        """Selects the checkpoints whose range lies on the active path, newest first."""
        session = session_row(connection, self._session)
        reaches = path_reach(connection, session.leaf)
        on_path = or_(*(and_(entries.c.segment == r.segment, entries.c.n <= r.cut) for r in reaches), false())
        owned = [and_(checkpoints.c.session == session.n, checkpoints.c.undone_ms.is_(None))]
        child = session
        while child.base is not None:
            parent = connection.execute(select(sessions).where(sessions.c.id == child.forked_from)).one_or_none()
            if parent is None:
                break
            # What the parent installed or took back after the fork is its own affair.
            owned.append(
                and_(
                    checkpoints.c.session == parent.n,
                    checkpoints.c.created_ms <= child.created_ms,
                    or_(checkpoints.c.undone_ms.is_(None), checkpoints.c.undone_ms > child.created_ms),
                    checkpoints.c.cutoff <= child.base,
                )
            )
            child = parent
        return (
            select(checkpoints)
            .join(entries, entries.c.n == checkpoints.c.cutoff)
            .where(or_(*owned), on_path)
            .order_by(checkpoints.c.n.desc())
        )

    def _of_operation(self, connection: Connection, operation: Row[Any]) -> Checkpoint | None:
        row = connection.execute(select(checkpoints).where(checkpoints.c.operation == operation.n)).one_or_none()
        return None if row is None else self._checkpoint(connection, row)

    def _checkpoint(self, connection: Connection, row: Row[Any]) -> Checkpoint:
        return Checkpoint(
            id=row.id,
            session=str(connection.scalar(select(sessions.c.id).where(sessions.c.n == row.session))),
            operation=str(connection.scalar(select(operations.c.id).where(operations.c.n == row.operation))),
            plan=decode_as(row.plan, Plan),
            head=str(connection.scalar(select(entries.c.id).where(entries.c.n == row.head))),
            window_number=row.window_number,
            baseline=row.baseline,
            created_ms=row.created_ms,
        )

    def _operation(self, row: Row[Any]) -> Operation:
        return Operation(
            id=row.id,
            session=self._session,
            key=row.key,
            state=row.state,
            owner=row.owner,
            trigger=row.trigger,
            started_ms=row.started_ms,
            finished_ms=row.finished_ms,
            receipt=None if row.receipt is None else decode_as(row.receipt, dict),
            unfinished=row.state == "started" and not _at_work(row.id, row.owner, row.started_ms),
        )


def resolve(journal: Journal, operation_id: str) -> Operation:
    """Declare an unfinished operation failed, so that its request may be made again.

    Raises:
        JournalError: there is no such operation, or it is not started, or its process is still at work.
    """
    with journal.read() as connection:
        row = connection.execute(
            select(operations, sessions.c.id.label("session_id"))
            .join(sessions, sessions.c.n == operations.c.session)
            .where(operations.c.id == operation_id)
        ).one_or_none()
    if row is None:
        raise JournalError(
            f"the journal has no operation {operation_id!r}; `firsthand session status SESSION` lists them"
        )
    store = CheckpointStore(journal, row.session_id)
    (found,) = [operation for operation in store.operations() if operation.id == operation_id]
    if found.state != "started":
        raise JournalError(f"operation {operation_id} is {found.state} already; nothing was changed")
    if not found.unfinished:
        raise JournalError(f"operation {operation_id} is being worked on by {found.owner}; nothing was changed")
    store.fail(operation_id, "declared failed by a person; its process was gone")
    (found,) = [operation for operation in store.operations() if operation.id == operation_id]
    return found


def _algorithm(plan: Plan) -> str:
    return f"{plan.strategy}/{plan.version}"


def _owner() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"


def _at_work(operation_id: str, owner: str, started_ms: int) -> bool:
    if owner == _owner():
        return operation_id in _ours
    host, _, pid = owner.rpartition(":")
    if host != socket.gethostname():
        return _now_ms() - started_ms < UNFINISHED_AFTER_MS
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
