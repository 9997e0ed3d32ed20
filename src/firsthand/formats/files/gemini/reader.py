"""Sessions of Gemini CLI: one JSON document (early versions), or a log of JSON lines (current ones).

A `gemini` message becomes an entry with its thoughts, its text and its calls, and an entry with the results of the calls. Results are
read from the model-facing `result`; `resultDisplay`, `displayContent`, `displayName` and `description` are display copies and are not
taken, nor are messages of the types `info`, `warning` and `error`, which the model never saw. Logs: see `gemini_log`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from ....codec import compact_json, decode
from ....transcript import (
    Block,
    Damage,
    Entry,
    Marker,
    Media,
    Origin,
    Reasoning,
    Role,
    Source,
    Text,
    ToolCall,
    ToolResult,
    Transcript,
    Unknown,
)
from ..base import Input, entry_id, json_records
from ..documents import read_document
from ..records import count, has_keys, iso_time, record_of, string_of
from ..values import arguments_of, items_of, made_id, media_of, usage_of
from .log import Chat, Compaction, Object, is_client_text, parts_of

__all__ = ["GeminiReader"]

_FORMAT = "gemini-cli"
_ABOUT = ("projectHash", "kind", "directories")


class GeminiReader:
    """Reads session files of Gemini CLI."""

    name = _FORMAT
    title = "Gemini CLI"

    def sniff(self, source: Input) -> bool:
        """Whether the content names a session and a project hash, or holds messages of the type `gemini`."""
        return source.head.startswith("{") and (
            has_keys(source, "sessionId", "projectHash")
            or bool(re.search(r'(?<!\\)"type"\s*:\s*"gemini"', source.head) and has_keys(source, "timestamp"))
        )

    def read(self, source: Input) -> list[Transcript]:
        """The one session in the file.

        Raises:
            EmptySessionError: no message of a user or the model could be read.
        """
        damaged: list[Damage] = []
        chat = Chat()
        for record in _records(source.data, damaged):
            chat.add(record)
        chat.end()
        about = chat.about
        session = string_of(about.get("sessionId")) or made_id("gemini", source.name)
        made = _Entries(session, chat)
        if not made.entries:
            raise chat.tally.empty(source, self.title, damaged)
        return [
            Transcript(
                id=session,
                format=_FORMAT,
                entries=tuple(made.entries),
                leaf=made.leaf,
                markers=tuple(made.markers),
                title=string_of(about.get("summary")),
                model=next((entry.model for entry in reversed(made.entries) if entry.model), None),
                time=string_of(about.get("startTime")) or made.entries[0].time,
                parent_session=_parent(source, about),
                damaged=tuple(damaged),
                warnings=chat.tally.warnings(),
                extra={name: about[name] for name in _ABOUT if about.get(name)} | (chat.tally.extra() or {}) or None,
            )
        ]


def _records(data: bytes, damaged: list[Damage]) -> Iterator[Object]:
    try:
        whole = decode(data)
    except (ValueError, RecursionError):
        whole = None
    if isinstance(whole, dict):
        yield whole
        return
    lines = json_records(data)
    first_line = data.lstrip().partition(b"\n")[0].rstrip()
    if first_line.endswith(b"}"):
        for record in lines:
            yield record.value
        damaged += lines.damaged
        return
    document = read_document(data, depth=4, arrays=("messages",))
    damaged += document.damaged
    yield record_of(document.value)


def _parent(source: Input, about: Object) -> str | None:
    """A sub-agent's file lies in a folder that is named after the session that started it."""
    if about.get("kind") != "subagent" or source.path is None or source.path.parent.parent.name != "chats":
        return None
    return source.path.parent.name


class _Entries:
    """The entries of a chat as a tree: the path, and beside it what was taken back."""

    def __init__(self, session: str, chat: Chat) -> None:
        self.entries: list[Entry] = []
        self.markers: list[Marker] = []
        self._session = session
        self._chat = chat
        self._of: dict[str, list[str]] = {}
        beside: dict[str | None, list[list[str]]] = {}
        for before, run in chat.taken_back:
            beside.setdefault(before, []).append(run)
        self.leaf: str | None = None
        self._add_runs(beside, None, None)
        for name in chat.path:
            self.leaf = self._add(name, self.leaf)
            self._add_runs(beside, name, self.leaf)
        for compaction in chat.compactions:
            self.markers.append(self._marker(compaction, len(self.markers)))

    def _add_runs(self, beside: dict[str | None, list[list[str]]], name: str | None, parent: str | None) -> None:
        for run in beside.get(name, ()):
            at = parent
            for other in run:
                at = self._add(other, at)
                self._add_runs(beside, other, at)

    def _add(self, name: str, parent: str | None) -> str | None:
        made = _entries_of(self._session, self._chat.messages[name])
        self._of[name] = [entry.id for entry in made]
        for entry in made:
            self.entries.append(_placed(entry, parent, len(self.entries)))
            parent = entry.id
        return parent

    def _marker(self, compaction: Compaction, number: int) -> Marker:
        shown: list[str | Entry] = []
        for item in compaction.shown:
            if isinstance(item, str):
                shown += self._of.get(item, [])
            else:
                shown += _entries_of(self._session, item, "summary")
        after = self._of.get(compaction.after or "", [])
        return Marker(
            id=entry_id(self._session, f"compaction {number}"),
            after=after[-1] if after else None,
            shown=tuple(shown),
            time=compaction.time,
        )


