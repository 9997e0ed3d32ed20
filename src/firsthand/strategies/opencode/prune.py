"""OpenCode's background prune: old tool outputs are cleared in place (opencode.md 2.11). A strategy of its own, and a part of `opencode-v1`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import msgspec

from ...budget import Budget, Occupancy
from ...errors import ConfigError
from ...projection.plan import BlockRef, Item, Kept, Plan, Trigger
from ...projection.render import project
from ...tokens import total_cost
from ...transcript import ToolCall, ToolResult, View
from ..contract import CompactionRequest, Decision, DueState, Strategy, Summary, Unchanged
from ..javascript import length
from .layout import options_of
from .messages import Message, Part, Tool, applying, messages
from .size import CLEARED, estimate
from .state import Pair, State

__all__ = ["VERSIONS", "OpencodePrune", "PruneRules", "names_in", "pruned"]

VERSIONS = (("opencode-v1", "opencode-1.18.31-v1-1"), ("opencode-prune", "opencode-1.18.31-prune-1"))
"""The strategies, with their versions, whose plans the family goes on from."""


def names_in(value: Sequence[str]) -> tuple[str, ...]:
    """Names as a program gives them, or as a command line does: in one text, with commas."""
    return tuple(name.strip() for name in value.split(",") if name.strip()) if isinstance(value, str) else tuple(value)


@dataclass(frozen=True)
class PruneRules:
    """The numbers of the prune, with OpenCode's defaults."""

    protect: int = 40_000
    """Tokens of the newest outputs that are never cleared."""
    minimum: int = 20_000
    """Nothing is cleared unless more than these tokens would be."""
    turns: int = 2
    """So many of the newest user messages, and what followed them, are left alone."""
    protected_tools: tuple[str, ...] = ("skill",)

    def __post_init__(self) -> None:
        if min(self.protect, self.minimum, self.turns) < 0:
            raise ConfigError(
                f"protect ({self.protect}), minimum ({self.minimum}) and turns ({self.turns}) must be at least 0"
            )

    def possible(self, tokens: int) -> bool:
        """Whether a session of this size can have enough to clear."""
        return tokens > max(self.protect, self.minimum)


class OpencodePrune(Strategy):
    """OpenCode's background prune alone: the outputs of older tool calls give way to a short notice, everything else stays.

    Guarantees: no model call; nothing but outputs of completed calls is replaced, each in its place, so that calls keep their results; the
    newest two user messages and what followed them, the newest 40,000 tokens of output before that, failed results and the tool `skill` are
    left alone; nothing is cleared unless it saves more than 20,000 tokens. Loses: the cleared outputs, which the journal still has. It promises
    no bound: where texts fill the window it has nothing to clear.

    Follows V1 of OpenCode 1.18.31. Tokens are a quarter of the characters of an output, as there; attachments of an output go with it, uncounted.

    Options:
        protect: tokens of newest outputs that stay (40,000).
        minimum: what must at least be saved, in tokens (more than 20,000).
        turns: newest user messages that are left alone with what followed them (2).
        protected_tools: tools whose outputs stay (`skill`); a list, or one text with commas.
    """

    name: ClassVar[str] = "opencode-prune"
    version: ClassVar[str] = dict(VERSIONS)["opencode-prune"]
    recomputed = False

    def __init__(
        self,
        *,
        protect: int = 40_000,
        minimum: int = 20_000,
        turns: int = 2,
        protected_tools: Sequence[str] = ("skill",),
    ) -> None:
        self.rules = PruneRules(protect, minimum, turns, names_in(protected_tools))

    def options(self) -> dict[str, Any]:
        """The options in force."""
        return options_of(self.rules, ("protect", "minimum", "turns", "protected_tools"))

    def due(self, occupancy: Occupancy, budget: Budget, state: DueState) -> Trigger | None:
        """Between two turns, when the session is large enough to have something to clear; whether it has, `plan` finds out."""
        return "automatic" if state.phase != "mid_turn" and self.rules.possible(occupancy.tokens) else None

    def plan(
        self,
        view: View,
        budget: Budget,
        request: CompactionRequest,
        previous: Plan | None = None,
        summaries: Mapping[str, Summary] | None = None,
        occupancy: Occupancy | None = None,
    ) -> Decision:
        """A plan that clears outputs and keeps all else, or `Unchanged`."""
        plan = pruned(self, view, budget, request, applying(previous, view, VERSIONS), self.rules)
        return plan or Unchanged(f"no more than {self.rules.minimum:,} tokens of older tool output can be cleared")


