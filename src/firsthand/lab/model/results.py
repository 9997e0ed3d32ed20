"""Rows and scores of a model that reads, kept apart from those of rules: the reader is named in each row, and each table is of one reader."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random

from ..arms import Arm
from ..results import Row, interval
from .batches import Batch
from .parsing import Why

__all__ = ["LEAST_REPLICATES", "Answer", "ModelRow", "ModelScore", "as_csv", "model_scores", "rows_of"]

LEAST_REPLICATES = 3
"""Replicates without which a difference under five points says nothing (measures.md, "With a model")."""


class ModelRow(Row, frozen=True, kw_only=True):
    """One exam on one source of values, for one arm at one boundary, in one replicate. `hits` are values that the model reported."""

    way: str
    """`session` or `published`: how the question was put."""
    shape: str
    """Where system prompt and tools come from: `session`, `captured`, or `examiner` in the published way."""
    replicate: int
    contained: int
    """Of the `of` values, those that the projection's text shows: the literal reader's answer to the same questions."""
    decoys: int
    """Decoys asked; `false_positives` of them were reported."""
    invalid: int
    """Questions, decoys among them, whose reply was no answer; their values count as not reported."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of one question in one replicate."""

    session: str
    format: str
    boundary: str
    position: int
    arm: Arm
    replicate: int
    batch: Batch
    claimed: frozenset[str]
    """Keys of the batch that were claimed: rightly for a value, wrongly for a decoy."""
    contained: frozenset[str]
    why: Why
    tokens: int
    history: int
    outcome: str
    window: int
    asks: bool = False

    @property
    def question(self) -> tuple[str, str, str, int]:
        """What all arms must have answered before any of them is scored on it."""
        return (self.session, self.boundary, self.batch.name, self.replicate)


def rows_of(answers: Iterable[Answer], reader: str, way: str, shape: str) -> list[ModelRow]:
    """The rows of these answers, in order of first appearance."""
    groups: dict[tuple[object, ...], list[tuple[Answer, int, int, int, int, int, int]]] = {}
    for answer in answers:
        for source in dict.fromkeys(one.source for one in answer.batch.asked):
            asked = [one for one in answer.batch.asked if one.source == source]
            values = [one for one in asked if not one.decoy]
            counted = (
                answer,
                sum(one.key in answer.claimed for one in values),
                len(values),
                sum(one.key in answer.contained for one in values),
                len(asked) - len(values),
                sum(one.key in answer.claimed for one in asked if one.decoy),
                len(asked) if answer.why else 0,
            )
            key = (answer.session, answer.boundary, answer.arm, answer.batch.exam, source, answer.replicate)
            groups.setdefault(key, []).append(counted)
    return [_row(key, found, reader, way, shape) for key, found in groups.items()]


def _row(
    key: tuple[object, ...],
    found: Sequence[tuple[Answer, int, int, int, int, int, int]],
    reader: str,
    way: str,
    shape: str,
) -> ModelRow:
    first = found[0][0]
    sums = [sum(part[number] for part in found) for number in range(1, 7)]  # type: ignore[misc]
    hits, of, contained, decoys, false, invalid = sums
    return ModelRow(
        session=first.session,
        format=first.format,
        boundary=first.boundary,
        position=first.position,
        strategy=first.arm.strategy,
        target=first.arm.target,
        summariser=first.arm.summariser if first.asks else "-",
        mode="forced",
        window=first.window,
        outcome=first.outcome,
        exam=first.batch.exam,
        reader=reader,
        source=str(key[4]),
        hits=hits,
        of=of,
        values=of,
        false_positives=false,
        tokens=first.tokens,
        history=first.history,
        milliseconds=0.0,
        way=way,
        shape=shape,
        replicate=first.replicate,
        contained=contained,
        decoys=decoys,
        invalid=invalid,
    )


