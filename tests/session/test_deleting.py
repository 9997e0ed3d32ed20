"""Deleting a session takes all rows of the runtime along, in the journal's one transaction, and leaves those of others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from agent_run import RULE, SYSTEM, calls, opened, user, work
from sqlalchemy import func, select

from firsthand.journal import Journal, delete
from firsthand.journal.runtime_tables import attachments, checkpoints, learned, operations

TABLES = (operations, checkpoints, attachments, learned)


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with Journal.open(tmp_path / "journal.db") as opened:
        yield opened


def rows(journal: Journal) -> dict[str, int]:
    with journal.read() as connection:
        return {table.name: connection.scalar(select(func.count()).select_from(table)) or 0 for table in TABLES}


def busy(journal: Journal, session_id: str) -> None:
    """A session with a row in each table."""
    session = opened(journal, session_id=session_id)
    session.append([user(RULE)])
    work(session, range(8))
    assert session.compact().kind == "applied"
    session.record(calls(100))
    session.prepare(system=SYSTEM)


def test_its_rows_go_with_it_and_those_of_others_stay(journal: Journal) -> None:
    busy(journal, "stays")
    alone = rows(journal)
    assert all(alone.values())
    busy(journal, "goes")
    assert all(count > alone[name] for name, count in rows(journal).items())
    journal.delete("goes")
    assert rows(journal) == alone
    assert journal.verify().ok
    assert opened(journal, session_id="stays").checkpoint is not None


def test_all_or_nothing(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    busy(journal, "s")
    before = rows(journal)
    original = delete._delete_in
    monkeypatch.setattr(delete, "_delete_in", lambda *args: (_ for _ in ()).throw(OSError("the disk is gone")))
    with pytest.raises(OSError, match="disk"):
        journal.delete("s")
    monkeypatch.setattr(delete, "_delete_in", original)
    assert rows(journal) == before
    assert opened(journal).checkpoint is not None


def test_a_fork_outlives_the_session_that_it_came_from(journal: Journal) -> None:
    busy(journal, "s")
    child = opened(journal).fork(new_id="child")
    assert child.checkpoint is not None
    journal.delete("s")
    again = opened(journal, session_id="child")
    messages = again.prepare(system=SYSTEM).messages
    assert sum(message["content"] == RULE for message in messages) == 1
    assert len(journal.view("child").entries) == 18
    assert again.compact().kind == "applied"
    # A new session of the old name has nothing to do with it.
    busy(journal, "s")
    assert opened(journal, session_id="child").checkpoint == again.checkpoint
