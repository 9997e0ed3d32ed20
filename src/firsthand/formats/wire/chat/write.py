"""Entries to Chat Completions messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ....codec import decode
from ....transcript import Block, Entry, Media, Reasoning, Role, Text, ToolCall, ToolResult, Unknown
from ..calls import accepted_name, argument_text, wire_ids
from ..common import foreign_text, has_words, results_and_rest, server_call_ids
from ..placeholders import EMPTY_MESSAGE, EMPTY_RESULT, FAILED_RESULT, image_label, left_out, moved
from ..shape import hint, restored
from .parts import media_part, own_part

__all__ = ["own_call", "own_message", "write_messages"]

_NAME = "openai-chat"
_LONGEST_ID = 40

Message = dict[str, Any]


def own_call(call: ToolCall, *, call_id: str | None = None, exact: bool = True) -> Message:
    """A call as this wire's client wrote it, its own fields aside. Without `exact`, broken arguments become valid JSON."""
    arguments: Any = call.arguments if exact or call.kind == "custom" else argument_text(call, any_json=True)
    if hint(call.extra, "arguments") == "object":
        arguments = decode(call.arguments)
    if hint(call.extra, "at") == "function_call":
        return {"name": call.name, "arguments": arguments}
    if call.kind == "custom":
        return {"id": call_id or call.id, "type": "custom", "custom": {"name": call.name, "input": arguments}}
    return {"id": call_id or call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def own_message(entry: Entry, *, exact: bool) -> Message:
    """A message that was read from this wire, fields that only the client knows aside.

    With `exact` as it was; without, made acceptable where it was not: empty parts are left out, broken arguments wrapped.
    """
    if entry.role == "tool":
        return _own_result(entry.blocks[0], exact=exact)
    message: Message = {"role": entry.role, "content": _own_content(entry, exact=exact)}
    calls: list[Message] = []
    for block in entry.blocks:
        at = hint(block.extra, "at") if not isinstance(block, Unknown) else None
        if isinstance(block, ToolCall):
            if block.kind == "server":
                continue
            made = restored(own_call(block, exact=exact), block.extra)
            if at == "function_call":
                message["function_call"] = made
            else:
                calls.append(made)
        elif isinstance(block, Reasoning) and at:
            message[at] = block.text
        elif isinstance(block, Text) and at == "refusal":
            message["refusal"] = block.text
        elif isinstance(block, Media) and at == "audio":
            message["audio"] = dict((block.extra or {})["audio"])
    if calls:
        message["tool_calls"] = calls
    return message


def _own_result(result: Block, *, exact: bool) -> Message:
    assert isinstance(result, ToolResult)
    content = _content(result.content, "tool", as_list=hint(result.extra, "content") == "list", exact=exact)
    name = {"name": result.name} if result.name else {}
    if hint(result.extra, "at") == "function":
        return {"role": "function", **name, "content": content}
    return {"role": "tool", "tool_call_id": result.call_id, **name, "content": content}


def _own_content(entry: Entry, *, exact: bool) -> Any:
    content = [
        block
        for block in entry.blocks
        if isinstance(block, Unknown) or (isinstance(block, Text | Media) and not hint(block.extra, "at"))
    ]
    return _content(content, entry.role, as_list=hint(entry.extra, "content") == "list", exact=exact)


def _content(blocks: Sequence[Block], role: Role, *, as_list: bool, exact: bool) -> Any:
    """The value of `content` for blocks that were read from this wire."""
    if len(blocks) == 1 and isinstance(blocks[0], Text) and not blocks[0].extra and not as_list:
        return blocks[0].text
    parts = []
    for block in blocks:
        if isinstance(block, Media) and not exact:
            parts.append(media_part(block, own=True) if role == "user" else _text(left_out(block)))
        elif exact or not (isinstance(block, Text) and not block.text):
            parts.append(restored(own_part(block), None if isinstance(block, Unknown) else block.extra))
    return parts if parts or as_list else None


def write_messages(entries: Sequence[Entry]) -> list[Message]:
    """The messages of a valid request; pairs and order must be right already."""
    return _Writer(entries).messages()


class _Writer:
    def __init__(self, entries: Sequence[Entry]) -> None:
        self._hosted = server_call_ids(entries)
        # Ids of this wire's own entries were accepted by their provider, whatever their length; some carry signatures.
        self._ids = wire_ids(entries, lambda entry, call_id: _own(entry) or len(call_id) <= _LONGEST_ID, _LONGEST_ID)
        self._groups = list(_groups(entry for entry in entries if self._shows(entry)))
        self._legacy = {
            block.id: block.name
            for group in self._groups
            if len(group) == 1
            for block in group[0].blocks
            if isinstance(block, ToolCall) and hint(block.extra, "at") == "function_call" and _own(group[0])
        }
        self._attached: list[Message] = []
        """Parts for a user message, which waits until the last result of the step."""

    def messages(self) -> list[Message]:
        out: list[Message] = []
        for group in self._groups:
            if group[0].role == "assistant":
                out += self._flushed()
                out += self._assistant(group)
            else:
                out += self._other(group[0])
        return out + self._flushed()

    def _shows(self, entry: Entry) -> bool:
        """Whether an entry of the assistant leaves anything on this wire."""
        if entry.role != "assistant":
            return True
        return any(_shown(block, own=_own(entry)) for block in entry.blocks)

    def _flushed(self) -> list[Message]:
        attached, self._attached = self._attached, []
        return [{"role": "user", "content": attached}] if attached else []

    def _other(self, entry: Entry) -> Iterator[Message]:
        results, rest = results_and_rest(entry)
        for result in results:
            if result.call_id not in self._hosted:
                yield self._result(entry, result)
        if results and not rest:
            return
        yield from self._flushed()
        role = "user" if entry.role == "tool" else entry.role
        if _own(entry) and not results and entry.role == role:
            message = restored(own_message(entry, exact=False), entry.extra)
            if message.get("content") not in _NOTHING:
                yield message
                return
        content = self._parts(rest, entry)
        if content:
            yield {"role": role, "content": _simple(content)}
        elif role == "user" and not results:
            yield {"role": role, "content": EMPTY_MESSAGE}

    def _result(self, entry: Entry, result: ToolResult) -> Message:
        if _own(entry) and len(entry.blocks) == 1 and all(isinstance(part, Text) for part in result.content):
            legacy = hint(result.extra, "at") == "function"
            if legacy == (result.call_id in self._legacy):
                message = restored(_own_result(result, exact=False), entry.extra)
                if message.get("content") not in _NOTHING:
                    return message if legacy else message | {"tool_call_id": self._ids[result.call_id]}
        content = self._result_content(result)
        if result.call_id in self._legacy:
            return {"role": "function", "name": self._legacy[result.call_id], "content": _joined(content)}
        return {"role": "tool", "tool_call_id": self._ids[result.call_id], "content": _simple(content)}

    def _result_content(self, result: ToolResult) -> list[Message]:
        parts: list[Message] = []
        number = 0
        for block in result.content:
            if isinstance(block, Unknown):
                block = foreign_text(block, by_model=False) or Text("")
            if isinstance(block, Text):
                if block.text:
                    parts.append(_text(block.text))
                continue
            part = media_part(block, own=False)
            if part["type"] == "text":
                parts.append(part)
                continue
            number += 1
            parts.append(_text(moved(number)))
            self._attached += [_text(image_label(self._ids[result.call_id], number)), part]
        return parts or [_text(FAILED_RESULT if result.is_error else EMPTY_RESULT)]

    def _parts(self, blocks: Iterable[Block], entry: Entry) -> list[Message]:
        """Parts of a message that is no assistant's; media only in the user's."""
        parts: list[Message] = []
        for block in blocks:
            if isinstance(block, Unknown):
                block = foreign_text(block, by_model=False) or Text("")
            if isinstance(block, Text) and block.text:
                parts.append(_text(block.text))
            elif isinstance(block, Media):
                in_place = entry.role in ("user", "tool")
                parts.append(media_part(block, own=_own(entry)) if in_place else _text(left_out(block)))
        return parts

    def _assistant(self, group: Sequence[Entry]) -> Iterator[Message]:
        if len(group) == 1 and _own(group[0]):
            message = restored(own_message(group[0], exact=False), group[0].extra)
            if message.get("tool_calls") == []:
                del message["tool_calls"]
            if any(message.get(name) not in _NOTHING for name in _CARRIES):
                yield message
            return
        texts: list[Message] = []
        calls: list[Message] = []
        for entry in group:
            for block in entry.blocks:
                if isinstance(block, Text) and block.text:
                    texts.append(_text(block.text))
                elif isinstance(block, Media):
                    texts.append(_text(left_out(block)))
                elif isinstance(block, ToolCall) and block.kind != "server":
                    calls.append(self._call(entry, block))
        if texts or calls:
            yield {
                "role": "assistant",
                "content": _simple(texts) if texts else None,
                **({"tool_calls": calls} if calls else {}),
            }

    def _call(self, entry: Entry, call: ToolCall) -> Message:
        call_id = self._ids[call.id]
        if _own(entry) and hint(call.extra, "at") is None:
            return restored(own_call(call, call_id=call_id, exact=False), call.extra)
        function = {"name": accepted_name(call.name), "arguments": argument_text(call)}
        return {"id": call_id, "type": "function", "function": function}


_NOTHING: tuple[Any, ...] = (None, [], {})
"""What says nothing as a content. An empty string is not among it: a client that sent one may send it again."""

_CARRIES = ("content", "tool_calls", "function_call", "refusal", "audio")
"""Fields of which an assistant message needs one."""


def _own(entry: Entry) -> bool:
    return entry.wire == _NAME


def _shown(block: Block, *, own: bool) -> bool:
    """Whether a block of the assistant leaves anything on this wire. An empty text of its own client counts: it is sent again."""
    if isinstance(block, Text):
        return own or bool(block.text)
    if isinstance(block, ToolCall):
        return block.kind != "server"
    return isinstance(block, Media) or (own and isinstance(block, Unknown))


def _groups(entries: Iterable[Entry]) -> Iterator[list[Entry]]:
    """Entries by message: neighbouring assistant entries together where the calls of one step are spread over them."""
    group: list[Entry] = []
    for entry in entries:
        if group and not (entry.role == "assistant" == group[0].role and _one_message(group, entry)):
            yield group
            group = []
        group.append(entry)
    if group:
        yield group


def _one_message(group: Sequence[Entry], entry: Entry) -> bool:
    if any(_calls(before) for before in group):
        # A call must be followed by its result, so whatever else the assistant says comes before it.
        return True
    own = any(_own(each) for each in (*group, entry))
    return not own and _calls(entry) and not has_words(entry.blocks)


def _calls(entry: Entry) -> bool:
    return any(isinstance(block, ToolCall) and block.kind != "server" for block in entry.blocks)


def _text(text: str) -> Message:
    return {"type": "text", "text": text}


def _simple(parts: list[Message]) -> Any:
    """One text as a string, which every server takes; else the list of parts."""
    return parts[0]["text"] if len(parts) == 1 and parts[0]["type"] == "text" else parts


def _joined(parts: Sequence[Message]) -> str:
    """The texts as one string, for the legacy function message, which takes no list."""
    return "\n".join(part["text"] for part in parts)
