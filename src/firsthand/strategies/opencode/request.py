"""V1's request for a summary: a conversation of its own with one message, which holds the head as text (opencode.md 2.6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...projection.plan import Item
from ...transcript import Media, ToolResult, View
from ..contract import SummaryRequest
from ..javascript import head as beginning
from ..javascript import length
from .layout import kept_items
from .messages import Message
from .prompts import HOOK_LEAD_IN, SYSTEM, instruction, request_text
from .text import TRUNCATED, attached, joined, serialized

__all__ = ["RequestOptions", "summary_request"]


@dataclass(frozen=True)
class RequestOptions:
    """How the request is written."""

    prompt: str | None = None
    """Stands in the place of our outline and rules; the conversation and the prior summary stay."""
    system_prompt: str | None = None
    """Stands in the place of our system prompt (OpenCode's `agent.compaction.prompt`)."""
    hook_prompt: str | None = None
    """A prompt as OpenCode's compacting hook sets it: then the prior summary and the context are not sent, as in the original."""
    context: tuple[str, ...] = ()
    """Further texts for the summariser, as that hook adds them."""
    limit: int = 2_000
    """Characters (UTF-16 code units) after which a tool's output is cut."""
    real_messages: bool = False
    """Send the head as messages instead of text, as generation V1-b did."""


def summary_request(
    request_id: str,
    view: View,
    head: Sequence[Message],
    prior: str | None,
    note: str | None,
    max_output: int,
    options: RequestOptions,
) -> SummaryRequest | None:
    """The request, or None when there is nothing to summarise.

    Args:
        request_id: the name under which the answer is expected.
        view: the session.
        head: the messages to summarise.
        prior: the summary before this one.
        note: the user's own words on what matters; sent as they are, behind the context.
        max_output: cap of the answer, in tokens.
        options: how it is written.
    """
    texts = [made for message in head if (made := serialized(message, "V1", options.limit)) is not None]
    if not texts and not prior:
        return None
    context = (*options.context, *((note,) if note else ()))
    conversation = joined(made.text for made in texts)
    items: tuple[Item, ...] = ()
    if options.hook_prompt is not None:
        text = f"{options.hook_prompt}\n\n{HOOK_LEAD_IN}\n\n{conversation}"
    elif options.real_messages:
        items = kept_items(view, head, _stripped(head, options.limit))
        text = "\n\n".join((instruction(options.prompt, prior), *context))
    else:
        text = request_text(conversation, prior, options.prompt, context)
    return SummaryRequest(
        id=request_id,
        instruction=text,
        items=items,
        system=SYSTEM if options.system_prompt is None else options.system_prompt,
        tools="none",
        max_output=max_output,
    )


def _stripped(head: Sequence[Message], limit: int) -> dict[tuple[int, int], str]:
    """What stands for media and for long outputs when messages are sent as they are."""
    texts: dict[tuple[int, int], str] = {}
    for part in (part for message in head for part in message.blocks()):
        at = (part.position, part.number)
        if isinstance(part.block, Media):
            texts[at] = attached(part.block)
        elif isinstance(part.block, ToolResult):
            media = [attached(piece) for piece in part.block.content if isinstance(piece, Media)]
            output = "\n".join((part.block.text, *media))
            if not part.block.is_error and length(output) > limit:
                texts[at] = f"{beginning(output, limit)}\n{TRUNCATED}"
            elif media:
                texts[at] = output
    return texts
