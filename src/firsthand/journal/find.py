"""Finding: a literal search over everything that was ever said, the newest first, a page at a time.

Literal means that the query is no expression: every character stands for itself, and only the case of ASCII letters does not count
(futureos.md 7.2, failure kinds CL-01 to CL-04). Entries behind a compaction are found like any others. Arguments and results count as they
are stored; reasoning is searched only when it is asked for; opaque parts, media and unknown blocks never are.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple, get_args

from sqlalchemy import Connection, Row, func, select

from ..codec import to_utf8
from ..errors import ConfigError, JournalDamagedError, UnknownNameError
from ..transcript import Entry, Role
from .candidates import candidates
from .owners import Owners
from .readable import Kind, Passage, passages
from .rows import entry_from, unpacked
from .schema import entries
from .sessions import session_row
from .tools import tool_of_result
from .tree import Scope, bounds_of, scope_of
from .utf8 import boundary_after, boundary_before, shown_text

__all__ = ["SEARCHED", "Found", "Match", "Search", "find"]

SEARCHED: tuple[Kind, ...] = ("text", "tool_call", "tool_result")
"""The kinds of blocks that are searched when none is named."""

_READABLE = (*SEARCHED, "reasoning")

LONGEST_QUERY = 1_000
MOST_MATCHES = 200
SNIPPET_BYTES = 480
_BEFORE_HIT = 120
_FIRST_PIECE = 16
_LARGEST_PIECE = 128
# What JSON escapes, and lone surrogates.
_ESCAPED = re.compile(rb'[\x00-\x1f"\\\x7f]|\xed[\xa0-\xbf]')
_ROWS = "SELECT n, id, segment, depth, role, time_ms FROM entries WHERE {} ORDER BY n DESC"
_PAYLOADS = "SELECT n, payload, content_hash FROM entries WHERE n IN (SELECT value FROM json_each(?))"


@dataclass(frozen=True)
class Match:
    """One block that holds the query."""

    session: str
    """The session that was asked for, else the one that the entry was appended to."""
    entry: str
    role: Role
    position: int
    """Entries before it on its path."""
    age: int | None
    """How many entries ago it was said, counted on the session's active path; None off that path."""
    time_ms: int | None
    block: int
    kind: Kind
    call_id: str | None
    tool: str | None
    snippet: str
    """Up to 480 bytes around the hit, whole characters; lone surrogates are shown as U+FFFD."""
    hit: tuple[int, int]
    """Where in the snippet the hit starts and ends, in characters; (0, 0) when the call's id matched and not its text."""
    offset: int
    """Byte offset of the hit in the entry's readable text, as `history` pages count it."""
    block_offset: int
    """Byte offset of the hit in the block."""

    @property
    def on_path(self) -> bool:
        """Whether the entry lies on the session's active path."""
        return self.age is not None


@dataclass(frozen=True)
class Found:
    """A page of matches."""

    query: str
    matches: tuple[Match, ...]
    cursor: str | None
    """Where the next page starts; None when everything was searched."""
    has_more: bool
    """Whether a further match is known; after a time-out nothing is known, and the cursor says where to go on."""
    timed_out: bool = False
    damaged: tuple[str, ...] = ()
    """Ids of entries that could not be searched, because they are damaged."""


class Search(NamedTuple):
    """What is looked for, and where."""

    query: str
    session: str | None = None
    tenant: str | None = None
    role: Role | None = None
    kinds: Collection[Kind] = SEARCHED
    tool: str | None = None
    since_ms: int | None = None
    until_ms: int | None = None
    """The first moment that is too late."""


class _Place(NamedTuple):
    """A position in the order of search: the key of an entry and a block of it."""

    key: int
    block: int


