"""The part of a journal's face that looks things up: find, get, around."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager

from ..errors import ConfigError
from ..transcript import Entry, Role
from . import beginnings, history, reading
from . import find as finding
from .find import SEARCHED, Found, Search
from .handle import Handle
from .history import Page
from .holding import Path
from .readable import Kind
from .rows import time_ms

__all__ = ["Searching", "moment"]


class Searching(Handle):
    """Everything that was ever said, found again and fetched byte for byte."""

    def find(
        self,
        query: str,
        *,
        session: str | None = None,
        tenant: str | None = None,
        role: Role | None = None,
        kinds: Collection[Kind] = SEARCHED,
        tool: str | None = None,
        since: str | None = None,
        until: str | None = None,
        limit: int = 20,
        cursor: str | None = None,
        seconds: float = 2.0,
    ) -> Found:
        """Literal search, the newest entry first; ASCII letters match in either case, all else exactly. One match a block.

        Args:
            query: 1 to 1,000 characters; every one stands for itself.
            session: only in this session, what it shares with others included.
            tenant: only in this tenant's sessions.
            role: only in entries of this role.
            kinds: which blocks; reasoning is left out unless it is named.
            tool: only calls of this tool and their results.
            since: only entries of this ISO 8601 time or later; entries without a time are left out.
            until: only entries before this time.
            limit: matches on a page, 1 to 200.
            cursor: the `cursor` of the page before.
            seconds: after this time the page ends early and says so.

        Raises:
            ConfigError: a query, limit, time or cursor that cannot work, a role or a kind that does not exist.
            SessionNotFoundError: there is no such session.
        """
        search = Search(
            query, session, tenant, role, frozenset(kinds), tool, moment("since", since), moment("until", until)
        )
        with self.read() as connection:
            return finding.find(connection, search, limit=limit, cursor=cursor, seconds=seconds)

    def full_id(self, beginning: str, session_id: str | None = None) -> str:
        """The id of the entry that `beginning` is, or is the only beginning of; excerpts print ids cut like this.

        Args:
            beginning: an id, or its first characters, six or more.
            session_id: only entries of this session, those of its active path before others.

        Raises:
            SessionNotFoundError: there is no such session.
            EntryNotFoundError: no entry's id starts with it, or it is too short.
            AmbiguousEntryError: several do; its `candidates` are their ids.
        """
        with self.read() as connection:
            return beginnings.full_id(connection, beginning, session_id)

    def get(
        self,
        entry_id: str,
        *,
        session: str | None = None,
        offset: int = 0,
        limit: int = 8_192,
        block: int | None = None,
    ) -> Page:
        """A page of an entry's readable text, byte for byte; `Match.offset` is a valid offset here.

        Args:
            entry_id: the entry, or the beginning of its id (`full_id`).
            session: where to look for a beginning.
            offset: UTF-8 bytes to skip.
            limit: bytes on the page, 1 to 1,048,576; at least one character is always given.
            block: only this block; offsets count in it then.

        Raises:
            EntryNotFoundError: the journal has no such entry.
            AmbiguousEntryError: several ids start like this.
            ConfigError: an offset, limit or block that cannot work.
            JournalDamagedError: its bytes do not match their hash.
        """
        with self.read() as connection:
            found = reading.entry(connection, beginnings.full_id(connection, entry_id, session))
        return history.page(found, offset=offset, limit=limit, block=block)

    @contextmanager
    def path_upto(self, session_id: str, entry_id: str) -> Iterator[Path]:
        """A session's path up to one of its entries, to be asked which of its entries hold a word, all at one moment.

        Raises:
            SessionNotFoundError: there is no such session.
            EntryNotFoundError: it has no such entry.
        """
        with self.read() as connection:
            yield Path(connection, session_id, entry_id)

    def session_of(self, entry_id: str) -> str:
        """Id of the session that an entry was appended to; forks of it hold the entry as well. A beginning of its id will do.

        Raises:
            EntryNotFoundError: the journal has no such entry.
        """
        with self.read() as connection:
            return reading.session_of(connection, beginnings.full_id(connection, entry_id))

    def around(self, session_id: str, entry_id: str, context: int) -> tuple[Entry, ...]:
        """An entry with up to `context` entries before and behind it; on the active path, else on the path that ends at it.

        A beginning of the entry's id will do (`full_id`).

        Raises:
            SessionNotFoundError: there is no such session.
            EntryNotFoundError: it has no such entry.
        """
        with self.read() as connection:
            found = beginnings.full_id(connection, entry_id, session_id)
            return reading.around(connection, session_id, found, max(0, context))


def moment(name: str, time: str | None) -> int | None:
    """An ISO 8601 time in milliseconds since 1970.

    Raises:
        ConfigError: it is no such time; `name` tells which.
    """
    found = time_ms(time)
    if time is not None and found is None:
        raise ConfigError(f"{name} {time!r} is no ISO 8601 time; write 2026-01-31 or 2026-01-31T12:00:00Z")
    return found
