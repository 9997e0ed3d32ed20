"""The items of OpenAI's Responses API.

One item is one entry: a message, a reasoning item, a call, an output. Items that only the provider can run or read (searches, server-side
compactions, references) are kept as they are and given back to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ....transcript import Entry
from ..base import WireMessages
from ..common import items_of, no_system, safe
from .items import NAME
from .read import read_items
from .write import write_items

__all__ = ["WIRE", "OpenAIResponses"]


class OpenAIResponses:
    """Reads and writes `input` of the Responses API. `input` as one string is read as one message of the user.

    Written from other sources: typed messages, a function or custom call with an output of its own kind, no reasoning. A reasoning item is
    written only as long as the item that it led to follows.
    """

    name = NAME

    def read(
        self, messages: Sequence[dict[str, Any]] | str, *, system: Any = None, session: str = ""
    ) -> tuple[Entry, ...]:
        """The items as a path of entries; see `firsthand.formats.wire.base.Wire`.

        Raises:
            FormatError: an item is not of this wire's shape, or `system` is given, which this wire has not.
        """
        no_system(self.name, system)
        return read_items(items_of(messages), session)

    def write(self, entries: Iterable[Entry]) -> WireMessages:
        """A valid request's items for these entries; see `firsthand.formats.wire.base.Wire`."""
        return WireMessages(safe(write_items(tuple(entries))))


WIRE = OpenAIResponses()
