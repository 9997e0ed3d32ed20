"""What a report is made of: the rows of every measurement, with the commands that made them, in one file from which the page is rebuilt."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import msgspec

from ...codec import decode_as, encode
from ...errors import ConfigError, FormatError
from ..audit_rows import Audit
from ..cache.stored import CacheLine
from ..compose import Composition
from ..model.results import ModelRow
from ..money.own import OwnCosts
from ..money.prices import Price
from ..results import Row

__all__ = [
    "SCHEMA",
    "AuditLine",
    "BudgetLine",
    "Charged",
    "Example",
    "Input",
    "Part",
    "Record",
    "Stretch",
    "read_record",
    "write_record",
]

SCHEMA = 1
"""Of the file. A record of another number is refused, not guessed at."""


class Input(msgspec.Struct, frozen=True, kw_only=True):
    """One file that was measured, or whose rows were taken."""

    name: str
    """Without its folder: where somebody keeps their sessions is nobody else's business."""
    sha256: str
    size: int
    """Bytes."""
    format: str
    sessions: int
    entries: int


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One measurement of the report."""

    name: str
    command: str
    """The command line that prints the same numbers by itself."""
    seconds: float
    note: str = ""
    """Where its rows were not measured now: from which file they came, or why there are none."""


class AuditLine(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of one recorded compaction; no text of the session."""

    source: str
    number: int
    of: int
    note: str
    readable: bool
    judged: bool
    strategy: str
    context: int
    kept: int
    ours: int | None
    asked: int
    lost: int
    ours_lost: int | None
    again: int
    again_tokens: int
    seen_tokens: int

    @classmethod
    def of_audit(cls, row: Audit) -> AuditLine:
        """The line of an audit."""
        measured = row.ours.tokens is not None
        return cls(
            source=row.source or row.session,
            number=row.number,
            of=row.of,
            note=row.note or "",
            readable=row.kept.unreadable == 0,
            judged=row.judged,
            strategy=row.ours.strategy,
            context=row.context_tokens,
            kept=row.kept.tokens,
            ours=row.ours.tokens,
            asked=len(row.asked),
            lost=len(row.lost),
            ours_lost=len(row.asked) - row.ours.used_kept if measured else None,
            again=len(row.re_reads),
            again_tokens=row.re_read_tokens,
            seen_tokens=row.seen_again_tokens,
        )


class Charged(msgspec.Struct, frozen=True, kw_only=True):
    """What a ledger says was really paid. Money in picos."""

    file: str
    currency: str
    charged: int
    reserved: int
    summaries: int
    answered: int
    failed: int
    unresolved: int


class Stretch(msgspec.Struct, frozen=True):
    """A stretch of a strip: of a history by fate, of a projection by what stands there."""

    name: str
    tokens: int


class Example(msgspec.Struct, frozen=True, kw_only=True):
    """One complete projection: what the history consisted of, what became of it, and what the next request shows. Sizes are o200k tokens."""

    source: str
    strategy: str
    summariser: str
    window: int
    position: int
    history: tuple[Stretch, ...]
    """In the order of the session; neighbours of one fate together."""
    projection: tuple[Stretch, ...]
    """In the order of the request."""
    kinds: dict[str, dict[str, int]]
    """Tokens of originals by kind, then by fate."""


class BudgetLine(msgspec.Struct, frozen=True, kw_only=True):
    """How a window's trigger comes about."""

    name: str
    window: int
    output_ceiling: int
    margin: int
    input_limit: int
    trigger: int
    fixed: int
    keep_recent: int
    max_target: int


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a page shows, and nothing that it computes."""

    schema: int = SCHEMA
    command: str
    made: str
    """When, in UTC, to the minute."""
    versions: dict[str, str]
    """Of firsthand, of Python and of the packages that measure, by name."""
    code: str
    """Hash of firsthand's own source."""
    settings: dict[str, str]
    """Seeds, draws and limits, by name."""
    inputs: tuple[Input, ...]
    files: str
    """The named files as a shell reads them, for commands that say `"${FILES[@]}"`; empty where commands name them."""
    parts: tuple[Part, ...]
    compositions: tuple[Composition, ...] = ()
    """Of each file, and of all together in the last one."""
    rows: dict[str, list[Row]] = {}
    """Rows of rules, by part: run, chains, recall, curves, equal, survival."""
    audits: tuple[AuditLine, ...] = ()
    audited: int = 0
    """Sessions that were looked at for recorded compactions."""
    costs: tuple[OwnCosts, ...] = ()
    price: Price | None = None
    cache: tuple[CacheLine, ...] = ()
    cache_model: str = ""
    model_rows: tuple[ModelRow, ...] = ()
    open_book: tuple[dict[str, Any], ...] = ()
    """Answers of `firsthand lab openbook --json`."""
    charged: tuple[Charged, ...] = ()
    example: Example | None = None
    budgets: tuple[BudgetLine, ...] = ()

    def part(self, name: str) -> Part | None:
        """The part of that name."""
        return next((part for part in self.parts if part.name == name), None)

    def command_of(self, name: str) -> str:
        """The command of a part; the report's own where it has none."""
        found = self.part(name)
        return found.command if found is not None else self.command


def write_record(record: Record, path: Path) -> None:
    """Keeps a record; the same record gives the same bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    partial.write_bytes(gzip.compress(encode(record), mtime=0))
    partial.replace(path)


def read_record(path: Path) -> Record:
    """A kept record.

    Raises:
        ConfigError: there is no such file.
        FormatError: it is no record, or one of another version.
    """
    if not path.is_file():
        raise ConfigError(f"there are no stored rows at {path}; run `firsthand lab report FILES --out ...` first")
    try:
        data = gzip.decompress(path.read_bytes())
        found = decode_as(data, dict[str, msgspec.Raw])
    except (OSError, EOFError, ValueError) as error:
        raise FormatError(f"{path} holds no stored rows of a report: {error}") from None
    if bytes(found.get("schema", b"none")) != str(SCHEMA).encode():
        raise FormatError(f"{path} was written by another version; make the report again from the sessions")
    try:
        return decode_as(data, Record)
    except ValueError as error:
        raise FormatError(f"{path} holds rows that this version cannot read: {error}") from None
