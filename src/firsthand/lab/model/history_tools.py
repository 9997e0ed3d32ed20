"""Two tools over the history before a boundary, for open-book rounds: search it, and fetch an entry of it byte for byte.

They are the journal's own `find` and `get`, over a journal of their own that holds nothing else. Every call is traced. What a model may spend on
them is bounded; a tool of the session that is not among them is refused, since its exam is about the history and not about today's files.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias

from ...codec import compact_json, decode, to_utf8
from ...errors import FirsthandError
from ...journal import Journal
from ...transcript import Entry, Transcript

__all__ = ["DEFINITIONS", "GET", "MOST_BYTES", "MOST_CALLS", "SEARCH", "History", "Lookups", "Traced"]

MOST_CALLS = 24
MOST_BYTES = 262_144
"""What one question may spend: executions, and bytes returned (futureos.md 8.10)."""
_HITS = 10
_PAGE = 8_192
_SESSION = "history"

SEARCH = "history_search"
GET = "history_get"
DEFINITIONS: tuple[dict[str, Any], ...] = (
    {
        "type": "function",
        "function": {
            "name": SEARCH,
            "description": (
                "Search everything that was said in this session, what is no longer shown included. Literal text, newest first; no wildcards. "
                "Each hit names its entry and the byte offset of the hit."
            ),
            "parameters": {
                "type": "object",
                "properties": {
                    "query": {"type": "string", "description": "The text to look for, 1 to 1,000 characters."}
                },
                "required": ["query"],
            },
        },
    },
    {
        "type": "function",
        "function": {
            "name": GET,
            "description": "Fetch the text of an entry that a search named, as a page of at most 8,192 bytes from an offset on.",
            "parameters": {
                "type": "object",
                "properties": {
                    "entry": {"type": "string", "description": "The entry's id."},
                    "offset": {"type": "integer", "description": "Bytes to skip; 0 for its beginning."},
                },
                "required": ["entry"],
            },
        },
    },
)

Status: TypeAlias = Literal["native", "denied", "error", "spent"]
"""`native`: done. `denied`: no tool of this exam. `error`: arguments that cannot work. `spent`: the limit was reached before it."""


@dataclass(frozen=True, slots=True)
class Traced:
    """One call that a model made."""

    tool: str
    arguments: str
    status: Status
    returned: str

    @property
    def size(self) -> int:
        """Bytes returned."""
        return len(to_utf8(self.returned))


@dataclass
class History:
    """The entries before a boundary in a journal of their own, while it is open as a context; several questions may use it at a time.

    Args:
        entries: the history, oldest first.
    """

    entries: Sequence[Entry]
    _journal: Journal | None = None
    _folder: tempfile.TemporaryDirectory[str] | None = None

    def __enter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory(prefix="firsthand-lab-")
        self._journal = Journal.open(Path(self._folder.name) / "history.db")
        if self.entries:
            held = Transcript(id=_SESSION, format="lab", entries=tuple(self.entries), leaf=self.entries[-1].id)
            self._journal.import_transcript(held)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes and deletes the journal; a second call does nothing."""
        if self._journal is not None:
            self._journal.close()
        if self._folder is not None:
            self._folder.cleanup()
        self._journal = self._folder = None

    def search(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """What `history_search` answers.

        Raises:
            FirsthandError: the arguments cannot work.
        """
        assert self._journal is not None
        # Limits of time would make the same question give different answers on a busy machine.
        found = self._journal.find(str(given.get("query", "")), session=_SESSION, limit=_HITS, seconds=600.0)
        hits = [
            {"entry": hit.entry, "role": hit.role, "tool": hit.tool, "offset": hit.offset, "text": hit.snippet}
            for hit in found.matches
        ]
        return {"hits": hits, "more": found.has_more}

    def get(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """What `history_get` answers.

        Raises:
            FirsthandError: the arguments cannot work.
        """
        assert self._journal is not None
        offset = given.get("offset", 0)
        page = self._journal.get(
            str(given.get("entry", "")), offset=offset if isinstance(offset, int) else 0, limit=_PAGE
        )
        return {
            "entry": page.entry,
            "role": page.role,
            "text": page.text,
            "next_offset": page.next_offset,
            "bytes": page.total,
        }

    def text(self, entry: str, limit: int) -> str:
        """The whole text of an entry, fetched in pages of so many bytes; not traced.

        Raises:
            EntryNotFoundError: the history has no such entry.
        """
        assert self._journal is not None
        parts: list[str] = []
        offset: int | None = 0
        while offset is not None:
            page = self._journal.get(entry, offset=offset, limit=limit)
            parts.append(page.text)
            offset = page.next_offset
        return "".join(parts)


@dataclass
class Lookups:
    """What one question looks up in a history, within what a question may spend."""

    history: History
    traced: list[Traced] = field(default_factory=list)

    @property
    def spent(self) -> bool:
        """Whether no further call will be executed."""
        done = [call for call in self.traced if call.status != "spent"]
        return len(done) >= MOST_CALLS or sum(call.size for call in done) >= MOST_BYTES

    def execute(self, tool: str, arguments: str) -> Traced:
        """One call, traced. Never raises for what a model wrote: the answer says what was wrong."""
        if self.spent:
            call = Traced(tool, arguments, "spent", "No further call is possible; answer now with what is known.")
        elif tool not in (SEARCH, GET):
            call = Traced(
                tool, arguments, "denied", f"{tool} cannot be used for this question; {SEARCH} and {GET} can."
            )
        else:
            call = self._executed(tool, arguments)
        self.traced.append(call)
        return call

    def _executed(self, tool: str, arguments: str) -> Traced:
        try:
            given = decode(arguments or "{}")
        except (ValueError, RecursionError):
            given = None
        if not isinstance(given, dict):
            return Traced(tool, arguments, "error", "The arguments are no JSON object.")
        try:
            found = self.history.search(given) if tool == SEARCH else self.history.get(given)
        except FirsthandError as error:
            return Traced(tool, arguments, "error", str(error))
        text = compact_json(found)
        room = MOST_BYTES - sum(call.size for call in self.traced)
        if len(to_utf8(text)) > room:
            return Traced(
                tool,
                arguments,
                "spent",
                "The answer would exceed what may be returned in all; answer now with what is known.",
            )
        return Traced(tool, arguments, "native", text)
