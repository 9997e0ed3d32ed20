"""The instruction of the handoff summary that competes with the excerpts, in our words."""

from __future__ import annotations

from ...codec import compact_json

__all__ = ["HEADINGS", "instruction"]

HEADINGS = ("## Goal", "## Decisions", "## Done", "## Open", "## Next step")
"""Headings that an answer must have, in this order."""

_PRIOR = """\
The record below was written for everything before the messages above, and yours replaces it. Take over what still holds; where the messages
say otherwise, they are right.

Earlier record, as JSON text: {prior}

"""

_NOTE = """\
The person adds for this summary, as JSON text: {note}

"""

_TASK = """\
Stop working for a moment and write a handoff note for whoever continues this session. They will also see everything the person typed, and
verbatim excerpts of the rest; what they cannot see is how things hang together. Do not call tools, do not go on with the task, answer nothing
and ask nothing: write only the note, in the language of the session.

Write short bullets, one fact in each. Every bullet is kept or dropped by itself, and one that names nothing is dropped: so give the exact path,
symbol, command, error text, number, version or id in the bullet itself, never "it" or "the file above". Say why a decision was made, what was
tried and did not work, what was checked and how, and what nobody has verified. Only what the messages say; mark a guess as one. Leave out what is
over and decides nothing any more, and say nothing about this note.

Use exactly these headings in this order, each even when there is nothing under it:

{headings}

At most {tokens} tokens, about {words} words; a longer note is thrown away.
"""


def instruction(most: int, *, prior: str | None = None, note: str | None = None, prompt: str | None = None) -> str:
    """The text of the last user message of the summary request.

    Args:
        most: tokens that the summary may take.
        prior: the text of the summary before this one.
        note: the person's own instructions for this compaction.
        prompt: replaces the task; earlier record and note still come before it.
    """
    parts = [] if prior is None else [_PRIOR.format(prior=compact_json(prior))]
    if note and note.strip():
        parts.append(_NOTE.format(note=compact_json(note)))
    task = _TASK.format(headings="\n".join(HEADINGS), tokens=most, words=3 * most // 4)
    return "".join(parts) + (task if prompt is None else prompt)