def find(connection: Connection, search: Search, *, limit: int, cursor: str | None, seconds: float) -> Found:
    """A page of matches, the newest entry first and in it the last block first; one match a block.

    Args:
        connection: reads one moment of the journal.
        search: what is looked for.
        limit: matches on a page.
        cursor: where an earlier page ended.
        seconds: after this time the page ends early; one piece of the journal is searched in any case.

    Raises:
        ConfigError: a query, limit or cursor that cannot work, a role or a kind that does not exist.
        SessionNotFoundError: there is no such session.
    """
    if not 1 <= len(search.query) <= LONGEST_QUERY:
        raise ConfigError(f"a query of {len(search.query):,} characters; give 1 to {LONGEST_QUERY:,}")
    if not 1 <= limit <= MOST_MATCHES:
        raise ConfigError(f"a page of {limit} matches; ask for 1 to {MOST_MATCHES}")
    _check_names("kind of block to search", search.kinds, _READABLE)
    _check_names("role", () if search.role is None else (search.role,), get_args(Role))
    run = _Run(connection, search, _parsed(cursor), time.monotonic() + seconds)
    matches: list[Match] = []
    last: _Place | None = None
    for place, match in run.matches():
        if len(matches) == limit:
            return Found(search.query, tuple(matches), _written(last), True, damaged=tuple(run.damaged))
        matches.append(match)
        last = place
    cursor = _written(run.searched_to) if run.timed_out else None
    return Found(search.query, tuple(matches), cursor, False, run.timed_out, tuple(run.damaged))


def _check_names(what: str, given: Collection[str], known: Collection[str]) -> None:
    """Refuse names that do not exist: they would find nothing and look like an answer."""
    for name in given:
        if name not in known:
            raise UnknownNameError(what, name, known)


class _Literal:
    """Tells from a payload that an entry cannot match, without decoding it, where JSON writes the query as it is."""

    def __init__(self, needle: bytes) -> None:
        self._needle = needle
        self._as_it_is = _ESCAPED.search(needle) is None
        self._ascii = needle.isascii()

    def rules_out(self, payload: bytes) -> bool:
        """Whether the query stands nowhere in the payload."""
        if not self._as_it_is or self._needle in payload.lower():
            return False
        # A payload with lone surrogates has all its other characters escaped as well.
        return self._ascii or b"\\u" not in payload


