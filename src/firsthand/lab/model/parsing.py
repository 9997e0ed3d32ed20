"""What a reply says, judged strictly: anything that is not plainly an answer is none, and never counts as one (failure kinds EX-01, EX-02).

Pure: the same reply gives the same judgement (EX-03).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from ...errors import FormatError
from ...formats.wire.response import finish_reason, response_entries
from ...transcript import Text, ToolCall

__all__ = ["ABSTAINED", "Judged", "Said", "Why", "filled", "named", "said"]

Why: TypeAlias = Literal[
    "", "cut off", "tool call", "empty", "no response", "no object", "several objects", "not as asked"
]
"""Why a reply is no answer; empty for one that is."""

ABSTAINED = frozenset(
    {"", "unknown", "none", "null", "n/a", "not shown", "not known", "i don't know", "cannot be determined"}
)
"""Words that say that a value is not known, in any case, a full stop at their end aside."""

_WIRE = "openai-chat"
_FINISHED = frozenset({"stop", "end_turn", "eos"})


@dataclass(frozen=True, slots=True)
class Said:
    """The text of a response, or why there is none to judge."""

    text: str = ""
    why: Why = ""


@dataclass(frozen=True, slots=True)
class Judged:
    """What a reply claims."""

    values: tuple[str, ...] = ()
    """Claimed and asked, each once, in the order of the reply."""
    unasked: int = 0
    """Claimed and not asked: invented, or changed on the way."""
    why: Why = ""

    @property
    def valid(self) -> bool:
        """Whether it is an answer at all; one that claims nothing is."""
        return not self.why


def said(response: Mapping[str, Any] | None) -> Said:
    """The text of a chat completion that ended by itself and calls nothing.

    A text that was cut off may lack claims or end within one, so it is no answer, as in `summary.validation`.
    """
    if response is None:
        return Said(why="no response")
    try:
        entries = response_entries(_WIRE, response)
    except FormatError:
        return Said(why="no response")
    blocks = [block for entry in entries for block in entry.blocks]
    if any(isinstance(block, ToolCall) for block in blocks):
        return Said(why="tool call")
    if finish_reason(_WIRE, response) not in _FINISHED:
        return Said(why="cut off")
    text = "\n".join(block.text for block in blocks if isinstance(block, Text)).strip()
    return Said(text) if text else Said(why="empty")


def named(reply: Said, asked: Collection[str], *, first: bool = False) -> Judged:
    """The values that a reply says it saw: a JSON object with a list of strings under `appeared`.

    Args:
        reply: its text.
        asked: all values of the question, decoys among them; compared exactly, surrounding white space aside.
        first: take the first such object and leave out of its list what is no string, as the published exam does. Else a reply with several
            different ones, or with anything but strings in the list, is no answer.
    """
    if reply.why:
        return Judged(why=reply.why)
    found = [value["appeared"] for value in _objects(reply.text) if isinstance(value.get("appeared"), list)]
    if not found:
        return Judged(why="no object")
    if not first and any(other != found[0] for other in found[1:]):
        return Judged(why="several objects")
    claimed = found[0]
    if not first and not all(isinstance(item, str) for item in claimed):
        return Judged(why="not as asked")
    trimmed = dict.fromkeys(item.strip() for item in claimed if isinstance(item, str))
    return Judged(tuple(item for item in trimmed if item in asked), sum(item not in asked for item in trimmed))


def filled(reply: Said, keys: Sequence[str]) -> tuple[dict[str, str], Why]:
    """What a reply puts into the gaps of a cloze: a JSON object with an object under `answers`, a string or null for each key.

    Returns:
        The claimed value of each key for which one is claimed, and why the reply is no answer. A key that is left out abstains, as null and
        the words in `ABSTAINED` do.
    """
    if reply.why:
        return {}, reply.why
    found = [value["answers"] for value in _objects(reply.text) if isinstance(value.get("answers"), dict)]
    if not found:
        return {}, "no object"
    if any(other != found[0] for other in found[1:]):
        return {}, "several objects"
    given = found[0]
    if not set(given) <= set(keys) or not all(value is None or isinstance(value, str) for value in given.values()):
        return {}, "not as asked"
    return {
        key: value.strip()
        for key, value in given.items()
        if value is not None and value.strip().casefold().rstrip(".") not in ABSTAINED
    }, ""


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """The JSON objects in a text, in order; those within others left out."""
    decoder = json.JSONDecoder()
    at = text.find("{")
    while at >= 0:
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            at = text.find("{", at + 1)
            continue
        yield value
        at = text.find("{", end)
