"""Which texts of a request a person typed, told from how they begin and end.

The rules are those of the readers of session files; a request has no other sign.
"""

from __future__ import annotations

from ...transcript import Origin, Text
from ..files.claude_code.blocks import prompt_blocks
from ..files.codex.typed import Typed

__all__ = ["origin_in_messages", "origin_in_responses"]

_NOBODY = Typed()


def origin_in_messages(text: str) -> Origin:
    """The origin of a user text in Chat Completions or Anthropic messages, by what Claude Code is known to write into them.

    A text that is partly typed counts as typed: a block of a request is never taken apart.
    """
    origins = {part.origin for part in prompt_blocks(text)}
    return "typed" if "typed" in origins else min(origins)


def origin_in_responses(text: str) -> Origin:
    """The origin of a user text in Responses items, by what Codex is known to write into them: text that is one tagged block."""
    return _NOBODY.blocks({}, [Text(text)])[0][0].origin
