"""The shape of a session's requests: system prompt, tools and settings, from its file or as a client was seen to send them.

The question of an exam is sent in this shape, so that the reader is asked as the session itself would be; and only so a prefix cache serves it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from ...codec import decode, encode
from ...errors import ConfigError
from ...transcript import Transcript

__all__ = ["RequestShape", "chat_tools", "read_shape", "shape_of", "shape_of_body", "write_shape"]

_SCHEMAS = ("parameters", "input_schema", "inputSchema")
_CONTENT = ("messages", "input", "system", "instructions", "tools", "model")
_IDENTITY = ("metadata", "client_metadata", "user", "safety_identifier", "prompt_cache_key", "previous_response_id")
_NO_SETTINGS = frozenset((*_CONTENT, *_IDENTITY))
"""What is kept elsewhere, and what tells who sent it."""


@dataclass(frozen=True)
class RequestShape:
    """System prompt and tools as they go into a chat request, and where they come from."""

    system: str | None
    tools: tuple[dict[str, Any], ...] = ()
    source: str = "session"
    """`session`: from the session's file; `captured`: as a client sent it."""
    left_out: tuple[str, ...] = ()
    """Tools that a chat request cannot offer, such as those that a provider runs itself, by name or type."""
    among_messages: bool = False
    """Whether the system prompt stands among the session's messages, where it stays."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """The other fields that the client sent, for the record; none of them is sent."""

    @property
    def told(self) -> str:
        """What it holds, in a few words for a table."""
        system = "a system prompt among its messages" if self.among_messages else "no system prompt"
        if self.system:
            system = f"{len(self.system.encode('utf-8', 'surrogatepass')):,} bytes of system prompt"
        return f"{system}, {len(self.tools)} tools ({self.source})"


class _File(msgspec.Struct, forbid_unknown_fields=True):
    """What `firsthand lab capture` writes."""

    system: str
    tools: list[dict[str, Any]]
    wire: str
    system_bytes: int
    tool_names: list[str]
    left_out: list[str]
    settings: dict[str, Any]
    client: str = ""


def shape_of(transcript: Transcript) -> RequestShape:
    """The shape that a session's file records. Many record no tools, and some no system prompt: `told` says so.

    A system prompt that stands among the messages stays there and is not repeated.
    """
    tools, left_out = chat_tools(transcript.tools or ())
    path = transcript.path()
    among = bool(path) and path[0].role in ("system", "developer")
    return RequestShape(transcript.system or None, tools, "session", left_out, among_messages=among)


def shape_of_body(body: Mapping[str, Any]) -> RequestShape:
    """The shape of a request of any of the three APIs.

    Raises:
        ConfigError: it has no system prompt, or offers no tools; such a request (a title, a warm-up) is not the session's.
    """
    system = _system(body)
    offered = body.get("tools")
    tools, left_out = chat_tools(offered if isinstance(offered, list) else ())
    if not system.strip():
        raise ConfigError("the request has no system prompt")
    if not tools:
        raise ConfigError("the request offers no tools")
    settings = {name: value for name, value in body.items() if name not in _NO_SETTINGS}
    return RequestShape(system, tools, "captured", left_out, settings=settings)


def chat_tools(tools: Iterable[Any]) -> tuple[tuple[dict[str, Any], ...], tuple[str, ...]]:
    """Tool definitions of any API as a chat request has them, order kept; and the names of those it cannot have."""
    made: list[dict[str, Any]] = []
    left_out: list[str] = []
    for tool in tools:
        given = tool if isinstance(tool, dict) else {}
        inner = given.get("function")
        if given.get("type") == "function" and isinstance(inner, dict):
            made.append(given)
            continue
        schema = next((given[name] for name in _SCHEMAS if isinstance(given.get(name), dict)), None)
        name = given.get("name")
        if schema is None or not isinstance(name, str) or given.get("type", "function") not in ("function", "custom"):
            left_out.append(str(name or given.get("type") or tool)[:80])
            continue
        described = {"description": given["description"]} if isinstance(given.get("description"), str) else {}
        made.append({"type": "function", "function": {"name": name, **described, "parameters": schema}})
    return tuple(made), tuple(left_out)


def _system(body: Mapping[str, Any]) -> str:
    """The system prompt: a field of its own, or the system and developer messages before the first other one."""
    parts = [_text(body.get(name)) for name in ("system", "instructions")]
    messages = body.get("messages", body.get("input"))
    for message in messages if isinstance(messages, list) else ():
        if not isinstance(message, dict) or message.get("role") not in ("system", "developer"):
            break
        parts.append(_text(message.get("content")))
    return "\n\n".join(part for part in parts if part)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n\n".join(
            part["text"] for part in value if isinstance(part, dict) and isinstance(part.get("text"), str)
        )
    return ""


def write_shape(shape: RequestShape, wire: str, client: str = "") -> bytes:
    """The shape as a JSON file, with what a person wants to check first beside it."""
    system = shape.system or ""
    file = _File(
        system=system,
        tools=list(shape.tools),
        wire=wire,
        system_bytes=len(system.encode("utf-8", "surrogatepass")),
        tool_names=[tool["function"]["name"] for tool in shape.tools],
        left_out=list(shape.left_out),
        settings=dict(shape.settings),
        client=client,
    )
    return encode(file)


def read_shape(path: Path) -> RequestShape:
    """A captured shape.

    Raises:
        ConfigError: the file is not there, is none that `firsthand lab capture` wrote, or was changed: its size in bytes differs.
    """
    try:
        file = msgspec.convert(decode(path.read_bytes()), _File)
    except OSError as error:
        raise ConfigError(f"the shape in {path} cannot be read: {error.strerror}") from error
    except (ValueError, msgspec.ValidationError) as error:
        raise ConfigError(f"{path} is no shape that `firsthand lab capture` wrote: {error}") from error
    found = len(file.system.encode("utf-8", "surrogatepass"))
    if found != file.system_bytes or not file.system.strip() or not file.tools:
        raise ConfigError(
            f"{path} holds a system prompt of {found:,} bytes and {len(file.tools)} tools, and says {file.system_bytes:,} bytes; capture it again"
        )
    tools, _ = chat_tools(file.tools)
    return RequestShape(file.system, tools, "captured", tuple(file.left_out), settings=file.settings)
