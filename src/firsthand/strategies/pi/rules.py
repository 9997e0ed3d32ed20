"""Which release of Pi is followed, and which of its defects are mended (pi.md 0 and 17)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from ...errors import ConfigError, UnknownNameError

__all__ = ["FIXES", "RELEASES", "Follows", "Rules"]

Follows: TypeAlias = Literal["Mar", "Jul", "Sep", "Nov"]
"""A state of Pi in 2026, by its month."""

RELEASES: dict[Follows, str] = {"Mar": "0.58.3", "Jul": "0.82.0", "Sep": "0.87.1", "Nov": "1.6.0"}

FIXES: dict[str, tuple[Follows, ...]] = {
    "last_cut_fallback": ("Sep", "Nov"),
    "keep_previous_summary": ("Sep", "Nov"),
    "reject_truncated": ("Sep", "Nov"),
    "silent_checkpoints": ("Mar", "Sep", "Nov"),
    "check_between_turns": ("Sep", "Nov"),
    "trigger_without_usage": ("Sep", "Nov"),
    "refuse_empty": ("Jul", "Sep", "Nov"),
    "keep_pairs": (),
    "fit_window": (),
}
"""Every fix by its name, and the releases that behave so by themselves. The last two are ours: no release has them."""


@dataclass(frozen=True)
class Rules:
    """What a release does, and which fixes are in force. Make one with `Rules.of`."""

    follows: Follows
    last_cut_fallback: bool
    """Where no legal cut point follows the entry that fills the tail, cut at the last one instead of keeping everything (6.3, issue 9740)."""
    keep_previous_summary: bool
    """A split turn without history before it keeps the previous summary instead of dropping it (7.6)."""
    reject_truncated: bool
    """A summary that stopped at its length limit is no checkpoint (7.8, issue 7048)."""
    silent_checkpoints: bool
    """Checkpoints older than the newest are not shown again inside the tail (3, issue 8667)."""
    check_between_turns: bool
    """The trigger is also looked at between the tool calls of a run, and against the whole context (5, issue 2871)."""
    trigger_without_usage: bool
    """Where no provider ever reported usage, the estimate decides (5)."""
    refuse_empty: bool
    """An empty history is not summarised (6.6, issue 4811)."""
    keep_pairs: bool
    """A cut never parts a call from its result, nor the entries of one response, in whatever client's session (SE-04, SE-07)."""
    fit_window: bool
    """Where the tail that Pi would keep leaves no room under the trigger, the input limit or the wanted target, the cut moves on (issue 5722)."""

    @classmethod
    def of(cls, follows: Follows, fixes: bool, chosen: Mapping[str, bool | None]) -> Rules:
        """The rules of a release: each fix as chosen; where nothing was chosen, in force when `fixes` is set or the release has it.

        Raises:
            UnknownNameError: there is no release of that name.
            ConfigError: a choice is neither true nor false.
        """
        if follows not in RELEASES:
            raise UnknownNameError("release of Pi", follows, get_args(Follows))
        in_force: dict[str, bool] = {}
        for name, inherent in FIXES.items():
            choice = chosen.get(name)
            if choice is not None and not isinstance(choice, bool):
                raise ConfigError(f"{name} must be true or false, not {choice!r}")
            in_force[name] = (fixes or follows in inherent) if choice is None else choice
        return cls(follows, **in_force)

    @property
    def projects_first(self) -> bool:
        """Whether the region is taken from the projection, in which checkpoints weigh nothing (Sep) and not from the path."""
        return self.follows in ("Sep", "Nov")

    @property
    def forgets_kept(self) -> bool:
        """Whether the region starts after the checkpoint, so that what it kept is neither kept again nor summarised (6.1, issue 2608)."""
        return self.follows == "Mar"

    @property
    def counts_injected(self) -> bool:
        """Whether custom messages and branch summaries count on the way back from the newest entry (6.3)."""
        return self.follows != "Mar"

    @property
    def counts_user_images(self) -> bool:
        """Whether an image in a user message counts (4)."""
        return self.follows != "Mar"

    @property
    def trusts_zero_usage(self) -> bool:
        """Whether an all-zero usage counts as one (4)."""
        return self.follows == "Mar"

    @property
    def shows_thinking(self) -> bool:
        """Whether the serialised conversation holds the model's reasoning (7.2)."""
        return self.follows != "Nov"

    @property
    def focuses_prefix(self) -> bool:
        """Whether the user's focus goes to the turn-prefix request as well (7.3)."""
        return self.follows == "Nov"

    @property
    def limits_output(self) -> bool:
        """Whether summaries have an output limit of their own (7.7)."""
        return self.follows != "Nov"
