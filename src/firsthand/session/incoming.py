"""What is appended: entries as they are, or messages in the session's wire, read into entries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import uuid4

import msgspec

from ..formats.wire import wire_by_name
from ..transcript import Entry
from .state import SessionState

__all__ = ["read"]


def read(state: SessionState, items: Sequence[Entry | Mapping[str, Any]]) -> Iterable[Entry]:
    """The entries to store; neighbouring messages are read together."""
    wire = wire_by_name(state.settings.wire)
    run: list[dict[str, Any]] = []
    for item in items:
        if isinstance(item, Entry):
            yield from _read_run(state, wire, run)
            run = []
            yield item if item.id else msgspec.structs.replace(item, id=f"e{uuid4().hex}")
        else:
            run.append(dict(item))
    yield from _read_run(state, wire, run)


def _read_run(state: SessionState, wire: Any, run: list[dict[str, Any]]) -> Iterable[Entry]:
    if run:
        for entry in wire.read(run, session=f"{state.id}/{uuid4().hex}"):
            yield msgspec.structs.replace(entry, parent=None, sequence=0)
