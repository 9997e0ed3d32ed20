"""The two tools of a small coding agent, as a chat request offers them: for sessions that a small model reads."""

from __future__ import annotations

from typing import Any

__all__ = ["CODING_TOOLS"]


def _tool(name: str, description: str, **properties: str) -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": {name: {"type": "string", "description": text} for name, text in properties.items()},
        "required": list(properties),
    }
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


CODING_TOOLS = [
    _tool("read", "Read a file of the project.", path="Path from the root of the project."),
    _tool("bash", "Run a command and return what it prints.", command="The command line."),
]
