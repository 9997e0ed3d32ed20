"""Which texts of a request a person typed, told from how they begin."""

from __future__ import annotations

from ...transcript import Origin
from ..files.claude_blocks import prompt_blocks

__all__ = ["origin_of"]


def origin_of(text: str) -> Origin:
    """The origin of a user text on the wire: what a client is known to write by itself is injected or a summary, all else is typed.

    A text that is partly typed counts as typed: a block of a request is never taken apart.
    """
    origins = {part.origin for part in prompt_blocks(text)}
    return "typed" if "typed" in origins else min(origins)
