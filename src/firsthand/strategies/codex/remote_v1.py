"""Codex's first remote compaction, gone from newer versions: the provider returns a whole history (codex.md 6.2)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from ...budget import Budget
from ...projection.plan import Item, Kept, Synthetic
from ...transcript import Text, View
from ..contract import CompactionRequest, Decision, Refused, Summary
from .counting import is_compaction
from .history import LiveHistory, Message
from .kinds import Kind, element, texts_of
from .remote import CodexRemoteV2
from .texts import OPAQUE

__all__ = ["CodexRemoteV1"]

RETURNED: tuple[Kind, ...] = ("user", "hook")


class CodexRemoteV1(CodexRemoteV2):
    """What the provider's compaction endpoint returned, filtered; a legacy option.

    Follows the source of 2026-08 (codex.md 6.2); the path was deleted before the pinned version.

    Guarantees: with an answer in `Summary.raw` (the endpoint's list of items) the new history is that list without developer messages, injected user
    messages, thoughts, calls and results; a returned message that equals an original is shown as the original. How much it is is the provider's
    decision, so nothing but the input limit bounds it. Without a list the stand-ins of `codex-remote-v2` serve, with its bounds; pictures are not
    charged.
    Loses: what the provider left out, which only it knows.

    Options: those of `codex-remote-v2`; `compaction_image_budget` is always off. With `opaque` the request is the history alone, for an endpoint
    of its own.
    """

    name: ClassVar[str] = "codex-remote-v1"

    def __init__(self, **options: Any) -> None:
        super().__init__(**{**options, "compaction_image_budget": False})

    def _trigger(self) -> tuple[Item, ...]:
        return ()

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
        if answer is None or answer.failure is not None or not isinstance(answer.raw, list):
            return super()._with_answer(view, budget, request, history, retained, answer, notes)
        messages = list(_returned(answer.raw, history, self._messages(history, view, RETURNED, media=True)))
        if not messages:
            return Refused(
                "invalid-summary",
                f"the provider's compaction brought {len(answer.raw)} items and none of them is a message or a compaction item; nothing was changed",
                {"items": len(answer.raw)},
            )
        return self._finished(
            view,
            budget,
            request,
            history,
            self._arranged(history, request.phase, messages),
            notes={"compaction item": "the provider's list", "items returned": str(len(answer.raw))},
        )


def _returned(raw: list[Any], history: LiveHistory, found: list[Message]) -> Iterator[tuple[Kind, Item]]:
    """The items of the provider's list that stay, as originals where they are equal to one."""
    originals: dict[tuple[object, str], list[tuple[Kind, Item]]] = {}
    for message in found:
        originals.setdefault(("user", message.text), []).append((message.kind, message.item()))
    for part in history.parts:
        entry = part.entry
        if entry.role == "assistant":
            blocks = tuple(number for number, block in enumerate(entry.blocks) if isinstance(block, Text))
            kept = part.item or Kept(entry.id, None if len(blocks) == len(entry.blocks) else blocks)
            originals.setdefault(("assistant", "".join(texts_of(entry))), []).append(("assistant", kept))
    for item in raw:
        if is_compaction(item):
            yield "compaction", Synthetic("summary", OPAQUE, origin="summary", raw=item)
            continue
        if isinstance(item, dict) and item.get("type") == "agent_message":
            yield "agent", Synthetic("excerpts", "", raw=item)
            continue
        role, texts = _message(item)
        text = "".join(texts)
        if role not in ("user", "assistant") or not text.strip():
            continue
        if equal := originals.get((role, text)):
            yield equal.pop(0)
        elif role == "assistant":
            yield "assistant", Synthetic("summary", text, role="assistant", origin="summary")
        elif not any(element(part) for part in texts):
            yield "user", Synthetic("summary", text, origin="summary")


def _message(item: Any) -> tuple[str | None, list[str]]:
    """Role and text parts of a message item; no role for anything else."""
    if not isinstance(item, dict) or item.get("type", "message") != "message":
        return None, []
    content = item.get("content")
    parts = [{"text": content}] if isinstance(content, str) else content if isinstance(content, list) else []
    return item.get("role"), [
        part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str)
    ]
