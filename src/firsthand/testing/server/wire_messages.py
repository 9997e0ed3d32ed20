"""Anthropic Messages, serving side."""

from __future__ import annotations

from typing import Any

from ...codec import compact_json, decode
from ...transcript import Usage
from .script import Call, Reply
from .stream import Events, Turn, event, pieces, split_arguments

__all__ = ["MessagesServer"]

_FINISH = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "length": "max_tokens",
    "content_filter": "refusal",
    "context_window": "model_context_window_exceeded",
}


class MessagesServer:
    """Answers of `POST /v1/messages`."""

    provider = "anthropic"

    def body(self, reply: Reply, turn: Turn) -> dict[str, Any]:
        """The answer as one `message`."""
        return {
            **_message(turn),
            "content": _blocks(reply, turn),
            "stop_reason": _finish(reply),
            "usage": _usage(reply, turn.usage),
        }

    def events(self, reply: Reply, turn: Turn) -> Events:
        """The answer as named events from `message_start` to `message_stop`."""
        usage = _usage(reply, turn.usage)
        yield "start"
        opened = {**_message(turn), "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
        yield _named("message_start", message=opened)
        yield _named("ping")
        index = 0
        if reply.reasoning or reply.opaque:
            yield _named(
                "content_block_start", index=index, content_block={"type": "thinking", "thinking": "", "signature": ""}
            )
            for piece in pieces(reply.reasoning, reply.delta_size):
                yield _delta(index, "thinking_delta", thinking=piece)
            yield _delta(index, "signature_delta", signature=_signature(reply, turn))
            yield _named("content_block_stop", index=index)
            index += 1
        if reply.text:
            yield from _text(index, reply.text, reply.delta_size)
            index += 1
        for at, call in enumerate(reply.calls):
            if at == 0:
                yield "before_call"
            yield _named("content_block_start", index=index, content_block={**_call(call, turn, at), "input": {}})
            for part, piece in enumerate(split_arguments(_streamed(call), reply.delta_size)):
                yield _delta(index, "input_json_delta", partial_json=piece)
                if at == part == 0:
                    yield "in_call"
            yield _named("content_block_stop", index=index)
            index += 1
        if reply.calls:
            yield "after_call"
        for block in reply.items:
            yield _named("content_block_start", index=index, content_block=block)
            yield _named("content_block_stop", index=index)
            index += 1
        yield "before_finish"
        yield _named("message_delta", delta={"stop_reason": _finish(reply), "stop_sequence": None}, usage=usage)
        yield "before_end"
        yield _named("message_stop")

    def error(self, turn: Turn, kind: str, message: str, *, code: str | None = None, param: str | None = None) -> Any:
        """Anthropic's error frame; a parameter stands in front of the message, as Anthropic writes it."""
        text = f"{param}: {message}" if param else message
        return {"type": "error", "error": {"type": kind, "message": text}, "request_id": turn.id("req")}

    def error_events(self, turn: Turn, body: Any, after: str) -> Events:
        """A begun message with a begun text, then an `error` event."""
        usage = {"input_tokens": turn.usage.input_tokens, "output_tokens": 1}
        yield _named("message_start", message={**_message(turn), "content": [], "stop_reason": None, "usage": usage})
        if after:
            yield from list(_text(0, after, None))[:-1]
        yield event(body, "error")


def _named(name: str, **fields: Any) -> bytes:
    return event({"type": name, **fields}, name)


def _delta(index: int, kind: str, **fields: Any) -> bytes:
    return _named("content_block_delta", index=index, delta={"type": kind, **fields})


def _text(index: int, text: str, size: int | None) -> Events:
    yield _named("content_block_start", index=index, content_block={"type": "text", "text": ""})
    for at, piece in enumerate(pieces(text, size)):
        yield _delta(index, "text_delta", text=piece)
        if at == 0:
            yield "text"
    yield _named("content_block_stop", index=index)


def _message(turn: Turn) -> dict[str, Any]:
    return {"id": turn.id("msg"), "type": "message", "role": "assistant", "model": turn.model, "stop_sequence": None}


def _blocks(reply: Reply, turn: Turn) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    if reply.reasoning or reply.opaque:
        blocks.append({"type": "thinking", "thinking": reply.reasoning, "signature": _signature(reply, turn)})
    if reply.text:
        blocks.append({"type": "text", "text": reply.text})
    blocks += [_call(call, turn, index) for index, call in enumerate(reply.calls)]
    return [*blocks, *reply.items]


def _signature(reply: Reply, turn: Turn) -> str:
    return reply.opaque or turn.id("signature")


def _call(call: Call, turn: Turn, index: int) -> dict[str, Any]:
    return {"type": "tool_use", "id": call.id or turn.id("toolu", index), "name": call.name, "input": _input(call)}


def _input(call: Call) -> dict[str, Any]:
    """The arguments as the object that this wire wants; a text that is none is wrapped, so that it is not lost."""
    if call.kind == "custom":
        return {"input": call.text}
    try:
        value = decode(call.text or "{}")
    except ValueError:
        value = None
    return value if isinstance(value, dict) else {"INVALID_JSON": call.text}


def _streamed(call: Call) -> str:
    """The text of a call's input as a stream sends it: a function's arguments as they stand, also where they are no JSON."""
    return compact_json(_input(call)) if call.kind == "custom" else call.text


def _finish(reply: Reply) -> str:
    if reply.finish is None:
        return "tool_use" if reply.calls else "end_turn"
    return _FINISH.get(reply.finish, reply.finish)


def _usage(reply: Reply, usage: Usage) -> dict[str, Any]:
    """Anthropic counts what its cache served or stored apart from `input_tokens` (AC-06)."""
    if not reply.report_usage:
        return {"input_tokens": 0, "output_tokens": 0}
    return {
        "input_tokens": max(0, usage.input_tokens - usage.cache_read - usage.cache_write),
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read,
        "output_tokens": usage.output_tokens,
    }
