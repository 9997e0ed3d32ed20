"""Which originals of a covered range can stand in the projection verbatim, and which of them fit (futureos.md 3.3 and 3.5).

Beside what the person and the model wrote there are *instructions*: system and developer entries, and what a client put in front of the
first typed text (rule files, environment). They stay in place, once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ..tokens import FRAMING, Counter, block_cost, entry_cost
from ..transcript import Entry, Text
from .boundaries import has_result, turn_start
from .plan import Kept

__all__ = ["Original", "fitting", "originals"]

Class: TypeAlias = Literal["user", "assistant", "instruction"]


@dataclass(frozen=True, slots=True)
class Original:
    """A covered entry that can be shown in its own role."""

    kept: Kept
    kind: Class
    cost: int
    """Tokens that it takes as a message of the projection."""


def originals(entries: Sequence[Entry], counter: Counter) -> list[Original]:
    """What of `entries` can be protected, in order.

    Of user and assistant entries the typed, non-blank texts; of instructions everything, but an instruction that repeats an earlier one is
    left out. Summaries are nobody's original.
    """
    found: list[Original] = []
    seen: set[tuple[str, ...]] = set()
    leading = True
    for entry in entries:
        leading = leading and not turn_start(entry) and entry.role != "assistant"
        if entry.role in ("system", "developer") or (leading and entry.role == "user" and not has_result(entry)):
            texts = tuple(block.text for block in entry.blocks if isinstance(block, Text) and block.origin != "summary")
            if any(text.strip() for text in texts) and texts not in seen:
                seen.add(texts)
                found.append(Original(Kept(entry.id), "instruction", entry_cost(entry, counter)))
            continue
        if entry.role not in ("user", "assistant"):
            continue
        blocks = tuple(
            number
            for number, block in enumerate(entry.blocks)
            if isinstance(block, Text) and block.origin == "typed" and block.text.strip()
        )
        if blocks:
            cost = FRAMING + sum(block_cost(entry.blocks[number], counter) for number in blocks)
            found.append(
                Original(Kept(entry.id, blocks), "user" if entry.role == "user" else "assistant", cost),
            )
    return found


def fitting(found: Sequence[Original], room: int) -> tuple[list[Original], int]:
    """All user originals, and what else `room` tokens allow: instructions oldest first, then assistant texts newest first.

    First fit, not a prefix: a small older text is kept after a larger newer one was passed over (futureos.md 3.5).

    Returns:
        The kept originals in order, and how many were demoted.
    """
    kept = {id(original) for original in found if original.kind == "user"}
    for original in _by_rank(found):
        if original.cost <= room:
            room -= original.cost
            kept.add(id(original))
    return [original for original in found if id(original) in kept], len(found) - len(kept)


def _by_rank(found: Sequence[Original]) -> Iterable[Original]:
    yield from (original for original in found if original.kind == "instruction")
    yield from (original for original in reversed(found) if original.kind == "assistant")