def _placed(entry: Entry, parent: str | None, sequence: int) -> Entry:
    return msgspec.structs.replace(entry, parent=parent, sequence=sequence)


def _entries_of(session: str, message: Object, origin: Origin = "typed") -> list[Entry]:
    """A message as entries: one, or for a response whose calls were answered, two."""
    name = str(message.get("id"))
    time = iso_time(message.get("timestamp"))
    if message.get("type") == "user":
        blocks = _content_blocks(message.get("content"), "injected" if is_client_text(message) else origin)
        orphans = tuple(block for block in blocks if isinstance(block, ToolResult))
        role: Role = "tool" if orphans and len(orphans) == len(blocks) else "user"
        source = Source(_FORMAT, id=name)
        return [Entry(id=entry_id(session, name), role=role, blocks=blocks, time=time, source=source)] if blocks else []
    calls = list(_calls_of(message))
    content = _content_blocks(message.get("content"), origin if origin == "typed" else "injected")
    thinks = any(isinstance(block, Reasoning) for block in content)
    blocks = (
        *(() if thinks else _thoughts(message)),
        *content,
        *(_call_block(call) for call in calls),
    )
    tokens = record_of(message.get("tokens"))
    out = []
    if blocks:
        out.append(
            Entry(
                id=entry_id(session, name),
                role="assistant",
                blocks=blocks,
                model=string_of(message.get("model")),
                time=time,
                usage=usage_of(
                    count(tokens.get("input")) + count(tokens.get("tool")),
                    count(tokens.get("output")) + count(tokens.get("thoughts")),
                    read=count(tokens.get("cached")),
                    reasoning=count(tokens.get("thoughts")),
                ),
                source=Source(_FORMAT, id=name),
            )
        )
    results = tuple(_result(call) for call in calls if call.get("result"))
    if results:
        ended = max((str(call["timestamp"]) for call in calls if call.get("timestamp")), default=None)
        out.append(
            Entry(
                id=entry_id(session, f"{name}:results"),
                role="tool",
                blocks=results,
                time=iso_time(ended),
                source=Source(_FORMAT, id=name),
            )
        )
    return out


def _calls_of(message: Object) -> Iterator[Object]:
    calls = message.get("toolCalls")
    yield from map(record_of, calls.values() if isinstance(calls, dict) else items_of(calls))


def _thoughts(message: Object) -> Iterator[Reasoning]:
    """Thoughts in the one-line form in which the client hands them back to the model."""
    for thought in map(record_of, items_of(message.get("thoughts"))):
        subject, description = string_of(thought.get("subject")), string_of(thought.get("description")) or ""
        text = f"**{subject}** {description}" if subject else description
        if text:
            yield Reasoning(text)


def _content_blocks(content: Any, origin: Origin) -> tuple[Block, ...]:
    out: list[Block] = []
    for part in parts_of(content):
        signature = {"thoughtSignature": part["thoughtSignature"]} if part.get("thoughtSignature") else None
        text = part.get("text")
        if isinstance(text, str) and part.get("thought"):
            out.append(Reasoning(text, signature))
        elif isinstance(text, str):
            out += [Text(text, origin, signature)] if text or signature else []
        elif "functionResponse" in part:
            out.append(_result({"id": record_of(part["functionResponse"]).get("id"), "result": [part]}))
        elif (media := _media(part)) is not None:
            out.append(media)
        else:
            out.append(Unknown(part))
    return tuple(out)


def _media(part: Object) -> Media | None:
    inline, file = record_of(part.get("inlineData")), record_of(part.get("fileData"))
    if inline:
        return media_of(string_of(inline.get("mimeType")), None, string_of(inline.get("data")))
    if file:
        return media_of(string_of(file.get("mimeType")), string_of(file.get("fileUri")))
    return None


def _call_block(call: Object) -> ToolCall:
    signature = {"thoughtSignature": call["thoughtSignature"]} if call.get("thoughtSignature") else None
    return ToolCall(
        str(call.get("id")), string_of(call.get("name")) or "", arguments_of(call.get("args")), extra=signature
    )


def _result(call: Object) -> ToolResult:
    """The answer to a call. After a resume the list may hold the answers to its sisters too; those are left to them."""
    name = str(call.get("id"))
    given = call.get("result")
    parts = [{"text": given}] if isinstance(given, str) else parts_of(given)
    own = [part for part in parts if record_of(part.get("functionResponse")).get("id") == name]
    if own:
        parts = [part for part in parts if part in own or "functionResponse" not in part]
    content: list[Text | Media | Unknown] = []
    failed = call.get("status") in ("error", "cancelled")
    for part in parts:
        answer = record_of(part.get("functionResponse"))
        if answer:
            response = answer.get("response")
            fields = record_of(response)
            said = fields.get("output", fields.get("error", response))
            failed = failed or ("error" in fields and "output" not in fields)
            text = said if isinstance(said, str) else compact_json(said if len(fields) == 1 else response)
            content += [Text(text)] if text else []
            content += _inner(answer.get("parts"))
        else:
            content += _inner([part])
    return ToolResult(name, tuple(content), failed, string_of(call.get("name")))


def _inner(parts: Any) -> Sequence[Text | Media | Unknown]:
    out: list[Text | Media | Unknown] = []
    for part in parts_of(parts):
        if isinstance(part.get("text"), str):
            out += [Text(part["text"])] if part["text"] else []
        else:
            out.append(_media(part) or Unknown(part))
    return out
