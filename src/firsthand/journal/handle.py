"""An open journal: its file, and its transactions."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Self

from sqlalchemy import Connection

from .connection import Database
from .location import default_path

__all__ = ["Handle"]


class Handle:
    """What every part of a journal's face stands on."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @classmethod
    def open(cls, path: str | Path | None = None, *, create: bool = True, timeout: float = 10.0) -> Self:
        """Open the journal at `path`, or at `default_path()`.

        Args:
            path: the file.
            create: make it (and its directory, for its owner only) when there is none.
            timeout: seconds to wait for another process's write lock.

        Raises:
            JournalError: there is none and `create` is false, or the file is no journal or cannot be used.
            JournalVersionError: a newer version wrote it; nothing was changed.
            JournalDamagedError: the file is damaged or cut short.
            JournalBusyError: the lock was not free in time.
        """
        return cls(Database(Path(path) if path is not None else default_path(), create=create, timeout=timeout))

    @property
    def path(self) -> Path:
        """The journal's file."""
        return self._database.path

    def close(self) -> None:
        """Close this process's connections."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def read(self) -> AbstractContextManager[Connection]:
        """A SQLAlchemy connection that sees one moment of the journal; for what keeps tables of its own in the same file."""
        return self._database.read()

    def write(self) -> AbstractContextManager[Connection]:
        """A SQLAlchemy connection that holds the write lock, committed at the end of the block unless it raises.

        Raises:
            JournalBusyError: the lock was not free in time.
        """
        return self._database.write()