def pruned(
    strategy: Strategy,
    view: View,
    budget: Budget,
    request: CompactionRequest,
    previous: Plan | None,
    rules: PruneRules,
) -> Plan | None:
    """The projection of `previous` with more outputs cleared, or None where there is not enough to clear."""
    state = State.of(previous)
    marks = set(_marks(messages(view), state, rules, view))
    shown = {} if previous is None else {item.entry: item for item in previous.items if isinstance(item, Kept)}
    positions = view.positions
    covered = -1 if previous is None else positions[previous.cutoff]
    visible = [mark for mark in marks if positions[mark.entry] > covered or mark.entry in shown]
    if not visible:
        return None
    last = max(covered, *(positions[mark.entry] for mark in visible))
    by_entry: dict[str, dict[int, str]] = {}
    for mark in visible:
        by_entry.setdefault(mark.entry, {})[mark.block] = CLEARED
    items: list[Item] = [
        _cleared(item, by_entry) if isinstance(item, Kept) else item for item in (previous.items if previous else ())
    ]
    items += (_cleared(Kept(entry.id), by_entry) for entry in view.entries[covered + 1 : last + 1])
    before = total_cost(project(view, previous), budget.counter) + budget.fixed
    newly = sorted(marks, key=lambda mark: (positions[mark.entry], mark.block))
    plan = Plan(
        strategy=strategy.name,
        version=strategy.version,
        covered_from=view.entries[0].id,
        cutoff=view.entries[last].id,
        items=tuple(items),
        excerpts=previous.excerpts if previous else (),
        omitted=previous.omitted if previous else (),
        rest=previous.rest if previous else "omitted",
        summary=previous.summary if previous else None,
        state=msgspec.structs.replace(state, pruned=(*state.pruned, *newly)).json(),
        tokens_before=before,
        trigger=request.trigger,
        phase=request.phase,
        instructions=request.instructions,
        notes={"pruned": f"{len(visible)} tool outputs"},
    )
    after = total_cost(project(view, plan), budget.counter) + budget.fixed
    return msgspec.structs.replace(plan, tokens_after=after) if after < before else None


def _cleared(item: Kept, by_entry: Mapping[str, dict[int, str]]) -> Kept:
    texts = by_entry.get(item.entry)
    if texts is None:
        return item
    shown = {number: text for number, text in texts.items() if item.blocks is None or number in item.blocks}
    return Kept(item.entry, item.blocks, dict(sorted({**item.replaced, **shown}.items())))


def _marks(history: Sequence[Message], state: State, rules: PruneRules, view: View) -> list[BlockRef]:
    """The outputs to clear, newest first; none unless they save more than the minimum."""
    marked = set(state.pruned)
    total = saved = 0
    found: list[BlockRef] = []
    for part, tool in _outputs(history, state.pairs, rules, view):
        if BlockRef(part.entry.id, part.number) in marked:
            break
        if not isinstance(part.block, ToolResult) or part.block.is_error or tool in rules.protected_tools:
            continue
        size = estimate(length(part.block.text))
        total += size
        if total > rules.protect:
            saved += size
            found.append(BlockRef(part.entry.id, part.number))
    return found if saved > rules.minimum else []


def _outputs(
    history: Sequence[Message], pairs: Sequence[Pair], rules: PruneRules, view: View
) -> Iterator[tuple[Part, str | None]]:
    """Results with the names of their tools, newest first: older than the protected turns, younger than the newest summary.

    The history ends with what was answered last: the prune runs when the agent has come to rest, before the next prompt is there.
    """
    answered = max((number for number, message in enumerate(history) if message.role == "assistant"), default=-1)
    waiting = [(view.positions[pair.after], pair) for pair in pairs if pair.after in view.positions]
    turns = 0
    for message in reversed(history[: answered + 1]):
        while waiting and waiting[-1][0] >= message.first:
            _, pair = waiting.pop()
            turns += pair.replayed
            if turns >= rules.turns:
                return
            # Below the protected turns the summary stops the walk; within them only the question above it counts, as a user message.
            turns += 1
        if message.role == "user":
            turns += 1
        if turns < rules.turns:
            continue
        for part in reversed(message.parts):
            if isinstance(part, Tool) and part.result is not None:
                call = part.call.block if part.call is not None else None
                name = call.name if isinstance(call, ToolCall) else getattr(part.result.block, "name", None)
                yield part.result, name
