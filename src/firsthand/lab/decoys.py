"""Decoys: for each asked value one of the same shape that occurs nowhere in the session (measures.md, "Decoys")."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from random import Random

from .values import Value

__all__ = ["decoy"]

_TRIES = 40
_RUN = re.compile(r"[0-9]+|[^\W\d_]+")
# Parts of names, drawn where no other session gives any; ordinary enough to fit into paths and identifiers.
_PARTS = (
    "bridge",
    "ledger",
    "probe",
    "harbor",
    "lantern",
    "meadow",
    "pylon",
    "quarry",
    "rivet",
    "saddle",
    "thicket",
    "walnut",
)


def decoy(value: Value, seed: int, occurs: Callable[[str], bool], parts: Sequence[str] = ()) -> str | None:
    """A string of the value's shape with its informative part replaced, or None where none could be found.

    Args:
        value: the value that is asked.
        seed: of the draw; the same value, seed and parts give the same decoy.
        occurs: whether a string occurs anywhere in the session.
        parts: name parts of other sessions; where there are only few, ordinary ones of ours are drawn as well.
    """
    if len(parts) < len(_PARTS):
        parts = (*parts, *_PARTS)
    rng = Random(f"{seed}:{value.text}")
    for _ in range(_TRIES):
        made = _replaced(value, rng, parts)
        if made != value.text and not occurs(made):
            return made
    return None


def _replaced(value: Value, rng: Random, parts: Sequence[str]) -> str:
    if value.shape in ("id", "number", "version", "issue"):
        return "".join(_other(char, rng, value.shape == "id") for char in value.text)
    runs = [match for match in _RUN.finditer(value.text) if len(match[0]) > 2 or match[0].isdigit()]
    if not runs:
        return value.text + rng.choice(parts)
    # The extension and the scheme say the shape, not the value.
    inner = runs[1 if value.shape == "url" and len(runs) > 1 else 0 : -1] or runs
    run = rng.choice(inner)
    new = (
        str(rng.randrange(10 ** (len(run[0]) - 1), 10 ** len(run[0])))
        if run[0].isdigit()
        else _cased(rng.choice(parts), run[0])
    )
    return value.text[: run.start()] + new + value.text[run.end() :]


def _cased(part: str, like: str) -> str:
    if like.isupper():
        return part.upper()
    return part.capitalize() if like[0].isupper() else part


def _other(char: str, rng: Random, letters: bool) -> str:
    if char.isdigit():
        return rng.choice("0123456789")
    if letters and char in "abcdef":
        return rng.choice("abcdef")
    if letters and char in "ABCDEF":
        return rng.choice("ABCDEF")
    return char
