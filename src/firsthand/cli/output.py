"""How the command line prints: tables for people, JSON for programs, progress on stderr."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from ..codec import encode
from ..errors import ConfigError

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["progress", "stderr", "stdout_json", "table", "write_bytes"]

_PICTURES = {code: 0x2400 + code for code in range(32) if chr(code) not in "\n\t"} | {0x7F: 0x2421, 0x9B: 0xFFFD}
"""Control characters as the pictures that stand for them: a title or an id out of a file must not steer the terminal."""
_PIPED = 120
"""Columns of a table that goes to a file or another program."""
_FIRM = 18
"""A column no wider than this is never broken."""


def stderr(text: str) -> None:
    """One message for the person, beside whatever goes to stdout."""
    print(text.translate(_PICTURES).encode("utf-8", "replace").decode(), file=sys.stderr)  # noqa: T201


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


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    title: str | None = None,
    short: Collection[str] = (),
    spare: Collection[str] = (),
) -> None:
    """A table on stdout; numbers are right-aligned and grouped by thousands.

    In a terminal too narrow for it, each row becomes a few lines instead, so that no id and no number is ever broken.

    Args:
        columns: the headings.
        rows: as many cells in each as there are columns; None is an empty cell.
        title: a line above it.
        short: headings of columns whose cells are cut to one line, which ends in an ellipsis; only for what `--json` has in full.
        spare: headings of columns that are left out where no row has anything in them.
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table

    listed = [list(row) for row in rows]
    kept = [
        number
        for number, column in enumerate(columns)
        if column not in spare or any(row[number] not in (None, "") for row in listed)
    ]
    columns = [columns[number] for number in kept]
    listed = [[row[number] for number in kept] for row in listed]
    cells = [[_cell(value) for value in row] for row in listed]
    console = Console(width=None if sys.stdout.isatty() else _PIPED, highlight=False, markup=False)
    widths = _widths(columns, cells, console.width)
    if widths is None:
        _stacked(console, columns, cells, title)
        return
    grid = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for number, column in enumerate(columns):
        numeric = bool(listed) and all(isinstance(row[number], (int, type(None))) for row in listed)
        cut = column in short
        grid.add_column(
            column,
            justify="right" if numeric else "left",
            overflow="ellipsis" if cut else "fold",
            no_wrap=cut,
            width=widths[number],
        )
    for cells_of_row in cells:
        grid.add_row(*cells_of_row)
    with console.capture() as drawn:
        console.print(grid)
    _lines(line.rstrip() for line in drawn.get().splitlines())


def _widths(columns: Sequence[str], cells: Sequence[Sequence[str]], room: int) -> list[int] | None:
    """How wide each column is, or None where ids and numbers would have to be broken: the widest gives way first, headings at words."""
    from rich.cells import cell_len

    longest = [max((cell_len(row[number]) for row in cells), default=0) for number in range(len(columns))]
    widths = [max(width, cell_len(column)) for width, column in zip(longest, columns, strict=True)]
    least = [
        max(width if number == 0 else min(width, _FIRM), *map(cell_len, column.split()))
        for number, (width, column) in enumerate(zip(longest, columns, strict=True))
    ]
    room -= 3 * (len(columns) - 1)
    if sum(least) > room:
        return None
    while sum(widths) > room:
        widest = max(
            (number for number in range(len(columns)) if widths[number] > least[number]), key=widths.__getitem__
        )
        widths[widest] -= 1
    return widths


def _stacked(console: Console, columns: Sequence[str], cells: Sequence[Sequence[str]], title: str | None) -> None:
    from textwrap import wrap

    _lines([title] if title else [])
    for first, *others in cells:
        named = "; ".join(f"{column} {cell}" for column, cell in zip(columns[1:], others, strict=True) if cell)
        _lines([first, *wrap(named, console.width, initial_indent="  ", subsequent_indent="  ")])


def _lines(lines: Iterable[str]) -> None:
    for line in lines:
        sys.stdout.write(line.encode("utf-8", "replace").decode() + "\n")


def _cell(value: object) -> str:
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value).translate(_PICTURES)


@contextmanager
def progress(items: Sequence[Any], label: str) -> Iterator[Iterable[Any]]:
    """The items behind a progress bar, which shows only in a terminal and only for more than one item."""
    if len(items) < 2 or not sys.stderr.isatty():
        yield items
        return
    from rich.console import Console
    from rich.progress import track

    yield track(items, description=label, console=Console(stderr=True), transient=True)
