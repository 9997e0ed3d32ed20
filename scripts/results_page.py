"""Writes `docs/results.md` from the stored rows of a report, so that no number in it is typed by hand.

    firsthand lab report FILES --out report.html
    python benchmarks/summary_standin.py FILES > standin.txt
    python scripts/results_page.py report.rows.json.gz --standin standin.txt --strip FOLDER/

`--strip` takes the folder of the sessions out of the commands that are shown. `--out -` prints the page.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from firsthand.lab.report.answers import answers
from firsthand.lab.report.compared import COMPARABLE, NOT_COMPARABLE, published_tables
from firsthand.lab.report.of_models import model_tables, open_book_table
from firsthand.lab.report.of_money import cache_tables, charged_table, own_money_tables
from firsthand.lab.report.of_rules import chain_table, recall_table, run_tables
from firsthand.lab.report.of_sessions import audit_tables, composition_tables
from firsthand.lab.report.of_sizes import curve_table, equal_clients, equal_overview, survival_table
from firsthand.lab.report.record import Record, read_record
from firsthand.lab.report.tables import Table, figure, markdown

PAGE = Path(__file__).resolve().parents[1] / "docs" / "results.md"
_OWN = ("overview", "clients", "source-recognition")
_PLACEHOLDER = ", none"
_STANDIN = re.compile(
    r"(?P<exam>[a-z-]+) +recorded (?P<recorded>\d+/\d+ = [\d.]+ %) +extractive (?P<made>\d+/\d+ = [\d.]+ %)"
)

HEAD = """# Results

Written by `python scripts/results_page.py` from the stored rows of one `firsthand lab report`, so no number in it is typed; under every table stands
the command that makes its numbers. Nothing here was read by a model: a value counts as known when it is in the projection's text. Sizes are o200k
tokens, exact. `extractive` means that the stand-in wrote the summaries that a strategy wants: verbatim lines by rules, at most 2,000 tokens. That is
not what it reaches with a model's summary. The exams are explained on [the page on the lab](lab.md); the page that the report makes has all tables,
those without any summary too, and the nine figures.
"""


def page(record: Record, standin: str, strip: str) -> str:
    """The whole page.

    Args:
        record: the stored rows.
        standin: what `benchmarks/summary_standin.py` printed; empty leaves that part out.
        strip: what is taken out of every command.
    """
    parts = list(_parts(record, standin))
    return "\n".join([HEAD, *parts]).replace(strip, "") if strip else "\n".join([HEAD, *parts])


def _parts(record: Record, standin: str) -> Iterator[str]:
    if told := answers(record):
        yield "## In short\n"
        yield "\n".join(f"- {line}" for line in told) + "\n"
    if equal := _there(equal_overview(record)):
        yield "## At equal size\n"
        yield from _tables([*equal, *_there(equal_clients(record))])
    if curves := _there(curve_table(record)):
        yield "## At sizes that were asked for\n"
        yield from _tables(curves)
    if survival := _there(survival_table(record)):
        yield "## After many compactions\n"
        yield from _tables(survival)
    if audits := audit_tables(record):
        yield "## What clients' own compactions lost\n"
        yield from _tables(audits)
    run = {table.key: table for table in run_tables(record)}
    if run:
        yield "## At their own sizes\n"
        yield (
            "Each boundary is compacted from the originals, forced. **Sizes differ widely, so these tables rank nothing.** `recorded` is asked only "
            "where the client had compacted before, so of later and fewer boundaries.\n"
        )
        yield from _tables(run[key] for key in _OWN if key in run)
    if recall := _there(recall_table(record)):
        yield "## With recall\n"
        yield from _tables(recall)
    if chains := _there(chain_table(record)):
        yield "## The published experiment\n"
        yield from _tables([*chains, *published_tables()[:1]])
        yield "What can be compared:\n"
        yield "\n".join(f"- {line}" for line in COMPARABLE)
        yield "\nWhat cannot:\n"
        yield "\n".join(f"- {line}" for line in NOT_COMPARABLE) + "\n"
    if standin and (rows := [match for line in standin.splitlines() if (match := _STANDIN.fullmatch(line.strip()))]):
        yield "## The stand-in against recorded summaries\n"
        lines = tuple((row["exam"], _cell(row["recorded"]), _cell(row["made"])) for row in rows)
        yield from _tables(
            [
                Table(
                    "standin",
                    "Readable recorded summaries, and the stand-in at the same tokens on the same history",
                    ("exam", "recorded", "stand-in"),
                    lines,
                    "python benchmarks/summary_standin.py FILES",
                    "Both texts alone, by the literal reader, pooled; of single compactions either may be ahead.",
                )
            ]
        )
    if models := [*model_tables(record), *_there(open_book_table(record)), *_there(charged_table(record))]:
        yield "## A model as reader\n"
        yield from _tables(models)
    if money := own_money_tables(record)[:1]:
        yield "## Money\n"
        yield "The published figures, computed anew and corrected, are on [the page on the lab with a model](lab-model.md#the-published-figures).\n"
        yield from _tables(money)
    if cache := cache_tables(record):
        yield "## What a prefix cache served\n"
        yield from _tables(cache)
    yield "## How it was made\n"
    versions = ", ".join(f"{name} {version}" for name, version in record.versions.items())
    yield f"{record.made}; {versions}; source of firsthand {record.code}.\n"
    yield from _code([record.command, record.files])
    if record.compositions:
        yield from _tables(composition_tables(record)[1:2])
    settings = tuple(record.settings.items())
    yield from _tables([Table("settings", "Settings", ("setting", "value"), settings, "")])
    parts = tuple((part.name, f"{part.seconds:,.0f}") for part in record.parts)
    note = "Of the runs those of all processes together; of rows that were in the cache, those of reading them."
    yield from _tables([Table("time", "Seconds of each part", ("part", "seconds"), parts, "", note)])


def _tables(tables: Iterable[Table]) -> Iterator[str]:
    for table in tables:
        yield f"### {table.title}\n"
        if table.command:
            yield from _code([table.command])
        yield markdown(_with_summaries(table)) + "\n"
        if table.note:
            yield table.note[0].upper() + table.note[1:] + "\n"


def _with_summaries(table: Table) -> Table:
    """The table without the arms whose summaries are placeholders."""
    rows = tuple(row for row in table.rows if not row[0].endswith(_PLACEHOLDER))
    return replace(table, rows=rows)


def _code(lines: Iterable[str]) -> Iterator[str]:
    yield "```\n" + "\n".join(line for line in lines if line) + "\n```\n"


def _cell(text: str) -> str:
    hits, _, share = text.partition(" = ")
    found, _, of = hits.partition("/")
    return f"{figure(int(found))}/{figure(int(of))} ({share})"


def _there(table: Table | None) -> list[Table]:
    return [] if table is None else [table]


def main() -> None:
    """Writes the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("record", type=Path, help="the file ending in .rows.json.gz that `firsthand lab report` wrote")
    parser.add_argument("--standin", type=Path, help="what benchmarks/summary_standin.py printed")
    parser.add_argument("--strip", default="", help="taken out of every command, such as the folder of the sessions")
    parser.add_argument("--out", default=str(PAGE), help="the page; - prints it")
    given = parser.parse_args()
    standin = given.standin.read_text("utf-8") if given.standin else ""
    made = page(read_record(given.record), standin, given.strip).rstrip() + "\n"
    if given.out == "-":
        sys.stdout.write(made)
    else:
        Path(given.out).write_text(made, "utf-8")


if __name__ == "__main__":
    main()
