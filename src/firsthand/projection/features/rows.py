"""The derived row of one entry: its units and their terms as columns of whole numbers.

A row is little-endian 32-bit numbers: the number of units, then for each unit its block and source, start, end, size in pieces and
number of terms, one column after the other, then the terms of all units. `read_row` refuses bytes of any other shape.
"""

from __future__ import annotations

import sys
from array import array
from dataclasses import dataclass

from ...errors import JournalDamagedError
from ...transcript import Entry
from .terms import unit_terms, word
from .units import Source, cuts, readable, source_of

__all__ = ["EXTRACTOR", "Row", "extract", "read_row", "write_row"]

EXTRACTOR = "coverage-units-1"
"""Changes whenever the same entry may give another row."""

_COLUMNS = 5
_SOURCE_BITS = 3


@dataclass(frozen=True, slots=True)
class Row:
    """Units of one entry, oldest first; every list has one number for each unit, but for `terms`, which has all units' terms in order."""

    places: array[int]
    """Block number and source together; see `block_of` and `source_of_place`."""
    starts: array[int]
    ends: array[int]
    sizes: array[int]
    """In pieces, see `terms.pieces_of`."""
    counts: array[int]
    """How many of `terms` belong to the unit."""
    terms: array[int]


def block_of(place: int) -> int:
    """The block number in a `places` column."""
    return place >> _SOURCE_BITS


def source_of_place(place: int) -> Source:
    """The source in a `places` column."""
    return Source(place & (1 << _SOURCE_BITS) - 1)


def extract(entry: Entry) -> Row:
    """The row of an entry, from nothing."""
    places, starts, ends, sizes, counts, terms = (array("I") for _ in range(6))
    for number, block in enumerate(entry.blocks):
        source = source_of(entry, block)
        if source is None:
            continue
        text = readable(block)
        place = number << _SOURCE_BITS | source
        for start, end in cuts(text, prose=source in (Source.USER, Source.ASSISTANT)):
            line = text[start:end]
            size = 1
            found: dict[int, None] = {}
            for part in line.split():
                pieces, its_terms = word(part)
                size += pieces
                for term in its_terms:
                    found[term] = None
            for term in unit_terms(line):
                found[term] = None
            places.append(place)
            starts.append(start)
            ends.append(end)
            sizes.append(size)
            counts.append(len(found))
            terms.extend(found)
    return Row(places, starts, ends, sizes, counts, terms)


def write_row(row: Row) -> bytes:
    """The bytes that a journal stores."""
    whole = array("I", [len(row.places)])
    for column in (row.places, row.starts, row.ends, row.sizes, row.counts, row.terms):
        whole.extend(column)
    if sys.byteorder == "big":
        whole.byteswap()
    return whole.tobytes()


def read_row(data: bytes) -> Row:
    """The row in stored bytes.

    Raises:
        JournalDamagedError: they are no row.
    """
    whole = array("I")
    if not data or len(data) % 4:
        raise JournalDamagedError(f"a stored row of units has {len(data)} bytes, which is no whole number of columns")
    whole.frombytes(data)
    if sys.byteorder == "big":
        whole.byteswap()
    units = whole[0]
    first = 1 + _COLUMNS * units
    places, starts, ends, sizes, counts = (whole[1 + at * units : 1 + (at + 1) * units] for at in range(_COLUMNS))
    terms = whole[first:]
    if len(whole) < first or sum(counts) != len(terms):
        raise JournalDamagedError(f"a stored row of {units} units does not hold the {sum(counts)} terms that it names")
    return Row(places, starts, ends, sizes, counts, terms)
