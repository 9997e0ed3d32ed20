"""How a session is set up: the model's limits, the strategy, who writes summaries, who listens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ..budget import Budget
from ..errors import ConfigError
from ..strategies import DEFAULT_STRATEGY, strategy_by_name
from ..strategies.contract import Strategy
from ..summary.attempts import DEADLINE_SECONDS
from ..tokens import Counter, counter_for_model
from .cost import Prices
from .effects import Summariser
from .events import Event

__all__ = ["Settings"]

_WIRES = ("openai-chat", "openai-responses", "anthropic")


def _default() -> Strategy:
    return strategy_by_name(DEFAULT_STRATEGY)


@dataclass(frozen=True)
class Settings:
    """Everything about a session that is not in the journal. Immutable; change one with `dataclasses.replace`."""

    window: int
    """The model's context window, in tokens."""
    wire: str = "openai-chat"
    """Shape of the messages that come in and go out: `openai-chat`, `openai-responses` or `anthropic`."""
    model: str | None = None
    """Name of the model; goes into requests and chooses the counter's family."""
    output_ceiling: int | None = None
    """Output tokens that requests ask for, where `prepare` is not told. None: min(W/4, 32,000) are kept free, and only Anthropic's API, which
    demands a number, is asked for so many."""
    strategy: Strategy = field(default_factory=_default)
    fallback: Strategy | None = field(default_factory=_default)
    """Makes the projection when `strategy` needs a summary and gets none; None: then nothing is compacted, and the operation has failed."""
    counter: Counter | None = None
    """Default: the calibrated counter of the model's family."""
    threshold: float | None = None
    """Occupancy at which a compaction is due, in tokens or as a share of the window; default four fifths."""
    target: int | None = None
    """Wanted size of the history afterwards, in tokens; default: the strategy's own."""
    recall: int | None = None
    """Tokens of the block of lines from omitted history that a new message may bring, at most; None: no recall."""
    auto: bool = True
    """Compact by itself when due. Off: only `compact()` does."""
    warn_at: float = 0.9
    """Share of the trigger at which `NearTrigger` is sent, once for each checkpoint."""
    summariser: Summariser | None = None
    """Sends a request body to the model that writes summaries; see `firsthand.summary.model.HttpModel`."""
    summary_deadline: float = DEADLINE_SECONDS
    """Seconds after which a summary that has not arrived is given up."""
    prices: Prices | None = None
    on_event: Callable[[Event], None] | None = None
    """Is told what happens, in the thread of whoever works; what it raises is logged and changes nothing."""

    def __post_init__(self) -> None:
        if self.wire not in _WIRES:
            raise ConfigError(f"a session's wire is one of {', '.join(_WIRES)}, not {self.wire!r}")
        if not 0 < self.warn_at <= 1:
            raise ConfigError(f"warn_at is a share of the trigger, above 0 and at most 1, not {self.warn_at}")
        if self.recall is not None and self.recall < 1:
            raise ConfigError(f"recall is a number of tokens, 1 or more, or None; not {self.recall}")
        # What cannot work is refused now and not at the first request (AC-01).
        Budget.of(self.window, self.output_ceiling, target=self.target, threshold=self.threshold)

    @property
    def used_counter(self) -> Counter:
        """The counter in use."""
        return self.counter or counter_for_model(self.model)
