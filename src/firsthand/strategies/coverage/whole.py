"""What stays whole: instructions, pins, user text, and the assistant's own words where they fit."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field

from ...projection.originals import Original

__all__ = ["Whole", "is_rule", "stays_whole"]

_INSTRUCTIONS = 20
_NEWEST_USER = 30
"""Percent of the target for user text that stays whole when not all of it can."""

_RULE = re.compile(
    r"\b(?:must|mustn't|never|always|only|do(?:es)? not|don'?t|cannot|can'?t|should|shall|ensure|avoid|without|at (?:most|least)|no more than|"
    r"exactly|keep|require[ds]?|forbid(?:den)?|allowed|prefer|instead|make sure|remember|important|leave|unless)\b"
    r"|\b(?:niemals|nie|immer|nur|nicht|kein|muss|müssen|darf|jamais|toujours|seulement|doit|nunca|siempre|solo|debe|mai|sempre)\b"
    r"|нельзя|никогда|всегда|только|долж|не надо"
    r"|必须|必須|不要|不得|不能|禁止|只能|总是|一定|最多|至少|务必|絶対|必ず|しない|だけ|のみ|반드시|절대|항상|지\s?마|말고|금지|최대|최소|해야|만\s",
    re.IGNORECASE,
)


def is_rule(sentence: str) -> bool:
    """Whether a sentence of user text sets a rule, told by the words that rules have in several languages."""
    return _RULE.search(sentence) is not None


@dataclass(frozen=True)
class Whole:
    """Originals that stand in the projection as they are."""

    kept: tuple[Original, ...]
    """In order."""
    cost: int
    target: int
    """The target, raised for user text where it may rise."""
    is_user_whole: bool
    prose_fits: bool
    placed: int = field(default=0)
    """Tokens of system and developer messages, which are not part of the target."""


def stays_whole(
    found: Sequence[Original],
    placed_ids: Collection[str],
    tells: Callable[[str], bool],
    *,
    target: int,
    most: int,
    reserved: int,
    rest_exceeds: Callable[[int], bool],
    user_share: int,
    prose_share: int,
) -> Whole:
    """What of these originals stays whole.

    Args:
        found: the covered originals, in order.
        placed_ids: entries that stay in place whatever they take (system, developer).
        tells: whether an entry's own words name something; the assistant's other messages are left out.
        target: wanted size of the history.
        most: what the target may rise to for user text; the target itself when it is fixed.
        reserved: tokens of the tail and of our own labels.
        user_share: percent of the target for user text.
        rest_exceeds: whether all that is no original (calls, results, what a client put in later) takes more than so many tokens.
        prose_share: percent of what is free for the assistant's words; they may take all of it where the rest could not use what they leave.
    """
    chosen: set[int] = set()
    placed = 0
    for number, original in enumerate(found):
        if original.kept.entry in placed_ids:
            chosen.add(number)
            placed += original.cost
    needed = sum(original.cost for n, original in enumerate(found) if original.is_required and n not in chosen)
    if needed * 100 > target * user_share:
        target = max(target, min(most, -(-needed * 100 // max(1, user_share))))
    is_user_whole = needed * 100 <= target * user_share
    cost = 0
    if is_user_whole:
        chosen.update(number for number, original in enumerate(found) if original.is_required)
        cost = needed
    else:
        # All of them, however large: whoever pinned hears that they do not fit, rather than find them gone.
        cost += _take(found, "pinned", range(len(found)), needed, chosen)
        cost += _take(found, "user", range(len(found) - 1, -1, -1), target * _NEWEST_USER // 100, chosen)
    instructions = [n for n, original in enumerate(found) if n not in chosen]
    cost += _take(
        found, "instruction", instructions, min(target - reserved - cost, target * _INSTRUCTIONS // 100), chosen
    )
    free = max(0, target - reserved - cost)
    room = free * prose_share // 100
    if prose_share and not rest_exceeds(free - room):
        room = free
    prose: list[int] = []
    prose_cost = 0
    prose_fits = True
    for number, original in enumerate(found):
        if original.kind == "assistant" and tells(original.kept.entry):
            prose.append(number)
            prose_cost += original.cost
            if prose_cost > room:
                prose_fits = False
                break
    if prose_fits:
        chosen.update(prose)
        cost += prose_cost
    return Whole(tuple(found[number] for number in sorted(chosen)), cost, target, is_user_whole, prose_fits, placed)


def _take(found: Sequence[Original], kind: str, order: Iterable[int], room: int, chosen: set[int]) -> int:
    """Takes originals of a kind while they fit, first fit; returns what they take."""
    spent = 0
    for number in order:
        original = found[number]
        if original.kind == kind and number not in chosen and spent + original.cost <= room:
            chosen.add(number)
            spent += original.cost
    return spent
