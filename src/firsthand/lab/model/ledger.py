"""The ledger of paid calls: reserve, then send, then settle. It never spends above its budget and never pays for one call twice.

A call's worst case is written and synced to the disk before the call is sent; its reply, or why there is none, after. So whatever kills the
process, the file says what was paid for. A reservation without a reply counts as spent; the call is not sent again unless a person asks for
it. A finished call is answered from the file.

It is a SQLite file and not a list of lines: whether a call still fits the budget, and that its reservation is written, must be one step for
all threads and processes that share the budget, and a line that was cut off must not be able to hide money.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from ..money.prices import amount
from .paid_calls import (
    BudgetSpentError,
    Call,
    LedgerError,
    Reserved,
    Settled,
    Spent,
    State,
    UnresolvedCallError,
    call_key,
)

__all__ = ["Ledger"]

_SCHEMA = """
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS call (
    number INTEGER PRIMARY KEY,
    key TEXT NOT NULL,
    identity TEXT NOT NULL,
    state TEXT NOT NULL,
    reserved INTEGER NOT NULL,
    charged INTEGER,
    request BLOB NOT NULL,
    status INTEGER,
    reply BLOB,
    reason TEXT,
    started REAL NOT NULL,
    ended REAL
);
CREATE UNIQUE INDEX IF NOT EXISTS call_in_force ON call (key) WHERE state <> 'abandoned';
"""
_VERSION = "1"
_BUSY_SECONDS = 60.0


class Ledger:
    """A budget with the calls that were paid from it; safe to share between threads and processes.

    Args:
        path: the file; made when it is not there.
        currency: of the budget and of all amounts; a file keeps its first one.
        budget: the most that all calls in the file may cost together, in picos.
        retry: allow one more try of each call of earlier runs that failed or whose reply is not known, when it is asked again. Needs the file
            for itself at that moment.

    Raises:
        LedgerError: on entering: the file is no ledger, holds another currency, or `retry` is asked while another process uses it.
    """

    def __init__(self, path: Path, *, currency: str, budget: int, retry: bool = False) -> None:
        self.path = path
        self.currency = currency
        self.budget = budget
        self._retry = retry
        self._past = 0
        """Number of the last call that may be tried once more."""
        self._local = threading.local()
        self._connections: list[sqlite3.Connection] = []
        self._guard = threading.Lock()
        self._lock: IO[bytes] | None = None

    def __enter__(self) -> Self:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # It holds the text of sessions, which is nobody else's.
        self.path.touch(mode=0o600)
        self._hold()
        try:
            self._prepare()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the file; what was written stays."""
        with self._guard:
            for connection in self._connections:
                connection.close()
            self._connections.clear()
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def call(self, identity: str, request: bytes, worst: int, send: Callable[[bytes], Settled]) -> Call:
        """The call with its reply: from the file when it was answered before, else sent now.

        Args:
            identity: what the call is for, such as `session/40%/pi/recognition/0/replicate 2`.
            request: the exact body.
            worst: the most that it can cost, in picos.
            send: sends the body and returns what came back. What it raises leaves the call unresolved.

        Raises:
            BudgetSpentError: the worst case does not fit what is left of the budget; nothing was sent.
            UnresolvedCallError: it was sent before and has no reply; nothing was sent.
            LedgerError: the provider charged more than the worst case, which means that the price is wrong; the charge is kept.
        """
        reserved = self.reserve(identity, request, worst)
        return reserved if isinstance(reserved, Call) else self.settle(reserved, send(request))

    def settle(self, call: Reserved, settled: Settled) -> Call:
        """Keeps what came back of a reserved call.

        Raises:
            LedgerError: the provider charged more than the worst case, which means that the price is wrong; the charge is kept.
        """
        state: State = "answered" if settled.failure is None else "failed"
        with self._writing() as connection:
            connection.execute(
                "UPDATE call SET state = ?, charged = ?, status = ?, reply = ?, reason = ?, ended = ? WHERE number = ?",
                (state, settled.charged, settled.status, settled.reply, settled.failure, time.time(), call.number),
            )
        made = Call(
            call.number,
            call.key,
            call.identity,
            state,
            call.worst,
            settled.charged,
            call.request,
            settled.status,
            settled.reply,
            settled.failure,
        )
        if settled.charged is not None and settled.charged > call.worst:
            raise LedgerError(
                f"the call {call.identity} cost {amount(settled.charged, self.currency)}, more than the "
                f"{amount(call.worst, self.currency)} that were reserved for it: the price in use is too low; stop, and give the right one "
                "with --price"
            )
        return made

    def spent(self) -> Spent:
        """The sums so far, of all runs that used the file."""
        sums = {"answered": 0, "reserved": 0, "failed": 0, "abandoned": 0}
        charged = reserved = 0
        rows = self._connection().execute(
            "SELECT state, count(*), total(charged), sum(CASE WHEN charged IS NULL THEN reserved ELSE 0 END), sum(charged) FROM call GROUP BY state"
        )
        for state, count, _, open_, settled in rows:
            sums[state] += count
            charged += settled or 0
            reserved += open_ or 0
        (summaries,) = (
            self._connection()
            .execute("SELECT coalesce(sum(coalesce(charged, reserved)), 0) FROM call WHERE identity LIKE '%/summary %'")
            .fetchone()
        )
        return Spent(
            charged, reserved, sums["answered"], sums["reserved"], sums["failed"], sums["abandoned"], summaries
        )

    def calls(self) -> list[Call]:
        """All calls in the order in which they were reserved, requests and replies in full."""
        return [Call(*row) for row in self._connection().execute(f"SELECT {_COLUMNS} FROM call ORDER BY number")]

    def reserve(self, identity: str, request: bytes, worst: int) -> Reserved | Call:
        """The call from the file when it was answered before; else its reservation, on the disk when this returns.

        Whoever gets a reservation sends the request once, and settles it.

        Raises:
            BudgetSpentError: the worst case does not fit what is left of the budget; nothing may be sent.
            UnresolvedCallError: it was sent before and has no reply; nothing may be sent.
        """
        key = call_key(identity, request)
        with self._writing() as connection:
            row = connection.execute(
                f"SELECT {_COLUMNS} FROM call WHERE key = ? AND state <> 'abandoned'", (key,)
            ).fetchone()
            if row is not None:
                found = Call(*row)
                if found.state == "answered":
                    return found
                if found.number > self._past:
                    raise UnresolvedCallError(identity, found.state, found.reason)
                connection.execute("UPDATE call SET state = 'abandoned' WHERE number = ?", (found.number,))
            (spent,) = connection.execute("SELECT coalesce(sum(coalesce(charged, reserved)), 0) FROM call").fetchone()
            if spent + worst > self.budget:
                raise BudgetSpentError(spent, worst, self.budget, self.currency)
            made = connection.execute(
                "INSERT INTO call (key, identity, state, reserved, request, started) VALUES (?, ?, 'reserved', ?, ?, ?)",
                (key, identity, worst, request, time.time()),
            )
            return Reserved(int(made.lastrowid or 0), key, identity, request, worst)

    def _prepare(self) -> None:
        try:
            with self._writing() as connection:
                for statement in _SCHEMA.split(";"):
                    connection.execute(statement)
                for name, value in (("version", _VERSION), ("currency", self.currency)):
                    connection.execute("INSERT OR IGNORE INTO meta VALUES (?, ?)", (name, value))
                meta = dict(connection.execute("SELECT name, value FROM meta").fetchall())
                if self._retry:
                    # Nobody else has the file now, so whatever is unresolved up to here belongs to no running process.
                    (self._past,) = connection.execute("SELECT coalesce(max(number), 0) FROM call").fetchone()
        except sqlite3.DatabaseError as error:
            raise LedgerError(f"{self.path} cannot be used as a ledger: {error}; name another file") from error
        if meta["version"] != _VERSION:
            raise LedgerError(f"{self.path} was written by a newer version; upgrade firsthand, or name another file")
        if meta["currency"] != self.currency:
            raise LedgerError(
                f"{self.path} counts in {meta['currency']}, and the price in use is in {self.currency}; name another file with --ledger"
            )
        if self._retry and self._lock is not None and not _locked(self._lock, exclusive=False):
            raise LedgerError(f"another run that retries calls took over {self.path}; wait until it has ended")

    def _hold(self) -> None:
        """Shows other processes that the file is in use, by a lock that ends with this process however it ends."""
        self._lock = Path(f"{self.path}.lock").open("ab")  # noqa: SIM115
        if not _locked(self._lock, exclusive=self._retry):
            self._lock.close()
            self._lock = None
            used = "another run" if self._retry else "a run that retries calls"
            raise LedgerError(f"{used} uses {self.path}; wait until it has ended, so that no call is paid for twice")

    def _connection(self) -> sqlite3.Connection:
        made: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if made is None:
            try:
                made = sqlite3.connect(self.path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
            except sqlite3.Error as error:
                raise LedgerError(f"{self.path} cannot be opened: {error}") from error
            with self._guard:
                self._connections.append(made)
            # Every commit reaches the disk before the next step: with WAL, FULL syncs the log each time.
            made.execute("PRAGMA journal_mode = WAL")
            made.execute("PRAGMA synchronous = FULL")
            self._local.connection = made
        return made

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        connection = self._connection()
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield connection
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")


_COLUMNS = ", ".join(Call._fields)


def _locked(file: IO[bytes], *, exclusive: bool) -> bool:
    """Takes a lock on a file, or changes it; whether it was to be had. Always, where the system has none of this kind."""
    if os.name != "posix":
        return True
    import fcntl

    kind: Any = fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
