"""When a compaction is due at all, and when there is nothing to decide: the rule that FutureOS and `coverage` share (futureos.md 2.2, 2.3)."""

from __future__ import annotations

from ..budget import Budget, Occupancy
from .contract import CompactionRequest, DueState, Refused, Trigger, Unchanged

__all__ = ["due_at_trigger", "gate", "is_gated"]


def due_at_trigger(occupancy: Occupancy, budget: Budget, state: DueState) -> Trigger | None:
    """Four fifths of the window or the input limit, whichever is lower; equality fires (futureos.md 2.2)."""
    downshift = state.previous_window is not None and state.previous_window > budget.window
    if downshift and state.phase == "pre_turn":
        threshold = budget.trigger if state.auto else budget.input_limit
        return "model_context_downshift" if occupancy.tokens >= threshold else None
    return "automatic" if state.auto and occupancy.tokens >= budget.trigger else None


def is_gated(request: CompactionRequest) -> bool:
    """Whether a threshold decides if anything is done; a person's wish and a provider's refusal need none."""
    return request.trigger in ("automatic", "model_context_downshift")


def gate(size: int, any_entries: bool, budget: Budget, request: CompactionRequest) -> Unchanged | Refused | None:
    """Why nothing is decided, or None when something is to be (steps 1 to 4 of futureos.md 2.3).

    Args:
        size: tokens of the request as it is now, fixed tokens included.
        any_entries: whether there is anything to show.
        budget: the next request's budget.
        request: what was asked for.
    """
    if not any_entries:
        return Unchanged("the session is empty")
    if request.trigger == "automatic" and not request.auto:
        return Unchanged("automatic compaction is off")
    if budget.fixed >= budget.input_limit:
        return Refused(
            "budget-exceeded",
            f"system prompt and tools take {budget.fixed:,} tokens and the input limit is {budget.input_limit:,}, so no message fits; "
            "use fewer tools or a model with a larger window",
            {"fixed": budget.fixed, "input_limit": budget.input_limit},
        )
    threshold = budget.trigger if request.auto or request.trigger == "automatic" else budget.input_limit
    if is_gated(request) and size < threshold:
        return Unchanged(f"{size:,} tokens are under the trigger of {threshold:,}")
    return None
