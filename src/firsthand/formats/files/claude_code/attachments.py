"""Attachments of Claude Code: the ones whose text the model reads, as blocks.

The client turns attachments into reminder texts whose wording is not in the file. What the file does hold literally (a file's
content, a hook's output, a listing, a queued message) becomes a block; an attachment that only names things has none and is
counted as left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ....transcript import Block, Media, Text
from ..records import record_of, string_of
from .blocks import user_blocks

__all__ = ["attachment_blocks", "is_queued"]

# Shown to the person only, or put into words by the client from names and numbers.
_NO_TEXT = frozenset(
    {
        "already_read_file",
        "auto_mode",
        "auto_mode_exit",
        "command_permissions",
        "compact_file_reference",
        "date_change",
        "hook_cancelled",
        "hook_error_during_execution",
        "hook_non_blocking_error",
        "hook_system_message",
        "plan_mode",
        "plan_mode_exit",
        "task_reminder",
        "todo_reminder",
    }
)
# The hooks whose plain output the client hands to the model; that of all others is only logged.
_SPEAKING_HOOKS = frozenset({"SessionStart", "SubagentStart", "UserPromptSubmit"})


def is_queued(attachment: dict[str, Any]) -> bool:
    """Whether this is a message that was typed while the agent ran."""
    return attachment.get("type") == "queued_command"


def attachment_blocks(attachment: dict[str, Any]) -> tuple[Block, ...]:
    """The literal texts and images of an attachment; () for one that has none.

    A queued message is typed text, unless the client says that no human wrote it; all else is injected.
    """
    if is_queued(attachment):
        kind = string_of(record_of(attachment.get("origin")).get("kind"))
        human = kind == "human" if kind else attachment.get("commandMode") in (None, "prompt")
        if attachment.get("isMeta") is True:
            human = False
        return user_blocks(attachment.get("prompt"), human=human)
    return tuple(part if isinstance(part, Media) else Text(part, "injected") for part in _parts(attachment) if part)


def _parts(attachment: dict[str, Any]) -> Iterator[str | Media]:
    kind = attachment.get("type")
    content = attachment.get("content")
    match kind:
        case "hook_success":
            if attachment.get("hookEvent") in _SPEAKING_HOOKS:
                yield from _texts(content)
        case "async_hook_response":
            output = record_of(record_of(attachment.get("response")).get("hookSpecificOutput"))
            yield from _texts(output.get("additionalContext"))
        case "hook_blocking_error":
            yield from _texts(record_of(attachment.get("blockingError")).get("blockingError"))
        case "deferred_tools_delta" | "agent_listing_delta":
            lines = list(_texts(attachment.get("addedLines")))
            if lines:
                yield "\n".join(lines)
        case "mcp_instructions_delta":
            yield from _texts(attachment.get("addedBlocks"))
        case "invoked_skills":
            yield from _each(attachment.get("skills"), "content")
        case "relevant_memories":
            yield from _each(attachment.get("memories"), "content")
        case "teammate_mailbox":
            yield from _each(attachment.get("messages"), "text")
        case "file":
            yield from _file(record_of(content))
        case _ if kind not in _NO_TEXT:
            # Also types that are newer than this reader: a text field is a text for the model until proven otherwise.
            for field in ("content", "text", "snippet", "message"):
                found = attachment.get(field)
                yield from _texts(found.get("content") if isinstance(found, dict) else found)


def _texts(value: Any) -> Iterator[str]:
    for text in value if isinstance(value, list) else [value]:
        if isinstance(text, str) and text.strip():
            yield text


def _each(values: Any, field: str) -> Iterator[str]:
    for value in values if isinstance(values, list) else ():
        yield from _texts(record_of(value).get(field))


def _file(content: dict[str, Any]) -> Iterator[str | Media]:
    """A file that the person mentioned: its text, or an image or document by value."""
    file = record_of(content.get("file"))
    match content.get("type"):
        case "text" | "notebook":
            yield from _texts(file.get("content"))
        case "image" | "pdf" as kind:
            if data := string_of(file.get("base64")):
                media_type = string_of(file.get("type")) or ("application/pdf" if kind == "pdf" else None)
                yield Media("image" if kind == "image" else "document", media_type, data)
