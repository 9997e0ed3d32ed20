"""The tables of a journal, as SQLAlchemy sees them, and the revisions of the schema that this version knows.

`migrations/versions` makes these tables and is the truth about a stored file; a test keeps both equal. Ids of sessions and entries are
text and live in one column each; everything else refers to rows by their short integer key `n`. Keys rise in order of arrival and a
parent arrives before its children, so along any path the order of keys is the order of entries.
"""

from __future__ import annotations

from sqlalchemy import Column, ForeignKey, Index, Integer, LargeBinary, MetaData, Table, Text

__all__ = [
    "APPLICATION_ID",
    "HEAD",
    "REVISIONS",
    "adopted",
    "calls",
    "entries",
    "erasing",
    "features",
    "markers",
    "metadata",
    "pins",
    "search_parts",
    "segments",
    "session_markers",
    "sessions",
]

APPLICATION_ID = 0x46_48_4A_31
"""`FHJ1` in the header of the database file: tells a journal from any other SQLite file."""

REVISIONS = ("0001", "0002")
"""Every schema revision that this version can bring up to date, oldest first."""

HEAD = REVISIONS[-1]

metadata = MetaData()


def _number(name: str, *args: ForeignKey, optional: bool = False, key: bool = False) -> Column[int]:
    return Column(name, Integer, *args, nullable=optional, primary_key=key)


def _text(name: str, *, optional: bool = False, unique: bool = False, key: bool = False) -> Column[str]:
    return Column(name, Text, nullable=optional, unique=unique, primary_key=key)


def _bytes(name: str) -> Column[bytes]:
    return Column(name, LargeBinary, nullable=False)


# One row per session. The counters are kept at each append, so that a list of thousands of sessions reads nothing else. `meta` holds all
# that is known about the session, exactly; the text columns repeat some of it for filters, with lone surrogates replaced.
sessions = Table(
    "sessions",
    metadata,
    _number("n", key=True),
    _text("id", unique=True),
    _text("tenant"),
    _text("format"),
    _text("title", optional=True),
    _text("cwd", optional=True),
    _text("model", optional=True),
    _text("client", optional=True),
    _number("window", optional=True),
    _text("parent_session", optional=True),
    _text("forked_from", optional=True),
    _number("base", ForeignKey("entries.n"), optional=True),  # where a fork leaves the path of another session
    _number("leaf", ForeignKey("entries.n"), optional=True),
    _number("imported_leaf", ForeignKey("entries.n"), optional=True),
    _number("next_sequence"),
    _number("entries"),
    _number("revised"),
    _number("user_texts"),
    _number("assistant_texts"),
    _number("tool_calls"),
    _number("tool_results"),
    _number("damaged"),
    _number("warnings"),
    _number("first_ms", optional=True),
    _number("last_ms", optional=True),
    _number("created_ms"),
    _number("changed_ms"),
    _bytes("meta"),
    Index("sessions_by_tenant", "tenant"),
)

# A linear run of entries of one session: each one's parent is the one before it. The first one's parent is `cut` in segment `parent`.
segments = Table(
    "segments",
    metadata,
    _number("n", key=True),
    _number("session", ForeignKey("sessions.n")),
    _number("parent", ForeignKey("segments.n"), optional=True),
    _number("cut", ForeignKey("entries.n"), optional=True),
    Index("segments_by_session", "session"),
)

entries = Table(
    "entries",
    metadata,
    _number("n", key=True),
    _text("id", unique=True),
    _number("segment", ForeignKey("segments.n")),
    _number("parent", ForeignKey("entries.n"), optional=True),
    _number("depth"),  # entries before it on its path
    _number("sequence"),
    _text("role"),
    _number("time_ms", optional=True),
    _number("texts"),  # typed, not blank
    _number("calls"),
    _number("results"),
    _text("revises", optional=True),  # the id under which it was imported, where an older version holds that id
    _bytes("content_hash"),
    _bytes("chain_hash"),
    _bytes("payload"),
    Index("entries_by_segment", "segment", "n"),
)

# Entries of other sessions that an imported file holds as well (the export of a fork, say), where they lie off the session's own rows.
adopted = Table(
    "adopted",
    metadata,
    _number("session", ForeignKey("sessions.n"), key=True),
    _number("entry", ForeignKey("entries.n"), key=True),
    sqlite_with_rowid=False,
)

markers = Table(
    "markers",
    metadata,
    _number("n", key=True),
    _text("id"),
    _number("after", optional=True),  # 0 where it names an entry that the session does not have
    _bytes("content_hash"),
    _bytes("payload"),
)

session_markers = Table(
    "session_markers",
    metadata,
    _number("session", ForeignKey("sessions.n"), key=True),
    _number("marker", ForeignKey("markers.n"), key=True),
    sqlite_with_rowid=False,
)

pins = Table(
    "pins",
    metadata,
    _number("session", ForeignKey("sessions.n"), key=True),
    _number("entry", ForeignKey("entries.n"), key=True),
    sqlite_with_rowid=False,
)

# Derived rows: opaque bytes that a named version of an extractor made from one entry.
features = Table(
    "features",
    metadata,
    _text("extractor", key=True),
    _number("entry", ForeignKey("entries.n"), key=True),
    _bytes("data"),
    sqlite_with_rowid=False,
)

# Who called what: gives a tool result the name of its tool.
calls = Table(
    "calls",
    metadata,
    _text("call_id", key=True),
    _number("entry", ForeignKey("entries.n"), key=True),
    _number("block", key=True),
    _text("tool"),
    sqlite_with_rowid=False,
)

# Which entry a row of the search index belongs to: the texts of an entry are indexed in parts. Parts rise with the keys of entries.
search_parts = Table(
    "search_parts",
    metadata,
    _number("part", key=True),
    _number("entry", ForeignKey("entries.n")),
    Index("search_parts_by_entry", "entry"),
)

# The keys that a delete is about to take; outside of it always empty. The trigger on `entries` lets nothing else go.
erasing = Table("erasing", metadata, _number("entry", key=True))
