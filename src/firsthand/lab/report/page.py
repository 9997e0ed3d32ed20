"""The page: one file that opens without a network and prints. It shows a record and measures nothing.

Names of files, sessions, tools and models come from outside: the template escapes everything, and figures are pictures, never markup.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...errors import MissingExtraError
from ..figures.style import picture
from ..visible import visible
from .answers import answers
from .compared import COMPARABLE, NOT_COMPARABLE, published_tables
from .of_models import model_tables, open_book_table
from .of_money import cache_tables, charged_table, own_money_tables, published_money_tables
from .of_rules import chain_sources, chain_table, recall_table, run_tables
from .of_sessions import audit_tables, composition_tables
from .of_sizes import curve_table, equal_clients, equal_overview, equal_tables, survival_table
from .pictures import Picture, pictures
from .record import Record
from .tables import Table, figure, percent

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = ["MOST_BYTES", "Section", "page", "sections"]

MOST_BYTES = 5_000_000
"""What a page may take at most."""


@dataclass(frozen=True)
class Section:
    """A part of the page."""

    key: str
    title: str
    told: str
    pictures: tuple[Picture, ...] = ()
    tables: tuple[Table, ...] = ()
    more: tuple[Table, ...] = ()
    """Tables that are folded in."""


def sections(record: Record, drawn: Sequence[Picture]) -> list[Section]:
    """The parts of the page that have something to show.

    Args:
        record: the rows.
        drawn: the figures of the record.
    """
    run = run_tables(record)
    money = [*own_money_tables(record), *_there(charged_table(record))]
    found = [
        _section(
            "window",
            "What fills the window",
            "What your sessions consist of, and where the values stood first that later steps really went back to.",
            drawn,
            ("fig2-",),
            composition_tables(record),
            [],
        ),
        _section(
            "survives",
            "What survives a compaction",
            "Each strategy compacts the same sessions at the same places; then its text is asked for values that are known to be in the history. "
            "Sizes differ: read every score with the tokens beside it.",
            drawn,
            ("fig1-", "fig3-", "fig4-"),
            [table for table in run if table.key in ("overview", "clients")],
            [table for table in run if table.key not in ("overview", "clients")],
        ),
        _section(
            "sizes",
            "At equal size",
            "Strategies set to several sizes, and against the measured size of another at each boundary.",
            drawn,
            ("curves",),
            [*_there(equal_overview(record)), *_there(equal_clients(record)), *_there(curve_table(record))],
            equal_tables(record),
        ),
        _section(
            "survival",
            "After many compactions",
            "A session replayed entry by entry, until it was compacted for the 1st, 5th and 20th time.",
            drawn,
            (),
            _there(survival_table(record)),
            [],
        ),
        _section(
            "audit",
            "What clients' own compactions lost",
            _audited(record),
            drawn,
            (),
            audit_tables(record),
            [],
        ),
        _section(
            "recall",
            "What recall brings back",
            "The same questions as a user's message that a recall block answers: lines of the history that the message's own words find. No model.",
            drawn,
            ("fig9-recall",),
            _there(recall_table(record)),
            [],
        ),
        _section(
            "model",
            "A model as reader",
            "What a model reported, apart from what the text shows.",
            drawn,
            ("fig9-open-book",),
            [*model_tables(record), *_there(open_book_table(record))],
            [],
        ),
        _section(
            "money",
            "What a compaction costs",
            "Computed from token counts and prices. What was charged, where a ledger was given, stands in a table of its own.",
            drawn,
            ("fig5-", "fig6-"),
            money,
            published_money_tables(),
        ),
        _section(
            "cache",
            "What a prefix cache serves",
            "Measured on a real model on this machine; what was modelled or published stands in another table.",
            drawn,
            (),
            cache_tables(record),
            [],
        ),
        _section(
            "inside",
            "Inside one projection",
            "How the trigger comes about, and one whole projection.",
            drawn,
            ("fig7-", "fig8-"),
            [],
            [],
        ),
        _section(
            "published",
            "Beside the published experiment",
            "",
            drawn,
            ("fig9-published",),
            [*_there(chain_table(record)), *published_tables()],
            chain_sources(record),
        ),
    ]
    return [one for one in found if one.pictures or one.tables]


def _section(
    key: str,
    title: str,
    told: str,
    drawn: Sequence[Picture],
    prefixes: tuple[str, ...],
    tables: Iterable[Table],
    more: Iterable[Table],
) -> Section:
    chosen = tuple(one for one in drawn if prefixes and one.key.startswith(prefixes))
    return Section(key, title, told, chosen, tuple(tables), tuple(more))


def _there(table: Table | None) -> list[Table]:
    return [] if table is None else [table]


def _audited(record: Record) -> str:
    compactions = len(record.audits)
    return (
        f"{compactions:,} recorded compactions in {record.audited:,} sessions: what the client kept, what its agent used again, and what it had to "
        "read again."
    )


def tiles(record: Record) -> list[tuple[str, str]]:
    """Numbers for the top of the page, each with what it is."""
    found: list[tuple[str, str]] = []
    if record.compositions:
        whole = record.compositions[-1]
        found.append((f"{whole.sessions:,}", f"sessions, {figure(whole.counted.tokens)} tokens (o200k)"))
        output = whole.kinds.get("tool output")
        if output is not None:
            found.append(
                (f"{percent(output.tokens / max(1, whole.counted.tokens))} %", "of these tokens are tool output")
            )
    judged = [row for row in record.audits if row.judged]
    readable = [row for row in judged if row.readable] or judged
    if readable:
        asked, lost = sum(row.asked for row in readable), sum(row.lost for row in readable)
        found.append(
            (f"{lost:,} of {asked:,}", f"values used again after {len(readable):,} compactions by clients were gone")
        )
        seen = sum(row.seen_tokens for row in judged)
        found.append((figure(seen), "tokens read again that the agent had seen before"))
    return found  # fmt: skip


def page(record: Record, drawn: Sequence[Picture] | None = None) -> str:
    """The whole page; the same record gives the same page.

    Args:
        record: the rows.
        drawn: its figures, where they are drawn already.

    Raises:
        MissingExtraError: jinja2 or matplotlib is not installed.
    """
    environment = _environment()
    found = pictures(record) if drawn is None else drawn
    images = {one.key: b64encode(picture(one.figure, "svg")).decode() for one in found}
    return environment.get_template("report.html.j2").render(
        record=record,
        sections=sections(record, found),
        images=images,
        tiles=tiles(record),
        answers=answers(record),
        comparable=COMPARABLE,
        not_comparable=NOT_COMPARABLE,
    )


def _environment() -> Environment:
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError:
        raise MissingExtraError("an HTML page", "lab") from None
    environment = Environment(
        loader=PackageLoader("firsthand.lab"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"visible": visible, "number": figure, "told": _told, "command": _command}
    return environment


def _command(text: str) -> str:
    """Command lines to copy: their spaces as they are, nothing in them that moves a terminal or turns text around."""
    return "".join(char if char == "\n" or char.isprintable() else "�" for char in text)


def _told(text: str) -> str:
    """A sentence of ours with its `words` in backticks as code; everything in it escaped."""
    from markupsafe import Markup, escape

    pieces = visible(text).split("`")
    if len(pieces) % 2 == 0:
        return escape(visible(text))
    marks = (Markup("<code>{}</code>").format(piece) if at % 2 else escape(piece) for at, piece in enumerate(pieces))
    return Markup("").join(marks)
