"""OpenCode's database (1.18 and later), read without changing it and without holding up the client that writes it.

The database is in WAL mode, in which readers and the writer do not wait for each other; it is opened read-only and all tables are
read in one transaction. Two cases need care:

- There is no `-wal` file: no client has the database open and all data is in the main file. SQLite would create `-wal` and `-shm`
  files for us and leave them behind; so the file is opened as unchanging instead, and read again the ordinary way should a client have
  turned up meanwhile.
- The folder cannot be written: SQLite cannot make the `-shm` file that it needs for reading a `-wal` file. Both are then copied to a
  temporary folder and read there.
"""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from shutil import copyfile
from typing import Any, TypeVar

from ....codec import decode
from ....errors import FormatError
from ....transcript import Damage
from .records import Object, Records

__all__ = ["SQLITE_MAGIC", "add_database", "is_opencode_database", "read_database"]

T = TypeVar("T")

SQLITE_MAGIC = b"SQLite format 3\x00"

_TABLES = {"session", "message", "part"}


def is_opencode_database(path: Path | None, data: bytes = b"") -> bool:
    """Whether a database, on disk or in memory, has OpenCode's tables. False, too, when it cannot be read."""
    try:
        return _table_names(path, data) >= _TABLES
    except (sqlite3.Error, OSError):
        return False


def add_database(records: Records, path: Path | None, data: bytes = b"") -> None:
    """Adds the objects of the database at `path`, or of one that was handed over as bytes.

    A row whose JSON cannot be read is counted as damage under its `rowid`.

    Raises:
        FormatError: the database cannot be read.
    """

    def all_rows(connection: sqlite3.Connection) -> list[tuple[str, Object | Damage]]:
        return [row for table in ("session", "message", "part") for row in _objects(connection, table, records.only)]

    try:
        rows = read_database(path, all_rows, data)
    except sqlite3.Error as error:
        raise FormatError(f"cannot read {path or 'the database'} as an OpenCode database: {error}") from error
    except OSError as error:
        raise FormatError(f"cannot read {path}: {error.strerror or error}") from error
    for table, row in rows:
        if isinstance(row, Damage):
            records.damaged.append(row)
        else:
            records.add_row(table, row)


def read_database(path: Path | None, read: Callable[[sqlite3.Connection], T], data: bytes = b"") -> T:
    """What `read` returns for a connection in one read transaction. It may be called more than once.

    Raises:
        sqlite3.Error: the database cannot be read.
        OSError: a file of it cannot be read.
    """
    if path is None:
        return _within(_in_memory(data), read)
    before = _undisturbed(path)
    if before is not None:
        value = _within(_open(path, "&immutable=1"), read)
        if before == _undisturbed(path):
            return value
    try:
        return _within(_open(path), read)
    except sqlite3.OperationalError:
        with tempfile.TemporaryDirectory(prefix="firsthand-") as folder:
            copy = Path(folder, "copy.db")
            copyfile(path, copy)
            if _wal(path).exists():
                copyfile(_wal(path), _wal(copy))
            return _within(_open(copy), read)


def _wal(path: Path) -> Path:
    return path.with_name(path.name + "-wal")


def _undisturbed(path: Path) -> tuple[int, int] | None:
    """Change time and size of a database in WAL mode that no client has open; None when one has, or when it is in another mode."""
    with path.open("rb") as file:
        header = file.read(20)
    if header[18:20] != b"\x02\x02" or _wal(path).exists():
        return None
    stat = path.stat()
    return stat.st_mtime_ns, stat.st_size


def _open(path: Path, more: str = "") -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro{more}", uri=True, isolation_level=None)


def _in_memory(data: bytes) -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    # A database in memory cannot be in WAL mode, so the two bytes of the header that say so are changed in our copy.
    connection.deserialize(data[:18] + b"\x01\x01" + data[20:])
    return connection


def _within(connection: sqlite3.Connection, read: Callable[[sqlite3.Connection], T]) -> T:
    with closing(connection):
        connection.execute("BEGIN")
        return read(connection)


def _table_names(path: Path | None, data: bytes) -> set[str]:
    def names(connection: sqlite3.Connection) -> set[str]:
        return {str(row[0]) for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}

    return read_database(path, names, data)


def _objects(connection: sqlite3.Connection, table: str, only: str | None) -> Iterator[tuple[str, Object | Damage]]:
    """The rows of one table as the objects that the other layouts hold, or the damage that keeps one from being read."""
    column = "id" if table == "session" else "session_id"
    where, values = (f" WHERE {column} = ?", (only,)) if only else ("", ())
    # One text that is not UTF-8 would end the whole query.
    connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
    cursor = connection.execute(f"SELECT rowid AS _row, * FROM {table}{where} ORDER BY id", values)
    names = [described[0] for described in cursor.description]
    for values_of_row in cursor:
        row = dict(zip(names, values_of_row, strict=True))
        number = row.pop("_row")
        if table == "session":
            yield table, _session_object(row)
            continue
        try:
            value = decode(row["data"])
            if not isinstance(value, dict):
                raise ValueError(f"a JSON {type(value).__name__} where an object belongs")
        except (ValueError, TypeError, RecursionError) as error:
            yield table, Damage(line=number, reason=f"{table} {row['id']}: {error}")
            continue
        value |= {"id": row["id"], "sessionID": row["session_id"]}
        if table == "part":
            value["messageID"] = row["message_id"]
        else:
            value.setdefault("time", {"created": row["time_created"]})
        yield table, value


def _session_object(row: dict[str, Any]) -> Object:
    """The columns of a session as the object that the export has for it."""
    out: Object = {"id": row["id"], "time": {"created": row.get("time_created"), "updated": row.get("time_updated")}}
    for name, column in (
        ("parentID", "parent_id"),
        ("directory", "directory"),
        ("title", "title"),
        ("version", "version"),
    ):
        if row.get(column) is not None:
            out[name] = row[column]
    try:
        revert = decode(row["revert"]) if row.get("revert") else None
    except (ValueError, TypeError, RecursionError):
        revert = None
    if revert is not None:
        out["revert"] = revert
    return out
