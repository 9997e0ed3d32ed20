"""OpenAI Chat Completions, serving side."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...transcript import Usage
from .script import Call, Cut, Reply
from .stream import CREATED, Events, Turn, event, pieces, split_arguments

__all__ = ["ChatServer"]

_FINISH = {"context_window": "model_context_window_exceeded"}


class ChatServer:
    """Answers of `POST /v1/chat/completions`. Reasoning travels in `reasoning_content`, as the servers do that tell any."""

    provider = "openai/chat"

    def body(self, reply: Reply, turn: Turn) -> dict[str, Any]:
        """The answer as one `chat.completion`."""
        message: dict[str, Any] = {"role": "assistant", "content": reply.text or None, "refusal": None}
        if reply.reasoning:
            message["reasoning_content"] = reply.reasoning
        if reply.calls:
            message["tool_calls"] = [_call(call, turn, index) for index, call in enumerate(reply.calls)]
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish(reply)}
        body = {**_base(turn, "chat.completion"), "choices": [choice]}
        return {**body, "usage": _usage(turn.usage)} if reply.report_usage else body

    def events(self, reply: Reply, turn: Turn) -> Events:
        """The answer as `chat.completion.chunk` events and `[DONE]`; usage only where `stream_options.include_usage` asks for it."""
        options = turn.request.get("stream_options")
        counted = isinstance(options, dict) and options.get("include_usage") is True and reply.report_usage
        yield "start"
        yield _chunk(turn, {"role": "assistant", "content": ""}, counted=counted)
        for delta in _deltas(reply, turn):
            yield delta if isinstance(delta, str) else _chunk(turn, delta, counted=counted)
        yield "before_finish"
        yield _chunk(turn, {}, _finish(reply), counted=counted)
        if counted:
            yield event({**_base(turn, "chat.completion.chunk"), "choices": [], "usage": _usage(turn.usage)})
        yield "before_end"
        yield event(b"[DONE]")

    def error(self, turn: Turn, kind: str, message: str, *, code: str | None = None, param: str | None = None) -> Any:
        """OpenAI's error frame."""
        return {"error": {"message": message, "type": kind, "param": param, "code": code}}

    def error_events(self, turn: Turn, body: Any, after: str) -> Events:
        """Text, then the error's body as one event; no `[DONE]` follows."""
        yield _chunk(turn, {"role": "assistant", "content": ""})
        for piece in pieces(after, None):
            yield _chunk(turn, {"content": piece})
        yield event(body)


def _base(turn: Turn, kind: str) -> dict[str, Any]:
    return {"id": turn.id("chatcmpl"), "object": kind, "created": CREATED, "model": turn.model}


def _chunk(turn: Turn, delta: dict[str, Any], finish: str | None = None, *, counted: bool = False) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    chunk = {**_base(turn, "chat.completion.chunk"), "choices": [choice]}
    return event({**chunk, "usage": None} if counted else chunk)


def _deltas(reply: Reply, turn: Turn) -> Iterator[dict[str, Any] | Cut]:
    """The deltas of the content, and the places between them."""
    for piece in pieces(reply.reasoning, reply.delta_size):
        yield {"reasoning_content": piece}
    for at, piece in enumerate(pieces(reply.text, reply.delta_size)):
        yield {"content": piece}
        if at == 0:
            yield "text"
    for index, call in enumerate(reply.calls):
        if index == 0:
            yield "before_call"
        kind, field = ("custom", "input") if call.kind == "custom" else ("function", "arguments")
        opened = {"index": index, "id": _call_id(call, turn, index), "type": kind, kind: {"name": call.name, field: ""}}
        yield {"tool_calls": [opened]}
        for at, piece in enumerate(split_arguments(call.text, reply.delta_size)):
            yield {"tool_calls": [{"index": index, kind: {field: piece}}]}
            if index == at == 0:
                yield "in_call"
    if reply.calls:
        yield "after_call"


def _call_id(call: Call, turn: Turn, index: int) -> str:
    return call.id or turn.id("call", index)


def _call(call: Call, turn: Turn, index: int) -> dict[str, Any]:
    if call.kind == "custom":
        return {"id": _call_id(call, turn, index), "type": "custom", "custom": {"name": call.name, "input": call.text}}
    return {
        "id": _call_id(call, turn, index),
        "type": "function",
        "function": {"name": call.name, "arguments": call.text},
    }


def _finish(reply: Reply) -> str:
    if reply.finish is None:
        return "tool_calls" if reply.calls else "stop"
    return _FINISH.get(reply.finish, reply.finish)


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.total,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    }
