"""Branch summaries: what Pi writes down of a branch that the person leaves, for the place that they go to (pi.md 14).

Nothing of it has to do with a full window. `prepare_branch` says what is left and where the summary belongs, `branch_request` asks for it,
`branch_entry` is the entry that the session gets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...transcript import Entry, Text, Transcript, path_to
from ..contract import Refused, Summary, SummaryRequest
from . import prompts as pi_prompts
from .files import file_lists, listing
from .path import Piece, estimate, from_pi, kind_of
from .rules import Rules
from .state import recorded_checkpoints
from .text import serialised, tagged

__all__ = ["Branch", "branch_entry", "branch_request", "prepare_branch"]

_OPENING = "Before coming back to this point the user went another way. What happened there:"
_EMPTY = "(There was nothing to summarise.)"
_UNKNOWN_WINDOW = 128_000
_OUTPUT = {"Mar": 2_048, "Jul": 2_048, "Sep": 4_096}


@dataclass(frozen=True)
class Branch:
    """A branch that is left."""

    leaf: str
    """The entry that the conversation ended at."""
    destination: str | None
    """The entry that the summary becomes a child of; None where it becomes a root."""
    entries: tuple[Entry, ...]
    """What is on the old path and not on the new one, oldest first."""
    messages: tuple[Piece, ...]
    """What of it the summary is about: the newest messages within the budget, without tool results."""
    read_files: tuple[str, ...]
    modified_files: tuple[str, ...]


def prepare_branch(
    transcript: Transcript,
    leaf: str,
    target: str,
    rules: Rules,
    *,
    window: int | None = None,
    reserve_tokens: int = 16_384,
) -> Branch:
    """What is left when the person moves from `leaf` to `target`.

    Args:
        transcript: the session's tree. Its markers count as messages with their summaries; one that was made where the tree forks is left
            out, for a marker does not say on which side it lies.
        leaf: id of the entry that the conversation ends at.
        target: id of the entry that the person goes to. Where it is a user message, the summary goes above it, so that its text can be sent
            again in another form.
        rules: the release's rules.
        window: the model's window in tokens; None: 128,000.
        reserve_tokens: Pi's `branchSummary.reserveTokens`. Where it takes the whole window, the budget has no limit, as in Pi.

    Raises:
        ValueError: `leaf` or `target` is no entry of the transcript.
    """
    old, new = path_to(transcript.entries, leaf), path_to(transcript.entries, target)
    shared = {entry.id for entry in old} & {entry.id for entry in new}
    left = tuple(entry for entry in old if entry.id not in shared)
    forks = Counter(entry.parent for entry in transcript.entries)
    made = recorded_checkpoints(
        marker for marker in transcript.markers if forks[marker.after] <= (marker.after != leaf)
    )
    pieces: list[Piece] = []
    for entry in left:
        kind = kind_of(entry)
        pieces.append(Piece(kind, estimate(entry, kind, rules), entry))
        pieces.extend(Piece.of(checkpoint) for checkpoint in made.get(entry.id, ()))
    visited, messages = _newest(pieces, (window or _UNKNOWN_WINDOW) - reserve_tokens)
    read, modified = file_lists(visited, rules, _listed(left, "readFiles"), _listed(left, "modifiedFiles"))
    goal = new[-1]
    destination = goal.parent if kind_of(goal) in ("user", "custom") else goal.id
    return Branch(leaf, destination, left, tuple(messages), read, modified)


def _newest(pieces: Sequence[Piece], budget: int) -> tuple[list[Piece], list[Piece]]:
    """The messages that were looked at, newest first until the budget would be exceeded, and those of them that are taken, oldest first."""
    visited: list[Piece] = []
    taken: list[Piece] = []
    total = 0
    for piece in reversed(pieces):
        if piece.kind in ("tool", "none"):
            continue
        visited.append(piece)
        if 0 < budget < total + piece.tokens:
            if piece.kind in ("checkpoint", "branch") and total < budget * 0.9:
                taken.append(piece)
            break
        taken.append(piece)
        total += piece.tokens
    return visited, taken[::-1]


def _listed(entries: Sequence[Entry], name: str) -> list[str]:
    """The files that earlier branch summaries among the entries list, those that extensions wrote left out."""
    found: list[str] = []
    for entry in entries:
        extra = entry.extra or {}
        details: Any = extra.get("details")
        if kind_of(entry) == "branch" and from_pi(entry) and not extra.get("fromHook") and isinstance(details, Mapping):
            listed = details.get(name)
            found += [file for file in listed if isinstance(file, str)] if isinstance(listed, list) else []
    return found


def branch_request(
    branch: Branch, rules: Rules, *, output_ceiling: int, instructions: str | None = None, replace: bool = False
) -> SummaryRequest | None:
    """The request for the summary, or None when the branch holds no message: then none is made.

    Args:
        branch: what is left.
        rules: the release's rules.
        output_ceiling: the model's own output limit, in tokens.
        instructions: the user's own text, added to ours.
        replace: the user's text stands in place of ours.
    """
    if not branch.messages:
        return None
    prompt = instructions if instructions and replace else pi_prompts.with_focus(pi_prompts.BRANCH, instructions)
    return SummaryRequest(
        id="branch",
        instruction=f"{tagged('conversation', serialised(branch.messages, rules))}\n\n{prompt}",
        system=pi_prompts.SYSTEM,
        tools="none",
        max_output=min(_OUTPUT.get(rules.follows, output_ceiling), output_ceiling),
    )


def branch_entry(branch: Branch, summary: Summary | None, *, id: str) -> Entry | Refused:  # noqa: A002
    """The entry that the session gets at the destination, as its new leaf.

    Args:
        branch: what is left.
        summary: the answer; None where no request was made.
        id: the new entry's id.

    Returns:
        The entry, or a refusal when the summary failed or is blank: then the person stays where they are.
    """
    details: dict[str, Any] = {"readFiles": list(branch.read_files), "modifiedFiles": list(branch.modified_files)}
    if summary is None:
        text = _EMPTY
    elif summary.failure is not None or not summary.text.strip():
        why = summary.failure or "it came back without text"
        return Refused(
            "invalid-summary", f"the summary of the branch that ends at {branch.leaf} failed: {why}; nothing was moved"
        )
    else:
        text = f"{_OPENING}\n\n{summary.text}{listing(branch.read_files, branch.modified_files)}"
    return Entry(
        id=id,
        role="user",
        blocks=(Text(text, "summary"),),
        parent=branch.destination,
        wire="pi",
        extra={"fromId": branch.leaf, "details": details},
    )
