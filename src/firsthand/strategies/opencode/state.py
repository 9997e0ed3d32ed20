"""What OpenCode's V1 stores beside the messages: where its summaries stand in the history, and which outputs it has pruned."""

from __future__ import annotations

from typing import Any

import msgspec

from ...codec import decode, encode
from ...projection.plan import BlockRef, Plan

__all__ = ["Pair", "State"]


class Pair(msgspec.Struct, frozen=True, omit_defaults=True):
    """A completed compaction: the question and its summary, as two messages of the history (opencode.md 1)."""

    after: str
    """Id of the newest entry before it."""
    replayed: bool = False
    """Whether a user message was sent again right after it."""
    summary: str | None = None
    """Its text, where an older summary may be shown again."""


class State(msgspec.Struct, frozen=True, omit_defaults=True):
    """The strategy's own part of a plan."""

    pairs: tuple[Pair, ...] = ()
    pruned: tuple[BlockRef, ...] = ()

    @classmethod
    def of(cls, plan: Plan | None) -> State:
        """The state in a plan; empty where there is none or it has another shape."""
        try:
            return msgspec.convert(plan.state, cls) if plan is not None and plan.state is not None else cls()
        except msgspec.ValidationError:
            return cls()

    def json(self) -> Any:
        """The state as JSON value, as it goes into a plan and comes back from a store."""
        return decode(encode(self))
