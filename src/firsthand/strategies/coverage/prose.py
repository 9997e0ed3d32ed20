"""The assistant's own words: which messages name anything, and which lines name something first."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...projection.coverage.pool import Pool, Run
from ...projection.coverage.weights import Heard
from ...projection.features.terms import CLASS_BITS, TermClass, word
from ...projection.features.units import Source, readable
from ...transcript import Entry, View, typed_text

__all__ = ["introducing_lines", "names_something"]

_CLASS, _WORD = (1 << CLASS_BITS) - 1, int(TermClass.WORD)
_ASSISTANT = Source.ASSISTANT
_QUOTED = re.compile(r"[`\"“][^`\"“”\n]{2,60}[`\"”]|(?<!\w)'[^'\n]{2,60}'(?!\w)")


def names_something(entry: Entry) -> bool:
    """Whether the entry's own words hold any term but plain words; "Let me look at this." does not."""
    for text in typed_text(entry):
        for part in text.split():
            if word(part)[2]:
                return True
    return False


def introducing_lines(
    pool: Pool, found: Heard, view: View, end: int, skipped: frozenset[tuple[int, int]]
) -> tuple[list[int], list[int]]:
    """The units of the assistant's lines in which something is named that neither it nor the user named before, or quoted.

    Such a line is where the conversation learns of the name, also where a tool printed it before: "PR #12 is open". Sentences of one line stay
    together.

    Args:
        pool: the units.
        found: who named what first.
        view: the entries.
        end: position before which lines are looked for.
        skipped: blocks that are shown anyway.

    Returns:
        All of them, and without those whose names a call or an output held before.
    """
    to_the_talk: list[int] = []
    to_the_session: list[int] = []
    for number, run in enumerate(pool.runs):
        if run.entry >= end:
            break
        if run.source is _ASSISTANT and (run.entry, run.block) not in skipped:
            text = readable(view.entries[run.entry].blocks[run.block])
            before = pool.offsets[run.first]
            new = {
                term
                for term in pool.terms[before : pool.offsets[run.end]]
                if found.told[term] == number and pool.mentions[term] & _CLASS != _WORD
            }
            may_quote = _QUOTED.search(text) is not None
            if not new and not may_quote:
                continue
            newest = {term for term in new if term >= before}
            for first, last in _lines(pool, run, text):
                terms = pool.terms[pool.offsets[first] : pool.offsets[last]]
                quotes = may_quote and _QUOTED.search(text, pool.starts[first], pool.ends[last - 1]) is not None
                if quotes or not new.isdisjoint(terms):
                    to_the_talk += range(first, last)
                if quotes or not newest.isdisjoint(terms):
                    to_the_session += range(first, last)
    return to_the_talk, to_the_session


def _lines(pool: Pool, run: Run, text: str) -> Iterator[tuple[int, int]]:
    """The units of a block line by line, each time the first and the one behind the last."""
    unit = run.first
    while unit < run.end:
        last = unit + 1
        while last < run.end and "\n" not in text[pool.ends[last - 1] : pool.starts[last]]:
            last += 1
        yield unit, last
        unit = last
