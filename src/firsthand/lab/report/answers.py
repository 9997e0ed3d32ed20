"""What a report says in a few sentences; each repeats numbers of a table further down, which has their command."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...strategies import DEFAULT_STRATEGY
from ..comparisons import Comparison, comparisons
from ..results import Row, counted
from .of_rules import least_of
from .record import Record
from .tables import figure, names, percent

__all__ = ["answers"]

_EXAMS = ("recognition", "supported", "continuation")
_LAST = "compaction 20"


def answers(record: Record) -> list[str]:
    """The sentences, those that the record has numbers for. Words in backticks are names."""
    return [*_window(record), *_equal(record), *_survival(record), *_audited(record), *_published(record)]


def _window(record: Record) -> Iterator[str]:
    if not record.compositions:
        return
    whole = record.compositions[-1]
    output = whole.kinds.get("tool output")
    if output is not None and whole.counted.tokens:
        yield (
            f"Of {figure(whole.counted.tokens)} tokens in {whole.sessions:,} sessions, {percent(output.tokens / whole.counted.tokens)} % are tool "
            "output."
        )


def _equal(record: Record) -> Iterator[str]:
    found = [one for one in comparisons(record.rows.get("equal", []), least_of(record)) if one.difference is not None]
    for rival in names(one.rival for one in found):
        some = {(one.tail, one.exam): one for one in found if one.strategy == DEFAULT_STRATEGY and one.rival == rival}
        told = [exam for exam in _EXAMS if ("free", exam) in some and ("forced", exam) in some]
        if told:
            parts = "; ".join(f"`{exam}` {_both(some['free', exam], some['forced', exam])}" for exam in told)
            most = max((some["free", exam] for exam in told), key=lambda one: one.sessions)
            yield (
                f"At the size of `{rival}`, `{DEFAULT_STRATEGY}` shows, in points of 100 more than it, with a tail of its own choice / with the "
                f"rival's tail: {parts}. Up to {most.sessions:,} judged sessions and {max(some['free', exam].values for exam in told):,} questions."
            )


def _both(free: Comparison, forced: Comparison) -> str:
    below = f", {free.below} and {forced.below} sessions below" if free.below or forced.below else ""
    return f"{free.difference:+.1f} / {forced.difference:+.1f} ({100 * (free.score or 0):.0f} % against {100 * (free.rival_score or 0):.0f} %{below})"


def _survival(record: Record) -> Iterator[str]:
    rows = [row for row in record.rows.get("survival", []) if row.boundary == _LAST and row.exam == "recognition"]
    strategies = names(row.strategy for row in rows)
    # Only sessions that each of them got so far with.
    sessions = [{row.session for row in rows if row.strategy == strategy} for strategy in strategies]
    both = set.intersection(*sessions) if sessions else set()
    shares = {
        name: _share([row for row in rows if row.strategy == name and row.session in both]) for name in strategies
    }
    if len(shares) > 1 and both:
        told = ", ".join(
            f"`{name}` {percent(part)} %" for name, part in sorted(shares.items(), key=lambda pair: -pair[1])
        )
        windows = ", ".join(figure(window) for window in names(row.window for row in rows))
        many = "one session" if len(both) == 1 else f"{len(both):,} sessions"
        yield f"After the 20th compaction of {many} in a window of {windows} tokens, values of the whole past that are still shown: {told}."


def _share(rows: Sequence[Row]) -> float:
    return sum(row.hits for row in rows) / max(1, sum(row.of for row in rows))


def _audited(record: Record) -> Iterator[str]:
    judged = [row for row in record.audits if row.judged and row.readable and row.ours_lost is not None]
    asked, lost = sum(row.asked for row in judged), sum(row.lost for row in judged)
    if asked:
        ours = sum(row.ours_lost or 0 for row in judged)
        yield (
            f"In {len(judged):,} compactions that clients made by themselves, {lost:,} of {asked:,} values that their agents used again were gone; "
            f"`{judged[0].strategy}` on the same history at the same size loses {ours:,}."
        )


def _published(record: Record) -> Iterator[str]:
    rows = [row for row in record.rows.get("chains", []) if row.strategy == "futureos-deterministic" and counted(row)]
    if rows:
        yield (
            f"On the published experiment's chains `futureos-deterministic` keeps {sum(row.hits for row in rows)} of {sum(row.of for row in rows)} "
            "values; 28 of 49 were published."
        )
