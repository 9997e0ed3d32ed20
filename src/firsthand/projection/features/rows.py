"""The derived row of one entry: its units and their terms as columns of whole numbers.

A row is little-endian 32-bit numbers: how many blocks have units and how many units there are; for each such block its number and source, and
how many units it has; for each unit its start, end, size in pieces and number of terms, one column after the other; then the terms of all units.
"""

from __future__ import annotations

import re
import sys
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, repeat
from struct import Struct

import msgspec

from ...errors import JournalDamagedError
from ...transcript import Entry
from .terms import CLASS_BITS, TermClass, may_have_units, pieces_of, unit_terms, word
from .units import Source, cuts, readable, source_of

__all__ = ["EXTRACTOR", "Row", "extract", "read_row"]

EXTRACTOR = "coverage-units-1"
"""Changes whenever the same entry may give another row."""

_HEAD = 2
_BLOCK_COLUMNS = 2
_UNIT_COLUMNS = 4
_SOURCE_BITS = 3
_SOURCES = tuple(Source)
_HEADS = Struct("=II")
_WORD = 4
_MANY = 12
"""Lines of one form in one output from which on they are a series."""
_COUNTED = (TermClass.SMALL_NUMBER, TermClass.NUMBER, TermClass.WRITTEN)
"""What is new in every line of a series without naming anything."""
_CLASS = (1 << CLASS_BITS) - 1
_DIGITS = re.compile(r"\d+")
_LINE_NUMBER = re.compile(r"\d+(?:→|\t|$)")
"""What a tool that shows a file puts before each line. It names nothing, and would make every line new."""


class Row(msgspec.Struct, frozen=True, gc=False):
    """Units of one entry, in order: two columns of numbers for the blocks that have units, and columns of the units, as bytes of 32-bit numbers."""

    places: array[int]
    lengths: array[int]
    """Units of each block."""
    starts: bytes
    ends: bytes
    sizes: bytes
    """In pieces, see `terms.pieces_of`."""
    counts: bytes
    """How many of `terms` belong to the unit."""
    terms: bytes
    """Of all units, in order."""

    def blocks(self) -> Iterator[tuple[int, Source, int]]:
        """Block number, source and number of units of each block that has any.

        Raises:
            JournalDamagedError: there is no such source.
        """
        for place, length in zip(self.places, self.lengths, strict=True):
            source = place & (1 << _SOURCE_BITS) - 1
            if source >= len(_SOURCES):
                raise JournalDamagedError(f"a stored row names the source {source}, and there are {len(_SOURCES)}")
            yield place >> _SOURCE_BITS, _SOURCES[source], length


_NOTHING = bytes(_HEAD * _WORD)
_EMPTY = Row(array("I"), array("I"), b"", b"", b"", b"", b"")


def extract(entry: Entry) -> bytes:
    """The row of an entry, as a journal stores it."""
    places, lengths, starts, ends, sizes, counts, terms = columns = [array("I") for _ in range(7)]
    for number, block in enumerate(entry.blocks):
        source = source_of(entry, block)
        if source is None:
            continue
        before = len(starts)
        text = readable(block)
        has_units = may_have_units(text)
        is_result = source is Source.RESULT
        spans = list(cuts(text, prose=source in (Source.USER, Source.ASSISTANT)))
        lines = [text[start:end] for start, end in spans]
        repeating = _repeating(lines) if is_result or source is Source.ERROR else repeat(False)
        for (start, end), line, again in zip(spans, lines, repeating, strict=False):
            size = 1
            if line[0].isdigit() and (match := _LINE_NUMBER.match(line)):
                size += pieces_of(match[0])
                line = line[match.end() :]
            named: list[int] = unit_terms(line) if has_units else []
            words = list(map(word, line.split()))
            for pieces, _, names in words:
                size += pieces
                if names:
                    named += names
            # What a tool prints is known by the names in it; its plain words are worth next to nothing and make up half of all terms.
            if not (is_result and named):
                named += chain.from_iterable(its_terms for _, its_terms, _ in words)
            own = dict.fromkeys(named)
            if again:
                own = {term: None for term in own if term & _CLASS not in _COUNTED}
            starts.append(start)
            ends.append(end)
            sizes.append(size)
            counts.append(len(own))
            terms.extend(own)
        if len(starts) > before:
            places.append(number << _SOURCE_BITS | source)
            lengths.append(len(starts) - before)
    whole = array("I", (len(places), len(starts)))
    for column in columns:
        whole.extend(column)
    if sys.byteorder == "big":
        whole.byteswap()
    return whole.tobytes()


def _repeating(lines: Sequence[str]) -> Iterable[bool]:
    """For each line of an output, whether it is one of many that differ in their digits only, and not the first of them.

    Their numbers name nothing: a log that counts or measures has new ones in every line, and would crowd out the one line that says something.
    """
    if len(lines) < _MANY:
        return repeat(False)
    forms = _DIGITS.sub("0", "\n".join(lines)).split("\n")
    times = Counter(forms)
    if not any(count >= _MANY for count in times.values()):
        return repeat(False)
    first = {form: number for number, form in reversed(list(enumerate(forms)))}
    return [times[form] >= _MANY and first[form] != number for number, form in enumerate(forms)]


def read_row(data: bytes) -> Row:
    """The row in bytes that `extract` made.

    Raises:
        JournalDamagedError: they are no row.
    """
    if sys.byteorder == "big":
        swapped = array("I", data)
        swapped.byteswap()
        data = swapped.tobytes()
    if data == _NOTHING:
        return _EMPTY
    if len(data) < _HEAD * _WORD or len(data) % _WORD:
        raise JournalDamagedError(f"a stored row of units has {len(data)} bytes, which no row has")
    blocks, units = _HEADS.unpack_from(data)
    head = (_HEAD + _BLOCK_COLUMNS * blocks) * _WORD
    column = units * _WORD
    if len(data) < head + _UNIT_COLUMNS * column:
        raise JournalDamagedError(f"a stored row names {units} units in {blocks} blocks and has {len(data)} bytes")
    of_blocks = array("I", data[_HEAD * _WORD : head])
    return Row(
        of_blocks[:blocks],
        of_blocks[blocks:],
        data[head : head + column],
        data[head + column : head + 2 * column],
        data[head + 2 * column : head + 3 * column],
        data[head + 3 * column : head + 4 * column],
        data[head + 4 * column :],
    )
