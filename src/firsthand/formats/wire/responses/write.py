"""Entries to items of the Responses API."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ....transcript import Block, Entry, Media, Reasoning, Role, Text, ToolCall, ToolResult, Unknown
from ..calls import accepted_name, argument_text, wire_ids
from ..common import foreign_text, results_and_rest, server_call_ids
from ..placeholders import EMPTY_MESSAGE, EMPTY_RESULT, FAILED_RESULT, left_out
from ..shape import hint, restored
from .items import NAME, own_call, own_message, own_output, own_reasoning
from .parts import media_part, text_part

__all__ = ["write_items"]

_LONGEST_ID = 64
_COMPACTION = frozenset({"compaction", "compaction_summary"})

Item = dict[str, Any]


def write_items(entries: Sequence[Entry]) -> list[Item]:
    """The items of a valid request; pairs and order must be right already."""
    return _Writer(entries).items()


class _Writer:
    def __init__(self, entries: Sequence[Entry]) -> None:
        self._entries = entries
        self._hosted = server_call_ids(entries)
        self._ids = wire_ids(entries, lambda entry, call_id: _own(entry) or len(call_id) <= _LONGEST_ID, _LONGEST_ID)
        answers = {
            block.call_id: (entry, block)
            for entry in entries
            for block in entry.blocks
            if isinstance(block, ToolResult)
        }
        self._kinds: dict[str, str] = {}
        """For each call the type of its output."""
        self._native: set[str] = set()
        """Calls of the provider's own tools that are written as such."""
        for entry in entries:
            for block in entry.blocks:
                if isinstance(block, ToolCall):
                    kind = _output_kind(entry, block, answers.get(block.id))
                    self._kinds[block.id] = kind or "function_call_output"
                    if _own(entry) and kind is not None:
                        self._native.add(block.id)

    def items(self) -> list[Item]:
        made: list[tuple[Item, bool]] = []
        torn = _torn(self._entries)
        for entry in self._entries:
            produced: Iterable[Item] = self._assistant(entry) if entry.role == "assistant" else self._other(entry)
            if entry.id in torn:
                produced = (_unnamed(item) for item in produced)
            made += [(item, _own(entry) and entry.role == "assistant") for item in produced]
        out: list[Item] = []
        follower = False
        for item, own in reversed(made):
            # A reasoning item without the item that it led to is refused.
            if item["type" if "type" in item else "role"] == "reasoning" and not follower:
                continue
            follower = own
            out.append(item)
        return out[::-1]

    def _other(self, entry: Entry) -> Iterator[Item]:
        results, rest = results_and_rest(entry)
        for result in results:
            if result.call_id not in self._hosted:
                yield self._output(entry, result)
        if results and not rest:
            return
        role: Role = "user" if entry.role == "tool" else entry.role
        if not results and (item := _whole_item(entry)) is not None:
            yield item
            return
        if _own(entry) and not results and role == entry.role:
            message = restored(own_message(entry, exact=False), entry.extra)
            if message["content"] or message["content"] == "":
                yield message
                return
        content = [part for block in rest for part in _parts(block, role, own=_own(entry))]
        if not content and role == "user" and not results:
            content = [text_part(EMPTY_MESSAGE, role)]
        if content:
            yield {"type": "message", "role": role, "content": content}

    def _output(self, entry: Entry, result: ToolResult) -> Item:
        kind = self._kinds.get(result.call_id, "function_call_output")
        call_id = self._ids[result.call_id]
        if _own(entry):
            native = hint(result.extra, "type") or "function_call_output"
            item = own_output(result, call_id=call_id, kind=kind, exact=False)
            plain = hint(result.extra, "output") != "raw" or native == kind
            if plain and (item["output"] or (item["output"] == "" and result.content)):
                return restored(item, result.extra)
        parts = [part for block in result.content for part in _parts(block, "tool", own=_own(entry))]
        if not parts:
            parts = [text_part(FAILED_RESULT if result.is_error else EMPTY_RESULT, "tool")]
        only = parts[0]["text"] if len(parts) == 1 and parts[0]["type"] == "input_text" else None
        return {"type": kind, "call_id": call_id, "output": parts if only is None else only}

    def _assistant(self, entry: Entry) -> Iterator[Item]:
        if (item := _whole_item(entry)) is not None:
            yield item
            return
        own = _own(entry)
        if own and entry.blocks and all(isinstance(block, Text | Media | Unknown) for block in entry.blocks):
            message = restored(own_message(entry, exact=False), entry.extra)
            if message["content"] or message["content"] == "":
                yield message
            return
        for block in entry.blocks:
            if isinstance(block, Text | Media | Unknown):
                # A text of the model as a list of parts would need an id and a status that only the provider can give.
                for part in _parts(block, "assistant", own=own):
                    yield {"type": "message", "role": "assistant", "content": part["text"]}
            elif (item := self._item(entry, block)) is not None:
                yield item

    def _item(self, entry: Entry, block: Reasoning | ToolCall | ToolResult) -> Item | None:
        if isinstance(block, Reasoning):
            # Readable thoughts of others are no item that the provider would take.
            theirs = _own(entry) and any((block.opaque or {}).get(name) for name in ("id", "encrypted_content"))
            return restored(own_reasoning(block), block.extra) if theirs else None
        if isinstance(block, ToolResult) or block.kind == "server":
            return None
        call_id = self._ids[block.id]
        if block.id in self._native:
            return restored(own_call(block, call_id=call_id, exact=False), block.extra)
        name = accepted_name(block.name)
        if block.kind == "custom":
            return {"type": "custom_tool_call", "call_id": call_id, "name": name, "input": block.arguments}
        return {"type": "function_call", "call_id": call_id, "name": name, "arguments": argument_text(block)}


