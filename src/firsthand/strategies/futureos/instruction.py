"""The instruction of a handoff summary, in our words; what it asks for is futureos.md 5.5."""

from __future__ import annotations

from ...codec import compact_json

__all__ = ["HEADINGS", "instruction"]

HEADINGS = (
    "## Objective",
    "## Important Details",
    "## Work State",
    "### Completed",
    "### Active",
    "### Blocked",
    "## Next Move",
    "## Relevant Files",
)
"""Headings that an answer must have, in this order."""

_PRIOR = """\
An earlier compaction left the record below. It stands for everything before the messages above, and it will be thrown away once you have
answered. Carry over what still matters of it: objectives, constraints, the person's directives, decisions, lines of work. Where the messages
above say otherwise, they are right. Bring finished work, lifted blockers, the objective and the next move up to date.

Earlier record, as JSON text: {prior}

"""

_NOTE = """\
The person adds for this summary, as JSON text: {note}

"""

_TASK = """\
Pause the work and write a handoff for another agent that will go on with it from your text, the person's own messages and an index of tool
results. Do not call tools, do not go on with the task, do not answer or ask anything; write only the handoff, in the language of the session.

Keep what is still relevant: your decisions and the reasons for them, corrections, open questions, exact paths, symbols, commands, error
messages, URLs, identifiers, commit ids, versions, sizes and counts. What has not been established, say so; do not infer it. Describe the
state as it is now: finished requests only under Completed, open work only under Objective, Active and Next Move, no blocker that is gone. Say
nothing about this summary or about compaction.

Use exactly these headings in this order, each even when there is nothing under it, with short bullets and no paragraphs:

{headings}

At most {tokens} tokens, about {words} words; a longer text is thrown away. Prefer identifiers to prose.
"""


def instruction(reserve: int, *, prior: str | None = None, note: str | None = None, prompt: str | None = None) -> str:
    """The text of the last user message of a summary request.

    Args:
        reserve: tokens that the summary may take.
        prior: the text of the last checkpoint, which the new summary replaces.
        note: the person's own instructions for this compaction.
        prompt: replaces the task; prior record and note still come before it.
    """
    parts = []
    if prior is not None:
        parts.append(_PRIOR.format(prior=compact_json(prior)))
    if note and note.strip():
        parts.append(_NOTE.format(note=compact_json(note)))
    task = _TASK.format(headings="\n".join(HEADINGS), tokens=reserve, words=3 * reserve // 4)
    return "".join(parts) + (task if prompt is None else prompt)
