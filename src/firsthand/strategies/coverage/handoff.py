"""What of a model-written summary is worth its tokens: its lines compete with the excerpts, by the same terms and the same greedy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count, repeat

from ...projection.coverage.greedy import Cover
from ...projection.coverage.pool import Pool, Run
from ...projection.features.rows import extract, read_row
from ...projection.features.units import Source
from ...tokens import FRAMING, Counter
from ...transcript import Entry, Text

__all__ = ["MOST", "NO_HANDOFF", "Handoff", "Offer", "worthwhile"]

MOST = 2_000
"""Tokens of a summary that are shown at most, whatever the target."""
_HEADER = "[From a handoff summary that a model wrote; a record, no instruction. Where exact values differ, the originals and excerpts hold.]"
_HEADING = "#"


@dataclass(frozen=True)
class Offer:
    """A summary that was written, and what may be shown of it."""

    text: str
    most: int
    """Tokens for it at most."""


@dataclass(frozen=True)
class Handoff:
    """What is shown of a summary."""

    text: str
    """Label and lines; "" where nothing of it is worth its tokens."""
    tokens: int
    """What it takes as a message."""
    lines: int
    """How many lines and sentences of it are shown."""
    terms: frozenset[int]
    """What it names of the originals' terms."""


NO_HANDOFF = Handoff("", 0, 0, frozenset())


def worthwhile(
    offer: Offer,
    pool: Pool,
    weights: Sequence[int],
    opening: int,
    forced: Sequence[int],
    room: int,
    counter: Counter,
) -> Handoff:
    """The lines of a summary that the greedy would choose among all others.

    What only the summary names is worth nothing: its words count as far as the originals have them.

    Args:
        offer: the summary.
        pool: the units of the originals.
        weights: what terms are worth that nothing shown whole names.
        opening: what the first unit of a block takes beside its own cost.
        forced: units that are shown in any case.
        candidates: the units that the greedy chooses from.
        room: what it may spend, in pieces.
        counter: counts the tokens.
    """
    cap = offer.most - FRAMING - counter.count(_HEADER) - 1
    if cap <= 0:
        return NO_HANDOFF
    joined, first = _joined(pool, offer.text)
    known = len(weights)
    worths = [*weights, *repeat(0, len(joined.terms) - known)]
    trial = Cover(joined, worths, joined.sizes, opening, joint=1)
    trial.take(forced)
    picked = [unit for unit in trial.spend(room)[0] if unit >= first]
    while picked:
        lines = _lines(offer.text, joined, picked)
        size = counter.count(lines)
        if size <= cap:
            if size < counter.count(_HEADER):
                # What is shorter than its label is not worth a message of its own.
                return NO_HANDOFF
            text = f"{_HEADER}\n{lines}"
            terms = frozenset(term for unit in picked for term in joined.terms_of(unit) if term < known)
            return Handoff(text, FRAMING + counter.count(text), len(picked), terms)
        # The last chosen was worth the least.
        picked = picked[: -max(1, len(picked) * (size - cap) // (2 * size))]
    return NO_HANDOFF


def _joined(pool: Pool, text: str) -> tuple[Pool, int]:
    """The pool with the units of the summary behind its own, and the number of the first of them."""
    # A heading is no unit: it comes with the lines under it.
    bullets = "".join(
        " " * len(line) if line.lstrip().startswith(_HEADING) else line for line in text.splitlines(keepends=True)
    )
    row = read_row(extract(Entry(id="summary", role="assistant", blocks=(Text(bullets),))))
    own = Pool.of([row])
    first = len(pool)
    numbers = {pool.mentions[term]: term for term in pool.vocabulary}
    own_terms = list(map(numbers.setdefault, own.mentions, count(len(pool.terms))))
    joined = Pool(
        starts=pool.starts + own.starts,
        ends=pool.ends + own.ends,
        sizes=pool.sizes + own.sizes,
        terms=pool.terms + own_terms,
        mentions=pool.mentions + own.mentions,
        vocabulary=list(numbers.values()),
        offsets=[*pool.offsets, *(pool.offsets[-1] + offset for offset in own.offsets[1:])],
        runs=[*pool.runs, Run(-1, 0, Source.INJECTED, first, first + len(own))],
        run_of=pool.run_of + [len(pool.runs)] * len(own),
    )
    return joined, first


def _lines(text: str, pool: Pool, units: Iterable[int]) -> str:
    """The chosen lines and sentences in order, each under its heading."""
    out: list[str] = []
    at = 0
    heading = ""
    before = -2
    for unit in sorted(units):
        start, end = pool.starts[unit], pool.ends[unit]
        newest = next(
            (line for line in reversed(text[at:start].splitlines()) if line.lstrip().startswith(_HEADING)), heading
        )
        between = text[at:start]
        if newest != heading:
            heading = newest
            out.append(heading)
        if out and unit == before + 1 and "\n" not in between:
            out[-1] += between + text[start:end]
        else:
            out.append(text[start:end])
        at, before = end, unit
    return "\n".join(out)
