"""The part of a journal's face that looks after the file: delete, rebuild, back up, verify."""

from __future__ import annotations

from pathlib import Path

from . import delete as deleting
from . import search_index, verify
from .delete import Deleted
from .handle import Handle
from .searching import moment
from .sessions import session_row

__all__ = ["Upkeep"]


class Upkeep(Handle):
    """What keeps a journal whole, and the only way by which an entry leaves it."""

    def delete(self, session_id: str) -> Deleted:
        """Delete a session and all its entries that no other session needs; their bytes are overwritten.

        Raises:
            SessionNotFoundError: there is no such session.
        """
        with self.write() as connection:
            deleted = deleting.delete_session(connection, session_row(connection, session_id))
        self._database.fold_log()
        return deleted

    def delete_before(self, time: str, *, tenant: str | None = None) -> list[Deleted]:
        """Delete the sessions in which nothing was said since an ISO 8601 time, all of them or none.

        Raises:
            ConfigError: no such time.
        """
        limit = moment("time", time) or 0
        with self.write() as connection:
            old = deleting.older_than(connection, limit, tenant)
            deleted = [deleting.delete_session(connection, row) for row in old]
        self._database.fold_log()
        return deleted

    def silent_since(self, time: str, *, tenant: str | None = None) -> list[str]:
        """Ids of the sessions that `delete_before` would delete.

        Raises:
            ConfigError: no such time.
        """
        limit = moment("time", time) or 0
        with self.read() as connection:
            return [str(row.id) for row in deleting.older_than(connection, limit, tenant)]

    def rebuild_index(self) -> int:
        """Make the search index anew from the entries; returns how many were read."""
        with self.write() as connection:
            return search_index.rebuild(connection)

    def backup(self, path: str | Path) -> Path:
        """Copy the journal, as it is at one moment, to a new file that only its owner may read; others may go on writing meanwhile.

        Raises:
            JournalError: the file exists or cannot be written.
        """
        return self._database.backup(Path(path))

    def verify(self, session_id: str | None = None) -> verify.Verified:
        """Check every payload, hash, parent and place, of one session or of all. Finds; never repairs.

        Raises:
            SessionNotFoundError: there is no such session.
        """
        with self.read() as connection:
            return verify.verify(connection, None if session_id is None else session_row(connection, session_id))
