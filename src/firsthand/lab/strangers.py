"""What other sessions of a run lend to one for its decoys: parts of names, and lines with a gap (measures.md, "Decoys" and exam `cloze`)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

from ..transcript import Entry
from .exams.cloze import question
from .passages import home_words
from .values import Value, homes, pieces

__all__ = ["Offer", "Strangers", "offered", "strangers"]

_LOOKED_AT = 60
"""Entries of a session that are looked at, spread over it; what it lends need not be all that it has."""
_LONGEST = 20_000
"""Characters of the longest entry that is looked at."""
_PARTS_OF_ONE = 40
_LINES_OF_ONE = 12
_PARTS = 240
_LINES = 48
_PART = re.compile(r"[^\W\d_]{4,16}")


@dataclass(frozen=True)
class Offer:
    """What one session lends to the others."""

    session: str
    """Digest of its entries."""
    parts: tuple[str, ...] = ()
    lines: tuple[tuple[str, str], ...] = ()
    """Masked home lines, each with the value that fills the gap."""


@dataclass(frozen=True)
class Strangers:
    """What one session gets from the others."""

    parts: tuple[str, ...] = ()
    lines: tuple[tuple[str, str], ...] = ()


def offered(session: str, entries: Sequence[Entry]) -> Offer:
    """What a session, known by its digest, lends: the same each time."""
    found = list(homes(_looked_at(entries)).values())
    rng = Random(session)
    parts = sorted({part.lower() for value in found for part in _parts(value)})
    lines = [(line, value.text) for value in found if (line := question(value)) and home_words(value)]
    return Offer(
        session,
        tuple(rng.sample(parts, min(_PARTS_OF_ONE, len(parts)))),
        tuple(rng.sample(lines, min(_LINES_OF_ONE, len(lines)))),
    )


def _looked_at(entries: Sequence[Entry]) -> list[Entry]:
    """Entries spread over the session, without those so long that they would take more time than they are worth."""
    step = max(1, len(entries) // _LOOKED_AT)
    return [entry for entry in entries[::step][:_LOOKED_AT] if sum(len(text) for _, text in pieces(entry)) <= _LONGEST]


def _parts(value: Value) -> Iterator[str]:
    if value.shape in ("path", "identifier"):
        yield from _PART.findall(value.text)


def strangers(session: str, offers: Sequence[Offer]) -> Strangers:
    """What the session with this digest gets from the other sessions of the run, whatever the order of these."""
    others = sorted((offer for offer in offers if offer.session != session), key=lambda offer: offer.session)
    rng = Random(session)
    lenders = rng.sample(others, min(_LINES, len(others)))
    parts = list(dict.fromkeys(part for offer in lenders for part in offer.parts))
    lines = list(dict.fromkeys(line for offer in lenders for line in offer.lines))
    return Strangers(
        tuple(rng.sample(parts, min(_PARTS, len(parts)))), tuple(rng.sample(lines, min(_LINES, len(lines))))
    )
