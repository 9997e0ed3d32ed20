"""When Codex compacts: its limits, what counts against them, and what a change of the model does (codex.md 3 and 4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from ...errors import ConfigError

__all__ = ["Limits", "Scope", "limits_for", "usable_window"]

Scope: TypeAlias = Literal["total", "body_after_prefix"]
"""What is compared with the limit: the whole context, or only what came after the window's first request."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The thresholds of one model, in tokens."""

    usable: int
    """The hard window: the part of the context window that may be filled at all."""
    auto: int
    """Where a compaction is due; nine tenths of the window unless the user set less."""
    body: int | None = None
    """The limit on what came after the prefix, where that is what is counted."""
    buffer: int = 0
    """How far beyond the limit a compaction is put off, to leave room for a last note."""

    def used(self, active: int, baseline: int | None) -> int:
        """What counts against the limit. Without a known prefix nothing is counted as body (codex.md 2.6)."""
        return active if self.body is None else active - (active if baseline is None else baseline)

    @property
    def limit(self) -> int:
        """The limit of the scope, without the buffer."""
        return self.auto if self.body is None else self.body

    def reached(self, active: int, baseline: int | None = None) -> bool:
        """Whether a compaction is due; equality is enough."""
        return self.used(active, baseline) >= self.limit + self.buffer or active >= self.usable

    def remaining(self, active: int, baseline: int | None = None) -> int:
        """Tokens left before the limit or the hard window; the buffer does not count."""
        return max(0, min(self.limit - self.used(active, baseline), self.usable - active))

    def too_big_after_switch(self, active: int) -> bool:
        """Whether the history is too big for the smaller model that it moves to (codex.md 4.3: strictly above the limit)."""
        return active >= self.usable or (self.body is None and active > self.auto)


def usable_window(window: int, percent: int) -> int:
    """The hard window: `percent` of the context window, in whole tokens."""
    return window * percent // 100


def limits_for(window: int, percent: int, limit: int | None, scope: Scope, buffer: int = 0) -> Limits:
    """The thresholds of a model with that window.

    Args:
        window: the context window in tokens.
        percent: the part of it that may be filled, in percent.
        limit: the user's own limit. In the scope `total` it can only lower the nine tenths; in the other it counts as it is.
        scope: what is counted.
        buffer: tokens beyond the limit.

    Raises:
        ConfigError: a number or the scope is out of range.
    """
    if not 1 <= percent <= 100:
        raise ConfigError(f"the usable part of the window must be 1 to 100 percent, not {percent}")
    if limit is not None and limit < 1:
        raise ConfigError(
            f"a compaction limit must be at least 1 token, not {limit:,}; leave it out for nine tenths of the window"
        )
    if scope not in ("total", "body_after_prefix"):
        raise ConfigError(f"the scope of the limit is 'total' or 'body_after_prefix', not {scope!r}")
    tenths = window * 9 // 10
    auto = tenths if limit is None else min(limit, tenths)
    body = None if scope == "total" else auto if limit is None else limit
    return Limits(usable_window(window, percent), auto, body, buffer)
