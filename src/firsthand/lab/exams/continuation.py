"""`continuation`: the older values that the session's real next steps used, and that nothing had brought back (measures.md, "Exams")."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...transcript import Entry
from ..boundaries import steps_after
from ..values import Value, find_values, pieces, shows

__all__ = ["STEPS", "BroughtBack", "Continuation", "continuation"]

STEPS = 80
"""Model responses after the boundary in which uses are looked for."""


@dataclass(frozen=True, slots=True)
class BroughtBack:
    """An older value that an entry after the boundary showed before it was used, so that it is not asked."""

    value: Value
    by: int
    """Position of the entry that showed it again."""
    used: int
    """Position of its first use after that."""


@dataclass(frozen=True, slots=True)
class Continuation:
    """What the next steps used of the history before a boundary."""

    asked: tuple[tuple[Value, int], ...]
    """Older values in order of their first use, with the position of the entry that used them."""
    recent: tuple[tuple[Value, int], ...]
    """The same for values that the exam tail shows; they do not count in the score."""
    brought_back: tuple[BroughtBack, ...]


def continuation(
    entries: Sequence[Entry], boundary: int, tail: int, values: Mapping[str, Value], steps: int = STEPS
) -> Continuation:
    """The values from before a boundary that the entries after it use.

    Args:
        entries: the whole active path.
        boundary: the strategy sees the entries before this position.
        tail: position where the exam tail begins.
        values: the values of `entries[:boundary]` with their homes.
        steps: how many model responses are looked at.
    """
    end = steps_after(entries, boundary, steps)
    recent_text = "\n".join(text for entry in entries[tail:boundary] for _, text in pieces(entry))
    # What tools brought back so far: values of that text, and the text itself for values that its patterns cut otherwise.
    brought: list[tuple[int, str]] = []
    settled: set[str] = set()
    asked: list[tuple[Value, int]] = []
    recent: list[tuple[Value, int]] = []
    back: list[BroughtBack] = []
    for position in range(boundary, end):
        results: list[tuple[int, str]] = []
        for kind, text in pieces(entries[position]):
            if kind == "tool":
                results.append((position, text))
                continue
            for found in find_values(text):
                value = values.get(found.text)
                if value is None or value.text in settled:
                    continue
                settled.add(value.text)
                by = next((place for place, shown in brought if shows(shown, value.text)), None)
                if by is not None:
                    back.append(BroughtBack(value, by, position))
                elif shows(recent_text, value.text):
                    recent.append((value, position))
                else:
                    asked.append((value, position))
        brought += results
    return Continuation(tuple(asked), tuple(recent), tuple(back))
