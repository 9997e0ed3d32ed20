"""How the command line prints: tables for people, JSON for programs, progress on stderr."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from ..codec import encode
from ..errors import ConfigError

__all__ = ["progress", "stderr", "stdout_json", "table", "write_bytes"]


def stderr(text: str) -> None:
    """One message for the person, beside whatever goes to stdout."""
    print(text.encode("utf-8", "replace").decode(), file=sys.stderr)  # noqa: T201


def stdout_json(value: Any) -> None:
    """One JSON value as one line on stdout; lone surrogates escaped."""
    sys.stdout.flush()
    sys.stdout.buffer.write(encode(value) + b"\n")
    sys.stdout.buffer.flush()


def write_bytes(out: Path | None, pieces: Iterable[bytes]) -> None:
    """Writes to a file, or to stdout when there is none. A file appears whole or not at all.

    A link is followed, and what is no plain file (a device, a pipe) is written to, never replaced.

    Raises:
        ConfigError: `out` is a folder.
    """
    if out is None:
        _pour(sys.stdout.buffer, pieces)
        return
    if out.is_dir():
        raise ConfigError(f"{out} is a folder; name a file in it")
    if out.exists() and not out.is_file():
        with out.open("wb") as device:
            _pour(device, pieces)
        return
    out = out.resolve()
    out.parent.mkdir(parents=True, exist_ok=True)
    partial = out.with_name(out.name + ".partial")
    try:
        with partial.open("wb") as file:
            _pour(file, pieces)
        partial.replace(out)
    finally:
        partial.unlink(missing_ok=True)


def _pour(file: BinaryIO, pieces: Iterable[bytes]) -> None:
    for piece in pieces:
        file.write(piece)
    file.flush()


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, title: str | None = None) -> None:
    """A table on stdout; numbers are right-aligned and grouped by thousands."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    listed = [list(row) for row in rows]
    grid = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for number, column in enumerate(columns):
        numeric = bool(listed) and all(isinstance(row[number], (int, type(None))) for row in listed)
        # Ids are copied from here, so the first column is never broken.
        first = number == 0
        grid.add_column(column, justify="right" if numeric else "left", overflow="fold", no_wrap=first)
    for row in listed:
        grid.add_row(*(_cell(value) for value in row))
    Console(width=None if sys.stdout.isatty() else 120, highlight=False, markup=False).print(grid)


def _cell(value: object) -> str:
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


@contextmanager
def progress(items: Sequence[Any], label: str) -> Iterator[Iterable[Any]]:
    """The items behind a progress bar, which shows only in a terminal and only for more than one item."""
    if len(items) < 2 or not sys.stderr.isatty():
        yield items
        return
    from rich.console import Console
    from rich.progress import track

    yield track(items, description=label, console=Console(stderr=True), transient=True)