class _Run:
    def __init__(self, connection: Connection, search: Search, start: _Place | None, deadline: float) -> None:
        self._connection = connection
        self._search = search
        self._start = start
        self._deadline = deadline
        self._needle = to_utf8(search.query).lower()
        self._literal = _Literal(self._needle)
        self._session: Row[Any] | None = None
        self._scope: Scope | None = None
        if search.session is not None:
            self._session = session_row(connection, search.session)
            self._scope = scope_of(connection, self._session.n, self._session.base)
        self._owners = Owners(connection, self._session)
        self.searched_to: _Place | None = start
        self.timed_out = False
        self.damaged: list[str] = []

    def matches(self) -> Iterator[tuple[_Place, Match]]:
        """All matches in order, until the time is up."""
        keys = self._keys()
        size = _FIRST_PIECE
        while piece := list(islice(keys, size)):
            rows = self._rows(piece)
            payloads = self._payloads(rows)
            for row in rows:
                yield from self._in_entry(row, *payloads[row.n])
            self.searched_to = _Place(piece[-1], 0)
            if len(piece) < size:
                return
            if time.monotonic() > self._deadline:
                self.timed_out = True
                return
            size = min(size * 2, _LARGEST_PIECE)

    def _keys(self) -> Iterator[int]:
        lowest, highest = self._bounds()
        if self._start is not None:
            # Behind block 0 the entry is done with.
            highest = min(highest, self._start.key - (self._start.block == 0))
        return candidates(self._connection, self._search.query, lowest, highest)

    def _bounds(self) -> tuple[int, int]:
        if self._session is None or self._scope is None:
            return 1, self._connection.scalar(select(func.max(entries.c.n))) or 0
        return bounds_of(self._connection, self._session.n, self._scope)

    def _rows(self, piece: list[int]) -> list[Row[Any]]:
        """The rows with these keys that the filters let through, the newest first."""
        search = self._search
        filters = {"role = ?": search.role, "time_ms >= ?": search.since_ms, "time_ms < ?": search.until_ms}
        given = {condition: value for condition, value in filters.items() if value is not None}
        where = " AND ".join(("n IN (SELECT value FROM json_each(?))", *given))
        rows = self._connection.exec_driver_sql(_ROWS.format(where), (_listed(piece), *given.values())).all()
        return [row for row in rows if self._let_through(row)]

    def _let_through(self, row: Row[Any]) -> bool:
        if self._scope is not None and not self._scope.holds(row.segment, row.n):
            return False
        return self._search.tenant is None or self._owners.of(row.segment).tenant == self._search.tenant

    def _payloads(self, rows: list[Row[Any]]) -> dict[int, tuple[bytes, bytes]]:
        found = self._connection.exec_driver_sql(_PAYLOADS, (_listed([row.n for row in rows]),)) if rows else ()
        return {key: (payload, expected) for key, payload, expected in found}

    def _in_entry(self, row: Row[Any], payload: bytes, expected: bytes) -> Iterator[tuple[_Place, Match]]:
        try:
            payload = unpacked(payload)
            if self._literal.rules_out(payload):
                return
            entry = entry_from(row.id, payload, expected)
        except JournalDamagedError:
            self.damaged.append(row.id)
            return
        for passage, before in reversed(list(_with_offsets(entry))):
            place = _Place(row.n, passage.block)
            if self._start is not None and place >= self._start:
                continue
            match = self._in_passage(row, passage, before)
            if match is not None:
                yield place, match

    def _in_passage(self, row: Row[Any], passage: Passage, before: int) -> Match | None:
        if passage.kind not in self._search.kinds:
            return None
        data = to_utf8(passage.text)
        at = data.lower().find(self._needle)  # bytes fold ASCII letters and nothing else
        by_id = at < 0 and passage.call_id == self._search.query
        if at < 0 and not by_id:
            return None
        tool = passage.tool
        if tool is None and passage.kind == "tool_result":
            tool = tool_of_result(self._connection, passage.call_id, row.n, row.segment)
        if self._search.tool not in (None, tool):
            return None
        at = max(at, 0)
        snippet, hit = _snippet(data, at, 0 if by_id else len(self._needle))
        owner = self._owners.of(row.segment)
        return Match(
            session=owner.id, entry=row.id, role=row.role, position=row.depth, age=owner.age(row.segment, row.n, row.depth),
            time_ms=row.time_ms, block=passage.block, kind=passage.kind, call_id=passage.call_id, tool=tool,
            snippet=snippet, hit=hit, offset=before + at, block_offset=at,
        )  # fmt: skip


def _listed(keys: list[int]) -> str:
    return "[" + ",".join(map(str, keys)) + "]"


def _with_offsets(entry: Entry) -> Iterator[tuple[Passage, int]]:
    """The readable blocks, each with the readable bytes before it."""
    before = 0
    for passage in passages(entry):
        yield passage, before
        before += len(to_utf8(passage.text))


def _snippet(data: bytes, at: int, length: int) -> tuple[str, tuple[int, int]]:
    start = boundary_after(data, at - _BEFORE_HIT)
    end = boundary_before(data, start + SNIPPET_BYTES)
    lead = shown_text(data[start:at])
    hit = shown_text(data[at : min(at + length, end)])
    rest = shown_text(data[min(at + length, end) : end])
    return lead + hit + rest, (len(lead), len(lead) + len(hit)) if length else (0, 0)


def _parsed(cursor: str | None) -> _Place | None:
    if cursor is None:
        return None
    key, _, block = cursor.partition(".")
    if not (key.isdecimal() and block.isdecimal() and cursor.isascii() and len(cursor) <= 40):
        raise ConfigError(f"{cursor[:40]!r} is no cursor; give the one that the page before ended with")
    return _Place(int(key), int(block))


def _written(place: _Place | None) -> str | None:
    return None if place is None else f"{place.key}.{place.block}"
