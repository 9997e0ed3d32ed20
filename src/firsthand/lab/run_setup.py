"""How sessions are measured, and against whose size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from .arms import Arm
from .exams.recognition import SEEDS
from .questions import EXAMS

__all__ = ["Mode", "Rival", "Setup"]

Mode: TypeAlias = Literal["forced", "deployed"]


@dataclass(frozen=True)
class Rival:
    """A strategy, at its own size or at one that it is set to, whose measured size the others get at each boundary."""

    strategy: str
    size: int | None = None

    @property
    def label(self) -> str:
        """`STRATEGY` or `STRATEGY:N`, as a user writes it."""
        return self.strategy if self.size is None else f"{self.strategy}:{self.size}"


@dataclass(frozen=True)
class Setup:
    """How sessions are measured; the same for all of them."""

    strategies: tuple[str, ...]
    shares: tuple[int, ...] = (40, 70, 100)
    mode: Mode = "forced"
    window: int = 200_000
    output_ceiling: int | None = None
    profile: str = "product"
    counter: str = "model"
    """Counter of the budgets of strategies at their own size: `model` for the calibrated one of the session's model, `estimate` or `exact`."""
    sized_counter: str = "exact"
    """Counter of the budgets of strategies that are set to a size, so that the size is the one that is measured."""
    targets: tuple[int | None, ...] = (None,)
    rivals: tuple[Rival, ...] = ()
    """Strategies whose measured sizes are the others' targets at each boundary, each free and with the rival's tail forced."""
    summarisers: tuple[str, ...] = ("none", "extractive")
    model: str = ""
    """The model's name, where a summariser is the URL of an endpoint."""
    exams: tuple[str, ...] = EXAMS
    seeds: int = SEEDS
    recall: int | None = None
    """Tokens of the recall block with which `cloze` and `published` are also asked; None: without."""
    carry: bool = False
    """Hand each strategy its own plan of the boundary before, as a running session does."""
    timed: bool = True
    """Make each plan that was fitted to a size once more for its time. Without, its rows say 0 ms and all else is the same."""

    def rival_arm(self, rival: Rival) -> Arm:
        """What is run for a rival: its rules with the last summariser."""
        return Arm(rival.strategy, rival.size, self.summarisers[-1], rival.label, "own")
