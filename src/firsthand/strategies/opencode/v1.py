"""OpenCode's compaction as its product runs it (opencode.md 2): a summary, and behind it the newest turns as they were."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, ClassVar, Literal, TypeAlias

from ...budget import Budget, Occupancy
from ...errors import ConfigError
from ...projection.plan import Plan, Synthetic, Trigger
from ...projection.render import project
from ...tokens import total_cost
from ...transcript import View
from ..contract import CompactionRequest, Decision, DueState, NeedsSummary, Refused, Strategy, Summary, Unchanged
from .install import Defects, Selection, Session, failed, installed
from .layout import check_numbers, open_from, options_of
from .messages import applying, messages
from .prune import VERSIONS, PruneRules, names_in, pruned
from .request import RequestOptions, summary_request
from .size import Sizes
from .state import State

__all__ = ["Generation", "OpencodeV1", "tail_start"]

Generation: TypeAlias = Literal["V1-b", "V1-c", "V1-d"]

_TURNS: dict[Generation, int | None] = {"V1-b": 2, "V1-c": 2, "V1-d": None}
_MOST: dict[Generation, int] = {"V1-b": 8_000, "V1-c": 8_000, "V1-d": 15_000}
_LEAST = 2_000
_RESERVED = 20_000
_OUTPUT = 32_000
_ID = "summary"


class OpencodeV1(Strategy):
    """A model's summary of the older messages, then the newest messages untouched, as OpenCode 1.18.31 does it (generation V1-d).

    Guarantees: the tail is whole messages, byte for byte, at most a quarter of the usable window and 15,000 of OpenCode's tokens (a quarter of
    the characters of their JSON); a call is never parted from its result; instructions stay in place, once. Loses: everything older, but for
    what the summary says; the summariser sees 2,000 characters of a tool's output and no media. When all of it fits into the tail's budget,
    nothing stays verbatim. After a provider's refusal the newest user message is sent again without its images, and the steps that the model had
    made on it are dropped (`Plan.omitted`).

    The original is followed, but for the rules that bind every strategy: a plan above the input limit or without gain is refused, and a call
    that still waits for its result stays. User messages are what OpenCode calls so: everything in the user's role, what a client put in
    included, but for what stands before the first typed text and for summaries. Where no usage was reported, the estimate of the whole request
    stands in for it.

    Options, with OpenCode's names where it has them: see `docs/strategies/opencode.md`.
    """

    name: ClassVar[str] = "opencode-v1"
    version: ClassVar[str] = dict(VERSIONS)["opencode-v1"]
    recomputed = False

    def __init__(
        self,
        *,
        follows: Generation = "V1-d",
        reserved: int | None = None,
        limit_input: int | None = None,
        output_token_max: int = _OUTPUT,
        tail_turns: int | None = None,
        preserve_recent_tokens: int | None = None,
        tool_output_max_chars: int = 2_000,
        prune: bool = False,
        prune_protect: int = 40_000,
        prune_minimum: int = 20_000,
        prune_turns: int = 2,
        prune_protected_tools: Sequence[str] = ("skill",),
        autocontinue: bool = True,
        prompt: str | None = None,
        system_prompt: str | None = None,
        hook_prompt: str | None = None,
        context: Sequence[str] = (),
        strict_bugs: bool = False,
        lose_head_on_failure: bool = False,
        accept_empty_summary: bool = False,
        resurface_old_pairs: bool = False,
        duplicate_replayed: bool = False,
    ) -> None:
        if follows not in _MOST:
            raise ConfigError(f"opencode-v1 follows one of {', '.join(_MOST)}, not {follows!r}")
        self.follows = follows
        self.reserved = reserved
        self.limit_input = limit_input
        self.output_token_max = output_token_max
        self.tail_turns = _TURNS[follows] if tail_turns is None else tail_turns
        self.preserve_recent_tokens = preserve_recent_tokens
        self.tool_output_max_chars = tool_output_max_chars
        check_numbers(
            self,
            ("reserved", "limit_input", "tail_turns", "preserve_recent_tokens", "tool_output_max_chars"),
        )
        if output_token_max < 1:
            raise ConfigError(f"output_token_max must be at least 1, not {output_token_max:,}")
        self.prune = prune
        self.prune_rules = PruneRules(prune_protect, prune_minimum, prune_turns, names_in(prune_protected_tools))
        self.autocontinue = autocontinue
        texts = (context,) if isinstance(context, str) else tuple(context)
        self.request_options = RequestOptions(
            prompt, system_prompt, hook_prompt, texts, tool_output_max_chars, real_messages=follows == "V1-b"
        )
        self.defects = Defects(
            lose_head_on_failure=strict_bugs or lose_head_on_failure,
            accept_empty_summary=strict_bugs or accept_empty_summary,
            resurface_old_pairs=strict_bugs or resurface_old_pairs,
            duplicate_replayed=strict_bugs or duplicate_replayed,
        )

    def options(self) -> dict[str, Any]:
        """The options in force."""
        names = (
            "follows",
            "reserved",
            "limit_input",
            "output_token_max",
            "tail_turns",
            "preserve_recent_tokens",
            "tool_output_max_chars",
            "prune",
        )
        rules = options_of(self.prune_rules, ("protect", "minimum", "turns", "protected_tools"))
        return {
            **options_of(self, names),
            **{f"prune_{name}": value for name, value in rules.items()},
            "autocontinue": self.autocontinue,
            **options_of(self.request_options, ("prompt", "system_prompt", "hook_prompt", "context")),
            **options_of(self.defects, Defects.__struct_fields__),
        }

    def at_size(self, tokens: int) -> OpencodeV1:
        """With a tail of about that size; a summary of 1,000 tokens is allowed for."""
        options = {**self.options(), "preserve_recent_tokens": max(0, tokens - 1_000)}
        return OpencodeV1(**options)

    def usable(self, budget: Budget, output_token_max: int | None = None) -> int:
        """Tokens at which a compaction is due (opencode.md 2.1). `reserved` counts only with an input limit, as in the original."""
        most = self.output_token_max if output_token_max is None else output_token_max
        output = min(budget.output_ceiling, most) or most
        if self.limit_input:
            reserved = min(_RESERVED, output) if self.reserved is None else self.reserved
            return max(0, self.limit_input - reserved)
        return max(0, budget.window - output)

    def tail_budget(self, budget: Budget) -> int:
        """What the tail may take, in OpenCode's tokens (opencode.md 2.5). Another maximum of output changes the trigger, not this."""
        if self.preserve_recent_tokens is not None:
            return self.preserve_recent_tokens
        return min(_MOST[self.follows], max(_LEAST, self.usable(budget, _OUTPUT) // 4))

    def due(self, occupancy: Occupancy, budget: Budget, state: DueState) -> Trigger | None:
        """When the reported usage reaches the usable window, equality included (opencode.md 2.3, T1 and T3).

        The input limit stands for the provider's refusal: nothing above it may be sent, so a compaction is due there, too.
        """
        if state.auto and self._is_full(occupancy, budget):
            downshift = state.previous_window is not None and state.previous_window > budget.window
            return "model_context_downshift" if downshift else "automatic"
        prune = self.prune and state.phase != "mid_turn" and self.prune_rules.possible(occupancy.tokens)
        return "automatic" if prune else None

    def _threshold(self, budget: Budget) -> int:
        """The usable window, or the threshold that the caller set in its place."""
        return self.usable(budget) if budget.threshold is None else budget.threshold

    def _is_full(self, occupancy: Occupancy, budget: Budget) -> bool:
        counted = occupancy.reported or occupancy.tokens
        return counted >= self._threshold(budget) or occupancy.tokens > budget.input_limit

    def plan(
        self,
        view: View,
        budget: Budget,
        request: CompactionRequest,
        previous: Plan | None = None,
        summaries: Mapping[str, Summary] | None = None,
        occupancy: Occupancy | None = None,
    ) -> Decision:
        """The decision, in the order of opencode.md 2.4 to 2.8."""
        previous = applying(previous, view, VERSIONS)
        before = total_cost(project(view, previous), budget.counter) + budget.fixed
        session = Session(view, previous, State.of(previous), messages(view, previous), before)
        gate = self._gate(session, budget, request, occupancy)
        if gate is not None:
            return gate
        selection = self._select(session, budget, request)
        if isinstance(selection, Unchanged):
            return selection
        summary = (summaries or {}).get(_ID)
        if summary is None:
            prior = _prior(previous)
            output = min(budget.output_ceiling, self.output_token_max) or self.output_token_max
            made = summary_request(_ID, view, selection.head, prior, request.instructions, output, self.request_options)
            return NeedsSummary((made,)) if made else Unchanged("there is nothing older to summarise")
        if summary.failure is not None:
            return failed(self, session, selection, budget, request, summary.failure, self.defects)
        if not summary.text.strip() and not self.defects.accept_empty_summary:
            return Refused("invalid-summary", "the model answered the request for a summary with no text; try again")
        return installed(self, session, selection, budget, request, summary.text, self.defects, self.autocontinue)

    def _gate(
        self, session: Session, budget: Budget, request: CompactionRequest, occupancy: Occupancy | None
    ) -> Decision | None:
        """Whether there is nothing to do, and the prune where that is all there is to do."""
        if not session.visible:
            return Unchanged("there is no message to compact")
        if request.trigger == "provider_context_limit" and not request.auto:
            return Refused(
                "budget-exceeded",
                f"the provider refused a request of about {session.before:,} tokens and automatic compaction is off; compact by hand or use a "
                "model with a larger window",
                {"size": session.before},
            )
        if request.trigger not in ("automatic", "model_context_downshift"):
            return None
        size = occupancy or Occupancy(session.before)
        newest = session.state.pairs[-1].after if session.state.pairs else None
        if not request.auto:
            reason = "automatic compaction is off"
        elif not self._is_full(size, budget):
            reason = (
                f"{size.reported or size.tokens:,} tokens are under the usable window of {self._threshold(budget):,}"
            )
        elif newest is not None and not _answered_since(session, newest):
            reason = "no model step was made since the newest summary"
        else:
            return None
        plan = None
        if self.prune and request.phase != "mid_turn":
            plan = pruned(self, session.view, budget, request, session.previous, self.prune_rules)
        return plan or Unchanged(reason)

    def _select(self, session: Session, budget: Budget, request: CompactionRequest) -> Selection | Unchanged:
        visible = session.visible
        users = [number for number, message in enumerate(visible) if message.role == "user"]
        waiting = open_from(session.view, visible)
        replay = request.trigger == "provider_context_limit" and len(users) > 1 and waiting == len(visible)
        considered = visible[: users[-1]] if replay else visible
        starts = users[:-1] if replay else users
        start = min(tail_start(Sizes.of(considered), starts, self.tail_budget(budget), self.tail_turns), waiting)
        head, tail = considered[:start], considered[start:]
        if not head:
            return Unchanged("nothing stands before the call that waits for its result")
        if not replay:
            return Selection(head, tail)
        return Selection(head, tail, visible[users[-1]], visible[users[-1] + 1 :])


def tail_start(sizes: Sizes, starts: Sequence[int], budget: int, turns: int | None = None) -> int:
    """The message at which the tail begins; the number of messages when there is no tail (opencode.md 2.5).

    Args:
        sizes: of the visible messages.
        starts: the messages that begin a turn, rising.
        budget: what the tail may take, in OpenCode's tokens.
        turns: so many turns at most; None: as many as fit.
    """
    none = len(sizes)
    considered = starts if turns is None else starts[-turns:] if turns > 0 else ()
    at, room = none, budget
    for start, end in reversed(list(pairwise((*considered, none)))):
        size = sizes.tokens(start, end)
        if size > room:
            # The walk ends here, whether or not a part of this turn fits: older turns are not looked at, however small.
            fits = (cut for cut in range(start + 1, end) if sizes.tokens(cut, end) <= room)
            at = next(fits, at) if room > 0 else at
            break
        at, room = start, room - size
    return at if at > 0 else none


def _prior(previous: Plan | None) -> str | None:
    """The summary that the next one is to be merged with: the last one shown, which is an older one where old pairs resurface."""
    if previous is None:
        return None
    older = (item.text for item in reversed(previous.items) if isinstance(item, Synthetic) and item.kind == "summary")
    return next(older, "").strip() or previous.summary


def _answered_since(session: Session, entry: str) -> bool:
    """Whether the model has answered after the entry."""
    after = session.view.positions.get(entry, -1)
    return any(
        part.position > after for message in session.visible if message.role == "assistant" for part in message.blocks()
    )
