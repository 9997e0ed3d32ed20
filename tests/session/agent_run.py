"""Shared by the tests of the runtime: messages of the three wires, and a session that works for some steps."""

from __future__ import annotations

import json
from typing import Any

from firsthand.journal import Journal
from firsthand.session.events import Event
from firsthand.session.session import Session
from firsthand.tokens import EstimateCounter

WIRES = ("openai-chat", "openai-responses", "anthropic")
SYSTEM = "You are careful."
RULE = "Only port 8123 is free for the stub."
_SCHEMA = {"type": "object", "properties": {}}
TOOLS: dict[str, list[dict[str, Any]]] = {
    "openai-chat": [{"type": "function", "function": {"name": "read", "description": "Read.", "parameters": _SCHEMA}}],
    "openai-responses": [{"type": "function", "name": "read", "description": "Read.", "parameters": _SCHEMA}],
    "anthropic": [{"name": "read", "description": "Read.", "input_schema": _SCHEMA}],
}


def opened(journal: Journal, events: list[Event] | None = None, session_id: str = "s", **settings: Any) -> Session:
    """A session with a window of 32,000 and the plain estimate, unless told otherwise."""
    listen = events.append if events is not None else None
    return Session.open(
        session_id, journal=journal, **{"window": 32_000, "counter": EstimateCounter(), "on_event": listen, **settings}
    )


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def calls(number: int, wire: str = "openai-chat", usage: Any = None) -> dict[str, Any]:
    """A response that calls `read` once."""
    path = {"path": f"f{number}.py"}
    if wire == "anthropic":
        content = [{"type": "tool_use", "id": f"c{number}", "name": "read", "input": path}]
        return {"id": f"r{number}", "content": content, "stop_reason": "tool_use", "usage": usage}
    if wire == "openai-responses":
        item = {"type": "function_call", "call_id": f"c{number}", "name": "read", "arguments": json.dumps(path)}
        return {"id": f"r{number}", "output": [item], "status": "completed", "usage": usage}
    call = {"id": f"c{number}", "type": "function", "function": {"name": "read", "arguments": json.dumps(path)}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    return {"id": f"r{number}", "choices": [{"finish_reason": "tool_calls", "message": message}], "usage": usage}


def says(text: str | None, finish: str | None = "stop", usage: Any = None) -> dict[str, Any]:
    """A chat completion that is a text."""
    return {
        "id": "r",
        "choices": [{"finish_reason": finish, "message": {"role": "assistant", "content": text}}],
        "usage": usage,
    }


def result(number: int, tokens: int = 1_000, wire: str = "openai-chat") -> dict[str, Any]:
    text = f"{number} " + "x" * (4 * tokens - 8)
    if wire == "anthropic":
        return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"c{number}", "content": text}]}
    if wire == "openai-responses":
        return {"type": "function_call_output", "call_id": f"c{number}", "output": text}
    return {"role": "tool", "tool_call_id": f"c{number}", "content": text}


def work(session: Session, steps: range, tokens: int = 1_000) -> list[Any]:
    """So many steps of a tool loop; what `prepare` gave at each."""
    wire = session.settings.wire
    prepared = []
    for number in steps:
        prepared.append(session.prepare(system=SYSTEM, tools=TOOLS[wire], max_output=4_000))
        session.record(calls(number, wire))
        session.append([result(number, tokens, wire)])
    return prepared


def is_extension(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> bool:
    return json.dumps(after)[: len(json.dumps(before)) - 1] == json.dumps(before)[:-1]
