"""What a session tells while it works: typed values, each with the sizes that it is about.

A listener gets them in order. One that raises is logged (logger `firsthand`) and stops nothing: what it was told of has happened.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from ..transcript import Usage

__all__ = [
    "Applied",
    "Event",
    "Failed",
    "FellBack",
    "LimitLearned",
    "NearTrigger",
    "Started",
    "TruncationSuspected",
    "Unchanged",
    "Undone",
    "Unfinished",
]


class _Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    session: str


class NearTrigger(_Event, frozen=True, kw_only=True, tag="near_trigger"):
    """The next compaction is not far; `Session.postpone()` puts it off up to the input limit."""

    tokens: int
    trigger: int
    input_limit: int


class Started(_Event, frozen=True, kw_only=True, tag="started"):
    """A compaction began; one of `Applied`, `FellBack`, `Unchanged` or `Failed` follows."""

    operation: str
    trigger: str
    tokens_before: int


class Applied(_Event, frozen=True, kw_only=True, tag="applied"):
    """A checkpoint was committed, as the strategy wanted it."""

    operation: str
    checkpoint: str
    tokens_before: int
    tokens_after: int
    milliseconds: int
    usage: tuple[Usage, ...] = ()
    """Of the summary's calls, booked apart from the session's own."""
    cost: float | None = None
    """Of those calls, in the currency of the prices that were given; None without prices."""


class FellBack(Applied, frozen=True, kw_only=True, tag="fell_back"):
    """A checkpoint was committed by rules alone, because there was no usable summary."""

    reason: str


class Failed(_Event, frozen=True, kw_only=True, tag="failed"):
    """No checkpoint was committed; the last projection stands."""

    operation: str | None
    reason: str
    sizes: dict[str, int] = {}
    usage: tuple[Usage, ...] = ()


class Unchanged(_Event, frozen=True, kw_only=True, tag="unchanged"):
    """There was nothing to gain, or it was done already; the last projection stands (IN-03)."""

    operation: str | None
    reason: str
    sizes: dict[str, int] = {}
    usage: tuple[Usage, ...] = ()


class Unfinished(_Event, frozen=True, kw_only=True, tag="unfinished"):
    """The same compaction was started by a process that is gone; `firsthand session resolve` clears the way for another attempt."""

    operation: str
    started_ms: int


class Undone(_Event, frozen=True, kw_only=True, tag="undone"):
    """The newest checkpoint was taken back."""

    checkpoint: str


class LimitLearned(_Event, frozen=True, kw_only=True, tag="limit_learned"):
    """The provider named a smaller limit than the configured window; it is used from now on."""

    limit: int
    window: int


class TruncationSuspected(_Event, frozen=True, kw_only=True, tag="truncation_suspected"):
    """The provider counted far fewer tokens than were sent, at what looks like its limit: it may have cut the request in silence."""

    reported: int
    estimated: int


Event: TypeAlias = (
    NearTrigger
    | Started
    | Applied
    | FellBack
    | Unchanged
    | Failed
    | Unfinished
    | Undone
    | LimitLearned
    | TruncationSuspected
)
