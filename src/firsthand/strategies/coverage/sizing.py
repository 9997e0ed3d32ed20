"""How large a projection may be, and what of it each part may take (design: "Target and user text")."""

from __future__ import annotations

from dataclasses import dataclass

from ...budget import Budget

__all__ = ["Options", "Sizes", "sizes"]

DEFAULT_TARGET = 12_000


@dataclass(frozen=True)
class Options:
    """What a user may set. Shares are in percent."""

    target: int = DEFAULT_TARGET
    """Wanted size of the projected history, in tokens."""
    fixed_target: bool = False
    """Hold the target also where user text needs more than its share of it; else the target rises first."""
    tail: int = 10
    """Share of the target for the newest steps, sent as they are."""
    prose: int = 60
    """Share of the free room up to which the assistant's words stay whole."""
    user: int = 60
    """Share of the target up to which user text stays whole."""


@dataclass(frozen=True)
class Sizes:
    """Room for the projected history, in the budget's tokens. System and developer messages are not part of it."""

    target: int
    limit: int
    """What must never be exceeded."""
    may_rise: bool


def sizes(options: Options, budget: Budget, placed: int, size: int, *, refused: bool) -> Sizes:
    """The target and the limit for one plan.

    Args:
        options: the user's.
        budget: the next request's.
        placed: tokens of the messages that stay in place whatever the strategy decides (system, developer).
        size: tokens of the history as it is.
        refused: the provider refused the request, so that no estimate of its size can be trusted.
    """
    limit = max(0, budget.history_room - placed)
    most = min(budget.max_target, max(1, limit * 3 // 4))
    if budget.threshold is not None:
        # Whoever wants it earlier wants it smaller; else nothing would come of it before the limit is reached.
        most = min(most, max(1, (budget.trigger - budget.fixed - placed) * 3 // 4))
    wanted = budget.target if budget.target is not None else options.target
    target = min(wanted, limit if options.fixed_target or budget.target is not None else most)
    if refused:
        target = min(target, max(1, size * 3 // 4))
    return Sizes(max(1, target), limit, not options.fixed_target and budget.target is None)
