"""The whole contract between a strategy and what runs it.

A strategy decides; it has no clock, no randomness and no I/O, and the same input gives the same plan, byte for byte. Whoever
runs it (the quick call, the command line, a session, the lab) carries the decision out. So a strategy can be tested with
literals, replayed from a journal, and compared with any other at the same boundary.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias

import msgspec

from ..budget import Budget, Occupancy
from ..projection.plan import (
    BlockRef,
    Excerpt,
    Fate,
    Item,
    Kept,
    Phase,
    Plan,
    Span,
    Synthetic,
    SyntheticKind,
    Trigger,
)
from ..transcript import Entry, View

__all__ = [
    "BlockRef",
    "CompactionRequest",
    "Decision",
    "DueState",
    "Excerpt",
    "Fate",
    "Item",
    "Kept",
    "NeedsSummary",
    "Notice",
    "Phase",
    "Plan",
    "RefusalReason",
    "Refused",
    "Span",
    "Strategy",
    "Summary",
    "SummaryRequest",
    "Synthetic",
    "SyntheticKind",
    "Trigger",
    "Unchanged",
]

RefusalReason: TypeAlias = Literal["no-valid-boundary", "budget-exceeded", "no-progress", "invalid-summary"]


class _Value(msgspec.Struct, frozen=True, omit_defaults=True):
    """Base of the values that pass between a strategy and its runner."""


class CompactionRequest(_Value, frozen=True, kw_only=True):
    """What was asked for."""

    trigger: Trigger = "automatic"
    phase: Phase = "pre_turn"
    instructions: str | None = None
    """The user's own note on what matters; passed on verbatim, never cut."""
    auto: bool = True
    """False when the user switched automatic compaction off; what is gated then never fires, but for a downshift above the input limit."""


@dataclass(frozen=True)
class DueState:
    """What a strategy may look at, beside sizes, when it is asked whether a compaction is due."""

    phase: Phase = "pre_turn"
    auto: bool = True
    previous: Plan | None = None
    previous_window: int | None = None
    """Window of the model that served the last step, when it was another model than the next one."""
    new_context_requested: bool = False
    """The model itself asked for a fresh window."""
    compatibility: str | None = None
    """Which models' histories the next step's model can read on, as its provider labels it (Codex: `comp_hash`); None where it has no label."""
    previous_compatibility: str | None = None
    """The same of the model that served the last step."""
    notices: frozenset[str] = frozenset()
    """Ids of the notices that were appended since the newest checkpoint."""


class Notice(_Value, frozen=True):
    """A text that the runtime appends to the session, between two steps and without a compaction, once per checkpoint."""

    id: str
    """Comes back in `DueState.notices` once it was appended."""
    item: Synthetic


class Unchanged(_Value, frozen=True):
    """Nothing is to be done, and why: under the threshold, nothing older to cover, already covered."""

    reason: str


class Refused(_Value, frozen=True):
    """No valid projection exists. Nothing was changed; nothing above the input limit may be sent."""

    reason: RefusalReason
    message: str
    sizes: dict[str, int] = {}


class SummaryRequest(_Value, frozen=True, kw_only=True):
    """One call of a model that a strategy needs before it can plan.

    With `system` None the request has the session's own shape: its system prompt and its tools, untouched, then the messages, then the
    instruction as one more user message (futureos.md 5.1: prefix caches live from this). With a system prompt of its own it stands alone.
    """

    id: str
    """Name under which the strategy expects the answer."""
    instruction: str
    """The last user message of the request; an empty one is not sent."""
    items: tuple[Item, ...] = ()
    """Messages before the instruction: originals and synthetic texts, as in a projection."""
    system: str | None = None
    tools: Literal["session", "none"] = "session"
    max_output: int = 4_096
    """Output cap of the call, in tokens."""
    requires: tuple[str, ...] = ()
    """Headings without which the answer is rejected, where the runtime validates."""
    state: Any = None
    """The strategy's own JSON value, for `Strategy.shrink`, which has no view."""


class Summary(_Value, frozen=True):
    """The answer to a `SummaryRequest`: the text, or why there is none."""

    text: str = ""
    failure: str | None = None
    """Reason of the failure; then `text` is empty and the strategy plans without it."""
    raw: Any = None
    """The opaque item that a provider's own compaction returned in place of a text."""


class NeedsSummary(_Value, frozen=True):
    """The strategy cannot plan before these requests are answered. They do not depend on each other."""

    requests: tuple[SummaryRequest, ...]


Decision: TypeAlias = Plan | Unchanged | Refused | NeedsSummary


class Strategy(ABC):
    """A way to decide what a projection shows.

    Subclasses list their guarantees and options in the class docstring. Instances hold options only and may be shared between threads.
    """

    name: ClassVar[str]
    """The name users call it by."""
    version: ClassVar[str]
    """Changes when the same input may give another plan."""
    recomputed: bool = True
    """True when the N-th plan depends on originals only, never on an earlier plan or summary."""
    extractor: ClassVar[str | None] = None
    """Name and version of what `features` makes, under which the journal stores it; None for a strategy that needs no derived rows."""

    @abstractmethod
    def due(self, occupancy: Occupancy, budget: Budget, state: DueState) -> Trigger | None:
        """The trigger that fires at this occupancy, or None."""

    @abstractmethod
    def plan(
        self,
        view: View,
        budget: Budget,
        request: CompactionRequest,
        previous: Plan | None = None,
        summaries: Mapping[str, Summary] | None = None,
        occupancy: Occupancy | None = None,
    ) -> Decision:
        """The decision for this view.

        Args:
            view: the entries that may be seen, with pins, recorded markers and stored features.
            budget: the next request's budget.
            request: trigger, phase and instructions.
            previous: the newest valid checkpoint's plan.
            summaries: answers to the requests of an earlier `NeedsSummary`, by their ids. None: not asked yet.
            occupancy: what is known about the size of the next request; estimated from the view when None.
        """

    def features(self, entry: Entry) -> bytes:
        """What the strategy needs of an entry beside the entry, as opaque bytes that depend on nothing else.

        Whoever appends entries stores them under `extractor`, and `View.features` brings them back; a plan is the same without them.
        """
        return b""

    def notices(self, occupancy: Occupancy, budget: Budget, state: DueState) -> tuple[Notice, ...]:
        """What is to be appended to the session after a model step that leads to no compaction: none, unless a strategy reminds the model."""
        return ()

    def shrink(self, request: SummaryRequest) -> SummaryRequest | None:
        """A smaller form of a request that the provider refused as too large, or None when there is none."""
        return None

    def at_size(self, tokens: int) -> Strategy | None:
        """The same strategy with options under which a projected history comes out near `tokens`, or None when it has no such knob."""
        return None

    def options(self) -> dict[str, Any]:
        """The options in force, by the names under which a user sets them."""
        return {}
