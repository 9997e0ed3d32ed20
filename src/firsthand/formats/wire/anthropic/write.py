"""Entries to Anthropic messages and a system prompt."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from ....transcript import Block, Entry, Media, Reasoning, Text, ToolResult, Unknown
from ..cache_marks import with_few_marks
from ..calls import accepted_name, argument_object, wire_ids
from ..common import foreign_text, results_and_rest, server_call_ids
from ..media import IMAGE_TYPES, is_web
from ..placeholders import EMPTY_MESSAGE, EMPTY_RESULT, FAILED_RESULT, OPENING, left_out, relabelled
from ..shape import hint, restored
from .blocks import NAME, content_of, own_message, written_block

__all__ = ["write_messages"]

_ID = re.compile(r"[a-zA-Z0-9_-]+")
_LONGEST_ID = 64
_THINKING = ("thinking", "redacted_thinking")

Raw = dict[str, Any]


def write_messages(entries: Sequence[Entry]) -> tuple[list[Raw], Any]:
    """The messages of a valid request, and its system prompt (None for none); pairs and order must be right already."""
    front = 0
    while front < len(entries) and entries[front].role in ("system", "developer"):
        front += 1
    system = _system(entries[:front])
    messages = [_message(turn) for turn in _Writer(entries[front:]).turns()]
    return with_few_marks(messages, system)


def _system(entries: Sequence[Entry]) -> Any:
    if len(entries) == 1 and _own(entries[0]):
        entry = entries[0]
        kept = [block for block in entry.blocks if not (isinstance(block, Text) and not block.text.strip())]
        if len(kept) == len(entry.blocks) or len(entry.blocks) == 1:
            return content_of(entry.blocks, [written_block(block) for block in entry.blocks], entry.extra)
    blocks = [block for entry in entries for block in _rendered(entry.blocks, entry, {})]
    return blocks[0]["text"] if _is_plain(blocks) else blocks or None


@dataclass
class _Turn:
    """A message in the making."""

    role: str
    blocks: list[Raw]
    entry: Entry | None
    """The one entry of this wire's own that it is, if it is one and nothing was left out of it."""


class _Writer:
    def __init__(self, entries: Sequence[Entry]) -> None:
        self._entries = entries
        self._ids = wire_ids(entries, _accepts, _LONGEST_ID)
        self._hosted = server_call_ids(entries)

    def turns(self) -> list[_Turn]:
        turns = _joined(self._turn(entry) for entry in self._entries)
        _pair_hosted(turns)
        for turn in turns:
            if turn.role == "assistant":
                _settle_thinking(turn)
        turns = list(_joined(turn for turn in turns if turn.blocks))
        if turns and turns[0].role == "assistant":
            turns.insert(0, _Turn("user", [_text(OPENING)], None))
        return turns

    def _turn(self, entry: Entry) -> _Turn:
        if entry.role == "assistant":
            blocks = list(_rendered(entry.blocks, entry, self._ids))
            return _Turn("assistant", blocks, entry if _own(entry) and len(blocks) == len(entry.blocks) else None)
        results, rest = results_and_rest(entry)
        blocks = [self._result(entry, result) for result in results if result.call_id not in self._hosted]
        if entry.role in ("system", "developer"):
            blocks += [
                _text(relabelled(entry.role, block["text"])) for block in _rendered(rest, entry, {}) if "text" in block
            ]
            return _Turn("user", blocks, None)
        blocks += _rendered(rest, entry, self._ids)
        whole = _own(entry) and len(blocks) == len(entry.blocks) and list(entry.blocks) == [*results, *rest]
        if not blocks and not results and entry.role == "user":
            blocks = [_text(EMPTY_MESSAGE)]
        return _Turn("user", blocks, entry if whole and blocks else None)

    def _result(self, entry: Entry, result: ToolResult) -> Raw:
        own = _own(entry)
        as_it_was = content_of(result.content, [], result.extra)
        shown: Any
        if own and isinstance(as_it_was, str) and (as_it_was.strip() or not result.is_error):
            shown = as_it_was
        elif own and not result.content and not result.is_error:
            shown = None
        else:
            parts = list(_rendered(result.content, entry, {}, in_result=True))
            if not parts:
                parts = [_text(FAILED_RESULT if result.is_error else EMPTY_RESULT)]
            as_list = own and hint(result.extra, "content") == "list"
            shown = parts[0]["text"] if _is_plain(parts) and not as_list else parts
        made: Raw = {
            "type": "tool_result",
            "tool_use_id": self._ids[result.call_id],
            **({} if shown is None else {"content": shown}),
            **({"is_error": True} if result.is_error else {}),
        }
        return restored(made, result.extra) if own else made


