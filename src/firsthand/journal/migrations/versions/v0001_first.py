"""The first schema: sessions as paths in a tree of entries, markers, pins, derived rows, the search index."""

from __future__ import annotations

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_TABLES = (
    """
    CREATE TABLE sessions (
        n INTEGER NOT NULL PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        tenant TEXT NOT NULL,
        format TEXT NOT NULL,
        title TEXT,
        cwd TEXT,
        model TEXT,
        client TEXT,
        window INTEGER,
        parent_session TEXT,
        forked_from TEXT,
        base INTEGER REFERENCES entries (n),
        leaf INTEGER REFERENCES entries (n),
        imported_leaf INTEGER REFERENCES entries (n),
        next_sequence INTEGER NOT NULL,
        entries INTEGER NOT NULL,
        revised INTEGER NOT NULL,
        user_texts INTEGER NOT NULL,
        assistant_texts INTEGER NOT NULL,
        tool_calls INTEGER NOT NULL,
        tool_results INTEGER NOT NULL,
        damaged INTEGER NOT NULL,
        warnings INTEGER NOT NULL,
        first_ms INTEGER,
        last_ms INTEGER,
        created_ms INTEGER NOT NULL,
        changed_ms INTEGER NOT NULL,
        meta BLOB NOT NULL
    )
    """,
    "CREATE INDEX sessions_by_tenant ON sessions (tenant)",
    """
    CREATE TABLE segments (
        n INTEGER NOT NULL PRIMARY KEY,
        session INTEGER NOT NULL REFERENCES sessions (n),
        parent INTEGER REFERENCES segments (n),
        cut INTEGER REFERENCES entries (n)
    )
    """,
    "CREATE INDEX segments_by_session ON segments (session)",
    """
    CREATE TABLE entries (
        n INTEGER NOT NULL PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        segment INTEGER NOT NULL REFERENCES segments (n),
        parent INTEGER REFERENCES entries (n),
        depth INTEGER NOT NULL,
        sequence INTEGER NOT NULL,
        role TEXT NOT NULL,
        time_ms INTEGER,
        texts INTEGER NOT NULL,
        calls INTEGER NOT NULL,
        results INTEGER NOT NULL,
        revises TEXT,
        content_hash BLOB NOT NULL,
        chain_hash BLOB NOT NULL,
        payload BLOB NOT NULL
    )
    """,
    "CREATE INDEX entries_by_segment ON entries (segment, n)",
    """
    CREATE TABLE adopted (
        session INTEGER NOT NULL REFERENCES sessions (n),
        entry INTEGER NOT NULL REFERENCES entries (n),
        PRIMARY KEY (session, entry)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE markers (
        n INTEGER NOT NULL PRIMARY KEY,
        id TEXT NOT NULL,
        after INTEGER,
        content_hash BLOB NOT NULL,
        payload BLOB NOT NULL
    )
    """,
    """
    CREATE TABLE session_markers (
        session INTEGER NOT NULL REFERENCES sessions (n),
        marker INTEGER NOT NULL REFERENCES markers (n),
        PRIMARY KEY (session, marker)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE pins (
        session INTEGER NOT NULL REFERENCES sessions (n),
        entry INTEGER NOT NULL REFERENCES entries (n),
        PRIMARY KEY (session, entry)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE features (
        extractor TEXT NOT NULL,
        entry INTEGER NOT NULL REFERENCES entries (n),
        data BLOB NOT NULL,
        PRIMARY KEY (extractor, entry)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE calls (
        call_id TEXT NOT NULL,
        entry INTEGER NOT NULL REFERENCES entries (n),
        block INTEGER NOT NULL,
        tool TEXT NOT NULL,
        PRIMARY KEY (call_id, entry, block)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE search_parts (
        part INTEGER NOT NULL PRIMARY KEY,
        entry INTEGER NOT NULL REFERENCES entries (n)
    )
    """,
    "CREATE INDEX search_parts_by_entry ON search_parts (entry)",
    "CREATE TABLE erasing (entry INTEGER NOT NULL PRIMARY KEY)",
)

# Contentless, because the text is in the payload already; without positions, because the text itself decides whether it matches.
# The second table lists which entry holds which trigram: so substrings shorter than three characters are found by their beginnings.
_SEARCH = (
    "CREATE VIRTUAL TABLE search USING fts5 (text, content='', detail='none', tokenize='trigram')",
    "CREATE VIRTUAL TABLE search_terms USING fts5vocab (search, instance)",
)

_TRIGGERS = (
    """
    CREATE TRIGGER entries_never_change BEFORE UPDATE ON entries
    BEGIN SELECT RAISE(ABORT, 'an entry of a journal is never changed'); END
    """,
    """
    CREATE TRIGGER entries_stay BEFORE DELETE ON entries
    WHEN NOT EXISTS (SELECT 1 FROM erasing WHERE entry = OLD.n)
    BEGIN SELECT RAISE(ABORT, 'entries go only through the delete operation'); END
    """,
    """
    CREATE TRIGGER markers_never_change BEFORE UPDATE ON markers
    BEGIN SELECT RAISE(ABORT, 'a marker of a journal is never changed'); END
    """,
    """
    CREATE TRIGGER markers_stay BEFORE DELETE ON markers
    WHEN EXISTS (SELECT 1 FROM session_markers WHERE marker = OLD.n)
    BEGIN SELECT RAISE(ABORT, 'a marker goes only with its last session'); END
    """,
)


def upgrade() -> None:
    """Make the tables, the index and the triggers of the first revision."""
    for statement in (*_TABLES, *_SEARCH, *_TRIGGERS):
        op.execute(statement)
