"""What a page or a file of text shows: tables whose cells are finished texts, each with the command that makes its numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TypeVar

__all__ = ["Table", "figure", "interval", "markdown", "money", "names", "percent", "share", "turns"]

T = TypeVar("T")
_NUMBER = re.compile(r"[+\-−]?[\d.,]+(?: ?%)?(?: ?[-–/] ?(?:[+\-]?[\d.,]+|-))?(?: \([^)]*\))?|-|never|")


@dataclass(frozen=True)
class Table:
    """Rows of texts under headings."""

    key: str
    """Names it in a page."""
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    command: str
    note: str = ""
    numeric: tuple[bool, ...] = field(init=False)
    """Which columns hold numbers."""

    def __post_init__(self) -> None:
        wrong = [row for row in self.rows if len(row) != len(self.columns)]
        assert not wrong, f"{self.key}: {len(self.columns)} columns, and a row of {len(wrong[0])} cells"
        object.__setattr__(
            self,
            "numeric",
            tuple(
                any(row[at] for row in self.rows) and all(_NUMBER.fullmatch(row[at]) for row in self.rows)
                for at in range(len(self.columns))
            ),
        )


def markdown(table: Table) -> str:
    """The table for a page of text, without title and command."""
    lines = [
        _line(table.columns),
        _line("---:" if numeric else "---" for numeric in table.numeric),
        *map(_line, table.rows),
    ]
    return "\n".join(lines)


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def figure(number: float | None) -> str:
    """A whole number, grouped by thousands."""
    return "" if number is None else f"{round(number):,}"


def percent(share: float | None, places: int = 1) -> str:
    """A share of 0 to 1 as a number of per cent."""
    return "" if share is None else f"{100 * share:.{places}f}"


def share(hits: int, of: int) -> str:
    """Hits of questions, and the share in per cent."""
    return f"{hits:,}/{of:,} ({100 * hits / of:.1f} %)" if of else "-"


def interval(low: float | None, high: float | None) -> str:
    """An interval of shares, in per cent."""
    return "" if low is None or high is None else f"{100 * low:.0f}–{100 * high:.0f}"


def money(value: Decimal | None) -> str:
    """An amount with three significant digits, or two decimals where those say more."""
    if value is None:
        return ""
    return f"{value:.{max(2, 3 - value.adjusted())}f}".rstrip("0").rstrip(".") if value else "0"


def turns(value: Decimal | None) -> str:
    """A number of turns, or that there is none."""
    return "never" if value is None else f"{value:.1f}"


def names(found: Iterable[T]) -> list[T]:
    """Each once, in order of first appearance."""
    return list(dict.fromkeys(found))
