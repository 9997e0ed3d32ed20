"""OpenAI Responses, serving side."""

from __future__ import annotations

from typing import Any

from ...transcript import Usage
from .script import Call, Reply
from .stream import CREATED, Events, Turn, event, pieces, split_arguments

__all__ = ["ResponsesServer", "compacted", "wants_compaction"]

_CALLS = ("function_call", "custom_tool_call")
_INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}


class ResponsesServer:
    """Answers of `POST /v1/responses`."""

    provider = "openai/responses"

    def body(self, reply: Reply, turn: Turn) -> dict[str, Any]:
        """The answer as one `response`."""
        return _ended(reply, turn, _items(reply, turn))

    def events(self, reply: Reply, turn: Turn) -> Events:
        """The answer as numbered events from `response.created` to `response.completed` (or `.incomplete`)."""
        emit = _Numbered()
        items = _items(reply, turn)
        yield "start"
        begun = _response(turn, "in_progress")
        yield emit("response.created", response=begun)
        yield emit("response.in_progress", response=begun)
        calls = [index for index, item in enumerate(items) if item.get("type") in _CALLS]
        for index, item in enumerate(items):
            first = bool(calls) and index == calls[0]
            if first:
                yield "before_call"
            yield from _item_events(emit, index, item, reply.delta_size, first=first)
            yield emit("response.output_item.done", output_index=index, item=item)
            if calls and index == calls[-1]:
                yield "after_call"
        yield "before_finish"
        yield "before_end"
        ended = _ended(reply, turn, items)
        yield emit(f"response.{ended['status']}", response=ended)

    def error(self, turn: Turn, kind: str, message: str, *, code: str | None = None, param: str | None = None) -> Any:
        """OpenAI's error frame."""
        return {"error": {"message": message, "type": kind, "param": param, "code": code}}

    def error_events(self, turn: Turn, body: Any, after: str) -> Events:
        """A begun response with a begun text, then `response.failed`."""
        emit = _Numbered()
        yield emit("response.created", response=_response(turn, "in_progress"))
        if after:
            yield from _text_events(emit, {"item_id": turn.id("msg"), "output_index": 0}, _message(after, turn), None)
        error = body.get("error") if isinstance(body, dict) else None
        told = error if isinstance(error, dict) else {"message": str(error or body)}
        failed = _response(turn, "failed")
        failed["error"] = {
            "code": told.get("code") or told.get("type") or "server_error",
            "message": told.get("message") or "",
        }
        yield emit("response.failed", response=failed)


def wants_compaction(request: Any) -> bool:
    """Whether a request asks the server to compact: its last input item is a trigger (real-clients.md, Codex with OpenAI's provider)."""
    items = request.get("input")
    return bool(
        isinstance(items, list)
        and items
        and isinstance(items[-1], dict)
        and items[-1].get("type") == "compaction_trigger"
    )


def compacted(reply: Reply, turn: Turn) -> Reply:
    """`reply` as the answer to a compaction trigger: exactly one opaque item, which holds what the reply says."""
    item = {"type": "compaction", "id": turn.id("cmp"), "encrypted_content": f"{turn.id('opaque')}:{reply.text}"}
    return Reply(
        items=(item,),
        usage=reply.usage,
        report_usage=reply.report_usage,
        delay=reply.delay,
        cut=reply.cut,
        headers=reply.headers,
    )


class _Numbered:
    """Events with the running number that this wire gives them."""

    def __init__(self) -> None:
        self.number = 0

    def __call__(self, name: str, **fields: Any) -> bytes:
        data = event({"type": name, "sequence_number": self.number, **fields}, name)
        self.number += 1
        return data


