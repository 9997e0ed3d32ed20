"""Codex's window switch: a fresh window with no summary, and a reminder before it (codex.md 6.4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar, Unpack

from ...budget import Budget, Occupancy
from ...codec import to_utf8
from ...errors import ConfigError
from ...projection.plan import Item, Kept, Plan, Synthetic, Trigger
from ...transcript import Role, View
from ..contract import CompactionRequest, Decision, DueState, Notice, Summary
from .base import CodexOptions, CodexStrategy, baseline, window_number
from .history import LiveHistory
from .kinds import Kind
from .limits import Limits
from .retention import newest_messages
from .texts import REMINDER, window_block

__all__ = ["CodexTokenBudget"]

DEVELOPER: tuple[Kind, ...] = ("developer",)
_LONGEST_TEXT = 2_000
_PLACEHOLDER = "{n_remaining}"
_CLIENT_DEVELOPER_TOKENS = 64_000


class CodexTokenBudget(CodexStrategy):
    """A new window that holds the client's initial context and nothing of the conversation; no model call.

    Follows the pinned source of codex.md (2026-09, these files at the pin).

    Guarantees: after the switch the request holds the system entries, the client's initial context, one block that names the windows, and what is
    recorded from then on; before a turn the incoming prompt, too. A step that waits for results stays whole, which Codex never meets.
    Loses: everything else, the user's prompt and the running task's results included. In Codex a notes tool and a history reader bring it back, if
    the model uses them; they are no part of a strategy. Without them this is the floor that retains nothing.

    The model is reminded through `notices`, which the runtime appends between two steps, each once per window.

    Options (see `CodexStrategy` for those of the family):
        reminder_threshold_tokens: remind the model when this little is left (off).
        reminder_message_template: the reminder, 1 to 2,000 bytes, with `{n_remaining}` once; None: ours.
        guidance_message: stands in the block that names the windows, at most 2,000 bytes.
        auto_compact_fallback_prompt: one last message when nothing is left, at most 2,000 bytes; needs the buffer.
        auto_compact_fallback_buffer_tokens: how far the switch is put off for it.
        retain_client_developer_messages: the newest 64,000 tokens of developer messages that the client's caller wrote come last (off:
            they are part of it, whatever they take).
        agent_name: the agent's name in the block.
    """

    name: ClassVar[str] = "codex-token-budget"

    def __init__(
        self,
        *,
        reminder_threshold_tokens: int | None = None,
        reminder_message_template: str | None = None,
        guidance_message: str | None = None,
        auto_compact_fallback_prompt: str | None = None,
        auto_compact_fallback_buffer_tokens: int | None = None,
        retain_client_developer_messages: bool = False,
        agent_name: str = "/root",
        **shared: Unpack[CodexOptions],
    ) -> None:
        self.reminder_threshold_tokens = reminder_threshold_tokens
        self.reminder_message_template = reminder_message_template
        self.guidance_message = guidance_message
        self.auto_compact_fallback_prompt = auto_compact_fallback_prompt
        self.auto_compact_fallback_buffer_tokens = auto_compact_fallback_buffer_tokens
        self.retain_client_developer_messages = retain_client_developer_messages
        self.agent_name = agent_name
        super().__init__(**shared)
        for option in ("reminder_threshold_tokens", "auto_compact_fallback_buffer_tokens"):
            value = getattr(self, option)
            if value is not None and value < 1:
                raise ConfigError(f"{option} must be at least 1 token, not {value:,}; leave it out to switch it off")
        for option in ("reminder_message_template", "guidance_message", "auto_compact_fallback_prompt"):
            text = getattr(self, option)
            if text is not None and len(to_utf8(text)) > _LONGEST_TEXT:
                raise ConfigError(
                    f"{option} takes {len(to_utf8(text)):,} bytes and may take {_LONGEST_TEXT:,}; shorten it"
                )
        if reminder_message_template is not None and reminder_message_template.count(_PLACEHOLDER) != 1:
            raise ConfigError(f"reminder_message_template must name {_PLACEHOLDER} once, for the tokens that are left")
        if auto_compact_fallback_prompt and auto_compact_fallback_buffer_tokens is None:
            raise ConfigError(
                "auto_compact_fallback_prompt needs auto_compact_fallback_buffer_tokens, the room in which it can be answered (Codex uses 16384)"
            )

    def _limits(self, window: int, threshold: int | None = None) -> Limits:
        buffer = (self.auto_compact_fallback_buffer_tokens or 0) if self.auto_compact_fallback_prompt else 0
        return replace(super()._limits(window, threshold), buffer=buffer)

    def due(self, occupancy: Occupancy, budget: Budget, state: DueState) -> Trigger | None:
        """The limits and the switch of the model as ever; between two steps also the model's own wish. Never after a turn (codex.md 4.4)."""
        if state.phase == "standalone":
            return None
        if state.phase == "mid_turn" and state.new_context_requested:
            return "new_context"
        return super().due(occupancy, budget, state)

    def notices(self, occupancy: Occupancy, budget: Budget, state: DueState) -> tuple[Notice, ...]:
        """The reminder when little is left, and the last message when nothing is; each once per window (codex.md 6.4)."""
        limits = self._limits(budget.window, budget.threshold)
        prefix = baseline(occupancy, budget)
        left = limits.remaining(occupancy.tokens, prefix)
        found: list[Notice] = []
        threshold = self.reminder_threshold_tokens
        if threshold is not None and left <= threshold and "reminder" not in state.notices:
            text = (self.reminder_message_template or REMINDER).replace(_PLACEHOLDER, str(left))
            found.append(Notice("reminder", _developer(text)))
        last = self.auto_compact_fallback_prompt
        rolls_over = limits.reached(occupancy.tokens, prefix) or (
            state.phase == "mid_turn" and state.new_context_requested
        )
        if last and left == 0 and not rolls_over and "fallback" not in state.notices:
            found.append(Notice("fallback", _developer(last)))
        return tuple(found)

    def plan(
        self,
        view: View,
        budget: Budget,
        request: CompactionRequest,
        previous: Plan | None = None,
        summaries: Mapping[str, Summary] | None = None,
        occupancy: Occupancy | None = None,
    ) -> Decision:
        """The new window."""
        history = self._covered(view, budget, request, previous, occupancy)
        if not isinstance(history, LiveHistory):
            return history
        developers: list[tuple[Kind, Item]] = []
        if self.retain_client_developer_messages:
            found = self._messages(history, view, DEVELOPER, media=True)
            developers, _ = newest_messages(found, _CLIENT_DEVELOPER_TOKENS, images=False)
        context = self._arranged(history, "standalone", [])
        ahead = next((at for at, item in enumerate(context) if _role(item, view) == "user"), len(context))
        number = window_number(history.previous) + 1
        return self._finished(
            view,
            budget,
            request,
            history,
            (
                *context[:ahead],
                self._window(number, view, history, context),
                *context[ahead:],
                *(item for _, item in developers),
            ),
            rest="omitted",
            notes={"window": str(number)},
        )

    def _window(self, number: int, view: View, history: LiveHistory, items: tuple[Item, ...]) -> Synthetic:
        """The block that names the windows. Codex's ids are random; ours follow from the session and the number."""
        first = view.entries[0].id
        text = window_block(
            self.agent_name, f"{first}:0", f"{first}:{number - 1}", f"{first}:{number}", self.guidance_message
        )
        roles = [*(_role(item, view) for item in items), *(entry.role for entry in history.tail)]
        # No provider answers a request without a single user message.
        alone = "user" not in roles
        return Synthetic("notice", text, role="user" if alone else "developer")


def _role(item: Item, view: View) -> Role:
    return view[item.entry].role if isinstance(item, Kept) else item.role


def _developer(text: str) -> Synthetic:
    return Synthetic("notice", text, role="developer")
