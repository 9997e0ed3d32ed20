"""The words that stand in a request where a provider demands something and the history has nothing to say.

Short, in brackets, and about the request only; they never pretend to be anybody's text.
"""

from __future__ import annotations

from ...transcript import Media, Role

__all__ = [
    "EMPTY_MESSAGE",
    "EMPTY_RESULT",
    "FAILED_RESULT",
    "OPENING",
    "image_label",
    "left_out",
    "moved",
    "relabelled",
]

EMPTY_MESSAGE = "[empty message]"
"""For a message of the person without any content (GW-03)."""

EMPTY_RESULT = "[the tool returned nothing]"
"""For a result without any content (GW-03)."""

FAILED_RESULT = "[the tool failed and returned nothing]"

LOOSE = "[output of a tool, without the call that it belongs to; not a message of the user]"
"""Stands before a tool's text that has no result to stand in, and would look like the user's."""

OPENING = "[the conversation goes on from an earlier point]"
"""For the first message, where it must be the user's and the history begins with the assistant (GW-05)."""


def left_out(media: Media) -> str:
    """Names a medium that this wire cannot carry, so that the model knows that something was there."""
    size = f", {len(media.data):,} characters of base64" if media.data else ""
    place = f" at {media.url}" if media.url and not media.url.startswith("data:") else ""
    return (
        f"[{media.kind}{f' of type {media.media_type}' if media.media_type else ''}{size}{place}: cannot be shown here]"
    )


def moved(number: int) -> str:
    """Stands in a tool result for its n-th attachment, which follows in a user message."""
    return f"[attachment {number} of this result follows in the next user message]"


def image_label(call_id: str, number: int) -> str:
    """Stands before the n-th attachment of a result, in the user message that it was moved to."""
    return f"[attachment {number} of the result of call {call_id}; output of a tool, not a message of the user]"


def relabelled(role: Role, text: str) -> str:
    """A system or developer text in the middle of a history, for a wire that has no such role there."""
    return f"[{role} message, in force from here on; not written by the user]\n{text}"
