"""The log of everything that the fake model server got."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from .script import Answer

__all__ = ["Received", "WireName"]

WireName: TypeAlias = Literal["openai-chat", "openai-responses", "anthropic"]


@dataclass(eq=False)
class Received:
    """One request as it arrived, and what became of it."""

    number: int
    """1-based, in order of arrival."""
    method: str
    path: str
    query: str
    headers: Mapping[str, str] = field(repr=False)
    """By lower-case name; a header that came twice has its values joined by a comma."""
    body: bytes = field(repr=False)
    """The raw bytes, before any content encoding was undone."""
    json: Any = field(default=None, repr=False)
    """The parsed body; None where there is none or where it is no JSON."""
    wire: WireName | None = None
    """The wire that the path belongs to; None for model listings, counting and unknown paths."""
    violations: tuple[str, ...] = ()
    """What was wrong with the request, one sentence each."""
    tokens: int = 0
    """Input tokens by the server's count."""
    cached: int = 0
    """How many of them an earlier request already began with."""
    answer: Answer | None = field(default=None, repr=False)
    """What the script said; None where the request was refused before the script was asked, or asked for no model."""
    status: int | None = None
    """Status of the answer, once its headers were sent."""
    finished: bool = False
    """Whether the answer was sent to its end (or to its cut) while the client listened."""

    @property
    def messages(self) -> list[Any]:
        """The value of `messages` or `input`; [] where there is none."""
        value = self.json.get("messages", self.json.get("input")) if isinstance(self.json, dict) else None
        return value if isinstance(value, list) else []

    @property
    def tool_names(self) -> list[str]:
        """Names of the tools that the request offers, for scripts that call whichever of several clients' tools is there."""
        tools = self.json.get("tools") if isinstance(self.json, dict) else None
        found = [
            tool.get("name") or (tool.get("function") or {}).get("name")
            for tool in tools or ()
            if isinstance(tool, dict)
        ]
        return [name for name in found if isinstance(name, str)]

    @property
    def key(self) -> str:
        """The key that the client sent; empty where it sent none."""
        bearer = self.headers.get("authorization", "")
        return self.headers.get("x-api-key") or bearer.removeprefix("Bearer ").strip()
