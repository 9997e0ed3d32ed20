"""Files of rows that other commands of the lab wrote: told by their content, so that a report takes them instead of measuring again."""

from __future__ import annotations

import csv
import io
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from ...codec import decode
from ...errors import ConfigError, FormatError
from ..cache.stored import CacheLine
from ..model.ledger import Ledger
from ..model.results import ModelRow
from ..results import Row
from .record import Charged

__all__ = ["Given", "read_ledger", "read_rows"]

_CHAIN_UNIT = " records"


@dataclass
class Given:
    """Rows by what they are."""

    rows: dict[str, list[Row]] = field(default_factory=dict)
    """Of rules, by part."""
    model: list[ModelRow] = field(default_factory=list)
    cache: list[CacheLine] = field(default_factory=list)
    open_book: list[dict[str, Any]] = field(default_factory=list)
    sources: dict[str, list[Path]] = field(default_factory=dict)
    """Files by part."""


def read_rows(paths: Sequence[Path]) -> Given:
    """The rows of files that `lab run`, `lab ask`, `lab cache` or `lab openbook` wrote, as CSV or JSON.

    Raises:
        ConfigError: a file is not there.
        FormatError: one holds other rows than those.
    """
    given = Given()
    for path in paths:
        for row in _rows(path):
            _take(given, row, path)
    return given


def read_ledger(path: Path) -> Charged:
    """The sums of a ledger of paid calls.

    Raises:
        ConfigError: there is no such file.
        FormatError: it is no ledger.
    """
    if not path.is_file():
        raise ConfigError(f"there is no ledger at {path}")
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as found:
            ((currency,),) = found.execute("SELECT value FROM meta WHERE name = 'currency'").fetchall()
    except (sqlite3.Error, ValueError) as error:
        raise FormatError(f"{path} is no ledger of `firsthand lab ask`: {error}") from None
    with Ledger(path, currency=str(currency), budget=0) as ledger:
        spent = ledger.spent()
    return Charged(
        file=path.name,
        currency=str(currency),
        charged=spent.charged,
        reserved=spent.reserved,
        summaries=spent.summaries,
        answered=spent.answered,
        failed=spent.failed,
        unresolved=spent.unresolved,
    )


def _rows(path: Path) -> list[dict[str, Any]]:
    if not path.is_file():
        raise ConfigError(f"there is no file of rows at {path}")
    data = path.read_bytes()
    if data.lstrip()[:1] in (b"[", b"{"):
        try:
            found = decode(data)
        except ValueError as error:
            raise FormatError(f"{path} is no JSON: {error}") from None
        rows = found.get("rows", []) if isinstance(found, dict) else found
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise FormatError(f"{path} holds no list of rows")
        return rows
    reader = csv.DictReader(io.StringIO(data.decode("utf-8", "replace")))
    # An empty cell is nothing, which the size that was asked for may be.
    return [
        {"target": None} | {name: _cell(name, value) for name, value in row.items() if name and value != ""}
        for row in reader
    ]


def _cell(name: str, value: str | None) -> Any:
    # A truth value is written as Python writes it; all else as it stands.
    return value == "True" if name == "equal" else value


def _take(given: Given, row: dict[str, Any], path: Path) -> None:
    try:
        if "request" in row:
            given.cache.append(msgspec.convert(row, CacheLine, strict=False))
            part = "cache"
        elif "fates" in row and "round" in row:
            given.open_book.append(row)
            part = "openbook"
        elif "way" in row:
            given.model.append(msgspec.convert(row, ModelRow, strict=False))
            part = "ask"
        else:
            one = msgspec.convert(row, Row, strict=False)
            part = _part(one)
            given.rows.setdefault(part, []).append(one)
    except (msgspec.ValidationError, ValueError) as error:
        raise FormatError(
            f"{path} holds other rows than `firsthand lab run`, `ask`, `cache` or `openbook` write: {error}"
        ) from None
    files = given.sources.setdefault(part, [])
    if path not in files:
        files.append(path)


def _part(row: Row) -> str:
    if row.mode == "replay":
        return "survival"
    if row.boundary.endswith(_CHAIN_UNIT):
        return "chains"
    if row.rival:
        return "equal"
    return "curves" if row.target is not None else "recall" if row.recall is not None else "run"
