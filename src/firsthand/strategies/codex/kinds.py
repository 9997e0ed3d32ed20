"""What an entry is to Codex: a message of the user, of a hook, of another agent, a summary, or something that the client put in (codex.md 1).

Codex marks or recognises its own texts. Here the origin of a text says who wrote it; names of elements are looked at only where the client's own
kinds differ in what happens to them.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from ...transcript import Entry, Media, Text, Unknown

__all__ = ["Kind", "beside", "element", "is_real_user", "kind_of", "media_tags", "own", "texts_of"]

Kind: TypeAlias = Literal["user", "hook", "agent", "developer", "summary", "assistant", "compaction"]
"""What a message of the new history is: typed by the user, made by a hook, sent by another agent, put in by the client's own caller, a summary, the
model's own words (legacy only), or the provider's compaction item and what stands in its place."""

RULES_HEADING = "# AGENTS.md instructions"
_HOOK = "hook_prompt"
_LONGEST_NAME = 256


def element(text: str) -> str | None:
    """The name of the one element that the whole text is, as clients wrap what they inject; the heading for project rules; else None."""
    text = text.strip()
    if text.startswith(RULES_HEADING):
        return RULES_HEADING
    if not text.startswith("<"):
        return None
    inner = text[1 : max(1, text.find(">", 1, _LONGEST_NAME))]
    return next((name for name in (inner, *inner.split()[:1]) if name and text.endswith(f"</{name}>")), None)


def media_tags(entry: Entry) -> frozenset[int]:
    """Numbers of the small texts that the client puts around an attachment; they go where it goes and are no text of the message."""
    found: set[int] = set()
    for number in range(1, len(entry.blocks) - 1):
        before, media, after = entry.blocks[number - 1 : number + 2]
        if isinstance(media, Media) and isinstance(before, Text) and isinstance(after, Text):
            opened, closed = before.text.strip(), after.text.strip()
            if closed == f"</{media.kind}>" and opened.startswith(f"<{media.kind}") and opened.endswith(">"):
                found |= {number - 1, number + 1}
    return frozenset(found)


def texts_of(entry: Entry) -> tuple[str, ...]:
    """The entry's texts, earlier summaries left out."""
    return tuple(block.text for block in entry.blocks if isinstance(block, Text) and block.origin != "summary")


def own(entry: Entry) -> tuple[int, ...]:
    """Numbers of the blocks that belong to a user message itself: what was typed or attached.

    Codex glues nothing to a prompt but what its desktop application writes about attachments, inside the prompt's own text; that stays with it.
    Other clients put their reminders into the same message; these do not.
    """
    return tuple(number for number, block in enumerate(entry.blocks) if _is_own(entry, block))


def _is_own(entry: Entry, block: object) -> bool:
    if not isinstance(block, Text):
        return isinstance(block, (Media, Unknown))
    if block.origin == "injected":
        return entry.wire == "openai-responses" and element(block.text) is None
    return block.origin == "typed"


def beside(entry: Entry) -> tuple[int, ...]:
    """Numbers of the texts that a client put beside what was typed."""
    mine = own(entry)
    return tuple(
        number
        for number, block in enumerate(entry.blocks)
        if isinstance(block, Text) and block.origin != "summary" and number not in mine
    )


def is_real_user(entry: Entry, *, strict: bool = False) -> bool:
    """Whether the entry is a user message in Codex's sense: something that a person typed or attached.

    Args:
        entry: any entry.
        strict: one injected part takes the whole message out, as in the original.
    """
    if entry.role != "user" or (strict and any(isinstance(b, Text) and b.origin == "injected" for b in entry.blocks)):
        return False
    return any(
        block.origin == "typed" and bool(block.text.strip()) if isinstance(block, Text) else isinstance(block, Media)
        for block in entry.blocks
    )


def kind_of(entry: Entry, *, strict: bool = False) -> Kind | None:
    """The kind of an original that a compaction may retain; None for everything else."""
    if any(isinstance(block, Unknown) and _type(block) == "agent_message" for block in entry.blocks):
        return "agent"
    texts = [block for block in entry.blocks if isinstance(block, Text)]
    if entry.role == "developer":
        return "developer" if texts and all(block.origin == "typed" for block in texts) else None
    if entry.role != "user":
        return None
    if is_real_user(entry, strict=strict):
        return "user"
    if any(block.origin == "summary" and block.text.strip() for block in texts):
        return "summary"
    return "hook" if any(element(block.text) == _HOOK for block in texts) else None


def _type(block: Unknown) -> object:
    return block.raw.get("type") if isinstance(block.raw, dict) else None
