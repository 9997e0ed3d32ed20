"""Tables of what rules measured where sizes count: curves, comparisons at equal size, and what is left after many compactions."""

from __future__ import annotations

from collections.abc import Iterable

from ..comparisons import Comparison, comparisons
from ..results import Row, scores
from .of_rules import CLIENTS_EXAM, LITERAL, SOURCES, arm, least_of
from .record import Record
from .tables import Table, figure, names, percent

__all__ = ["curve_table", "equal_clients", "equal_overview", "equal_tables", "survival_table"]


_TAILS = ("free", "forced")
_MAIN = ("published", "recognition", "recognition-tokens", "supported", "continuation")
"""Exams of the table of all comparisons; the others are in the tables of each pair."""


def curve_table(record: Record) -> Table | None:
    """Scores at sizes that were asked for."""
    found = scores(record.rows.get("curves", []), least_of(record))
    exams = names(score.exam for score in found)
    by = {(arm(score), score.target, score.exam): score for score in found}
    lines = []
    order = names(arm(score) for score in found)
    sizes = names((arm(score), score.target) for score in found)
    for name, target in sorted(sizes, key=lambda size: (order.index(size[0]), size[1] or 0)):
        some = [by[name, target, exam] for exam in exams if (name, target, exam) in by]
        lines.append(
            (
                name,
                figure(target) if target is not None else "its own",
                figure(max(score.tokens for score in some)),
                *(percent(by[name, target, exam].mean) if (name, target, exam) in by else "" for exam in exams),
                figure(max(score.values for score in some)),
            )
        )
    if not lines:
        return None
    return Table(
        "curves",
        "At sizes that were asked for, % of values shown",
        ("strategy, summary", "asked", "tokens", *exams, "values of the largest exam"),
        tuple(lines),
        record.command_of("curves"),
        f"{LITERAL}. Tokens: the median size that came out; a size that is asked for is a wish.",
    )


def equal_overview(record: Record) -> Table | None:
    """All comparisons at equal size in one table: points more than the rival in the exams of `_MAIN`, free / forced."""
    found = [one for one in comparisons(record.rows.get("equal", []), least_of(record)) if one.difference is not None]
    exams = [exam for exam in names(one.exam for one in found) if exam in _MAIN]
    by = {(one.rival, arm(one), one.exam, one.tail): one for one in found}
    lines = []
    for rival, name in names((one.rival, arm(one)) for one in found if one.exam in exams):
        some = [one for key, one in by.items() if key[:2] == (rival, name)]
        whole = {one.tail: one for one in sorted(some, key=lambda one: one.boundaries)}
        lines.append(
            (
                rival,
                name,
                *(_pair(by.get((rival, name, exam, tail)) for tail in _TAILS) for exam in exams),
                _both(f"{100 * whole[tail].size:.0f}" if tail in whole else "" for tail in _TAILS),
                _both(figure(whole[tail].over) if tail in whole else "" for tail in _TAILS),
                figure(max(one.sessions for one in some if one.exam in exams)),
                figure(max(one.values for one in some if one.exam in exams)),
            )
        )
    if not lines:
        return None
    return Table(
        "equal",
        "At the size of another strategy: points more than it, free / forced",
        ("at the size of", "strategy, summary", *exams, "size %", "over", "sessions", "values"),
        tuple(lines),
        record.command_of("equal"),
        f"{LITERAL}. Points of 100, mean over judged sessions, on boundaries where both made a projection. Free: the strategy spends all of the "
        "size as it likes; forced: the rival's tail stands on both sides. A gain counts only where both show it. Size: of the rival's, all "
        "boundaries together. Over: boundaries left out because it cannot be brought down to the size. Sessions and values: of the "
        "exam with most. Strategies that cannot be set to a size are not here.",
    )


def equal_clients(record: Record) -> Table | None:
    """The same in one exam, by client: where one file has hundreds of short sessions, they are most of a mean over all."""
    rows = [row for row in record.rows.get("equal", []) if row.exam == CLIENTS_EXAM]
    clients = names(row.format for row in rows)
    if len(clients) < 2:
        return None
    least = least_of(record)
    found = {
        (one.rival, arm(one), client, one.tail): one
        for client in clients
        for one in comparisons([row for row in rows if row.format == client], least)
        if one.difference is not None
    }
    judged = (max((one.sessions for key, one in found.items() if key[2] == client), default=0) for client in clients)
    lines = [
        (rival, name, *(_pair(found.get((rival, name, client, tail)) for tail in _TAILS) for client in clients))
        for rival, name in names(key[:2] for key in found)
    ]
    return Table(
        "equal-clients",
        f"The same by client in one exam, {CLIENTS_EXAM}",
        ("at the size of", "strategy, summary", *clients),
        (*lines, ("sessions judged", "", *map(figure, judged))),
        record.command_of("equal"),
        f"{LITERAL}. Points of 100, free / forced, mean over the judged sessions of each client.",
    )


