"""The derived row of one entry: its units and their terms as columns of whole numbers.

A row is little-endian 32-bit numbers: how many blocks have units and how many units there are; for each such block its number and source, and
how many units it has; for each unit its start, end, size in pieces and number of terms, one column after the other; then the terms of all units.
"""

from __future__ import annotations

import re
import sys
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from operator import itemgetter
from struct import Struct, unpack_from

import msgspec

from ...errors import JournalDamagedError
from ...transcript import Entry
from .terms import CLASS_BITS, TermClass, pieces_of, places_of_units, unit_terms, word
from .units import Source, cuts, readable, source_of

__all__ = ["EMPTY", "EXTRACTOR", "Row", "extract", "read_row"]

EXTRACTOR = "coverage-units-2"
"""Changes whenever the same entry may give another row."""

_HEAD = 2
_BLOCK_COLUMNS = 2
_UNIT_COLUMNS = 4
_SOURCE_BITS = 3
_SOURCE_MASK = (1 << _SOURCE_BITS) - 1
_SOURCES = tuple(Source)
_PROSE = (Source.USER, Source.ASSISTANT)
_RESULT, _ERROR = Source.RESULT, Source.ERROR
# Members by names of their own: looking one up in its class takes longer than what is done with it.
_HEADS = Struct("=II")
_WORD = 4
_IS_BIG_ENDIAN = sys.byteorder == "big"
_MANY = 12
"""Lines of one form in one output from which on they are a series."""
_COUNTED = (TermClass.SMALL_NUMBER, TermClass.NUMBER, TermClass.WRITTEN)
"""What is new in every line of a series without naming anything."""
_CLASS = (1 << CLASS_BITS) - 1
_START = itemgetter(0)
_DIGITS = re.compile(r"\d+")
_ASCII = bytes(range(128))
_ASCII_DIGITS = b"0123456789"
_LINE_NUMBER = re.compile(r"\d+(?:→|\t|$)")
"""What a tool that shows a file puts before each line. It names nothing, and would make every line new."""


class Row(msgspec.Struct, frozen=True, gc=False):
    """Units of one entry, in order: two columns of numbers for the blocks that have units, and columns of the units, as bytes of 32-bit numbers."""

    places: tuple[int, ...]
    lengths: tuple[int, ...]
    """Units of each block."""
    starts: bytes
    ends: bytes
    sizes: bytes
    """In pieces, see `terms.pieces_of`."""
    counts: bytes
    """How many of `terms` belong to the unit."""
    terms: bytes
    """Of all units, in order."""

    def blocks(self) -> list[tuple[int, Source, int]]:
        """Block number, source and number of units of each block that has any.

        Raises:
            JournalDamagedError: there is no such source.
        """
        try:
            return [
                (place >> _SOURCE_BITS, _SOURCES[place & _SOURCE_MASK], length)
                for place, length in zip(self.places, self.lengths, strict=True)
            ]
        except IndexError:
            raise JournalDamagedError(f"a stored row names another source than the {len(_SOURCES)} there are") from None


_NOTHING = bytes(_HEAD * _WORD)
EMPTY = Row((), (), b"", b"", b"", b"", b"")


def extract(entry: Entry) -> bytes:
    """The row of an entry, as a journal stores it."""
    places, lengths, starts, ends, sizes, counts, terms = columns = [array("I") for _ in range(7)]
    for number, block in enumerate(entry.blocks):
        source = source_of(entry, block)
        if source is None:
            continue
        text = readable(block)
        spans = list(cuts(text, prose=source in _PROSE))
        if not spans:
            continue
        lines = [text[start:end] for start, end in spans]
        said = list(map(_said, lines))
        # What a tool prints is known by the names in it; its plain words are worth next to nothing and make up half of all terms.
        is_result = source is _RESULT
        named = [names or plain if is_result else names + plain for _, names, plain in said]
        for unit, apart in _apart(text, spans, lines):
            _, names, plain = said[unit]
            named[unit] = tuple(dict.fromkeys(apart + names if is_result else apart + names + plain))
        if is_result or source is _ERROR:
            for unit in _repeating(lines):
                named[unit] = tuple([term for term in named[unit] if term & _CLASS not in _COUNTED])
        places.append(number << _SOURCE_BITS | source)
        lengths.append(len(spans))
        starts.extend([start for start, _ in spans])
        ends.extend([end for _, end in spans])
        sizes.extend([size for size, _, _ in said])
        counts.extend(list(map(len, named)))
        terms.extend(list(chain.from_iterable(named)))
    whole = array("I", (len(places), len(starts)))
    for column in columns:
        whole.extend(column)
    if _IS_BIG_ENDIAN:
        whole.byteswap()
    return whole.tobytes()


