"""What a plan of `pi` remembers for the next one: the checkpoint that Pi would have written (pi.md 2.4)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from ...projection.plan import Plan
from ...transcript import Entry, Marker, Text, View
from .path import Checkpoint, Piece

__all__ = ["checkpoints", "recorded_checkpoints", "state"]


class _Older(msgspec.Struct, omit_defaults=True):
    """A checkpoint that lies inside the tail of a newer one."""

    after: str
    summary: str = ""


class _State(msgspec.Struct, omit_defaults=True):
    """The newest checkpoint, but for its summary."""

    after: str
    """Id of the entry that was the newest when the checkpoint was made."""
    first_kept: str
    read_files: list[str] = []
    modified_files: list[str] = []
    tokens_before: int = 0
    """Pi's own estimate of the context before."""
    older: list[_Older] = []


def state(
    pieces: Sequence[Piece],
    first_kept: str,
    files: tuple[tuple[str, ...], tuple[str, ...]],
    tokens_before: int,
    *,
    silent: bool,
) -> Any:
    """The JSON value for `Plan.state`.

    Args:
        pieces: the path that was cut, oldest first.
        first_kept: id of the first entry of the new tail.
        files: the lists of files that were only read, and of those that were changed.
        tokens_before: Pi's estimate of the context before.
        silent: older checkpoints are never shown again, so their texts need not be remembered.
    """
    older: list[_Older] = []
    newest = ""
    in_tail = False
    for piece in pieces:
        if piece.entry is not None:
            newest = piece.entry.id
            in_tail = in_tail or newest == first_kept
        elif piece.checkpoint is not None and in_tail:
            older.append(_Older(newest, "" if silent else piece.checkpoint.summary))
    read, modified = files
    return msgspec.to_builtins(_State(newest, first_kept, list(read), list(modified), tokens_before, older))


def checkpoints(previous: Plan | None, view: View) -> Mapping[str, Sequence[Checkpoint]]:
    """The checkpoints that `previous` stands for, by the entry that they were made after.

    Empty where it is no plan of this strategy, or one that was made on another branch: then everything is cut from the originals again.
    """
    if previous is None or previous.strategy != "pi" or previous.summary is None:
        return {}
    try:
        made = msgspec.convert(previous.state, _State)
    except msgspec.ValidationError:
        return {}
    if made.after not in view.positions:
        return {}
    found: dict[str, list[Checkpoint]] = {}
    for older in made.older:
        found.setdefault(older.after, []).append(Checkpoint(older.summary, None))
    newest = Checkpoint(previous.summary, made.first_kept, tuple(made.read_files), tuple(made.modified_files))
    found.setdefault(made.after, []).append(newest)
    return found


def recorded_checkpoints(markers: Iterable[Marker]) -> Mapping[str, Sequence[Checkpoint]]:
    """The compactions that Pi itself made, as its session file records them; those of another shape are passed over."""
    found: dict[str, list[Checkpoint]] = {}
    for marker in markers:
        if marker.after is not None and (made := _recorded(marker)) is not None:
            found.setdefault(marker.after, []).append(made)
    return found


def _recorded(marker: Marker) -> Checkpoint | None:
    """Pi shows one summary and then a stretch of originals, or the originals alone when the summary was empty."""
    kept = [shown for shown in marker.shown if isinstance(shown, str)]
    made = [shown for shown in marker.shown if isinstance(shown, Entry)]
    if len(made) > 1 or (made and marker.shown[0] is not made[0]):
        return None
    text = "".join(block.text for entry in made for block in entry.blocks if isinstance(block, Text))
    extra = marker.extra or {}
    details = extra.get("details") if not extra.get("fromHook") else None
    read, modified = (_names(details, name) for name in ("readFiles", "modifiedFiles"))
    return Checkpoint(text, kept[0] if kept else None, read, modified)


def _names(details: Any, name: str) -> tuple[str, ...]:
    listed = details.get(name) if isinstance(details, Mapping) else None
    return tuple(file for file in listed if isinstance(file, str)) if isinstance(listed, list) else ()
