"""Tables of what a model reported. No score of rules stands in them: what the text shows of the same values is a table of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..model.open_book import FATES, ROUNDS
from ..model.results import LEAST_REPLICATES, ModelRow
from ..results import interval as bootstrap
from .record import Record
from .tables import Table, figure, interval, names, percent, share

__all__ = ["fates_of", "model_tables", "open_book_table"]


def model_tables(record: Record) -> list[Table]:
    """A model as reader: what it reported, and apart from it what the projection's text shows of the same values."""
    command = record.command_of("ask")
    tables = []
    for reader, exam, way, shape in names((row.reader, row.exam, row.way, row.shape) for row in record.model_rows):
        rows = [
            row for row in record.model_rows if (row.reader, row.exam, row.way, row.shape) == (reader, exam, way, shape)
        ]
        groups = {arm: [row for row in rows if _arm(row) == arm] for arm in names(map(_arm, rows))}
        replicates = max(row.replicate for row in rows)
        few = (
            f" {replicates} replicates: a difference under 5 points says nothing."
            if replicates < LEAST_REPLICATES
            else ""
        )
        key = f"{reader}-{exam}-{way}-{shape}".replace(":", "-")
        tables.append(
            Table(
                f"model-{key}",
                f"{exam}: reported by {reader}, %",
                (
                    "strategy",
                    "summary",
                    "size",
                    "reported %",
                    "95 %",
                    "replicates %",
                    "values",
                    "wrong decoys",
                    "invalid",
                    "tokens",
                ),
                tuple((*arm, *_reported(found)) for arm, found in groups.items()),
                command,
                f"Asked the {way} way, with system prompt and tools of the {shape}. Mean over sessions, replicates pooled; interval over sessions, "
                f"where there are several. Invalid: strings, decoys among them, whose reply was no answer.{few}",
            )
        )
        tables.append(
            Table(
                f"shown-{key}",
                f"{exam}: the same values, shown in the projection's text, %",
                ("strategy", "summary", "size", "shown %", "values"),
                tuple(
                    (*arm, percent(_mean(_by_session(found, "contained"))), figure(_values(found)))
                    for arm, found in groups.items()
                ),
                command,
                "Literal reader.",
            )
        )
    return tables  # fmt: skip


def _arm(row: ModelRow) -> tuple[str, str, str]:
    return (row.strategy, row.summariser, figure(row.target))


def _reported(found: Sequence[ModelRow]) -> tuple[str, ...]:
    shares = _by_session(found, "hits")
    low, high = bootstrap(shares)
    replicates = [
        [row for row in found if row.replicate == number] for number in sorted({row.replicate for row in found})
    ]
    sizes = sorted({(row.session, row.boundary): row.tokens for row in found}.values())
    return (
        percent(_mean(shares)),
        interval(low, high),
        " ".join(percent(_mean(_by_session(rows, "hits")), 0) for rows in replicates),
        figure(_values(found)),
        f"{sum(row.false_positives for row in found)}/{sum(row.decoys for row in found)}",
        figure(sum(row.invalid for row in found)),
        figure(sizes[len(sizes) // 2]),
    )  # fmt: skip


def _by_session(found: Sequence[ModelRow], what: str) -> list[float]:
    shares = []
    for session in names(row.session for row in found):
        rows = [row for row in found if row.session == session]
        if of := sum(row.of for row in rows):
            shares.append(sum(getattr(row, what) for row in rows) / of)
    return shares


def _mean(shares: Sequence[float]) -> float | None:
    return sum(shares) / len(shares) if shares else None


def _values(found: Sequence[ModelRow]) -> int:
    """Values of one replicate."""
    first = min(row.replicate for row in found)
    return sum(row.of for row in found if row.replicate == first)


def open_book_table(record: Record) -> Table | None:
    """Where the values of each round went."""
    answers = record.open_book
    if not answers:
        return None
    lines = []
    for name in names(str(one["round"]) for one in answers):
        some = [one for one in answers if one["round"] == name]
        fates = fates_of(some)
        values = sum(int(one["values"]) for one in some)
        reported = fates["shown"] + fates["retrieved"] + fates["guessed"]
        lines.append(
            (
                name,
                share(reported, values),
                *(figure(fates[fate]) for fate in FATES),
                f"{sum(int(one['false_positives']) for one in some)}/{sum(int(one['decoys']) for one in some)}",
                f"{sum(bool(one['invalid']) for one in some)}/{len(some)}",
                figure(sum(len(one["calls"]) for one in some)),
            )
        )
    told = "; ".join(f"{one.name}: {one.told}" for one in ROUNDS if one.name in {line[0] for line in lines})
    strategies = ", ".join(names(str(one["strategy"]) for one in answers))
    return Table(
        "openbook",
        f"Open book: where the values went, projection of {strategies}",
        ("round", "reported", *FATES, "wrong decoys", "invalid", "calls"),
        tuple(lines),
        record.command_of("openbook"),
        f"Reported by a model, over all replicates. {told}.",
    )


def fates_of(answers: Sequence[dict[str, Any]]) -> dict[str, int]:
    """Values by what became of them."""
    return {fate: sum(int(one["fates"].get(fate, 0)) for one in answers) for fate in FATES}
