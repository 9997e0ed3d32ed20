"""The contract of a wire format: provider messages to entries, and entries to provider messages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ...transcript import Entry

__all__ = ["Wire", "WireMessages"]


@dataclass(frozen=True)
class WireMessages:
    """The part of a request body that a projection fills."""

    messages: list[dict[str, Any]]
    """The value of `messages` (OpenAI Chat, Anthropic) or `input` (OpenAI Responses)."""
    system: Any = None
    """The value of `system` where the wire has one beside the messages (Anthropic), else None."""


class Wire(Protocol):
    """One provider API's shape of messages.

    Reading and writing again gives the same messages for every valid list; what the wire knows and we do not is carried in `extra`.
    """

    name: str

    def read(
        self, messages: Sequence[dict[str, Any]] | str, *, system: Any = None, session: str = ""
    ) -> tuple[Entry, ...]:
        """The messages as a path of entries. `session` goes into the entries' ids.

        Raises:
            FormatError: an item is not of this wire's shape; names its index.
        """
        ...

    def write(self, entries: Iterable[Entry]) -> WireMessages:
        """A valid request's messages for these entries.

        Pairs and order of calls and results must be right already (`firsthand.projection.repair`); this brings them into the wire's shape:
        merges neighbours where roles must alternate, leaves out empty blocks and other providers' opaque parts.
        """
        ...
