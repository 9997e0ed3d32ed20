"""`cloze`: the home line with the value masked, as the user's next message (measures.md, "Exams")."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from ..passages import HomeWords, Passages
from ..values import Value, literal, shows

__all__ = ["DECOYS", "MASK", "Recall", "answered", "decoy_lines", "question"]

MASK = "____"

Recall = Callable[[str], Sequence[str]]
"""What a user message brings with it: the messages of a recall block, or nothing. Strategies without recall have none."""

DECOYS = 12
"""Lines of other sessions that are asked at one boundary."""


@dataclass(frozen=True, slots=True)
class Answered:
    """What a projection, with its recall, answered."""

    known: frozenset[str]
    false_positives: int
    """Decoy lines for which something was attached."""


def question(value: Value) -> str | None:
    """The question, or None where the line gives its own answer away."""
    masked = value.line.replace(value.text, MASK)
    return None if shows(masked, value.text) else masked


def answered(
    values: Iterable[Value],
    words: dict[str, HomeWords],
    supported: Iterable[str],
    recall: Recall | None = None,
    decoys: Sequence[str] = (),
) -> Answered:
    """Which values the projection supports, or the recall block that the question brings; the question's own text never counts.

    Args:
        values: the values asked.
        words: the words of their home lines.
        supported: those that the projection alone supports.
        recall: gives the recall block of a message.
        decoys: masked lines of other sessions.
    """
    known = set(supported)
    if recall is None:
        return Answered(frozenset(known), 0)
    for value in values:
        asked = question(value)
        if value.text in known or asked is None or value.text not in words:
            continue
        attached = [literal(text) for text in recall(asked)]
        if Passages(attached).supports(value, words[value.text]):
            known.add(value.text)
    return Answered(frozenset(known), sum(bool(recall(line)) for line in decoys))


def decoy_lines(lines: Iterable[tuple[str, str]], occurs: Callable[[str], bool]) -> list[str]:
    """Up to `DECOYS` masked lines of other sessions, neither they nor what fills their gap occur in this one.

    Args:
        lines: masked lines with the values that fill them.
        occurs: whether a string occurs anywhere in the session.
    """
    found = (line for line, value in lines if not occurs(value) and not any(map(occurs, line.split(MASK))))
    return list(islice(found, DECOYS))