def _rendered(blocks: Iterable[Block], entry: Entry, ids: dict[str, str], *, in_result: bool = False) -> Iterator[Raw]:
    """The blocks as content blocks; what cannot be shown is left out."""
    own = _own(entry)
    by_model = entry.role == "assistant"
    for block in blocks:
        if isinstance(block, Unknown):
            if own and isinstance(block.raw, dict) and isinstance(block.raw.get("type"), str):
                yield dict(block.raw)
                continue
            block = foreign_text(block, by_model=by_model) or Text("")
        if isinstance(block, Text):
            if block.text.strip():
                yield written_block(block) if own else _text(block.text)
        elif isinstance(block, Media):
            yield _media(block, own=own, allowed=not by_model and entry.role not in ("system", "developer"))
        elif in_result or isinstance(block, ToolResult):
            continue
        elif isinstance(block, Reasoning):
            if own and block.opaque and ("signature" in block.opaque or "data" in block.opaque):
                yield written_block(block)
        elif own:
            yield written_block(block, call_id=ids.get(block.id))
        elif block.kind != "server":
            yield {
                "type": "tool_use",
                "id": ids.get(block.id, block.id),
                "name": accepted_name(block.name),
                "input": argument_object(block),
            }


def _media(media: Media, *, own: bool, allowed: bool) -> Raw:
    by_value = media.data is not None and (
        media.media_type in IMAGE_TYPES if media.kind == "image" else media.media_type == "application/pdf"
    )
    known = media.kind in ("image", "document")
    if (
        own
        and allowed
        and known
        and (by_value or is_web(media) or (media.data is None and media.url is None and media.extra))
    ):
        return written_block(media)
    if allowed and known and (by_value or is_web(media)):
        return written_block(msgspec.structs.replace(media, extra=None))
    return _text(left_out(media))


def _joined(turns: Iterable[_Turn]) -> list[_Turn]:
    """Turns with blocks, neighbours of one role as one; results stand first in it."""
    out: list[_Turn] = []
    for turn in turns:
        if not turn.blocks:
            continue
        if out and out[-1].role == turn.role:
            before = out[-1]
            out[-1] = _Turn(turn.role, _results_first([*before.blocks, *turn.blocks]), None)
        else:
            out.append(turn)
    return out


def _results_first(blocks: list[Raw]) -> list[Raw]:
    return sorted(blocks, key=lambda block: block["type"] != "tool_result")


def _pair_hosted(turns: Sequence[_Turn]) -> None:
    """Leaves out calls of the provider's own tools without a result, and such results without a call; the last message may still wait."""
    asked: set[str] = set()
    answered: set[str] = set()
    for turn in turns:
        for block in turn.blocks:
            if _is_hosted_call(block):
                asked.add(block["id"])
            elif (call_id := _hosted_answer(block)) is not None and call_id in asked:
                answered.add(call_id)
    called: set[str] = set()
    for turn in turns:
        waits = turn is turns[-1]
        kept = []
        for block in turn.blocks:
            if _is_hosted_call(block):
                if block["id"] not in answered and not waits:
                    continue
                called.add(block["id"])
            elif (call_id := _hosted_answer(block)) is not None:
                if call_id not in called:
                    continue
                called.discard(call_id)
            kept.append(block)
        if len(kept) < len(turn.blocks):
            turn.blocks, turn.entry = kept, None


def _is_hosted_call(block: Raw) -> bool:
    return block["type"] in ("server_tool_use", "mcp_tool_use") and isinstance(block.get("id"), str)


def _hosted_answer(block: Raw) -> str | None:
    """The call that a result of the provider's own tools answers; None for any other block."""
    kind, call_id = block.get("type"), block.get("tool_use_id")
    hosted = isinstance(kind, str) and kind.endswith("_tool_result") and isinstance(call_id, str)
    return call_id if hosted else None


def _settle_thinking(turn: _Turn) -> None:
    """Leaves out thinking, always whole, where the API refuses it in a tool loop: anywhere but at the start or after a hosted tool's result (GW-07).

    It never ends a message either. Whether the loop is still open does not matter, so that a message is written the same way ever after.
    """
    kept: list[Raw] = []
    for block in turn.blocks:
        before = kept[-1]["type"] if kept else ""
        if block["type"] in _THINKING and kept and not (before in _THINKING or before.endswith("_tool_result")):
            continue
        kept.append(block)
    while kept and kept[-1]["type"] in _THINKING:
        kept.pop()
    if len(kept) < len(turn.blocks):
        turn.blocks, turn.entry = kept, None


def _message(turn: _Turn) -> Raw:
    if turn.entry is not None:
        message = own_message(turn.entry)
        if isinstance(message["content"], list):
            message["content"] = turn.blocks
        return restored(message, turn.entry.extra)
    return {"role": turn.role, "content": turn.blocks[0]["text"] if _is_plain(turn.blocks) else turn.blocks}


def _is_plain(blocks: Sequence[Raw]) -> bool:
    """Whether the blocks are one text without anything more to it, which may as well be a string."""
    return len(blocks) == 1 and list(blocks[0]) == ["type", "text"]


def _accepts(entry: Entry, call_id: str) -> bool:
    return _ID.fullmatch(call_id) is not None and (_own(entry) or len(call_id) <= _LONGEST_ID)


def _own(entry: Entry) -> bool:
    return entry.wire == NAME


def _text(text: str) -> Raw:
    return {"type": "text", "text": text}
