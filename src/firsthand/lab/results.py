"""Results of the lab: one row per measurement and source, kept in a cache so that a run can be interrupted and go on."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ..codec import decode_as, encode

__all__ = ["LEAST_QUESTIONS", "Cache", "Row", "Score", "as_csv", "counted", "interval", "mean", "scores", "shares"]

LEAST_QUESTIONS = 40
"""A session with fewer questions in an exam, its boundaries pooled, is listed and not judged."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One measurement: one exam on one source of values, for one strategy at one boundary of one session. There are no total rows."""

    session: str
    format: str
    boundary: str
    position: int
    """Entries before the boundary."""
    strategy: str
    target: int | None
    """Size that was asked for, in tokens; None: the strategy's own."""
    rival: str = ""
    """At equal size: whose size it is, `STRATEGY` or `STRATEGY:N`."""
    tail: str = ""
    """At equal size: `own` for the rival itself, `free`, or `forced` where the rival's tail stands behind what the strategy shows."""
    summariser: str
    """`-` for a strategy that needs none."""
    mode: str
    window: int
    outcome: str
    """`compacted`; `whole` when the strategy left the history as it is; `refused`, which is scored on an empty projection; `over` when it
    could not be brought down to the size and `no-summary` when a model gave none that could be used: neither is in any score."""
    exam: str
    reader: str
    recall: int | None = None
    """Tokens of the recall block that the question brings at most; None: without recall."""
    source: str
    """Where the values come from: user, assistant, call or tool."""
    hits: int
    of: int
    """Questions asked, over all draws."""
    values: int
    """Distinct values among them."""
    false_positives: int
    decoys: int = 0
    """Decoys asked, in exams whose decoys belong to no value (`published`, `cloze` with recall); elsewhere about one for each value."""
    tokens: int
    """Size of the projection by the exact counter, system prompt and tools excluded."""
    history: int
    """Size of the history before the boundary, by the same counter."""
    milliseconds: float
    """Wall time of the plan alone, with stored features where the strategy has any."""
    milliseconds_cold: float = 0.0
    """The same from nothing."""
    oracle: int | None = None
    """Hits of the greedy that knows which values will be used, at the same size (`continuation` only)."""
    by_age: str = ""
    """`hits/of` for each age decile of the history before the boundary, oldest first."""
    equal: bool | None = None
    """Whether the plan equals the one made at once from the originals (replays only)."""


def as_csv(rows: Iterable[Row]) -> str:
    """The rows as CSV with a header, for pandas or a spreadsheet."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    names = Row.__struct_fields__
    writer.writerow(names)
    for row in rows:
        writer.writerow("" if (value := getattr(row, name)) is None else value for name in names)
    return out.getvalue()


class Cache:
    """Finished measurements by key, one JSON line each, appended as they are finished. A line that was cut off by an interruption is ignored.

    Args:
        path: the file; None keeps everything in memory only.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._rows: dict[str, list[Row]] = {}
        if path is not None and path.exists():
            data = path.read_bytes()
            for line in data.split(b"\n"):
                try:
                    key, rows = decode_as(line, tuple[str, list[Row]])
                except ValueError:
                    continue
                self._rows[key] = rows
            if data and not data.endswith(b"\n"):
                with path.open("ab") as file:
                    file.write(b"\n")

    def __contains__(self, key: str) -> bool:
        return key in self._rows

    def __getitem__(self, key: str) -> list[Row]:
        return self._rows[key]

    def add(self, key: str, rows: list[Row]) -> None:
        """Keep one measurement."""
        self._rows[key] = rows
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("ab") as file:
                file.write(encode([key, rows]) + b"\n")


class Score(msgspec.Struct, frozen=True, kw_only=True):
    """A score over sessions: hits / asked within each session, the mean of that over sessions."""

    strategy: str
    target: int | None
    rival: str
    tail: str
    summariser: str
    exam: str
    recall: int | None
    mean: float | None
    low: float | None
    high: float | None
    """Bootstrap interval of 95 % over sessions; None below two sessions."""
    sources: dict[str, float]
    """The same mean for each source of values, over the judged sessions that have any."""
    sessions: int
    """Judged sessions."""
    listed: int
    """Sessions with too few questions to be judged."""
    values: int
    """Questions of the judged sessions, over all draws."""
    false_positives: int
    tokens: int
    """Median size of the projection."""
    milliseconds: float
    """Median time."""
    milliseconds_cold: float
    """Median time without stored features."""


def counted(row: Row) -> bool:
    """Whether a row is a measurement: not where a forced run left the history whole, a size could not be held or a model gave no summary."""
    return row.outcome not in ("over", "no-summary") and not (row.outcome == "whole" and row.mode == "forced")


def scores(rows: Sequence[Row], least: int = LEAST_QUESTIONS) -> list[Score]:
    """The scores of every strategy, size, summariser and exam, in order of first appearance; of rows that are `counted`."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        if counted(row):
            size = None if row.rival and row.tail != "own" else row.target
            arm = (row.strategy, size, row.rival, row.tail, row.summariser)
            groups.setdefault((*arm, row.exam, row.recall), []).append(row)
    return [_score(found, key[1], least) for key, found in groups.items()]


def shares(rows: Iterable[Row], least: int = LEAST_QUESTIONS) -> dict[str, float]:
    """Hits / asked of each session that has at least so many questions, by session."""
    sums: dict[str, list[int]] = {}
    for row in rows:
        cell = sums.setdefault(row.session, [0, 0])
        cell[0] += row.hits
        cell[1] += row.of
    return {session: hits / of for session, (hits, of) in sums.items() if of >= max(1, least)}


def _score(rows: Sequence[Row], target: int | None, least: int) -> Score:
    judged = shares(rows, least)
    low, high = interval(list(judged.values()))
    used = [row for row in rows if row.session in judged]
    sources: dict[str, list[Row]] = {}
    for row in used:
        sources.setdefault(row.source, []).append(row)
    first = rows[0]
    return Score(
        strategy=first.strategy,
        target=target,
        rival=first.rival,
        tail=first.tail,
        summariser=first.summariser,
        exam=first.exam,
        recall=first.recall,
        mean=mean(judged.values()),
        low=low,
        high=high,
        sources={
            source: share for source, found in sources.items() if (share := mean(shares(found, 1).values())) is not None
        },
        sessions=len(judged),
        listed=len({row.session for row in rows}) - len(judged),
        values=sum(row.of for row in used),
        false_positives=sum(row.false_positives for row in rows),
        tokens=int(_median([row.tokens for row in used])),
        milliseconds=round(_median([row.milliseconds for row in used]), 1),
        milliseconds_cold=round(_median([row.milliseconds_cold for row in used]), 1),
    )


def mean(shares: Iterable[float]) -> float | None:
    """The mean; None of nothing."""
    found = list(shares)
    return sum(found) / len(found) if found else None


def interval(shares: Sequence[float], rounds: int = 1_000) -> tuple[float | None, float | None]:
    """The 95 % bootstrap interval of the mean over sessions, by a fixed seed; nothing below two sessions."""
    from random import Random

    if len(shares) < 2:
        return None, None
    rng = Random(0)
    means = sorted(sum(rng.choices(shares, k=len(shares))) / len(shares) for _ in range(rounds))
    return means[rounds * 25 // 1_000], means[rounds * 975 // 1_000 - 1]


def _median(numbers: Sequence[float]) -> float:
    ordered = sorted(numbers)
    return ordered[len(ordered) // 2] if ordered else 0.0
