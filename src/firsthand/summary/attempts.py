"""How often, how long and after which failures a summary is asked for again (failure kinds SU-08, SU-17). Pure."""

from __future__ import annotations

from ..errors import ProviderError

__all__ = ["DEADLINE_SECONDS", "MOST_RETRIES", "pause_before_retry"]

DEADLINE_SECONDS = 120.0
"""A summary that has not arrived by then is given up."""

MOST_RETRIES = 2

_PAUSES = (0.25, 0.5)
_TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504, 529})


def pause_before_retry(error: ProviderError, retries: int) -> float | None:
    """Seconds to wait before the call is made again, or None when it is not.

    Args:
        error: what the provider answered; no status means that it could not be reached.
        retries: how often it was tried again already.
    """
    if retries >= MOST_RETRIES or (error.status is not None and error.status not in _TRANSIENT):
        return None
    return _PAUSES[retries]