def _own(entry: Entry) -> bool:
    return entry.wire == NAME


def _torn(entries: Sequence[Entry]) -> set[str]:
    """Entries of a response of this wire whose beginning is not there: what came directly before them was left out.

    The provider keeps items by their ids, and refuses one whose reasoning item is missing. A run that begins with its reasoning is whole.
    """
    torn: set[str] = set()
    before: Entry | None = None
    in_torn = False
    for entry in entries:
        if entry.role != "assistant" or not _own(entry):
            in_torn = False
        elif before is None or before.role != "assistant" or not _own(before):
            follows = entry.parent is None if before is None else entry.parent == before.id
            in_torn = not follows and not any(isinstance(block, Reasoning) for block in entry.blocks[:1])
        if in_torn:
            torn.add(entry.id)
        before = entry
    return torn


def _unnamed(item: Item) -> Item:
    """The item without the provider's id, which makes it one of the client's own; the types that need their id keep it."""
    if item.get("type", "message") not in ("message", "function_call", "custom_tool_call"):
        return item
    return {name: value for name, value in item.items() if name != "id"}


def _output_kind(entry: Entry, call: ToolCall, answer: tuple[Entry, ToolResult] | None) -> str | None:
    """The type of the output that answers a call; None where the call has to become a function's to be answered at all.

    A call of one of the provider's own tools stays one only when its output came from this wire as well: what stands for an output that is
    not there could not be written in such a tool's form.
    """
    if call.kind == "custom":
        return "custom_tool_call_output"
    if call.kind in ("function", "local_shell_call"):
        # The output of a local shell may have the form of a function's, and with some clients always has.
        native = hint(answer[1].extra, "type") if answer is not None and _own(answer[0]) else None
        return native if native == f"{call.kind}_output" else "function_call_output"
    if not _own(entry):
        return None
    if answer is None:
        return f"{call.kind}_output"
    return hint(answer[1].extra, "type") if _own(answer[0]) else None


def _whole_item(entry: Entry) -> Item | None:
    """An item that only the provider has a word for, as it came; None when the entry is none, or not this provider's."""
    if len(entry.blocks) != 1 or not isinstance(entry.blocks[0], Unknown) or not isinstance(entry.blocks[0].raw, dict):
        return None
    raw = entry.blocks[0].raw
    if _own(entry) and hint(entry.extra, "item"):
        return dict(raw)
    return dict(raw) if str(raw.get("type")) in _COMPACTION and entry.wire in (NAME, None) else None


def _parts(block: Block, role: Role, *, own: bool) -> Iterable[Item]:
    """A block as parts of a message or an output; none when nothing of it can be shown."""
    if isinstance(block, Unknown):
        block = foreign_text(block, by_model=role == "assistant") or Text("")
    if isinstance(block, Text):
        return [text_part(block.text, role)] if block.text else []
    if isinstance(block, Media):
        return [text_part(left_out(block), role) if role == "assistant" else media_part(block, own=own)]
    return []
