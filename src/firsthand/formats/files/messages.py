"""Message lists in the shape of a provider's API as files: a JSON array, a request body, or JSON lines of either.

One reader for each wire; which one a list is for is told from its messages. The messages themselves are read by `firsthand.formats.wire`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import msgspec

from ...errors import EmptySessionError, FormatError
from ...transcript import Damage, Entry, Transcript
from .base import Input, json_records
from .codex.items import TYPES
from .documents import read_document
from .records import first_records, record_of, string_of
from .values import made_id

__all__ = ["MessagesReader", "wire_of"]

_RESPONSES_PARTS = frozenset({"input_text", "output_text", "input_image", "input_file", "input_audio", "summary_text"})
_ANTHROPIC_PARTS = frozenset(
    {
        "tool_use",
        "tool_result",
        "thinking",
        "redacted_thinking",
        "server_tool_use",
        "mcp_tool_use",
        "image",
        "document",
        "search_result",
    }
)
_ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})


def wire_of(messages: Sequence[Mapping[str, Any]], body: Mapping[str, Any] | None = None) -> str:
    """The name of the wire that these messages are in the shape of.

    What only one wire has decides, wherever it stands; a list of plain texts, which all three know, is OpenAI Chat.

    Args:
        messages: the messages or items.
        body: the request that they stand in, if there is one.
    """
    request = body or {}
    kinds = {kind for message in messages if isinstance(kind := message.get("type"), str)}
    parts = {kind for message in messages for kind in _part_types(message)}
    if "input" in request or (kinds & TYPES) - {"message"} or parts & _RESPONSES_PARTS:
        return "openai-responses"
    if parts & _ANTHROPIC_PARTS or "system" in request or "anthropic_version" in request:
        return "anthropic"
    tools = request.get("tools")
    if isinstance(tools, list) and any("input_schema" in record_of(tool) for tool in tools):
        return "anthropic"
    return "openai-responses" if "message" in kinds else "openai-chat"


def _part_types(message: Mapping[str, Any]) -> Iterator[str]:
    content = message.get("content")
    for part in content if isinstance(content, list) else ():
        if isinstance(kind := record_of(part).get("type"), str):
            yield kind


@dataclass
class _List:
    """One list of messages, and what a request body says beside it."""

    messages: list[dict[str, Any]]
    body: dict[str, Any] = field(default_factory=dict)

    @property
    def wire(self) -> str:
        return wire_of(self.messages, self.body)


@dataclass
class _Lists:
    found: list[_List]
    damaged: list[Damage]


class MessagesReader:
    """Reads message lists of one provider API."""

    def __init__(self, wire: str, title: str) -> None:
        self.name = wire
        self.title = title

    def sniff(self, source: Input) -> bool:
        """Whether it is a list of messages or a request body, and of this wire."""
        lists = _lists(source).found
        return bool(lists) and lists[0].wire == self.name

    def read(self, source: Input) -> list[Transcript]:
        """One session for each list.

        Raises:
            EmptySessionError: no message could be read.
        """
        lists = _lists(source)
        if not lists.found:
            # Too little of it is left to tell what it is, but whoever names the format gets what there is.
            lists = _of_lines(source)
        damaged = list(lists.damaged)
        out = [
            transcript
            for number, found in enumerate(lists.found)
            if (transcript := self._transcript(found, source, number, damaged)) is not None
        ]
        if not out:
            raise EmptySessionError(
                f"{source.name} looks like messages of the {self.title}, but none could be read ({len(damaged):,} damaged "
                "places). Nothing was imported"
            )
        return [msgspec.structs.replace(out[0], damaged=tuple(damaged)), *out[1:]]

    def _transcript(self, found: _List, source: Input, number: int, damaged: list[Damage]) -> Transcript | None:
        body = found.body
        # The opening stays while a conversation grows, but two may share it, so the file's name and the place in it count too.
        opening = found.messages[: 1 + next((at for at, m in enumerate(found.messages) if m.get("role") == "user"), 0)]
        session = made_id(self.name, source.name, number, opening)
        entries = self._entries(
            found.messages, body.get("system") if self.name == "anthropic" else None, session, damaged
        )
        if not entries:
            return None
        tools = body.get("tools")
        return Transcript(
            id=session,
            format=self.name,
            entries=entries,
            leaf=entries[-1].id,
            model=string_of(body.get("model")),
            system=string_of(body.get("instructions")),
            tools=tuple(tools) if isinstance(tools, list) and tools else None,
        )

    def _entries(
        self, messages: list[dict[str, Any]], system: Any, session: str, damaged: list[Damage]
    ) -> tuple[Entry, ...]:
        from ..wire import wire_by_name

        wire = wire_by_name(self.name)
        try:
            return wire.read(messages, system=system, session=session)
        except FormatError:
            whole: list[dict[str, Any]] = []
            for number, message in enumerate(messages, start=1):
                try:
                    wire.read([message], session=session)
                    whole.append(message)
                except FormatError as error:
                    damaged.append(Damage(number, f"message {number}: {error}"))
            return wire.read(whole, system=system, session=session) if whole else ()


_known: WeakKeyDictionary[Input, _Lists] = WeakKeyDictionary()


def _lists(source: Input) -> _Lists:
    """The message lists in a file; none when it holds something else. Three readers ask the same, so the answer is kept."""
    if source not in _known:
        _known[source] = _find(source)
    return _known[source]


def _find(source: Input) -> _Lists:
    if source.head.startswith("["):
        document = read_document(source.data, depth=1)
        found, strange = _of_array(document.value)
        return _Lists(found, document.damaged + strange)
    first = first_records(source, 8)
    if sum(_is_message(record) or "messages" in record or "input" in record for record in first) * 2 > len(first):
        lists = _of_lines(source)
        if lists.found:
            return lists
    if not source.head.startswith("{"):
        return _Lists([], [])
    document = read_document(source.data, depth=2, arrays=("messages", "input"))
    body, strange = _body(record_of(document.value))
    return _Lists([body] if body else [], document.damaged + strange)


def _of_array(value: Any) -> tuple[list[_List], list[Damage]]:
    items = value if isinstance(value, list) else []
    messages, strange = _messages(items)
    if messages:
        return [_List(messages)], strange
    bodies = [body for item in items if (body := _body(record_of(item))[0])]
    return (bodies, []) if len(bodies) * 2 > len(items) else ([], [])


def _of_lines(source: Input) -> _Lists:
    records = json_records(source.data)
    messages: list[dict[str, Any]] = []
    found: list[_List] = []
    strange: list[Damage] = []
    for record in records:
        if _is_message(record.value):
            messages.append(record.value)
            continue
        body, damaged = _body(record.value)
        strange += [Damage(record.line, damage.reason) for damage in damaged]
        if body:
            found.append(body)
        else:
            strange.append(Damage(record.line, "a JSON object that is no message"))
    if messages:
        found.insert(0, _List(messages))
    return _Lists(found, sorted(records.damaged + strange, key=lambda damage: damage.line))


def _messages(items: list[Any]) -> tuple[list[dict[str, Any]], list[Damage]]:
    """The messages of a list that is one, that is, most of whose items are; the other items are damage."""
    messages = [item for item in items if isinstance(item, dict) and _is_message(item)]
    if len(messages) * 2 <= len(items):
        return [], []
    strange = [
        Damage(number, f"item {number} of the list is no message")
        for number, item in enumerate(items, start=1)
        if not (isinstance(item, dict) and _is_message(item))
    ]
    return messages, strange


def _is_message(value: Mapping[str, Any]) -> bool:
    if value.get("role") in _ROLES:
        return any(name in value for name in ("content", "tool_calls", "function_call"))
    kind = value.get("type")
    return (
        kind in TYPES
        and "role" not in value
        and any(name in value for name in ("call_id", "summary", "id", "encrypted_content"))
    )


def _body(value: dict[str, Any]) -> tuple[_List | None, list[Damage]]:
    """The list in a request body, if `value` is one."""
    for name in ("messages", "input"):
        given = value.get(name)
        if name == "input" and isinstance(given, str) and "model" in value:
            return _List([{"role": "user", "content": given}], value), []
        if isinstance(given, list):
            messages, strange = _messages(given)
            if messages:
                return _List(messages, value), strange
    return None, []
