"""What the provider answered: a response to store, or a refusal of the request's size to recover from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal
from uuid import uuid4

import msgspec

from ..errors import ContextOverflowError, OutputLimitError, ProviderError
from ..formats.wire.response import finish_reason, response_entries, said_nothing
from ..tokens import total_cost
from ..transcript import Entry, ToolCall
from .effects import Steps
from .events import LimitLearned, TruncationSuspected
from .overflow.classifying import classify, length_stop, silent_truncation
from .preparing import Prepared, prepared
from .state import SessionState

__all__ = ["record", "recover", "retry"]

_LEAST_WINDOW = 512
"""A smaller limit that a provider's text seems to name is not believed."""


def record(state: SessionState, response: Mapping[str, Any], complete: bool) -> Steps[tuple[Entry, ...]]:
    """Stores the model's response with its usage."""
    read = response_read(state, response)
    if not complete:
        read = tuple(msgspec.structs.replace(entry, status="incomplete") for entry in read)
    shown, _ = state.frame.shown()
    budget = state.budget()
    estimated = budget.fixed + total_cost(shown, budget.counter)
    usage = read[-1].usage if read else None
    if usage is not None and silent_truncation(usage.input_tokens, estimated, state.window()):
        state.emit(TruncationSuspected(session=state.id, reported=usage.input_tokens, estimated=estimated))
    stored = yield from state.appended(read)
    yield from state.learn({"last_window": state.window()} | ({"fixed": budget.fixed} if usage else {}))
    stop = _stop(state, read, response)
    if stop is not None and said_nothing(read):
        if stop == "overflow":
            raise ContextOverflowError(
                "the window was full before the answer said anything; compact, or use a model with a larger window",
                state.sizes(),
            )
        raise OutputLimitError(
            f"the answer reached its limit of {budget.output_ceiling:,} output tokens before it said anything; ask for more output or "
            "for less reasoning"
        )
    return stored


def retry(state: SessionState, response: Mapping[str, Any]) -> Steps[Prepared | None]:
    """The request to send once more after a reply that stopped because the window was full; None for any other (OV-07, OV-13).

    What the reply said is kept in the journal, and left out of the request: the model begins its answer anew.
    """
    if state.overflows or not state.settings.auto:
        return None
    read = response_read(state, response)
    if _stop(state, read, response) != "overflow" or any(isinstance(b, ToolCall) for e in read for b in e.blocks):
        return None
    yield from state.appended([msgspec.structs.replace(entry, status="error") for entry in read])
    return (yield from _smaller(state, "the reply stopped because the window was full", state.sizes()))


def recover(state: SessionState, error: ProviderError) -> Steps[Prepared]:
    """After the provider refused the prepared request: one compaction and the request again, if it was too large; else the error."""
    found = classify(error.status or 0, error.body)
    if found.kind != "overflow":
        raise error
    sizes = state.sizes()
    if found.limit is not None:
        sizes["limit"] = found.limit
    if found.limit is not None and _LEAST_WINDOW <= found.limit < state.window():
        state.emit(LimitLearned(session=state.id, limit=found.limit, window=state.window()))
        yield from state.learn({state.window_name: found.limit})
    return (yield from _smaller(state, "the provider refused the request as too large", sizes))


def _smaller(state: SessionState, what: str, sizes: dict[str, int]) -> Steps[Prepared]:
    """The request once more, after one compaction; a typed error when that is off, was tried already, or does not help (OV-01, OV-10)."""
    state.overflows += 1
    if not state.settings.auto:
        raise ContextOverflowError(
            f"{what} and automatic compaction is off; call compact(), or use a model with a larger window", sizes
        )
    if state.overflows > 1:
        raise ContextOverflowError("the provider refused the compacted request as too large, too", sizes)
    smaller = yield from prepared(state, "provider_context_limit")
    outcome = smaller.outcome
    if outcome is None or outcome.checkpoint is None:
        raise ContextOverflowError(f"{what}, and {outcome.reason if outcome else 'nothing could be compacted'}", sizes)
    return smaller


def response_read(state: SessionState, response: Mapping[str, Any]) -> tuple[Entry, ...]:
    return response_entries(state.settings.wire, response, session=f"{state.id}/{uuid4().hex}")


def _stop(
    state: SessionState, read: tuple[Entry, ...], response: Mapping[str, Any]
) -> Literal["overflow", "output_limit"] | None:
    """Whether a reply stopped because the window was full, or at its output limit with nothing said; None when all is well."""
    if classify(200, response).kind == "overflow":
        return "overflow"
    if finish_reason(state.settings.wire, response) not in ("length", "max_tokens", "max_output_tokens"):
        return None
    usage = read[-1].usage if read else None
    sent = usage.input_tokens if usage and usage.input_tokens else state.sizes()["estimated"]
    return length_stop(sent, usage.output_tokens if usage else 0, state.window(), said=not said_nothing(read))
