"""The SQLite file behind a journal: making it, opening it, bringing it up to date, transactions, and SQLite's errors as ours.

A journal that is up to date opens without importing alembic: one row says which revision wrote it.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError

from ..errors import JournalBusyError, JournalDamagedError, JournalError, JournalVersionError
from .schema import APPLICATION_ID, HEAD, REVISIONS

__all__ = ["Database", "translated"]

_DAMAGED = ("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_IOERR_SHORT_READ")
_TRIGRAM_SINCE = (3, 34, 0)
_WAL_KEPT = 64 * 1024 * 1024
_BACKUP_PAGES = 4_096


class Database:
    """One SQLite file, usable from several threads and from processes forked after it was opened.

    Args:
        path: the file. Its directory is made when `create` is true.
        create: make the journal when there is none.
        timeout: seconds to wait for another process's write lock.

    Raises:
        JournalError: there is no journal at `path` and `create` is false, or the file is some other database, or cannot be opened.
        JournalVersionError: written by a newer version; the file is left as it is.
        JournalDamagedError: the file is no whole database.
        JournalBusyError: another process held the lock for too long.
    """

    def __init__(self, path: Path, *, create: bool = True, timeout: float = 10.0) -> None:
        self.path = path
        self.timeout = timeout
        self._pid = os.getpid()
        if not path.exists():
            if not create:
                raise JournalError(f"there is no journal at {path}; import a session first, or name another path")
            _make_file(path)
        elif path.is_dir():
            raise JournalError(f"{path} is a directory; name the journal's file")
        self._engine = _engine(path, timeout)
        try:
            self._bring_up_to_date()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the connections of this process. The last one out folds the write-ahead log into the file."""
        self._engine.dispose(close=self._pid == os.getpid())

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A connection on which all reads see one moment of the journal."""
        with self._transaction("BEGIN") as connection:
            yield connection
            # Nothing to commit; and after damage was met, SQLite would refuse to.
            connection.rollback()

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A connection that holds the write lock; committed at the end of the block, rolled back when it raises.

        Raises:
            JournalBusyError: the lock was not free in time; nothing was written.
        """
        with self._transaction("BEGIN IMMEDIATE") as connection:
            yield connection

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[Connection]:
        if self._pid != os.getpid():
            # A forked child must not use, nor close, what its parent opened.
            self._engine.dispose(close=False)
            self._pid = os.getpid()
        with (
            translated(self.path, self.timeout),
            self._engine.connect().execution_options(firsthand_begin=begin) as connection,
            connection.begin(),
        ):
            yield connection

    def fold_log(self) -> None:
        """Fold the write-ahead log into the file and empty it, where no other process is in the way."""
        with translated(self.path, self.timeout):
            raw = sqlite3.connect(self.path, timeout=self.timeout)
            try:
                raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            finally:
                raw.close()

    def backup(self, target: Path) -> Path:
        """Copy the whole database, as it is at one moment, to a file that does not exist yet.

        Raises:
            JournalError: the file exists or cannot be written.
        """
        if target.exists():
            raise JournalError(f"{target} exists already; a backup never overwrites, name another file")
        part = target.with_name(f"{target.name}.{os.getpid()}.part")
        try:
            _make_file(part)
            with translated(self.path, self.timeout):
                self._copy_to(part)
            if target.exists():
                raise JournalError(f"{target} was made by somebody else meanwhile; name another file")
            part.rename(target)
        except OSError as error:
            raise JournalError(f"cannot write {target}: {error.strerror or error}") from error
        finally:
            with suppress(OSError):
                part.unlink()
        return target

    def _copy_to(self, part: Path) -> None:
        source, copy = sqlite3.connect(self.path, timeout=self.timeout), sqlite3.connect(part)
        try:
            source.backup(copy, pages=_BACKUP_PAGES)
        finally:
            copy.close()
            source.close()

    def _bring_up_to_date(self) -> None:
        revision, ours, logged = self._state()
        if not ours and self._has_tables():
            raise JournalError(f"{self.path} is a database of something else, not a journal; name another path")
        if revision == HEAD and logged:
            return
        if revision is not None and revision not in REVISIONS:
            raise JournalVersionError(
                f"{self.path} has schema revision {revision}, which this version does not know (it knows up to {HEAD}); "
                "nothing was changed; upgrade firsthand"
            )
        if sqlite3.sqlite_version_info < _TRIGRAM_SINCE:
            raise JournalError(
                f"SQLite {sqlite3.sqlite_version} has no trigram index, which a journal needs; 3.34 or newer is wanted"
            )
        self._use_write_ahead_log()
        with self.write() as connection:
            # Another process may have done it while this one waited for the lock.
            if _revision(connection) != HEAD:
                connection.exec_driver_sql(f"PRAGMA application_id = {APPLICATION_ID}")
                _migrate(connection)

    def _state(self) -> tuple[str | None, bool, bool]:
        """The file's revision, whether it is a journal of ours, and whether it writes ahead (a copy that another tool made may not)."""
        with self.read() as connection:
            ours = connection.exec_driver_sql("PRAGMA application_id").scalar() == APPLICATION_ID
            logged = connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
            return _revision(connection), ours, logged

    def _has_tables(self) -> bool:
        with self.read() as connection:
            return connection.exec_driver_sql("SELECT 1 FROM sqlite_master LIMIT 1").scalar() is not None

    def _use_write_ahead_log(self) -> None:
        # Switching needs the file to itself and does not wait for it, so two processes that open a new journal at once take turns here.
        deadline = time.monotonic() + self.timeout
        with translated(self.path, self.timeout):
            while True:
                raw = sqlite3.connect(self.path, timeout=self.timeout)
                try:
                    raw.execute("PRAGMA journal_mode = WAL")
                    return
                except sqlite3.OperationalError as error:
                    if _name(error) != "SQLITE_BUSY" or time.monotonic() > deadline:
                        raise
                    time.sleep(0.01)
                finally:
                    raw.close()


