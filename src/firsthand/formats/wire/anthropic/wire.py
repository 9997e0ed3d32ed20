"""The messages of Anthropic's Messages API, and the system prompt that stands beside them.

One message is one entry; a user message that holds nothing but tool results is an entry of the role `tool`. A system prompt is an entry of the
role `system` in front.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ....transcript import Entry
from ..base import WireMessages
from ..common import items_of, safe
from .blocks import NAME
from .read import read_messages
from .write import write_messages

__all__ = ["WIRE", "Anthropic"]


class Anthropic:
    """Reads and writes `messages` and `system` of the Messages API.

    Written from any source: roles alternate and begin with the user; neighbours of one role become one message, with results in front.
    System and developer entries at the start become `system`; later ones, for which the API has no role, become texts of the user with a
    label that says who is speaking. Thinking is written only as it came from this API, with its signature. Calls that the provider ran itself
    are written together with their result or not at all. At most four cache marks are kept, the newest ones.
    """

    name = NAME

    def read(
        self, messages: Sequence[dict[str, Any]] | str, *, system: Any = None, session: str = ""
    ) -> tuple[Entry, ...]:
        """The system prompt and the messages as a path of entries; see `firsthand.formats.wire.base.Wire`.

        Raises:
            FormatError: a message or the system prompt is not of this wire's shape; names its index.
        """
        return read_messages(items_of(messages), system, session)

    def write(self, entries: Iterable[Entry]) -> WireMessages:
        """A valid request's messages and system prompt for these entries; see `firsthand.formats.wire.base.Wire`."""
        messages, system = write_messages(tuple(entries))
        return WireMessages(safe(messages), safe(system))


WIRE = Anthropic()
