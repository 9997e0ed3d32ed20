"""The arithmetic of windows and triggers.

A budget says, for one request, how large the window is, how much of it the answer may take, and what follows: when to compact
(`trigger`), what must never be exceeded (`input_limit`), and what a projection may fill. All numbers are whole tokens, counted by
the budget's counter. Rules: futureos.md 2.1 and 3.4; the failure kinds AC-01 to AC-04 and AC-15.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from .errors import ConfigError, OutputCeilingError, UnknownNameError
from .tokens import Counter, counter_for_model

__all__ = ["Budget", "Occupancy", "ProfileName"]

ProfileName: TypeAlias = Literal["product", "futureos-e3", "futureos-e2"]

_PROFILES: tuple[ProfileName, ...] = ("product", "futureos-e3", "futureos-e2")
_DEFAULT_OUTPUT = 32_000
_NARROWED_OUTPUT = 65_536
_MAX_MARGIN = 2_048


@dataclass(frozen=True)
class Occupancy:
    """Tokens that the next request would take."""

    tokens: int
    """The whole: system prompt, tools and messages."""
    reported: int = 0
    """The part of it that the provider counted (its last valid usage); 0 when it never did."""
    prefix: int = 0
    """What the newest checkpoint's projection took at its start; 0 when there is no checkpoint."""


@dataclass(frozen=True)
class Budget:
    """Window, output ceiling, margin and fixed tokens of the next request, and what follows from them.

    Make one with `Budget.of`, which checks it.
    """

    window: int
    """The context window W."""
    output_ceiling: int
    """The output ceiling O that counts, after the profile's rule."""
    fixed: int
    """Tokens of the system prompt and the tool definitions, which no strategy can change."""
    counter: Counter
    profile: ProfileName = "product"
    target: int | None = None
    """Size that the caller wants the projected history to have; None leaves it to the strategy."""
    threshold: int | None = None
    """Occupancy at which the caller wants a compaction, in tokens; None: four fifths of the window."""

    @classmethod
    def of(
        cls,
        window: int,
        output_ceiling: int | None = None,
        *,
        fixed: int = 0,
        counter: Counter | None = None,
        profile: str = "product",
        target: int | None = None,
        threshold: float | None = None,
    ) -> Budget:
        """A budget from what a user knows.

        Args:
            window: the context window in tokens, at least 1.
            output_ceiling: the output that the request will ask for, in tokens. None or 0: min(W/4, 32,000).
            fixed: tokens of system prompt and tools.
            counter: counts every text; default is the calibrated counter for unknown models.
            profile: `product` takes the ceiling as asked; `futureos-e3` narrows it to min(O, 65,536, W/4); `futureos-e2` takes the
                declared one, as the published experiment did (futureos.md 0.3).
            target: wanted size of the projected history in tokens.
            threshold: occupancy at which a compaction is due, in tokens, or as a share of the window when it is below 1.

        Raises:
            OutputCeilingError: the ceiling leaves no input room (AC-01); only in `product`, the other two saturate at 0.
            ConfigError: a number is out of range.
            UnknownNameError: no profile of that name.
        """
        chosen = next((known for known in _PROFILES if known == profile), None)
        if chosen is None:
            raise UnknownNameError("profile", profile, _PROFILES)
        for name, value, least in (
            ("window", window, 1),
            ("output ceiling", output_ceiling or 0, 0),
            ("fixed tokens", fixed, 0),
        ):
            if value < least:
                raise ConfigError(f"the {name} must be at least {least}, not {value:,}")
        if target is not None and target < 1:
            raise ConfigError(f"a target must be at least 1 token, not {target:,}")
        ceiling = output_ceiling or min(window // 4, _DEFAULT_OUTPUT)
        if profile == "futureos-e3":
            ceiling = min(ceiling, _NARROWED_OUTPUT, window // 4)
        if threshold is not None:
            threshold = int(window * threshold) if 0 < threshold < 1 else int(threshold)
            if not 1 <= threshold <= window:
                raise ConfigError(
                    f"a threshold must lie between 1 token and the window of {window:,}, not {threshold:,}"
                )
        budget = cls(window, ceiling, fixed, counter or counter_for_model(None), chosen, target, threshold)
        if profile == "product" and budget.input_limit <= 0:
            raise OutputCeilingError(window, ceiling, budget.margin)
        return budget

    @property
    def margin(self) -> int:
        """Room left free for what no counter sees: min(2048, W/16)."""
        return min(_MAX_MARGIN, self.window // 16)

    @property
    def input_limit(self) -> int:
        """What a request may take at most, system prompt and tools included: W - O - margin, at least 0."""
        return max(0, self.window - self.output_ceiling - self.margin)

    @property
    def economic_trigger(self) -> int:
        """Four fifths of the window."""
        return self.window * 4 // 5

    @property
    def reserve(self) -> int:
        """What the economic trigger leaves free of the window."""
        return self.window - max(1, self.economic_trigger) if self.window > 1 else 0

    @property
    def trigger(self) -> int:
        """Occupancy at which a compaction is due: the threshold (else the economic trigger), at most the input limit."""
        return min(self.window - self.reserve if self.threshold is None else self.threshold, self.input_limit)

    @property
    def keep_recent(self) -> int:
        """Size of the recent tail: a quarter of the economic trigger, 8,000 at most, 1 at least."""
        return max(1, min(8_000, self.economic_trigger // 4)) if self.window > 1 else 0

    @property
    def history_room(self) -> int:
        """What the messages of a request may take: the input limit less the fixed tokens, at least 0."""
        return max(0, self.input_limit - self.fixed)

    @property
    def max_target(self) -> int:
        """What a projected history may take at most: three quarters of the room, 128,000 at most."""
        return min(128_000, self.history_room * 3 // 4)
