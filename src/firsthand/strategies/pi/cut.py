"""Where Pi cuts a history, and what falls on which side (pi.md 6)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ...projection.boundaries import open_step
from ...transcript import Entry, ToolCall, ToolResult
from .path import Checkpoint, Kind, Piece, context_tokens, from_pi, newest_checkpoint
from .rules import Rules

__all__ = ["Preparation", "prepare"]

_NEVER_CUT: frozenset[Kind] = frozenset({"tool", "checkpoint", "none"})
_TURN_STARTS: frozenset[Kind] = frozenset({"user", "bash", "custom", "branch"})
_PER_ITEM = frozenset({"openai-responses"})
"""Wires that give one response as several items, which belong together."""


@dataclass(frozen=True)
class Preparation:
    """A chosen cut and what follows from it."""

    first_kept: Entry
    """The tail begins here; it may be an entry that is no message, just before the first message of the tail."""
    history: tuple[Piece, ...]
    """What the history summary is about."""
    prefix: tuple[Piece, ...]
    """What the turn-prefix summary is about: the early part of the turn that the cut splits."""
    is_split: bool
    tokens_before: int
    """Pi's estimate of the context before."""
    previous: Checkpoint | None
    """The checkpoint whose summary is to be updated."""


def prepare(
    pieces: Sequence[Piece], keep: int, rules: Rules, fits: Callable[[Entry], bool] | None = None
) -> Preparation | str:
    """The cut for this path, or why there is nothing to do.

    Args:
        pieces: the path, oldest first.
        keep: wanted size of the tail in Pi's tokens (`keepRecentTokens`).
        rules: the release's rules.
        fits: whether a tail that begins at this entry fits; None takes any. The cut moves on to the first legal one that does, or else to
            the last legal one.
    """
    if not pieces:
        return "the session is empty"
    if pieces[-1].kind == "checkpoint":
        return "the newest entry is a checkpoint already"
    region, previous = _region(pieces, rules)
    legal = _legal_cuts(region, rules)
    cut, start = 0, None
    if legal:
        cut = _walk_back(region, legal, keep, rules)
        if fits is not None:
            cut = _fitting(region, legal, cut, fits)
        while cut > 0 and _is_pulled_in(region[cut - 1], rules):
            cut -= 1
        start = _turn_start(region, cut, rules)
    elif rules.refuse_empty or not region:
        return "nothing in the session can begin a tail"
    history_end = cut if start is None else start
    history = _messages(region[:history_end])
    prefix = () if start is None else _messages(region[start:cut])
    first_kept = region[cut].entry
    assert first_kept is not None
    if rules.refuse_empty and not history and not prefix:
        return "nothing is older than the tail"
    return Preparation(first_kept, history, prefix, start is not None, context_tokens(pieces, rules), previous)


def _region(pieces: Sequence[Piece], rules: Rules) -> tuple[list[Piece], Checkpoint | None]:
    """What is cut, and the checkpoint before it (pi.md 6.1)."""
    at = newest_checkpoint(pieces)
    if at is None:
        return list(pieces), None
    made = pieces[at].checkpoint
    assert made is not None
    kept = next((i for i, piece in enumerate(pieces) if piece.entry and piece.id == made.first_kept), None)
    if rules.forgets_kept or kept is None or (rules.projects_first and kept > at):
        return list(pieces[at + 1 :]), made
    if rules.projects_first:
        return [*pieces[kept:at], *pieces[at + 1 :]], made
    return list(pieces[kept:]), made


def _legal_cuts(region: Sequence[Piece], rules: Rules) -> list[int]:
    """Positions where a tail may begin, rising (pi.md 6.2)."""
    parted = _parting(region) if rules.keep_pairs else [False] * len(region)
    return [at for at, piece in enumerate(region) if piece.kind not in _NEVER_CUT and not parted[at]]


def _parting(region: Sequence[Piece]) -> list[bool]:
    """Per position, whether a cut there would part a call from its result, or the entries of one response."""
    places = [at for at, piece in enumerate(region) if piece.entry is not None]
    entries = [piece.entry for piece in region if piece.entry is not None]
    change = [0] * (len(region) + 1)
    waiting: dict[str, list[int]] = {}
    for place, entry in zip(places, entries, strict=True):
        for block in entry.blocks:
            if isinstance(block, ToolCall):
                waiting.setdefault(block.id, []).append(place)
            elif isinstance(block, ToolResult) and waiting.get(block.call_id):
                change[waiting[block.call_id].pop() + 1] += 1
                change[place + 1] -= 1
    begun = open_step(entries)
    if begun < len(entries):
        change[places[begun] + 1] += 1
    for before, at in pairwise(places):
        if _is_one_response(region[before].entry, region[at].entry):
            change[at] += 1
            change[at + 1] -= 1
    depth = 0
    parted: list[bool] = []
    for step in change[:-1]:
        depth += step
        parted.append(depth > 0)
    return parted


def _is_one_response(before: Entry | None, entry: Entry | None) -> bool:
    if before is None or entry is None or before.role != "assistant" or entry.role != "assistant":
        return False
    if before.group is not None or entry.group is not None:
        return before.group == entry.group
    return before.wire == entry.wire and entry.wire in _PER_ITEM


def _walk_back(region: Sequence[Piece], legal: Sequence[int], keep: int, rules: Rules) -> int:
    """The cut that leaves about `keep` tokens (pi.md 6.3)."""
    total = 0
    for at in range(len(region) - 1, -1, -1):
        tokens = _weight(region[at], rules)
        if tokens is None:
            continue
        total += tokens
        if total >= keep:
            after = bisect_left(legal, at)
            if after < len(legal):
                return legal[after]
            return legal[-1] if rules.last_cut_fallback else legal[0]
    return legal[0]


def _weight(piece: Piece, rules: Rules) -> int | None:
    """What a piece adds on the way back; None where the walk passes it without looking at the sum."""
    if not rules.counts_injected:
        return piece.tokens if piece.kind in ("user", "assistant", "tool", "bash") else None
    if piece.kind == "checkpoint" and rules.projects_first:
        return None
    return piece.tokens or None


def _fitting(region: Sequence[Piece], legal: Sequence[int], cut: int, fits: Callable[[Entry], bool]) -> int:
    for at in legal[bisect_left(legal, cut) :]:
        entry = region[at].entry
        if entry is not None and fits(entry):
            return at
    return legal[-1]


def _is_pulled_in(piece: Piece, rules: Rules) -> bool:
    """Whether an entry just before the cut goes into the tail with it (pi.md 6.4)."""
    return piece.kind == "none" or (not rules.counts_injected and piece.kind in ("custom", "branch"))


def _turn_start(region: Sequence[Piece], cut: int, rules: Rules) -> int | None:
    """Where the turn begins that the cut splits, or None when it splits none (pi.md 6.5)."""
    whole_turns: frozenset[Kind] = _TURN_STARTS if rules.counts_injected else frozenset({"user"})
    # Pi takes a line of its own state before a user message for the middle of a turn. What other clients put there (a developer message) is
    # in Pi's system prompt, so it hides no turn.
    at = cut
    while _is_instruction(region[at]):
        at += 1
    if region[at].kind in whole_turns:
        return None
    return next((at for at in range(cut, -1, -1) if region[at].kind in _TURN_STARTS), None)


def _is_instruction(piece: Piece) -> bool:
    return piece.kind == "none" and piece.entry is not None and bool(piece.entry.blocks) and not from_pi(piece.entry)


def _messages(pieces: Sequence[Piece]) -> tuple[Piece, ...]:
    return tuple(piece for piece in pieces if piece.kind not in ("none", "checkpoint"))