@lru_cache(maxsize=1 << 15)
def _said(line: str) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    """Size of a line, the names and numbers in it, and its plain words, each once. Files are shown again and again, hence the cache."""
    size = 1
    if line[0].isdigit() and (match := _LINE_NUMBER.match(line)):
        size += pieces_of(match[0])
        line = line[match.end() :]
    names: list[int] = []
    plain: list[int] = []
    for pieces, _, its_names, its_plain in map(word, line.split()):
        size += pieces
        if its_names:
            names += its_names
        if its_plain:
            plain += its_plain
    return size, tuple(dict.fromkeys(names)), tuple(dict.fromkeys(plain))


def _apart(text: str, spans: Sequence[tuple[int, int]], lines: Sequence[str]) -> Iterator[tuple[int, tuple[int, ...]]]:
    """The units that have terms which none of their words has alone, with these terms."""
    last = -1
    for place in places_of_units(text):
        unit = bisect_right(spans, place, key=_START) - 1
        if unit > last:
            last = unit
            line = lines[unit]
            match = _LINE_NUMBER.match(line)
            if found := unit_terms(line[match.end() :] if match else line):
                yield unit, tuple(found)


def _repeating(lines: Sequence[str]) -> Iterable[int]:
    """The lines of an output that are among many which differ in their digits only, but for the first of them, by their numbers.

    Their numbers name nothing: a log that counts or measures has new ones in every line, and would crowd out the one line that says something.
    """
    if len(lines) < _MANY:
        return ()
    numbers: Sequence[int] = range(len(lines))
    data = "\n".join(lines).encode("utf-8", "surrogatepass")
    if not _DIGITS.search(data.translate(None, _ASCII).decode("utf-8", "surrogatepass")):
        # Lines of one form are also equal without their digits, which is found sooner.
        bare = data.translate(None, _ASCII_DIGITS).split(b"\n")
        like = Counter(bare)
        numbers = [number for number, line in enumerate(bare) if like[line] >= _MANY]
        if not numbers:
            return ()
    forms = _DIGITS.sub("0", "\n".join([lines[number] for number in numbers])).split("\n")
    times = Counter(forms)
    seen: set[str] = set()
    out: list[int] = []
    for number, form in zip(numbers, forms, strict=True):
        if times[form] >= _MANY:
            if form in seen:
                out.append(number)
            seen.add(form)
    return out


def read_row(data: bytes) -> Row:
    """The row in bytes that `extract` made.

    Raises:
        JournalDamagedError: they are no row.
    """
    if _IS_BIG_ENDIAN:
        swapped = array("I", data)
        swapped.byteswap()
        data = swapped.tobytes()
    if data == _NOTHING:
        return EMPTY
    if len(data) < _HEAD * _WORD or len(data) % _WORD:
        raise JournalDamagedError(f"a stored row of units has {len(data)} bytes, which no row has")
    blocks, units = _HEADS.unpack_from(data)
    head = (_HEAD + _BLOCK_COLUMNS * blocks) * _WORD
    column = units * _WORD
    if len(data) < head + _UNIT_COLUMNS * column:
        raise JournalDamagedError(f"a stored row names {units} units in {blocks} blocks and has {len(data)} bytes")
    of_blocks = unpack_from(f"={_BLOCK_COLUMNS * blocks}I", data, _HEAD * _WORD)
    return Row(
        of_blocks[:blocks],
        of_blocks[blocks:],
        data[head : head + column],
        data[head + column : head + 2 * column],
        data[head + 2 * column : head + 3 * column],
        data[head + 3 * column : head + 4 * column],
        data[head + 4 * column :],
    )
