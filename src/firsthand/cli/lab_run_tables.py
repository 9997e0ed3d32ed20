"""The tables of `firsthand lab run`: scores, comparisons at equal size, sources and sessions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import typer

from .output import table

if TYPE_CHECKING:
    from ..lab.results import Row
    from ..lab.run_setup import Setup

__all__ = ["print_run"]

_SOURCES = ("user", "assistant", "call", "tool")


def print_run(
    rows: Sequence[Row], setup: Setup, sessions: int, *, by_kind: bool, by_session: bool, least: int | None
) -> None:
    """Prints the rows of a run.

    Args:
        rows: what was measured.
        setup: how.
        sessions: how many were looked at.
        by_kind: also hits and questions by source of the values.
        by_session: also each session by itself.
        least: questions under which a session is not judged; None for the usual number.
    """
    from ..lab.results import LEAST_QUESTIONS

    enough = LEAST_QUESTIONS if least is None else least
    _print_scores(rows, enough)
    if setup.rivals:
        _print_comparisons(rows, enough)
    if by_session:
        _print_sessions(rows)
    if by_kind:
        _print_kinds(rows)
    _print_notes(rows, setup, sessions, enough)


def _print_scores(rows: Sequence[Row], least: int) -> None:
    from ..lab.results import scores

    found = scores(rows, least)
    for exam, rival, recall in dict.fromkeys((score.exam, score.rival, score.recall) for score in found):
        table(
            ("strategy", "summary", "size", "score", "95 %", "user assistant call tool", "questions", "sessions", "tokens", "ms (cold)"),
            [
                (
                    score.strategy, score.summariser, score.tail or score.target, _percents(score.mean), _interval(score.low, score.high),
                    " ".join(_whole(score.sources.get(source)) for source in _SOURCES), score.values,
                    f"{score.sessions} of {score.sessions + score.listed}", score.tokens,
                    f"{score.milliseconds:.0f}"
                    + ("" if score.milliseconds_cold == score.milliseconds else f" ({score.milliseconds_cold:.0f})"),
                )
                for score in found if (score.exam, score.rival, score.recall) == (exam, rival, recall)
            ],
            title=f"{exam}{_recall(recall)}{f', at the size of {rival}' if rival else ''} (reader: literal; %)", spare=("size",),
        )  # fmt: skip


def _print_comparisons(rows: Sequence[Row], least: int) -> None:
    from ..lab.comparisons import comparisons

    found = comparisons(rows, least)
    for strategy, summariser, rival in dict.fromkeys((one.strategy, one.summariser, one.rival) for one in found):
        part = [one for one in found if (one.strategy, one.summariser, one.rival) == (strategy, summariser, rival)]
        table(
            ("exam", "tail", "score", "points", "95 %", *_SOURCES, "worst", "below", "asked"),
            [
                (
                    one.exam, one.tail, _percents(one.score), _points(one.difference),
                    "" if one.low is None or one.high is None else f"{one.low:+.1f} {one.high:+.1f}",
                    *(_points(one.sources.get(source)) for source in _SOURCES), _points(one.worst),
                    f"{one.below}/{one.sessions}", one.values,
                )
                for one in part
            ],
            title=f"{strategy}{'' if summariser == '-' else f', summary {summariser}'} at the size of {rival}: points more, in all, by source, "
            "and in the worst session",
        )  # fmt: skip
        for tail in ("free", "forced"):
            most = max((one for one in part if one.tail == tail), key=lambda one: one.boundaries, default=None)
            if most is not None:
                typer.echo(
                    f"{tail}: {most.boundaries:,} boundaries; size {100 * most.size:.1f} % of the rival's, at most {100 * most.largest:.1f} %"
                    + (f"; {most.over:,} left out, where it could not be brought down to the size" if most.over else "")
                )


def _print_sessions(rows: Sequence[Row]) -> None:
    from ..lab.results import counted

    tables: dict[tuple[str, int | None, str], dict[tuple[str, ...], list[Row]]] = {}
    for row in rows:
        if counted(row):
            size = row.tail or ("" if row.target is None else f"{row.target:,}")
            key = (row.session[:12], row.strategy, row.summariser, size)
            tables.setdefault((row.exam, row.recall, row.rival), {}).setdefault(key, []).append(row)
    for (exam, recall, rival), groups in tables.items():
        table(
            ("session", "strategy", "summary", "size", "score", "user assistant call tool", "questions", "mean tokens"),
            [
                (
                    *key, _percents(_share(found)), " ".join(_whole(_share([row for row in found if row.source == source])) for source in _SOURCES),
                    sum(row.of for row in found), _mean_size(found),
                )
                for key, found in sorted(groups.items(), key=lambda group: group[0][0])
            ],
            title=f"{exam}{_recall(recall)}{f', at the size of {rival}' if rival else ''}, in %, each session with its boundaries pooled",
            spare=("size",),
        )  # fmt: skip


def _mean_size(rows: Sequence[Row]) -> int:
    sizes = {row.position: row.tokens for row in rows}
    return sum(sizes.values()) // max(1, len(sizes))


def _share(rows: Sequence[Row]) -> float | None:
    of = sum(row.of for row in rows)
    return sum(row.hits for row in rows) / of if of else None


def _print_kinds(rows: Sequence[Row]) -> None:
    from ..lab.results import counted

    groups: dict[tuple[str, ...], dict[str, list[int]]] = {}
    for row in rows:
        if not counted(row):
            continue
        key = (row.exam + _recall(row.recall), row.strategy, row.summariser, row.rival, row.tail)
        cell = groups.setdefault(key, {}).setdefault(row.source, [0, 0])
        cell[0] += row.hits
        cell[1] += row.of
    table(
        ("exam", "strategy", "summary", "size of", "tail", *_SOURCES),
        ((*key, *(_cell(cells, source) for source in _SOURCES)) for key, cells in groups.items()),
        title="Hits / questions by source, all sessions",
        spare=("size of", "tail"),
    )


def _cell(cells: Mapping[str, Sequence[int]], source: str) -> str:
    return f"{cells[source][0]:,}/{cells[source][1]:,}" if source in cells else ""


def _print_notes(rows: Sequence[Row], setup: Setup, sessions: int, least: int) -> None:
    def times(outcome: str) -> int:
        arms = {
            (row.session, row.boundary, row.strategy, row.target, row.rival, row.tail)
            for row in rows
            if row.outcome == outcome
        }
        return len(arms)

    if setup.mode == "forced" and (whole := times("whole")):
        typer.echo(f"Not in the tables: {whole:,} times a strategy left a history whole that it thought short enough.")
    if over := times("over"):
        typer.echo(f"Not in the tables: {over:,} times a strategy could not be brought down to the size asked for.")
    if lacking := times("no-summary"):
        typer.echo(f"Not in the tables: {lacking:,} times the model gave no summary that could be used.")
    recalled = [row for row in rows if row.recall is not None and row.exam == "cloze"]
    if false := sum(row.false_positives for row in rows) - sum(row.false_positives for row in recalled):
        typer.echo(f"Decoys shown: {false:,}; numbers that a strategy prints itself.")
    if put := sum(row.decoys for row in recalled):
        attached = sum(row.false_positives for row in recalled)
        typer.echo(f"Lines of other sessions to which recall attached something: {attached:,} of {put:,}.")
    if setup.rivals:
        typer.echo(
            "At equal size: as near to the rival's measured size as the strategy's own knob comes, never above it. `forced`: the rival's tail stands "
            "behind what the strategy makes of the history before it. A gain counts only if both show it."
        )
    typer.echo(
        f"{sessions:,} sessions, mode {setup.mode}, window {setup.window:,}. Sizes: o200k, exact; medians. Summary `none`: the rules alone, a "
        "placeholder where a summary would stand; `extractive`: lines chosen by rules, 2,000 tokens at most, no model. Score: hits / questions "
        f"in each session, mean over sessions with at least {least} questions, and so for each source of values. ms: the plan with stored features, "
        "in brackets from nothing. One row per measurement: --json or --csv."
    )


def _recall(most: int | None) -> str:
    return "" if most is None else f" with a recall block of {most:,} tokens"


def _percents(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.1f}"


def _whole(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.0f}"


def _points(difference: float | None) -> str:
    return "" if difference is None else f"{difference:+.1f}"


def _interval(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"{100 * low:.0f}-{100 * high:.0f}"
