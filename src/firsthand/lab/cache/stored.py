"""The newest measurement of `firsthand lab cache`, kept beside the other finished measurements, for reports."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from ...codec import decode_as, encode

__all__ = ["CacheLine", "keep_measurements", "kept_measurements"]

_NAME = "lab-cache.json"


class CacheLine(msgspec.Struct, frozen=True, kw_only=True):
    """One row of `firsthand lab cache --json`."""

    request: str
    prompt: int
    before: int
    cached: int
    measured: float
    modelled: float
    published: str
    bar: str
    holds: bool


class _Kept(msgspec.Struct, frozen=True):
    model: str
    command: str
    rows: tuple[CacheLine, ...]


def keep_measurements(folder: Path, rows: Sequence[CacheLine], model: str, command: str) -> Path:
    """Keeps a measurement in place of the one before.

    Args:
        folder: where finished measurements are.
        rows: what was measured.
        model: name of the model's file.
        command: the command line that measures again.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / _NAME
    path.write_bytes(encode(_Kept(model, command, tuple(rows))))
    return path


def kept_measurements(folder: Path) -> tuple[Sequence[CacheLine], str, str] | None:
    """Rows, model file and command of the measurement that is kept; None where there is none that can be read."""
    try:
        kept = decode_as((folder / _NAME).read_bytes(), _Kept)
    except (OSError, ValueError):
        return None
    return kept.rows, kept.model, kept.command
