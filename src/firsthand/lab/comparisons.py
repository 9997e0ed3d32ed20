"""Comparisons at equal size: what a strategy shows more than its rival, boundary by boundary, as points over sessions (measures.md, "Values")."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from .results import LEAST_QUESTIONS, Row, counted, interval, mean, shares

__all__ = ["Comparison", "comparisons"]


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """A strategy against a rival in one exam, on the boundaries where both made a projection. Differences are in points of 100."""

    strategy: str
    summariser: str
    rival: str
    tail: str
    """`free`, or `forced`: the rival's tail stands on both sides."""
    exam: str
    score: float | None
    """Mean over judged sessions, 0 to 1."""
    rival_score: float | None
    difference: float | None
    low: float | None
    high: float | None
    """Bootstrap interval of 95 % of the mean difference over sessions."""
    sources: dict[str, float]
    """The difference for each source of values, over the judged sessions that have any."""
    worst: float | None
    """The smallest difference in a judged session."""
    worst_session: str
    below: int
    """Judged sessions in which the strategy shows less."""
    sessions: int
    """Judged sessions."""
    values: int
    """Questions in them, over all draws."""
    boundaries: int
    over: int
    """Boundaries left out because the strategy could not be brought down to the rival's size."""
    size: float
    """Tokens shown, as a share of the rival's, over all boundaries."""
    largest: float
    """The largest such share at one boundary; at equal size never above 1."""


def comparisons(rows: Sequence[Row], least: int = LEAST_QUESTIONS) -> list[Comparison]:
    """Every strategy against every rival whose size it was given, free and forced, exam by exam, in order of first appearance."""
    own: dict[tuple[str, str], list[Row]] = {}
    others: dict[tuple[str, str, str, str, str], list[Row]] = {}
    for row in rows:
        if row.recall is not None:
            # Recall goes with any strategy, so it is in no comparison of strategies.
            continue
        if row.tail == "own":
            own.setdefault((row.rival, row.exam), []).append(row)
        elif row.rival:
            others.setdefault((row.rival, row.exam, row.strategy, row.summariser, row.tail), []).append(row)
    return [_compared(found, own.get(key[:2], ()), least) for key, found in others.items()]


def _compared(rows: Sequence[Row], rivals: Sequence[Row], least: int) -> Comparison:
    places = {(row.session, row.position) for row in rows if counted(row)}
    places &= {(row.session, row.position) for row in rivals if row.outcome not in ("whole", "no-summary")}
    ours = [row for row in rows if (row.session, row.position) in places]
    theirs = [row for row in rivals if (row.session, row.position) in places]
    mine, other = shares(ours, least), shares(theirs, least)
    differences = {session: 100 * (mine[session] - other[session]) for session in mine}
    low, high = interval(list(differences.values()))
    judged = [row for row in ours if row.session in mine]
    sources: dict[str, float] = {}
    for source in dict.fromkeys(row.source for row in judged):
        of_mine = shares((row for row in judged if row.source == source), 1)
        of_other = shares((row for row in theirs if row.source == source and row.session in mine), 1)
        found = mean(100 * (of_mine[session] - of_other[session]) for session in of_mine)
        if found is not None:
            sources[source] = found
    sizes = {(row.session, row.position): row.tokens for row in ours}
    rival_sizes = {(row.session, row.position): row.tokens for row in theirs}
    worst = min(differences, key=lambda session: differences[session], default="")
    first = rows[0]
    return Comparison(
        strategy=first.strategy,
        summariser=first.summariser,
        rival=first.rival,
        tail=first.tail,
        exam=first.exam,
        score=mean(mine.values()),
        rival_score=mean(other[session] for session in mine),
        difference=mean(differences.values()),
        low=low,
        high=high,
        sources=sources,
        worst=differences.get(worst),
        worst_session=worst,
        below=sum(difference < 0 for difference in differences.values()),
        sessions=len(mine),
        values=sum(row.of for row in judged),
        boundaries=len(places),
        over=len({(row.session, row.position) for row in rows if row.outcome == "over"}),
        size=sum(sizes.values()) / max(1, sum(rival_sizes.values())),
        largest=max((sizes[place] / max(1, rival_sizes[place]) for place in sizes), default=0.0),
    )