def _pair(found: Iterable[Comparison | None]) -> str:
    return _both("" if one is None else _points(one.difference) for one in found)


def _both(found: Iterable[str]) -> str:
    parts = list(found)
    return " / ".join(part or "-" for part in parts) if any(parts) else ""


def equal_tables(record: Record) -> list[Table]:
    """Comparisons at equal size, one table for each strategy and rival."""
    found = comparisons(record.rows.get("equal", []), least_of(record))
    tables = []
    for strategy, by, rival in names((one.strategy, one.summariser, one.rival) for one in found):
        part = [one for one in found if (one.strategy, one.summariser, one.rival) == (strategy, by, rival)]
        sizes = {
            tail: max((one for one in part if one.tail == tail), key=lambda one: one.boundaries)
            for tail in names(one.tail for one in part)
        }
        told = "; ".join(
            f"{tail}: {one.boundaries:,} boundaries, size {100 * one.size:.1f} % of the rival's, at most {100 * one.largest:.1f} %"
            + (f", {one.over:,} left out that could not be brought down to it" if one.over else "")
            for tail, one in sizes.items()
        )
        tables.append(
            Table(
                f"equal-{strategy}-{by}-{rival}".replace(":", "-"),
                f"{strategy}{'' if by == '-' else f', summary {by}'}, at the size of {rival}: points more",
                ("exam", "tail", "score %", "rival %", "points", "95 %", *SOURCES, "worst", "sessions below", "values"),
                tuple(
                    (
                        one.exam, one.tail, percent(one.score), percent(one.rival_score), _points(one.difference),
                        "" if one.low is None or one.high is None else f"{one.low:+.1f} / {one.high:+.1f}",
                        *(_points(one.sources.get(source)) for source in SOURCES), _points(one.worst), f"{one.below}/{one.sessions}",
                        figure(one.values),
                    )
                    for one in part
                ),
                record.command_of("equal"),
                f"{LITERAL}. A gain counts only where both tails show it. {told}.",
            )
        )  # fmt: skip
    return tables


def _points(difference: float | None) -> str:
    return "" if difference is None else f"{difference:+.1f}"


def survival_table(record: Record) -> Table | None:
    """What is left after the 1st, 5th and 20th compaction."""
    rows = record.rows.get("survival", [])
    if not rows:
        return None
    exams = names(row.exam for row in rows)
    # A replay in which no summary was asked for is one of the same strategy all the same.
    by = {row.strategy: arm(row) for row in rows if row.summariser != "-"}
    groups: dict[tuple[str, int, str], list[Row]] = {}
    for row in rows:
        sized = "" if row.target is None else f" at {figure(row.target)}"
        groups.setdefault((by.get(row.strategy, row.strategy) + sized, row.window, row.boundary), []).append(row)
    # The first session of many may be one that few of them compact.
    ran = names(row.strategy for row in (*record.rows.get("run", []), *rows))
    order = [by.get(strategy, strategy) for strategy in ran]
    order = [name for first in order for name in names(name for name, _, _ in groups) if name.split(" at ")[0] == first]
    windows = names(row.window for row in rows)
    several = len(windows) > 1
    lines = []
    for (name, window, boundary), found in sorted(
        groups.items(), key=lambda group: (order.index(group[0][0]), group[0][1], _number(group[0][2]))
    ):
        cells = (
            _shown(sum(row.hits for row in found if row.exam == exam), sum(row.of for row in found if row.exam == exam))
            for exam in exams
        )
        equal = {row.equal for row in found}
        told = "-" if equal == {None} else "no" if False in equal else "yes"
        sessions = str(len({row.session for row in found}))
        if fallen := {row.session for row in found if row.outcome == "fallback"}:
            sessions += f" ({len(fallen)})"
        size = (figure(window),) if several else ()
        lines.append((name, *size, str(_number(boundary)), sessions, *cells, told))
    return Table(
        "survival",
        "After many compactions of one running session" + ("" if several else f", window {figure(windows[0])}"),
        ("strategy, summary", *(["window"] if several else []), "compactions", "sessions", *exams, "as at once"),
        tuple(lines),
        record.command_of("survival"),
        f"{LITERAL}. Hits/values of everything before that compaction and per cent, sessions pooled; histories differ, since each strategy's own "
        "trigger decides. Sessions: in brackets those in which it made no plan or got no summary, so that the session fell back on its default. "
        "As at once: whether the plan equals the one made at once from the originals; - where that needs a summary.",
    )  # fmt: skip


def _number(boundary: str) -> int:
    """Of `compaction 20`, 20."""
    return int(boundary.rpartition(" ")[2])


def _shown(hits: int, of: int) -> str:
    return f"{hits:,}/{of:,} ({100 * hits / of:.0f})" if of else "-"