def as_csv(rows: Iterable[ModelRow]) -> str:
    """The rows as CSV with a header, in the columns of `lab run` and those of a model behind them."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    names = ModelRow.__struct_fields__
    writer.writerow(names)
    for row in rows:
        writer.writerow("" if (value := getattr(row, name)) is None else value for name in names)
    return out.getvalue()


@dataclass(frozen=True, slots=True)
class ModelScore:
    """One arm in one exam, over all sessions that were asked. Shares are 0 to 1."""

    strategy: str
    target: int | None
    summariser: str
    exam: str
    share: float
    """Reported values of asked ones: within each session, then the mean over sessions; replicates pooled."""
    low: float | None
    high: float | None
    over: str
    """What the interval of 95 % is over: `sessions`, or `values` where there is one session."""
    contained: float
    """The same share for the literal reader on the same values."""
    replicates: tuple[float, ...]
    """The share in each replicate."""
    values: int
    """Values asked in one replicate."""
    false_positives: int
    decoys: int
    """Over all replicates."""
    invalid: int
    """Replies that were no answer, over all replicates."""
    replies: int
    tokens: int
    """Median size of the projections."""
    sessions: int


def model_scores(answers: Sequence[Answer]) -> list[ModelScore]:
    """The scores of every arm and exam, in order of first appearance."""
    groups: dict[tuple[Arm, str], list[Answer]] = {}
    for answer in answers:
        groups.setdefault((answer.arm, answer.batch.exam), []).append(answer)
    return [_score(arm, exam, found) for (arm, exam), found in groups.items()]


def _score(arm: Arm, exam: str, found: Sequence[Answer]) -> ModelScore:
    sessions = list(dict.fromkeys(answer.session for answer in found))
    # One number for each value: the share of the replicates in which it was reported.
    reported: dict[str, dict[tuple[str, str, str], list[bool]]] = {name: {} for name in sessions}
    contained: dict[str, list[bool]] = {name: [] for name in sessions}
    by_replicate: dict[int, list[bool]] = {}
    for answer in found:
        for one in answer.batch.values:
            hit = one.key in answer.claimed
            reported[answer.session].setdefault((answer.boundary, answer.batch.name, one.key), []).append(hit)
            contained[answer.session].append(one.key in answer.contained)
            by_replicate.setdefault(answer.replicate, []).append(hit)
    shares = [_mean([_mean(hits) for hits in reported[name].values()]) for name in sessions]
    if len(sessions) > 1:
        low, high = interval(shares)
    else:
        low, high = _over_values([_mean(hits) for hits in reported[sessions[0]].values()])
    return ModelScore(
        strategy=arm.strategy,
        target=arm.target,
        summariser=arm.summariser if any(answer.asks for answer in found) else "-",
        exam=exam,
        share=_mean(shares),
        low=low,
        high=high,
        over="sessions" if len(sessions) > 1 else "values",
        contained=_mean([_mean(contained[name]) for name in sessions]),
        replicates=tuple(_mean(hits) for _, hits in sorted(by_replicate.items())),
        values=sum(len(reported[name]) for name in sessions),
        false_positives=sum(one.key in answer.claimed for answer in found for one in answer.batch.decoys),
        decoys=sum(len(answer.batch.decoys) for answer in found),
        invalid=sum(bool(answer.why) for answer in found),
        replies=len(found),
        tokens=sorted(answer.tokens for answer in found)[len(found) // 2],
        sessions=len(sessions),
    )


def _mean(numbers: Sequence[float]) -> float:
    return sum(numbers) / len(numbers) if numbers else 0.0


def _over_values(shares: Sequence[float], rounds: int = 1_000) -> tuple[float | None, float | None]:
    """The 95 % bootstrap interval of the mean over values, by a fixed seed; nothing below two values."""
    if len(shares) < 2:
        return None, None
    rng = Random(0)
    means = sorted(sum(rng.choices(shares, k=len(shares))) / len(shares) for _ in range(rounds))
    return means[rounds * 25 // 1_000], means[rounds * 975 // 1_000 - 1]
