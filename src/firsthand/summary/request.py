"""The body of a summary request: the session's own prefix, untouched, and one more user message (futureos.md 5.1).

Providers serve a cached prefix only where tools, system prompt and messages are the same from the first token on. So nothing of them is changed
to ask for a summary; the instruction stands at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..formats.wire import wire_by_name
from ..strategies.contract import SummaryRequest
from ..transcript import Entry, Text

__all__ = ["request_body", "summary_body"]


def request_body(
    wire: str,
    entries: Sequence[Entry],
    *,
    model: str | None = None,
    system: Any = None,
    tools: Sequence[Any] | None = None,
    max_output: int | None = None,
) -> dict[str, Any]:
    """The JSON body of a request with these entries, in the order of fields that providers document."""
    written = wire_by_name(wire).write(entries)
    body: dict[str, Any] = {} if model is None else {"model": model}
    if wire == "anthropic":
        both = [part for part in (system, written.system) if part]
        if both:
            body["system"] = both[0] if len(both) == 1 else [*_blocks(both[0]), *_blocks(both[1])]
        body["messages"] = written.messages
        limit = "max_tokens"
    elif wire == "openai-responses":
        if system:
            body["instructions"] = system
        body["input"] = written.messages
        limit = "max_output_tokens"
    else:
        body["messages"] = ([{"role": "system", "content": system}] if system else []) + written.messages
        limit = "max_completion_tokens"
    if tools:
        body["tools"] = list(tools)
    if max_output is not None:
        body[limit] = max_output
    return body


def summary_body(
    request: SummaryRequest,
    wire: str,
    entries: Sequence[Entry],
    *,
    model: str | None = None,
    system: Any = None,
    tools: Sequence[Any] | None = None,
) -> dict[str, Any]:
    """The body of a summary request.

    Args:
        request: what the strategy wants.
        wire: the session's wire.
        entries: the messages before the instruction, as the session sends them.
        model: the model's name.
        system: the session's own system prompt; used unless the request brings its own.
        tools: the session's own tools; left out when the request wants none.
    """
    instruction = Entry(id=f"summary-{request.id}", role="user", blocks=(Text(request.instruction, origin="injected"),))
    return request_body(
        wire,
        (*entries, instruction),
        model=model,
        system=system if request.system is None else request.system,
        tools=tools if request.tools == "session" else None,
        max_output=request.max_output,
    )


def _blocks(system: Any) -> list[Any]:
    return [{"type": "text", "text": system}] if isinstance(system, str) else list(system)
