"""Codex's remote compaction, second version: 64,000 tokens of messages and one item that the provider makes (codex.md 6.3)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, TypeAlias, Unpack

from ...budget import Budget, Occupancy
from ...errors import ConfigError
from ...projection.plan import Item, Plan, Synthetic
from ...transcript import View
from ..contract import CompactionRequest, Decision, NeedsSummary, Refused, Summary, SummaryRequest
from .base import CodexOptions, CodexStrategy, ask_for_text
from .counting import is_compaction
from .history import LiveHistory, Message
from .kinds import Kind
from .request import pre_trimmed, recorded, without_oldest
from .retention import newest_messages, worth_keeping
from .texts import NOTHING_SUMMARISED, OPAQUE, prompt_text, summary_text

__all__ = ["CodexRemoteV2", "CompactionItem"]

CompactionItem: TypeAlias = Literal["local", "opaque", "none"]

REQUEST = "compaction"
_TRIGGER = {"type": "compaction_trigger"}
_FAMILY = "codex-remote"
_SUMMARY_ROOM = 2_000


class CodexRemoteV2(CodexStrategy):
    """The newest messages of users, hooks and other agents, and the provider's compaction item or what stands in for it.

    Follows the source pinned in codex.md (2026-09; these files a near neighbour of the pin), with the order of release 0.171 by option. What the
    real item holds is known to its provider only: with a stand-in this is the retention of Codex, and `Plan.notes` says so, not its result.

    Guarantees: user messages, hook prompts, earlier local summaries and short messages of other agents stay newest first within 64,000 tokens of
    four bytes each, pictures charged 1,844 tokens; the one that crosses the limit is cut, its text in the middle; the compaction item is the last
    message, and an earlier one is gone; system entries and the client's initial context stay once; a step that waits for results stays whole.
    Loses: assistant texts, calls, results and thoughts, unless the compaction item holds them; older messages.

    Order: as in `codex-local`, the compaction item in the summary's place.

    Options (see `CodexStrategy` for those of the family):
        compaction_item: `local`: the session's model writes a summary into the item's place (not what Codex does). `opaque`: the provider makes the
            item; `Summary.raw` must bring exactly one. `none`: no call; a line says that nothing was summarised. An opaque item is taken whenever
            one comes.
        compaction_image_budget: pictures are charged (on, as since 2026-09).
        retain_client_developer_messages: developer messages that the client's caller wrote count as messages (off); they are context otherwise.
        retained_message_tokens: the 64,000 tokens above, a constant in the original.
        tool_output_token_limit: cuts tool outputs in the request as Codex cuts them when it records them (10,000 and a fifth); None: whole.
        prompt: replaces the prompt of a `local` summary; Codex has none here.
    """

    name: ClassVar[str] = "codex-remote-v2"

    def __init__(
        self,
        *,
        compaction_item: CompactionItem = "local",
        compaction_image_budget: bool = True,
        retain_client_developer_messages: bool = False,
        retained_message_tokens: int = 64_000,
        tool_output_token_limit: int | None = 10_000,
        prompt: str | None = None,
        **shared: Unpack[CodexOptions],
    ) -> None:
        super().__init__(**shared)
        self.compaction_item: CompactionItem = compaction_item
        self.compaction_image_budget = compaction_image_budget
        self.retain_client_developer_messages = retain_client_developer_messages
        self.retained_message_tokens = retained_message_tokens
        self.tool_output_token_limit = tool_output_token_limit
        self.prompt = prompt
        if compaction_item not in ("local", "opaque", "none"):
            raise ConfigError(f"the compaction item is 'local', 'opaque' or 'none', not {compaction_item!r}")
        if retained_message_tokens < 0:
            raise ConfigError(f"the room for messages must be at least 0 tokens, not {retained_message_tokens:,}")
        if tool_output_token_limit is not None and tool_output_token_limit < 1:
            raise ConfigError(
                f"the limit of a tool output must be at least 1 token, not {tool_output_token_limit:,}; null leaves outputs whole"
            )

    def plan(
        self,
        view: View,
        budget: Budget,
        request: CompactionRequest,
        previous: Plan | None = None,
        summaries: Mapping[str, Summary] | None = None,
        occupancy: Occupancy | None = None,
    ) -> Decision:
        """A request for the compaction item first, where one is wanted, then the plan."""
        history = self._covered(view, budget, request, previous, occupancy)
        if not isinstance(history, LiveHistory):
            return history
        found = self._found(history, view)
        retained, cut = newest_messages(found, self.retained_message_tokens, images=self.compaction_image_budget)
        if (refusal := self._hopeless(history, budget, request.phase, retained, view)) is not None:
            return refusal
        if summaries is None and self.compaction_item != "none":
            return NeedsSummary((self._request(history, budget, request),))
        notes = {"messages left out": str(len(found) - len(retained) or ""), "message cut": cut}
        return self._with_answer(view, budget, request, history, retained, (summaries or {}).get(REQUEST), notes)

    def _with_answer(
        self,
        view: View,
        budget: Budget,
        request: CompactionRequest,
        history: LiveHistory,
        retained: list[tuple[Kind, Item]],
        answer: Summary | None,
        notes: dict[str, str],
    ) -> Decision:
        """The plan that an answer leads to."""
        closing = self._closing(answer)
        if isinstance(closing, Refused):
            return closing
        readable = closing.kind == "summary" and closing.raw is None
        return self._finished(
            view,
            budget,
            request,
            history,
            self._arranged(history, request.phase, [*retained, ("compaction", closing)]),
            rest="omitted" if closing.kind == "notice" else "summarised",
            summary=answer.text if answer is not None and readable else None,
            notes={**notes, "compaction item": _label(closing)},
        )

    def _found(self, history: LiveHistory, view: View) -> list[Message]:
        kinds: list[Kind] = ["user", "hook", "agent", "summary"]
        if self.retain_client_developer_messages:
            kinds.append("developer")
        ours = history.previous is not None and history.previous.strategy.startswith(_FAMILY)
        return [
            message
            for message in self._messages(history, view, kinds, media=True)
            if worth_keeping(message) and not (ours and isinstance(message.part.item, Synthetic))
        ]

    def _request(self, history: LiveHistory, budget: Budget, request: CompactionRequest) -> SummaryRequest:
        usable = self._limits(budget.window).usable
        items = pre_trimmed(recorded(history, self.tool_output_token_limit), history.parts, budget.fixed, usable)
        opaque = self.compaction_item == "opaque"
        return SummaryRequest(
            id=REQUEST,
            instruction="" if opaque else prompt_text(self.prompt, request.instructions),
            items=(*items, *self._trigger()) if opaque else tuple(items),
            max_output=budget.output_ceiling,
            state=None if opaque else self._shrinking(history, items),
        )

    def _trigger(self) -> tuple[Item, ...]:
        """What asks the provider for its item: the last item of an ordinary request."""
        return (Synthetic("notice", "", raw=_TRIGGER),)

    def _closing(self, answer: Summary | None) -> Synthetic | Refused:
        """What stands in the compaction item's place."""
        if self.compaction_item == "none":
            return Synthetic("notice", NOTHING_SUMMARISED)
        if answer is not None and answer.failure is None and answer.raw is not None:
            given = answer.raw if isinstance(answer.raw, list) else [answer.raw]
            made = [item for item in given if is_compaction(item)]
            if len(made) == 1:
                return Synthetic("summary", OPAQUE, origin="summary", raw=made[0])
            return Refused(
                "invalid-summary",
                f"the provider's compaction must bring exactly one compaction item and brought {len(made)} among {len(given)} items; "
                "nothing was changed, so ask again or use the option compaction_item=local",
                {"items": len(given), "compaction_items": len(made)},
            )
        if self.compaction_item == "opaque" and answer is not None and answer.failure is None:
            return Refused(
                "invalid-summary",
                "the provider's compaction brought no compaction item; use a provider that makes one, or the option compaction_item=local",
            )
        text = ask_for_text(answer, "the compaction")
        return text if isinstance(text, Refused) else Synthetic("summary", summary_text(text), origin="summary")

    def shrink(self, request: SummaryRequest) -> SummaryRequest | None:
        """Nothing for the provider's own compaction, which fails then; the stand-in's request loses its oldest item and its pair."""
        return None if request.state is None else without_oldest(request)

    def at_size(self, tokens: int) -> CodexRemoteV2:
        """With room for messages that leaves some for a summary; a history with less of them comes out smaller."""
        options: dict[str, Any] = {**self.options(), "retained_message_tokens": max(0, tokens - _SUMMARY_ROOM)}
        return type(self)(**options)


def _label(closing: Synthetic) -> str:
    if closing.kind == "notice":
        return "none: only what is retained"
    return "the provider's" if closing.raw is not None else "a local summary in its place, not the provider's"
