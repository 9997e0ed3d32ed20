"""The whole contract between a strategy and what runs it.

A strategy decides; it has no clock, no randomness and no I/O, and the same input gives the same plan, byte for byte. Whoever
runs it (the quick call, the command line, a session, the lab) carries the decision out. So a strategy can be tested with
literals, replayed from a journal, and compared with any other at the same boundary.

A plan refers to originals by id and never copies them, but for the excerpts it quotes. What stands in front of the tail is listed
in `items`; what comes after `cutoff` is the tail and is sent whole, entries that arrive later included.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeAlias

import msgspec

from ..budget import Budget, Occupancy
from ..transcript import Origin, Role, View

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

Trigger: TypeAlias = Literal["automatic", "manual", "model_context_downshift", "provider_context_limit", "new_context"]
"""Why a compaction is made. `automatic` and `model_context_downshift` are gated by a threshold, the others are not (futureos.md 2.2);
`new_context` is the model's own request for a fresh window (codex.md)."""

Phase: TypeAlias = Literal["pre_turn", "mid_turn", "standalone"]

Fate: TypeAlias = Literal["kept", "excerpted", "indexed", "summarised", "omitted"]
"""What became of one block: whole in the projection, in part, named in the evidence index, covered by a summary only, or left out."""

SyntheticKind: TypeAlias = Literal["index", "excerpts", "summary", "ledger", "notice"]

RefusalReason: TypeAlias = Literal["no-valid-boundary", "budget-exceeded", "no-progress", "invalid-summary"]


class _Value(msgspec.Struct, frozen=True, omit_defaults=True):
    """Base of what a plan consists of; plans are stored as JSON in checkpoints."""


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


class BlockRef(_Value, frozen=True):
    """One block of one entry."""

    entry: str
    block: int


class Span(_Value, frozen=True):
    """A stretch of a block's text, in characters, end exclusive."""

    start: int
    end: int


class Excerpt(_Value, frozen=True):
    """Verbatim stretches of one block that the projection shows."""

    entry: str
    block: int
    spans: tuple[Span, ...]
    reason: str = ""
    """Why it was chosen, in a few words; shown by `compact --explain`."""


class Kept(_Value, frozen=True, tag="kept"):
    """An original in the projection, in its own role.

    `blocks` names the blocks that are shown; None shows all, byte for byte. `replaced` gives other text for single blocks, marked as such
    by the strategy that wants it (pruned tool output, text cut in the middle).
    """

    entry: str
    blocks: tuple[int, ...] | None = None
    replaced: dict[int, str] = {}


class Synthetic(_Value, frozen=True, tag="synthetic"):
    """A text of our own making in the projection."""

    kind: SyntheticKind
    text: str
    role: Role = "user"
    origin: Origin = "injected"
    sources: tuple[str, ...] = ()
    """Ids of the entries that it quotes or stands for, where it stands for few."""


Item: TypeAlias = Kept | Synthetic


class Plan(_Value, frozen=True, kw_only=True):
    """A decision: what the next request shows, and the fate of every block.

    Covered are the entries from `covered_from` to `cutoff`. A covered block is `kept` when an item keeps it, `excerpted` when an excerpt
    quotes it or an item replaces its text, `indexed` when it is listed there, and otherwise what `rest` says.
    """

    strategy: str
    version: str
    """Version of the algorithm; a stored plan of a retired one is ignored and its range covered again (IN-10)."""
    covered_from: str
    cutoff: str
    items: tuple[Item, ...] = ()
    excerpts: tuple[Excerpt, ...] = ()
    indexed: tuple[BlockRef, ...] = ()
    rest: Fate = "omitted"
    summary: str | None = None
    """The text of the summary alone, for the next one to build on."""
    state: Any = None
    """The strategy's own JSON value, handed back to it with the next request."""
    tokens_before: int = 0
    """Tokens of the request before, fixed tokens included, by the budget's counter."""
    tokens_after: int = 0
    trigger: Trigger = "automatic"
    phase: Phase = "pre_turn"
    instructions: str | None = None
    notes: dict[str, str] = {}
    """What else the strategy wants to say, by name: a fallback's reason, how many originals were demoted."""


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
    """The last user message of the request."""
    items: tuple[Item, ...] = ()
    """Messages before the instruction: originals and synthetic texts, as in a projection."""
    system: str | None = None
    tools: Literal["session", "none"] = "session"
    max_output: int = 4_096
    """Output cap of the call, in tokens."""
    requires: tuple[str, ...] = ()
    """Headings without which the answer is rejected, where the runtime validates."""


class Summary(_Value, frozen=True):
    """The answer to a `SummaryRequest`: the text, or why there is none."""

    text: str = ""
    failure: str | None = None
    """Reason of the failure; then `text` is empty and the strategy plans without it."""


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

    def shrink(self, request: SummaryRequest) -> SummaryRequest | None:
        """A smaller form of a request that the provider refused as too large, or None when there is none."""
        return None

    def at_size(self, tokens: int) -> Strategy | None:
        """The same strategy with options under which a projected history comes out near `tokens`, or None when it has no such knob."""
        return None

    def options(self) -> dict[str, Any]:
        """The options in force, by the names under which a user sets them."""
        return {}


@dataclass(frozen=True)
class Registered:
    """A strategy as the registry knows it."""

    name: str
    summary: str
    factory: type[Strategy]
    options: Mapping[str, Any] = field(default_factory=dict)
