"""What the runtime keeps: operations with their receipts, checkpoints, attachments, learned numbers."""

from __future__ import annotations

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_STATEMENTS = (
    """
    CREATE TABLE operations (
        n INTEGER NOT NULL PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        session INTEGER NOT NULL REFERENCES sessions (n),
        "key" TEXT NOT NULL,
        state TEXT NOT NULL,
        owner TEXT NOT NULL,
        "trigger" TEXT NOT NULL,
        started_ms INTEGER NOT NULL,
        finished_ms INTEGER,
        receipt BLOB
    )
    """,
    "CREATE INDEX operations_by_session ON operations (session, n)",
    "CREATE UNIQUE INDEX operations_live ON operations (session, \"key\") WHERE state != 'failed'",
    """
    CREATE TABLE checkpoints (
        n INTEGER NOT NULL PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        session INTEGER NOT NULL REFERENCES sessions (n),
        operation INTEGER NOT NULL UNIQUE REFERENCES operations (n),
        head INTEGER NOT NULL REFERENCES entries (n),
        cutoff INTEGER NOT NULL REFERENCES entries (n),
        algorithm TEXT NOT NULL,
        window_number INTEGER NOT NULL,
        baseline INTEGER NOT NULL,
        undone_ms INTEGER,
        created_ms INTEGER NOT NULL,
        "plan" BLOB NOT NULL
    )
    """,
    "CREATE INDEX checkpoints_by_session ON checkpoints (session, n)",
    """
    CREATE TABLE attachments (
        n INTEGER NOT NULL PRIMARY KEY,
        session INTEGER NOT NULL REFERENCES sessions (n),
        checkpoint TEXT NOT NULL,
        entry TEXT NOT NULL,
        kind TEXT NOT NULL,
        call_id TEXT NOT NULL,
        payload BLOB NOT NULL,
        UNIQUE (session, checkpoint, entry, kind, call_id)
    )
    """,
    """
    CREATE TABLE learned (
        session INTEGER NOT NULL REFERENCES sessions (n),
        name TEXT NOT NULL,
        value INTEGER NOT NULL,
        PRIMARY KEY (session, name)
    ) WITHOUT ROWID
    """,
)


def upgrade() -> None:
    """Make the runtime's tables."""
    for statement in _STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    """Journals are never taken back to an older schema."""
    raise RuntimeError("a journal is not taken back to an older schema; restore a backup instead")
