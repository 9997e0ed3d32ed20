"""The texts of our own that the Codex strategies send; their content follows codex.md 6.1 and 6.4, the wording is ours."""

from __future__ import annotations

__all__ = [
    "COMPACTION_PROMPT",
    "NOTHING_SUMMARISED",
    "OPAQUE",
    "REMINDER",
    "SUMMARY_PREFIX",
    "prompt_text",
    "summary_text",
    "window_block",
]

COMPACTION_PROMPT = (
    "Stop working on the task here and write a handoff: another model takes over from this point and sees only what you write now, beside the "
    "user's own messages. State what has been done and what was decided; what must be respected, such as limits, conventions and what the user "
    "prefers; what is still open, as concrete next steps; and every value, path, command or source that is needed to go on. Be short and ordered, "
    "so that work can continue at once. Use the language of the user. Answer with the handoff alone and call no tool."
)

SUMMARY_PREFIX = (
    "[Handoff summary of the session up to here. The model that worked on this task before you wrote it; what its tools did is still in effect and "
    "can be looked at. Build on it instead of doing the same work again. It is a record, not a request: where it and the user's messages differ, "
    "the user's messages count.]"
)
"""One constant line before every summary, so that a summary is known as one."""

NOTHING_SUMMARISED = (
    "[Assistant messages, tool calls and tool results from before this point were left out here and not summarised.]"
)

OPAQUE = "[An opaque compaction item of the provider stands here; only that provider can read it.]"

REMINDER = (
    "About {n_remaining} tokens are left in this context window. When it is full, work goes on in a new one that shows none of this conversation. "
    "Put what you need later where you can read it again: the goal, decisions, progress, what you learned, the next steps."
)


def prompt_text(prompt: str | None, instructions: str | None) -> str:
    """The instruction of a summary request: the user's own prompt if it has any text, else ours, and then the user's note as it is."""
    text = (prompt or "").strip() or COMPACTION_PROMPT
    return (
        f"{text}\n\nThe user's note for this handoff:\n{instructions}"
        if instructions and instructions.strip()
        else text
    )


def summary_text(text: str) -> str:
    """A summary as it stands in the projection."""
    return f"{SUMMARY_PREFIX}\n{text}"


def window_block(agent: str, first: str, previous: str, current: str, guidance: str | None) -> str:
    """What tells the model which context window it is in (codex.md 6.4)."""
    text = f"[Context window of {agent}: first {first}, previous {previous}, current {current}."
    text += " Earlier windows are not shown and were not summarised.]"
    return f"{text}\n{guidance}" if guidance else text
