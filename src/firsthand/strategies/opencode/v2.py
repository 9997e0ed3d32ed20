"""OpenCode's second engine (opencode.md 3): a summary and the newest messages as text, in one checkpoint message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias

from ...budget import Budget, Occupancy
from ...errors import ConfigError
from ...projection.plan import BlockRef, Excerpt, Plan, Synthetic, Trigger
from ...projection.render import project
from ...tokens import total_cost
from ...transcript import View
from ..contract import (
    CompactionRequest,
    Decision,
    DueState,
    NeedsSummary,
    Refused,
    Strategy,
    Summary,
    SummaryRequest,
    Unchanged,
)
from ..javascript import head as beginning
from ..javascript import length
from .layout import check_numbers, checked, laid_out, open_from, options_of, prefix_items
from .messages import Message, applying, messages
from .prompts import HEADINGS, checkpoint, instruction, request_text, shared_instruction
from .size import Sizes, estimate
from .text import Serialized, joined, quoted, serialized

__all__ = ["Generation", "OpencodeV2"]

Generation: TypeAlias = Literal["V2-a", "V2-b", "V2-c", "V2-d"]

_ID = "summary"
_CAP = 4_096
_OUTPUT = 32_000


@dataclass(frozen=True)
class _Follows:
    """What a generation sets where the user does not."""

    keep_tokens: int = 8_000
    split_boundary: bool = False
    align_user: bool = False
    share_prefix: bool = False
    summary_cap: int | None = _CAP


_GENERATIONS: dict[Generation, _Follows] = {
    "V2-a": _Follows(split_boundary=True),
    "V2-b": _Follows(),
    "V2-c": _Follows(align_user=True, summary_cap=None),
    "V2-d": _Follows(15_000, align_user=True, share_prefix=True, summary_cap=None),
}


@dataclass(frozen=True)
class _Selection:
    """The serialized messages, and where among them the recent ones begin."""

    texts: Sequence[Serialized]
    start: int
    cut: int = 0
    """Character of the message before `start` from which on it belongs to the recent text; 0: the message is not cut."""

    @property
    def head(self) -> str:
        """What the summariser reads."""
        whole = [text.text for text in self.texts[: self.start]]
        if self.cut:
            whole[-1] = whole[-1][: self.cut]
        return joined(whole)


class OpencodeV2(Strategy):
    """A model's summary and the newest messages as text, both in one user message, as OpenCode 1.18.31's second engine does it (V2-b).

    Guarantees: one checkpoint message stands for all that was there, the recent text in it is whole messages within `keep_tokens`, except that
    tool outputs are cut at 2,000 characters; the summary is asked for at most 4,096 tokens, and not at all where its request would not fit;
    a blank or failed answer changes nothing; instructions stay in place, once. Loses: the roles and the form of everything, the end of tool
    outputs, media; an older message that does not fit lives on in the summary only, even a prompt that waits for its answer.

    The original is followed, but for the rules that bind every strategy: a plan above the input limit or without gain is refused, a call that
    still waits for its result stays, and a change of the instructions stands in its own role and not in the recent text, too. A compaction by
    hand, which V2-b's product does not offer, is one without a threshold. The size that the runner reports stands in for the estimate of the
    request as JSON, which is used where it reports none.

    Options, with OpenCode's names where it has them: see `docs/strategies/opencode.md`.
    """

    name: ClassVar[str] = "opencode-v2"
    version: ClassVar[str] = "opencode-1.18.31-v2-1"
    recomputed = False

    def __init__(
        self,
        *,
        follows: Generation = "V2-b",
        keep_tokens: int | None = None,
        buffer: int = 20_000,
        limit_input: int | None = None,
        split_boundary: bool | None = None,
        align_user: bool | None = None,
        share_prefix: bool | None = None,
        tool_output_max_chars: int = 2_000,
        prompt: str | None = None,
    ) -> None:
        if follows not in _GENERATIONS:
            raise ConfigError(f"opencode-v2 follows one of {', '.join(_GENERATIONS)}, not {follows!r}")
        defaults = _GENERATIONS[follows]
        self.follows = follows
        self.keep_tokens = defaults.keep_tokens if keep_tokens is None else keep_tokens
        self.buffer = buffer
        self.limit_input = limit_input
        self.split_boundary = defaults.split_boundary if split_boundary is None else split_boundary
        self.align_user = defaults.align_user if align_user is None else align_user
        self.share_prefix = defaults.share_prefix if share_prefix is None else share_prefix
        self.tool_output_max_chars = tool_output_max_chars
        self.prompt = prompt
        check_numbers(self, ("keep_tokens", "buffer", "limit_input", "tool_output_max_chars"))
        self._cap = defaults.summary_cap if not self.share_prefix else None

    def options(self) -> dict[str, Any]:
        """The options in force."""
        return options_of(
            self,
            (
                "follows",
                "keep_tokens",
                "buffer",
                "limit_input",
                "split_boundary",
                "align_user",
                "share_prefix",
                "tool_output_max_chars",
                "prompt",
            ),
        )

    def at_size(self, tokens: int) -> OpencodeV2:
        """With recent text of about that size; a summary of 1,000 tokens is allowed for."""
        return OpencodeV2(**{**self.options(), "keep_tokens": max(0, tokens - 1_000)})

    def due(self, occupancy: Occupancy, budget: Budget, state: DueState) -> Trigger | None:
        """When the next request would not leave room for the output or the buffer (opencode.md 3.1; 3.9 for the later generations)."""
        return "automatic" if state.auto and self._is_full(occupancy, budget) else None

    def _is_full(self, occupancy: Occupancy, budget: Budget) -> bool:
        """The generation's trigger, or the caller's own threshold; the input limit stands for the provider's refusal."""
        if occupancy.tokens > budget.input_limit:
            return True
        if budget.threshold is not None:
            return occupancy.tokens >= budget.threshold
        output = budget.output_ceiling
        if self.follows in ("V2-a", "V2-b"):
            return occupancy.tokens > budget.window - max(output, self.buffer)
        if self.follows == "V2-c":
            return (occupancy.reported or occupancy.tokens) >= budget.window - (output or self.buffer)
        limit = budget.window - max(min(output, _OUTPUT), self.buffer)
        return occupancy.tokens >= (min(limit, self.limit_input - self.buffer) if self.limit_input else limit)

    def plan(
        self,
        view: View,
        budget: Budget,
        request: CompactionRequest,
        previous: Plan | None = None,
        summaries: Mapping[str, Summary] | None = None,
        occupancy: Occupancy | None = None,
    ) -> Decision:
        """The decision, in the order of opencode.md 3.3 to 3.6."""
        previous = applying(previous, view, ((self.name, self.version),))
        visible = messages(view, previous, with_updates=True)
        before = total_cost(project(view, previous), budget.counter) + budget.fixed
        if request.trigger in ("automatic", "model_context_downshift"):
            if not request.auto:
                return Unchanged("automatic compaction is off")
            if not self._is_full(occupancy or Occupancy(_estimated(visible, previous) + budget.fixed), budget):
                return Unchanged("the next request leaves enough room")
        waiting = open_from(view, visible)
        selection = self._select(visible[:waiting], previous)
        if isinstance(selection, Unchanged):
            return selection
        summary = (summaries or {}).get(_ID)
        if summary is None:
            return self._asked(selection, view, budget, request, previous, before)
        if summary.failure is not None or not summary.text.strip():
            reason = summary.failure or "the answer has no text"
            return Refused("invalid-summary", f"there is no summary: {reason}; nothing was changed, try again")
        if self.follows == "V2-d" and self.prompt is None and not any(h in summary.text for h in HEADINGS):
            return Refused("invalid-summary", "the summary has none of the sections that were asked for; try again")
        return self._installed(selection, visible[waiting:], view, budget, request, before, summary.text)

    def _select(self, visible: Sequence[Message], previous: Plan | None) -> _Selection | Unchanged:
        """The recent messages: whole ones, newest first, within the budget (opencode.md 3.3)."""
        limit = self.tool_output_max_chars
        flow = [message for message in visible if message.role != "system" or not self.align_user]
        texts = [made for message in flow if (made := serialized(message, "V2", limit)) is not None]
        if not texts:
            return Unchanged("there is nothing new to summarise")
        start, total = len(texts), 0
        while start and total + (size := self._tokens(texts[start - 1].text)) <= self.keep_tokens:
            start, total = start - 1, total + size
        cut = 0
        if self.align_user:
            start = _aligned(texts, start, has_recent=bool(_recent(previous)))
        elif self.split_boundary and start and (room := max(0, self.keep_tokens - total) * 4):
            boundary = texts[start - 1].text
            cut = len(beginning(boundary, max(0, length(boundary) - room)))
        selection = _Selection(texts, start, cut)
        if not selection.head and previous is None:
            return Unchanged("all of it fits into the recent text, so there is nothing older to summarise")
        return selection

    def _tokens(self, text: str) -> int:
        return estimate(len(text) if self.follows == "V2-d" else length(text))

    def _asked(
        self,
        selection: _Selection,
        view: View,
        budget: Budget,
        request: CompactionRequest,
        previous: Plan | None,
        before: int,
    ) -> Decision:
        cap = budget.output_ceiling or _CAP
        if self._cap is not None:
            cap = min(cap, self._cap)
        prior = previous.summary if previous else None
        note = (request.instructions,) if request.instructions else ()
        if self.share_prefix:
            head = [text.message for text in selection.texts[: selection.start]]
            text = "\n\n".join((shared_instruction(self.prompt, updates=previous is not None), *note))
            items = prefix_items(view, previous, head)
            made = SummaryRequest(id=_ID, instruction=text, items=items, max_output=cap)
            return NeedsSummary((made,))
        conversation = joined((_recent(previous), selection.head))
        if self.follows == "V2-a":
            text = "\n\n".join(
                part
                for part in (instruction(self.prompt, prior), f"<conversation>\n{conversation}\n</conversation>", *note)
                if part
            )
        else:
            text = request_text(conversation, prior, self.prompt, note)
        if self._cap is not None and self._tokens(text) > budget.window - cap:
            return self._declined(self._tokens(text), cap, budget, before)
        return NeedsSummary((SummaryRequest(id=_ID, instruction=text, system="", tools="none", max_output=cap),))

    def _declined(self, size: int, cap: int, budget: Budget, before: int) -> Decision:
        """The request for a summary would not fit, so the original lets the ordinary request go out; here only if that one fits."""
        reason = f"the request for a summary takes {size:,} tokens, more than a window of {budget.window:,} holds beside {cap:,} of output"
        if before <= budget.input_limit:
            return Unchanged(reason)
        sizes = {"summary_request": size, "size": before, "input_limit": budget.input_limit}
        return Refused("budget-exceeded", f"{reason}; use a model with a larger window", sizes)

    def _installed(
        self,
        selection: _Selection,
        held: Sequence[Message],
        view: View,
        budget: Budget,
        request: CompactionRequest,
        before: int,
        summary: str,
    ) -> Decision:
        recent, excerpts, indexed = _recent_text(selection)
        text = checkpoint(summary.strip(), recent)
        items, cutoff = laid_out(view, (Synthetic("summary", text, origin="summary"),), held, budget)
        plan = Plan(
            strategy=self.name,
            version=self.version,
            covered_from=view.entries[0].id,
            cutoff=cutoff,
            items=items,
            excerpts=tuple(excerpts),
            indexed=tuple(indexed),
            rest="summarised",
            summary=summary.strip(),
            state={"recent": recent},
            trigger=request.trigger,
            phase=request.phase,
            instructions=request.instructions,
            notes={"recent": f"{len(selection.texts) - selection.start} messages, {self._tokens(recent):,} tokens"},
        )
        return checked(plan, view, budget, request, before)


