"""What a plan consists of: references to originals, synthetic texts, and the fate of every block. Values only.

A plan refers to originals by id and never copies them, but for the excerpts it quotes. What stands in front of the tail is
listed in `Plan.items`; what comes after `Plan.cutoff` is the tail and is sent whole, entries that arrive later included.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

from ..transcript import Origin, Role

__all__ = [
    "BlockRef",
    "Excerpt",
    "Fate",
    "Item",
    "Kept",
    "Phase",
    "Plan",
    "Span",
    "Synthetic",
    "SyntheticKind",
    "Trigger",
]

Trigger: TypeAlias = Literal["automatic", "manual", "model_context_downshift", "provider_context_limit", "new_context"]
"""Why a compaction is made. `automatic` and `model_context_downshift` are gated by a threshold, the others are not (futureos.md 2.2);
`new_context` is the model's own request for a fresh window (codex.md)."""

Phase: TypeAlias = Literal["pre_turn", "mid_turn", "standalone"]

Fate: TypeAlias = Literal["kept", "excerpted", "indexed", "summarised", "omitted"]
"""What became of one block: whole in the projection, in part, named in the evidence index, covered by a summary only, or left out."""

SyntheticKind: TypeAlias = Literal["index", "excerpts", "summary", "ledger", "notice"]


class _Value(msgspec.Struct, frozen=True, omit_defaults=True):
    """Base of what a plan consists of; plans are stored as JSON in checkpoints."""


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
    raw: Any = None
    """An item that only its provider can read (a server-side compaction), shown to that provider as it is; `text` says so to others."""


Item: TypeAlias = Kept | Synthetic


class Plan(_Value, frozen=True, kw_only=True):
    """A decision: what the next request shows, and the fate of every block.

    Covered are the entries from `covered_from` to `cutoff`. A covered block is `kept` when an item keeps it, `excerpted` when an excerpt
    quotes it or an item replaces its text, `indexed` or `omitted` when it is listed there, and otherwise what `rest` says.
    """

    strategy: str
    version: str
    """Version of the algorithm; a stored plan of a retired one is ignored and its range covered again (IN-10)."""
    covered_from: str
    cutoff: str
    items: tuple[Item, ...] = ()
    excerpts: tuple[Excerpt, ...] = ()
    indexed: tuple[BlockRef, ...] = ()
    omitted: tuple[BlockRef, ...] = ()
    """Blocks that no summary covers although `rest` says so of the others (steps that a client drops before it sends a message again)."""
    rest: Fate = "omitted"
    follow_up: tuple[Synthetic, ...] = ()
    """What the runtime appends to the session once the plan is committed (a client's automatic "continue" message); not part of the
    projection until then."""
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
