"""Codex's local compaction: the newest user messages and one handoff summary (codex.md 6.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Unpack

from ...budget import Budget, Occupancy
from ...errors import ConfigError
from ...projection.plan import Item, Plan, Synthetic
from ...transcript import Text, View
from ..contract import CompactionRequest, Decision, NeedsSummary, Refused, Summary, SummaryRequest
from .base import CodexOptions, CodexStrategy, ask_for_text
from .counting import cut_to_tokens, text_tokens
from .history import LiveHistory, Message
from .kinds import Kind
from .request import recorded, without_oldest
from .texts import prompt_text, summary_text

__all__ = ["CodexLocal", "newest_texts"]

USER: tuple[Kind, ...] = ("user",)
_REQUEST = "handoff"
_SUMMARY_ROOM = 2_000


class CodexLocal(CodexStrategy):
    """Recent user messages, and a summary that the session's own model writes.

    Follows the source pinned in codex.md (2026-09; one file of it a near neighbour of the pin), with the order of release 0.171 by option.

    Guarantees: user messages stay newest first within 20,000 tokens of four bytes each, the one that crosses the limit is cut in the middle with a
    marker that counts what went; the summary is one user message, labelled as a summary, and there is never more than one; system entries and
    the client's initial context stay once; a step that waits for results stays whole.
    Loses: every assistant text, call, result, thought and picture, unless the summary tells of it; older user messages; and with each further
    compaction what the last summary held, since the new one is written from the shown history.

    Order: before a turn, and when asked for, the context comes behind the summary, where the new prompt follows; between two steps it stands before
    the newest user message and the summary is last. On a change of the model the order is that before a turn; the runtime lets the *previous* model
    write the summary then (codex.md 4.3).

    Options (see `CodexStrategy` for those of the family):
        prompt: replaces the summary prompt (Codex: `compact_prompt`); trimmed, blank is none.
        tool_output_token_limit: cuts tool outputs in the summary request as Codex cuts them when it records them (10,000, and a fifth on top);
            None: whole.
        user_message_tokens: the 20,000 tokens above, a constant in the original.
        stale_summary: when the summary comes back empty, take the newest assistant text instead, a quirk of the original (off: refused).
    """

    name: ClassVar[str] = "codex-local"

    def __init__(
        self,
        *,
        prompt: str | None = None,
        tool_output_token_limit: int | None = 10_000,
        user_message_tokens: int = 20_000,
        stale_summary: bool = False,
        **shared: Unpack[CodexOptions],
    ) -> None:
        super().__init__(**shared)
        self.prompt = prompt
        self.tool_output_token_limit = tool_output_token_limit
        self.user_message_tokens = user_message_tokens
        self.stale_summary = stale_summary
        if user_message_tokens < 0:
            raise ConfigError(f"the room for user messages must be at least 0 tokens, not {user_message_tokens:,}")
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
        """A summary request first, then the plan."""
        history = self._covered(view, budget, request, previous, occupancy)
        if not isinstance(history, LiveHistory):
            return history
        found = self._messages(history, view, USER)
        retained, cut = newest_texts(found, self.user_message_tokens)
        if (refusal := self._hopeless(history, budget, request.phase, retained, view)) is not None:
            return refusal
        if summaries is None:
            return NeedsSummary((self._request(history, budget, request),))
        text = self._summary(history, summaries.get(_REQUEST))
        if isinstance(text, Refused):
            return text
        closing = Synthetic("summary", summary_text(text), origin="summary")
        return self._finished(
            view,
            budget,
            request,
            history,
            self._arranged(history, request.phase, [*retained, ("summary", closing)]),
            summary=text,
            notes={"user messages left out": str(len(found) - len(retained) or ""), "user message cut": cut},
        )

    def _request(self, history: LiveHistory, budget: Budget, request: CompactionRequest) -> SummaryRequest:
        items = recorded(history, self.tool_output_token_limit)
        return SummaryRequest(
            id=_REQUEST,
            instruction=prompt_text(self.prompt, request.instructions),
            items=tuple(items),
            tools="none",
            max_output=budget.output_ceiling,
            state=self._shrinking(history, items),
        )

    def _summary(self, history: LiveHistory, answer: Summary | None) -> str | Refused:
        if self.stale_summary and answer is not None and answer.failure is None and not answer.text.strip():
            for entry in reversed(history.entries):
                said = "".join(block.text for block in entry.blocks if isinstance(block, Text))
                if entry.role == "assistant" and said.strip():
                    return said
        return ask_for_text(answer, "the summary")

    def shrink(self, request: SummaryRequest) -> SummaryRequest | None:
        """Without the oldest item and its pair; the retained messages still come from the whole live history (codex.md 6.1)."""
        return without_oldest(request)

    def at_size(self, tokens: int) -> CodexLocal:
        """With room for user messages that leaves some for a summary; a history with less user text comes out smaller."""
        return CodexLocal(**{**self.options(), "user_message_tokens": max(0, tokens - _SUMMARY_ROOM)})


def newest_texts(found: Sequence[Message], room: int) -> tuple[list[tuple[Kind, Item]], str]:
    """The newest messages that `room` tokens hold, oldest first; the first that does not fit is cut in the middle and ends the choice.

    A message without text costs nothing and would stay as an empty one; no provider takes that, so it is left out.

    Returns:
        The retained messages, and the id of the one that was cut, or "".
    """
    retained: list[tuple[Kind, Item]] = []
    cut = ""
    for message in reversed(found):
        if room <= 0:
            break
        if not message.text.strip():
            continue
        size = text_tokens(message.text)
        if size <= room:
            retained.append((message.kind, message.item()))
            room -= size
            continue
        first = message.numbers[0]
        retained.append((message.kind, message.item((first,), {first: cut_to_tokens(message.text, room)})))
        cut = message.id
        break
    return retained[::-1], cut
