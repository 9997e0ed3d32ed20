"""Making and opening a journal: where, with which mode, at which revision, and what is refused."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import MetaData, create_engine

from firsthand.errors import JournalBusyError, JournalDamagedError, JournalError, JournalVersionError
from firsthand.journal import Journal, default_path, runtime_tables, schema
from firsthand.testing.builders import said, session, user

MIGRATIONS = Path(schema.__file__).parent / "migrations"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with Journal.open(tmp_path / "journal.db") as opened:
        yield opened


def files(path: Path) -> list[Path]:
    return sorted(path.parent.glob(path.name + "*"))


def test_only_the_owner_may_read_it(path: Path) -> None:
    old = os.umask(0)
    try:
        with Journal.open(path / "deeper" / "j.db") as journal:
            journal.create("s")
            modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in files(journal.path)}
            assert modes == {"j.db": 0o600, "j.db-shm": 0o600, "j.db-wal": 0o600}
            assert stat.S_IMODE(journal.path.parent.stat().st_mode) == 0o700
    finally:
        os.umask(old)


def test_default_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert default_path() == tmp_path / "firsthand" / "journal.db"
    monkeypatch.setenv("XDG_DATA_HOME", "relative")
    assert default_path() == Path.home() / ".local" / "share" / "firsthand" / "journal.db"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert default_path() == Path.home() / "Library" / "Application Support" / "firsthand" / "journal.db"
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "Local"))
    assert default_path() == tmp_path / "Local" / "firsthand" / "journal.db"
    monkeypatch.setenv("FIRSTHAND_JOURNAL", "~/mine.db")
    assert default_path() == Path.home() / "mine.db"
    with Journal.open() as journal:
        assert journal.path == Path.home() / "mine.db"


def test_no_journal(path: Path) -> None:
    with pytest.raises(JournalError, match="there is no journal at"):
        Journal.open(path, create=False)
    assert files(path) == []
    with pytest.raises(JournalError, match="is a directory"):
        Journal.open(path.parent)
    blocker = path.parent / "file"
    blocker.write_text("")
    with pytest.raises(JournalError, match="cannot make a journal"):
        Journal.open(blocker / "journal.db")


def test_names_with_url_characters(tmp_path: Path) -> None:
    path = tmp_path / "a?b#c %41.db"
    with Journal.open(path) as journal:
        journal.create("s")
    assert path.exists()


def test_opening_a_current_journal_needs_no_alembic(path: Path) -> None:
    Journal.open(path).close()
    code = (
        "import sys; from firsthand.journal import Journal; "
        f"Journal.open({str(path)!r}).close(); sys.exit('alembic' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_newer_version_is_refused_and_left_alone(path: Path) -> None:
    with Journal.open(path) as journal:
        journal.create("s")
    raw = sqlite3.connect(path)
    raw.execute("UPDATE alembic_version SET version_num = '9999'")
    raw.commit()
    raw.close()
    before = path.read_bytes()
    with pytest.raises(JournalVersionError, match=r"revision 9999.*upgrade"):
        Journal.open(path)
    assert path.read_bytes() == before


def test_another_programs_database_is_refused_and_left_alone(path: Path) -> None:
    raw = sqlite3.connect(path)
    raw.execute("CREATE TABLE sessions (id TEXT)")
    raw.commit()
    raw.close()
    before = path.read_bytes()
    with pytest.raises(JournalError, match="something else"):
        Journal.open(path)
    assert path.read_bytes() == before


def test_another_alembic_users_database_is_refused(path: Path) -> None:
    raw = sqlite3.connect(path)
    raw.execute("CREATE TABLE alembic_version (version_num TEXT)")
    raw.execute("INSERT INTO alembic_version VALUES ('0001')")
    raw.commit()
    raw.close()
    with pytest.raises(JournalError, match="something else"):
        Journal.open(path)


@pytest.mark.parametrize("keep", [100, 5_000, 70_000])
def test_a_file_cut_short_is_a_typed_error(path: Path, keep: int) -> None:
    with Journal.open(path) as journal:
        journal.create("s")
        journal.append("s", session(*(user(f"{n} " * 300) for n in range(100))))
    whole = path.read_bytes()
    assert len(whole) > 70_000
    path.write_bytes(whole[:keep])
    with pytest.raises(JournalDamagedError, match="damaged or cut short"), Journal.open(path) as journal:
        list(journal.entries("s"))
    assert path.read_bytes()[:100] == whole[:100]


def test_a_file_that_is_no_database(path: Path) -> None:
    path.write_text('{"type":"user"}\n' * 100)
    with pytest.raises(JournalDamagedError):
        Journal.open(path)
    assert path.read_text() == '{"type":"user"}\n' * 100


def test_an_empty_file_becomes_a_journal(path: Path) -> None:
    path.touch()
    with Journal.open(path) as journal:
        assert journal.sessions() == []


def test_the_write_lock_of_another_process(path: Path) -> None:
    with Journal.open(path) as journal, Journal.open(path, timeout=0.05) as impatient:
        journal.create("s")
        with journal.write():
            with pytest.raises(JournalBusyError, match=r"more than 0\.05 s"):
                impatient.append("s", [user("x", id="e1")])
            assert impatient.sessions()[0].id == "s"
        assert [entry.id for entry in impatient.append("s", session(user("x"), said("y")))] == ["e1", "e2"]


def test_what_raises_is_rolled_back(journal: Journal) -> None:
    journal.create("s")
    with pytest.raises(JournalError, match="no such table"), journal.write() as connection:  # noqa: PT012
        connection.exec_driver_sql("UPDATE sessions SET title = 'x'")
        connection.exec_driver_sql("DELETE FROM absent")
    assert journal.session("s").title is None


def test_the_tables_are_those_that_the_migrations_make(journal: Journal) -> None:
    made = MetaData()
    with journal.read() as connection:
        made.reflect(connection)

    def shape(metadata: MetaData) -> dict[str, object]:
        return {
            table.name: (
                [(column.name, str(column.type), column.nullable, column.primary_key) for column in table.columns],
                sorted((key.parent.name, key.target_fullname) for key in table.foreign_keys),
                sorted((str(index.name), [column.name for column in index.columns]) for index in table.indexes),
            )
            for table in metadata.tables.values()
            if table.name == "search_parts" or not table.name.startswith(("search", "alembic"))
        }

    assert runtime_tables.metadata is schema.metadata
    assert shape(made) == shape(schema.metadata)


@pytest.mark.parametrize("revision", schema.REVISIONS)
def test_a_journal_of_every_revision_is_brought_up_to_date(path: Path, revision: str) -> None:
    with Journal.open(path.parent / "new.db") as new, new.read() as connection:
        expected = connection.exec_driver_sql(_OBJECTS).all()
    raw = sqlite3.connect(path)
    raw.execute(f"PRAGMA application_id = {schema.APPLICATION_ID}")
    raw.close()
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.set_main_option("path_separator", "os")
    with create_engine(f"sqlite:///{path}").begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
        connection.exec_driver_sql(
            "INSERT INTO sessions SELECT 1, 's', 'local', 't', 'T', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, "
            "0, 0, 0, 0, 0, 0, 0, 0, 0, NULL, NULL, 1, 1, x'7B7D'"
        )
    with Journal.open(path) as journal:
        assert journal.session("s").title == "T"
        journal.append("s", session(user("x")))
        with journal.read() as connection:
            assert connection.exec_driver_sql(_OBJECTS).all() == expected
            assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert journal.verify().ok


_OBJECTS = "SELECT type, name, sql FROM sqlite_master ORDER BY type, name"


def test_the_revisions_are_those_that_ship() -> None:
    shipped = [script.revision for script in ScriptDirectory(str(MIGRATIONS)).walk_revisions()]
    assert tuple(reversed(shipped)) == schema.REVISIONS
