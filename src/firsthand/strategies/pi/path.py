"""A session as Pi sees it: entries of a kind and a size, with checkpoints among them (pi.md 2 to 4)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from ...codec import compact_json
from ...projection.boundaries import has_result, turn_start
from ...transcript import Block, Entry, Media, Reasoning, Text, ToolCall, ToolResult, Unknown, View
from ..javascript import arguments_json, length
from .rules import Rules

__all__ = [
    "Checkpoint",
    "Kind",
    "Piece",
    "bash_run",
    "context",
    "context_tokens",
    "estimate",
    "from_pi",
    "kind_of",
    "newest_checkpoint",
    "path",
]

Kind: TypeAlias = Literal["user", "assistant", "tool", "bash", "custom", "branch", "checkpoint", "none"]
"""What an entry is to Pi: a message by its role, a *custom* message (text that a client injected), the summary of a left *branch*, a
*checkpoint*, or something that projects to no message (*none*: model changes, labels, and what stands in Pi's system prompt)."""

_IMAGE_CHARS = 4_800


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A compaction entry: the summary, and where the tail that it kept begins."""

    summary: str
    first_kept: str | None
    """Id of the first kept entry; None, or an id that is not on the path, when nothing before the checkpoint was kept."""
    read_files: tuple[str, ...] = ()
    modified_files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Piece:
    """One entry of the path; exactly one of `entry` and `checkpoint` is set."""

    kind: Kind
    tokens: int
    """Pi's own estimate: UTF-16 code units over four, rounded up."""
    entry: Entry | None = None
    checkpoint: Checkpoint | None = None

    @classmethod
    def of(cls, checkpoint: Checkpoint) -> Piece:
        """A checkpoint as a piece; it weighs what its summary does."""
        return cls("checkpoint", _tokens(length(checkpoint.summary)), checkpoint=checkpoint)

    @property
    def id(self) -> str | None:
        """The entry's id; None for a checkpoint."""
        return self.entry.id if self.entry else None


def path(view: View, checkpoints: Mapping[str, Sequence[Checkpoint]], rules: Rules) -> list[Piece]:
    """The view's entries as pieces, each followed by the checkpoints that were made after it.

    Args:
        view: the active path.
        checkpoints: by the id of the entry that was the newest when they were made, oldest first.
        rules: the release's rules, for sizes.
    """
    pieces: list[Piece] = []
    leading = True
    for entry in view.entries:
        leading = leading and entry.role != "assistant" and not turn_start(entry)
        kind = kind_of(entry, leading=leading)
        pieces.append(Piece(kind, estimate(entry, kind, rules), entry))
        pieces.extend(Piece.of(made) for made in checkpoints.get(entry.id, ()))
    return pieces


def kind_of(entry: Entry, *, leading: bool = False) -> Kind:
    """What an entry is to Pi.

    Args:
        entry: the entry.
        leading: nothing was typed or answered before it. What other clients than Pi inject there (rule files, environment) stands in
            Pi's system prompt, so it is no message.
    """
    match entry.role:
        case "assistant":
            return "assistant"
        case "tool":
            return "tool"
        case "system" | "developer":
            return "none"
    if has_result(entry):
        return "tool"
    if bash_run(entry) is not None:
        return "bash"
    if from_pi(entry) and "customType" in (entry.extra or {}):
        return "custom"
    texts = [block for block in entry.blocks if isinstance(block, Text)]
    if any(block.origin == "summary" for block in texts):
        return "branch" if any(block.text for block in texts) else "none"
    if not texts or len(texts) < len(entry.blocks) or any(block.origin == "typed" for block in texts):
        return "user"
    return "none" if leading and not from_pi(entry) else "custom"


def bash_run(entry: Entry) -> Mapping[str, Any] | None:
    """The record of a shell command that the person ran beside the conversation, where the entry is one."""
    extra = entry.extra or {}
    return extra if from_pi(entry) and isinstance(extra.get("command"), str) else None


def from_pi(entry: Entry) -> bool:
    """Whether Pi itself wrote the entry, so that its fields mean what they mean to Pi."""
    return entry.wire == "pi" or (entry.source is not None and entry.source.format == "pi")


def estimate(entry: Entry, kind: Kind, rules: Rules) -> int:
    """Tokens of one entry by Pi's rule: characters over four, rounded up for each message (pi.md 4)."""
    run = bash_run(entry) if kind == "bash" else None
    if kind == "none":
        return 0
    if run is not None:
        return _tokens(length(str(run["command"])) + length(str(run.get("output") or "")))
    images = kind != "user" or rules.counts_user_images
    return _tokens(sum(_chars(block, images) for block in entry.blocks))


def _tokens(chars: int) -> int:
    return -(-chars // 4)


def _chars(block: Block, images: bool) -> int:
    match block:
        case Text(text=text) | Reasoning(text=text):
            return length(text)
        case ToolCall(name=name, arguments=arguments):
            return length(name) + length(arguments_json(arguments))
        case ToolResult(content=content):
            return sum(_chars(part, images) for part in content)
        case Media():
            return _IMAGE_CHARS if images else 0
        case Unknown(raw=raw):
            # Pi has no such blocks; to count them as nothing would let the tail grow without end.
            return length(compact_json(raw))


def newest_checkpoint(pieces: Sequence[Piece]) -> int | None:
    """Position of the newest checkpoint, or None."""
    return next((at for at in range(len(pieces) - 1, -1, -1) if pieces[at].kind == "checkpoint"), None)


def context(pieces: Sequence[Piece], rules: Rules) -> list[Piece]:
    """What the next request would show, oldest first (pi.md 3): the newest checkpoint, what it kept, and what came after it."""
    at = newest_checkpoint(pieces)
    if at is None:
        return list(_visible(pieces, rules))
    return [pieces[at], *_visible(pieces[_kept_from(pieces, at) : at], rules), *_visible(pieces[at + 1 :], rules)]


def _kept_from(pieces: Sequence[Piece], at: int) -> int:
    made = pieces[at].checkpoint
    assert made is not None
    return next((i for i in range(at) if made.first_kept is not None and pieces[i].id == made.first_kept), at)


def _visible(pieces: Iterable[Piece], rules: Rules) -> Iterator[Piece]:
    for piece in pieces:
        if piece.kind != "none" and not (piece.kind == "checkpoint" and rules.silent_checkpoints):
            yield piece


def context_tokens(pieces: Sequence[Piece], rules: Rules) -> int:
    """Pi's estimate of the context: the newest trusted usage, plus estimates of what came after it (pi.md 4)."""
    at = newest_checkpoint(pieces)
    # Mar looked at what stands from the checkpoint on, not at the context rebuilt for the path.
    shown = list(pieces[at:]) if rules.forgets_kept and at is not None else context(pieces, rules)
    kept = _kept_from(pieces, at) if at is not None else 0
    stale = {id(piece) for piece in pieces[kept:at]} if at is not None and rules.projects_first else set()
    after = 0
    for piece in reversed(shown):
        total = _trusted_usage(piece, rules)
        if total is not None:
            if id(piece) in stale:
                break
            return total + after
        after += piece.tokens
    return sum(piece.tokens for piece in shown)


def _trusted_usage(piece: Piece, rules: Rules) -> int | None:
    entry = piece.entry
    if entry is None or piece.kind != "assistant" or entry.usage is None or entry.status in ("aborted", "error"):
        return None
    return entry.usage.total if entry.usage.total > 0 or rules.trusts_zero_usage else None
