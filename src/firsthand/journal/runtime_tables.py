"""The tables of the runtime: operations with their receipts, checkpoints, attachments, and what a session learned.

They live in the journal's file, so that a checkpoint and its receipt are one transaction; `firsthand.checkpoint` (floor 4) reads and writes
them. A checkpoint refers to entries and never copies them.
"""

from __future__ import annotations

from sqlalchemy import Column, ForeignKey, Index, Integer, LargeBinary, Table, Text, UniqueConstraint

from .schema import metadata

__all__ = ["attachments", "checkpoints", "learned", "operations"]

# One row per attempt to compact. A key may have several failed rows, but one that started or completed.
operations = Table(
    "operations",
    metadata,
    Column("n", Integer, primary_key=True),
    Column("id", Text, nullable=False, unique=True),
    Column("session", ForeignKey("sessions.n"), nullable=False),
    Column("key", Text, nullable=False),
    Column("state", Text, nullable=False),  # started, completed, failed
    Column("owner", Text, nullable=False),  # host:pid of the process that works on it
    Column("trigger", Text, nullable=False),
    Column("started_ms", Integer, nullable=False),
    Column("finished_ms", Integer),
    Column("receipt", LargeBinary),
    Index("operations_by_session", "session", "n"),
    Index("operations_live", "session", "key", unique=True, sqlite_where=Column("state") != "failed"),
)

checkpoints = Table(
    "checkpoints",
    metadata,
    Column("n", Integer, primary_key=True),
    Column("id", Text, nullable=False, unique=True),
    Column("session", ForeignKey("sessions.n"), nullable=False),
    Column("operation", ForeignKey("operations.n"), nullable=False, unique=True),
    Column("head", ForeignKey("entries.n"), nullable=False),  # newest entry of the view that was planned
    Column("cutoff", ForeignKey("entries.n"), nullable=False),
    Column("algorithm", Text, nullable=False),
    Column("window_number", Integer, nullable=False),
    Column("baseline", Integer, nullable=False),
    Column("undone_ms", Integer),
    Column("created_ms", Integer, nullable=False),
    Column("plan", LargeBinary, nullable=False),
    Index("checkpoints_by_session", "session", "n"),
)

# Bytes that were added to an entry when it was first sent, under the checkpoint of that time ('': none yet).
attachments = Table(
    "attachments",
    metadata,
    Column("n", Integer, primary_key=True),
    Column("session", ForeignKey("sessions.n"), nullable=False),
    Column("checkpoint", Text, nullable=False),
    Column("entry", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("call_id", Text, nullable=False),
    Column("payload", LargeBinary, nullable=False),
    UniqueConstraint("session", "checkpoint", "entry", "kind", "call_id"),
)

# What a session learned about its model: the served window, the window of the last step.
learned = Table(
    "learned",
    metadata,
    Column("session", ForeignKey("sessions.n"), primary_key=True),
    Column("name", Text, primary_key=True),
    Column("value", Integer, nullable=False),
    sqlite_with_rowid=False,
)