@contextmanager
def translated(path: Path, timeout: float) -> Iterator[None]:
    """Raises SQLite's errors as the journal's, with the path and what to do next."""
    try:
        yield
    except (DBAPIError, sqlite3.Error) as error:
        original = error.orig if isinstance(error, DBAPIError) else error
        raise _ours(original or error, path, timeout) from error


def _ours(error: BaseException, path: Path, timeout: float) -> JournalError:
    name = _name(error)
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return JournalBusyError(
            f"another process held the write lock of {path} for more than {timeout:g} s; nothing was written; try again"
        )
    if name.startswith(_DAMAGED):
        return JournalDamagedError(
            f"{path} is damaged or cut short ({error}); restore a backup, or run `firsthand verify` to see what is left"
        )
    hints = {
        "SQLITE_FULL": "the disk is full; make room and try again",
        "SQLITE_READONLY": "it cannot be written; check its permissions",
        "SQLITE_CANTOPEN": "it cannot be opened; check its permissions and those of its directory",
    }
    hint = next((text for start, text in hints.items() if name.startswith(start)), "what it held before is unchanged")
    return JournalError(f"the journal {path} refused: {error}; {hint}")


def _name(error: BaseException) -> str:
    """SQLite's symbolic name of an error, such as SQLITE_BUSY; '' when the driver gives none."""
    return str(getattr(error, "sqlite_errorname", ""))


def _make_file(path: Path) -> None:
    """An empty file that only its owner may read; SQLite gives `-wal` and `-shm` the same mode."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    except OSError as error:
        raise JournalError(
            f"cannot make a journal at {path}: {error.strerror or error}; name another path (--journal, FIRSTHAND_JOURNAL)"
        ) from error


def _engine(path: Path, timeout: float) -> Engine:
    url = URL.create("sqlite", database=str(path))
    engine = create_engine(url, connect_args={"timeout": timeout}, pool_size=4, max_overflow=-1)

    @event.listens_for(engine, "connect")
    def _prepare(raw: sqlite3.Connection, _record: Any) -> None:
        # We begin transactions ourselves: the driver knows no BEGIN IMMEDIATE and would not put DDL into a transaction.
        raw.isolation_level = None
        # FULL: what was committed survives a power cut as well, and an agent's step takes far longer than one fsync.
        raw.execute("PRAGMA synchronous = FULL")
        raw.execute("PRAGMA temp_store = MEMORY")
        # What a person deletes is overwritten, not only forgotten.
        raw.execute("PRAGMA secure_delete = ON")
        raw.execute("PRAGMA cache_size = -16000")
        raw.execute(f"PRAGMA journal_size_limit = {_WAL_KEPT}")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        connection.exec_driver_sql(connection.get_execution_options().get("firsthand_begin", "BEGIN"))

    return engine


def _revision(connection: Connection) -> str | None:
    """The revision that the file is at; None for a file without tables."""
    if not connection.exec_driver_sql("SELECT 1 FROM sqlite_master WHERE name = 'alembic_version'").scalar():
        return None
    revision = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()
    return None if revision is None else str(revision)


def _migrate(connection: Connection) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