def _item_events(emit: _Numbered, index: int, item: dict[str, Any], size: int | None, *, first: bool) -> Events:
    """The events of one output item, without the one that says it is done."""
    at: dict[str, Any] = {"item_id": item.get("id"), "output_index": index}
    match item.get("type"):
        case "message":
            yield from _text_events(emit, at, item, size)
            text = item["content"][0]
            yield emit("response.output_text.done", **at, content_index=0, text=text["text"], logprobs=[])
            yield emit("response.content_part.done", **at, content_index=0, part=text)
        case "reasoning":
            yield emit("response.output_item.added", output_index=index, item={**item, "summary": []})
            for count, part in enumerate(item["summary"]):
                yield emit(
                    "response.reasoning_summary_part.added", **at, summary_index=count, part={**part, "text": ""}
                )
                for piece in pieces(part["text"], size):
                    yield emit("response.reasoning_summary_text.delta", **at, summary_index=count, delta=piece)
                yield emit("response.reasoning_summary_text.done", **at, summary_index=count, text=part["text"])
                yield emit("response.reasoning_summary_part.done", **at, summary_index=count, part=part)
        case "function_call" | "custom_tool_call" as kind:
            field = "arguments" if kind == "function_call" else "input"
            name = "response.function_call_arguments" if kind == "function_call" else "response.custom_tool_call_input"
            yield emit(
                "response.output_item.added", output_index=index, item={**item, "status": "in_progress", field: ""}
            )
            for count, piece in enumerate(split_arguments(item[field], size)):
                yield emit(f"{name}.delta", **at, delta=piece)
                if first and count == 0:
                    yield "in_call"
            yield emit(f"{name}.done", **at, **{field: item[field]})
        case _:
            yield emit("response.output_item.added", output_index=index, item=item)


def _text_events(emit: _Numbered, at: dict[str, Any], item: dict[str, Any], size: int | None) -> Events:
    """The events of a message up to the last piece of its text."""
    begun = {**item, "status": "in_progress", "content": []}
    yield emit("response.output_item.added", output_index=at["output_index"], item=begun)
    empty = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
    yield emit("response.content_part.added", **at, content_index=0, part=empty)
    for count, piece in enumerate(pieces(item["content"][0]["text"], size)):
        yield emit("response.output_text.delta", **at, content_index=0, delta=piece, logprobs=[])
        if count == 0:
            yield "text"


def _items(reply: Reply, turn: Turn) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if reply.reasoning or reply.opaque:
        summary = [{"type": "summary_text", "text": reply.reasoning}] if reply.reasoning else []
        item: dict[str, Any] = {"type": "reasoning", "id": turn.id("rs"), "summary": summary}
        if reply.opaque or "reasoning.encrypted_content" in (turn.request.get("include") or ()):
            item["encrypted_content"] = reply.opaque or turn.id("encrypted")
        items.append(item)
    if reply.text:
        items.append(_message(reply.text, turn))
    items += [_call(call, turn, index) for index, call in enumerate(reply.calls)]
    return [*items, *reply.items]


def _message(text: str, turn: Turn) -> dict[str, Any]:
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    return {"type": "message", "id": turn.id("msg"), "role": "assistant", "status": "completed", "content": [part]}


def _call(call: Call, turn: Turn, index: int) -> dict[str, Any]:
    call_id = call.id or turn.id("call", index)
    if call.kind == "custom":
        return {
            "type": "custom_tool_call",
            "id": turn.id("ctc", index),
            "call_id": call_id,
            "name": call.name,
            "input": call.text,
        }
    return {
        "type": "function_call",
        "id": turn.id("fc", index),
        "call_id": call_id,
        "name": call.name,
        "arguments": call.text,
        "status": "completed",
    }


def _response(turn: Turn, status: str) -> dict[str, Any]:
    request = turn.request
    return {
        "id": turn.id("resp"),
        "object": "response",
        "created_at": CREATED,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "instructions": request.get("instructions"),
        "max_output_tokens": request.get("max_output_tokens"),
        "model": turn.model,
        "output": [],
        "parallel_tool_calls": request.get("parallel_tool_calls", True),
        "previous_response_id": None,
        "store": request.get("store", True),
        "temperature": request.get("temperature", 1.0),
        "tool_choice": request.get("tool_choice", "auto"),
        "tools": request.get("tools") or [],
        "top_p": request.get("top_p", 1.0),
        "truncation": request.get("truncation", "disabled"),
        "usage": None,
        "metadata": request.get("metadata") or {},
    }


def _ended(reply: Reply, turn: Turn, items: list[dict[str, Any]]) -> dict[str, Any]:
    response = _response(turn, "completed")
    response["output"] = items
    reason = reply.finish if reply.finish not in (None, "stop", "tool_calls") else None
    if reason is not None:
        response["status"] = "incomplete"
        response["incomplete_details"] = {"reason": _INCOMPLETE.get(reason, reason)}
    if reply.report_usage:
        response["usage"] = _usage(turn.usage)
    return response


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.total,
    }
