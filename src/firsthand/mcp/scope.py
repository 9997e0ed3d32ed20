"""What one reader of the journal may see: a session, or the sessions of a tenant. Nothing else can be found, fetched or noticed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from ..errors import AmbiguousEntryError, ConfigError, EntryNotFoundError, SessionNotFoundError
from ..journal import Journal
from ..journal.find import SEARCHED
from ..journal.sessions import LOCAL_TENANT

__all__ = ["LARGEST_PAGE", "MOST_MATCHES", "FoundEntry", "HistoryPage", "HistoryScope", "SearchPage"]

MOST_MATCHES = 20
LARGEST_PAGE = 8_192
"""Bytes of text that one answer holds at most: an agent's window is what this is there to save."""


@dataclass(frozen=True)
class FoundEntry:
    """A place in the history that holds what was looked for."""

    entry: str
    session: str
    role: str
    kind: str
    tool: str | None
    entries_ago: int | None
    time: str | None
    offset: int
    snippet: str


@dataclass(frozen=True)
class SearchPage:
    """A page of matches, the newest first."""

    matches: list[FoundEntry]
    cursor: str | None
    note: str


@dataclass(frozen=True)
class HistoryPage:
    """A piece of one entry's text, exactly as it was said."""

    entry: str
    session: str
    role: str
    time: str | None
    text: str
    offset: int
    next_offset: int | None
    total_bytes: int


class HistoryScope:
    """Reads a journal, and of it only what belongs to one session or one tenant.

    Args:
        journal: the open journal.
        session: id of the session, or its beginning; None: all sessions of the tenant.
        tenant: the tenant.

    Raises:
        SessionNotFoundError: the journal has no such session.
        ConfigError: the session belongs to another tenant.
    """

    def __init__(self, journal: Journal, *, session: str | None = None, tenant: str | None = None) -> None:
        self._journal = journal
        self.session: str | None = None
        self.tenant = tenant or LOCAL_TENANT
        if session is not None:
            info = journal.session(session)
            if tenant is not None and info.tenant != tenant:
                raise ConfigError(f"the tenant {tenant!r} has no session {session!r}")
            self.session, self.tenant = info.id, info.tenant

    def search(
        self,
        query: str,
        *,
        role: str | None = None,
        kind: str | None = None,
        tool: str | None = None,
        limit: int = 10,
        cursor: str | None = None,
    ) -> SearchPage:
        """Literal search, the newest first.

        Raises:
            ConfigError: a query, limit, role, kind or cursor that cannot work.
        """
        if not 1 <= limit <= MOST_MATCHES:
            raise ConfigError(f"limit is 1 to {MOST_MATCHES} matches, not {limit}")
        found = self._journal.find(
            query,
            session=self.session,
            tenant=self.tenant,
            role=role,  # type: ignore[arg-type]  # the journal names the roles that there are
            kinds=SEARCHED if kind is None else [kind],  # type: ignore[list-item]
            tool=tool,
            limit=limit,
            cursor=cursor,
        )
        matches = [
            FoundEntry(
                match.entry, match.session, match.role, match.kind, match.tool, match.age, _time(match.time_ms), match.offset, match.snippet
            )
            for match in found.matches
        ]  # fmt: skip
        note = "the search ran out of time; go on with the cursor" if found.timed_out else ""
        if found.damaged:
            note = f"{len(found.damaged)} damaged entries could not be searched. {note}".strip()
        return SearchPage(matches, found.cursor if found.has_more or found.timed_out else None, note)

    def get(self, entry: str, *, offset: int = 0, limit: int = 4_096, block: int | None = None) -> HistoryPage:
        """A page of one entry's text.

        Raises:
            ConfigError: an offset, limit or block that cannot work.
            EntryNotFoundError: there is no such entry in this scope.
            JournalDamagedError: its bytes are not those that were stored.
        """
        if not 1 <= limit <= LARGEST_PAGE:
            raise ConfigError(f"limit is 1 to {LARGEST_PAGE:,} bytes, not {limit}")
        full = self._mine(entry)
        page = self._journal.get(full, session=self.session, offset=offset, limit=limit, block=block)
        # JSON has no lone surrogates; whoever needs the very bytes takes `firsthand history get`.
        text = page.text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
        session = self.session or self._journal.session_of(full)
        return HistoryPage(page.entry, session, page.role, page.time, text, page.offset, page.next_offset, page.total)

    def _mine(self, entry: str) -> str:
        """The full id of an entry of this scope. Of others not even that they are there is told."""
        try:
            candidates = [self._journal.full_id(entry, self.session)]
        except AmbiguousEntryError as error:
            candidates = list(error.candidates)
        except EntryNotFoundError:
            candidates = []
        mine = [one for one in candidates if self._belongs(one)]
        if len(mine) > 1:
            raise EntryNotFoundError(f"several entries begin with {entry!r}: {', '.join(mine[:8])}")
        if not mine:
            raise EntryNotFoundError(f"there is no entry {entry!r} in this history; history_search names entries")
        return mine[0]

    def _belongs(self, entry: str) -> bool:
        try:
            if self.session is not None:
                return bool(self._journal.around(self.session, entry, 0))
            return self._journal.session(self._journal.session_of(entry)).tenant == self.tenant
        except (EntryNotFoundError, SessionNotFoundError):
            return False


def _time(ms: int | None) -> str | None:
    return None if ms is None else datetime.fromtimestamp(ms / 1_000, UTC).isoformat(timespec="seconds")