def _aligned(texts: Sequence[Serialized], start: int, *, has_recent: bool) -> int:
    """The start moved to a user message (generations V2-c and V2-d): the newest message stays in any case."""
    users = [number for number, text in enumerate(texts) if text.message.role == "user"]
    start = min(start, len(texts) - 1)
    start = max((user for user in users if user <= start), default=0)
    if start == 0 and users:
        start = users[-1]
    return start if start or has_recent else len(texts)


def _recent_text(selection: _Selection) -> tuple[str, list[Excerpt], list[BlockRef]]:
    """The recent text, and what it quotes and names."""
    pieces: list[str] = []
    excerpts: list[Excerpt] = []
    indexed: list[BlockRef] = []
    shown = [(text, 0) for text in selection.texts[selection.start :]]
    if selection.cut:
        shown.insert(0, (selection.texts[selection.start - 1], selection.cut))
    for text, start in shown:
        if text.message.role == "system":
            continue
        pieces.append(text.text[start:])
        quotes, named = quoted(text, start)
        excerpts += quotes
        indexed += named
    return joined(pieces), excerpts, indexed


def _recent(previous: Plan | None) -> str:
    state = previous.state if previous is not None else None
    recent = state.get("recent") if isinstance(state, Mapping) else None
    return recent if isinstance(recent, str) else ""


def _estimated(visible: Sequence[Message], previous: Plan | None) -> int:
    """The messages of the next request by OpenCode's count, the texts that the last plan put in front included."""
    sizes = Sizes.of(visible)
    items = previous.items if previous is not None else ()
    carried = sum(estimate(length(item.text)) for item in items if isinstance(item, Synthetic))
    return sizes.tokens(0, len(sizes)) + carried
