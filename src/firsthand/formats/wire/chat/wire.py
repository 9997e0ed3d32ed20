"""The messages of OpenAI's Chat Completions API, which many other providers speak too.

One message is one entry. Text, refusals, `reasoning_content` and calls of a message become blocks in the order in which a model makes them.
The legacy `function_call` and its `function` message, which have no ids, get ids from their position.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ....transcript import Entry
from ..base import WireMessages
from ..common import items_of, no_system, safe
from .read import read_messages
from .write import write_messages

__all__ = ["WIRE", "OpenAIChat"]


class OpenAIChat:
    """Reads and writes `messages` of Chat Completions.

    Written from other sources: calls without a provider's hosted tools, no reasoning, one text as a string, results as text with their images
    in a user message after the last result of the step.
    """

    name = "openai-chat"

    def read(
        self, messages: Sequence[dict[str, Any]] | str, *, system: Any = None, session: str = ""
    ) -> tuple[Entry, ...]:
        """The messages as a path of entries; see `firsthand.formats.wire.base.Wire`.

        Raises:
            FormatError: a message is not of this wire's shape, or `system` is given, which this wire has not.
        """
        no_system(self.name, system)
        return read_messages(items_of(messages), session)

    def write(self, entries: Iterable[Entry]) -> WireMessages:
        """A valid request's messages for these entries; see `firsthand.formats.wire.base.Wire`."""
        return WireMessages(safe(write_messages(tuple(entries))))


WIRE = OpenAIChat()
