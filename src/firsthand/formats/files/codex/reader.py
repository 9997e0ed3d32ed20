"""Rollout files of Codex: JSON lines, one file per thread (session-formats.md, "Codex CLI / desktop rollout").

Seen in real files: client versions 0.142.5 and 0.144.2. Files of very old clients, whose lines are the bare items, are read too.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ....transcript import Damage, Entry, Marker, Source, Text, Transcript, Usage, typed_text
from ..base import Input, Record, entry_id, json_records
from ..records import Names, Tally, count, first_records, has_keys, record_of, string_of
from ..values import media_of
from .compactions import Originals, marker_of
from .items import FORMAT, OPAQUE, TYPES, entry_of
from .typed import Typed

__all__ = ["CodexReader"]

_RECORDS = frozenset({"session_meta", "turn_context", "response_item", "event_msg", "compacted", "world_state"})
_ROLLED_BACK = "thread_rolled_back"
# Items that the client keeps for itself; a model never sees them.
_NOT_SHOWN = frozenset({"ghost_snapshot", "compaction_trigger"})


class CodexReader:
    """Reads Codex's rollout files: one response item is one entry; the events that repeat them only say who typed what."""

    name = FORMAT
    title = "Codex"

    def sniff(self, source: Input) -> bool:
        """Whether a line among the first is one of Codex's records, or the header of its very old files."""
        records = first_records(source)
        if any("payload" in record and record.get("type") in _RECORDS for record in records):
            return True
        if any(_is_old_header(record) for record in records[:3]):
            return True
        return not records and has_keys(source, "timestamp", "payload")

    def read(self, source: Input) -> list[Transcript]:
        """The one session of the file.

        Raises:
            EmptySessionError: the file holds records, but no entry could be made of any.
        """
        lines = json_records(source.data)
        records = [_unwrapped(record) for record in lines]
        damaged = tuple(sorted(lines.damaged, key=lambda damage: damage.line))
        thread = _Thread(records, damaged)
        for record in records:
            thread.add(record)
        if not thread.entries:
            raise thread.tally.empty(source, self.title, list(damaged))
        return [thread.transcript()]


def _is_old_header(record: dict[str, Any]) -> bool:
    return (
        "type" not in record
        and "id" in record
        and "timestamp" in record
        and ("instructions" in record or "git" in record)
    )


def _unwrapped(record: Record) -> Record:
    """The record as newer clients would have written it (very old ones wrote bare items and a bare header)."""
    value = record.value
    if "payload" in value:
        return record
    if value.get("type") in TYPES or value.get("type") in _NOT_SHOWN:
        return Record(record.line, {"type": "response_item", "timestamp": value.get("timestamp"), "payload": value})
    if _is_old_header(value):
        return Record(record.line, {"type": "session_meta", "timestamp": value["timestamp"], "payload": value})
    return record


class _Thread:
    """What is known about a thread while its lines go by."""

    def __init__(self, records: list[Record], damaged: tuple[Damage, ...]) -> None:
        self.damaged = damaged
        self.tally = Tally()
        self.entries: list[Entry] = []
        self.markers: list[Marker] = []
        self._typed = Typed(records, (damage.line for damage in damaged))
        self._meta: dict[str, Any] = _first_meta(records)
        first = records[0].value if records else {}
        self._id = string_of(self._meta.get("id")) or f"{FORMAT}-{string_of(first.get('timestamp')) or 'unnamed'}"
        self._forked_from: str | None = None
        self._path: list[int] = []
        self._names = Names()
        self._originals = Originals()
        self._model: str | None = None
        self._window: int | None = None
        self._title: str | None = None
        self._newest_made: int | None = None
        """Position of the newest entry that a model made since usage was last reported."""
        self._reported: Usage | None = None
        self._total: Any = None
        self._rescued = 0

    def add(self, record: Record) -> None:
        """One line of the file."""
        kind = record.value.get("type")
        payload = record.value.get("payload")
        time = string_of(record.value.get("timestamp"))
        match kind:
            case "response_item" if isinstance(payload, dict):
                self._item(payload, record.line, time)
            case "event_msg" if isinstance(payload, dict):
                self._event(payload, record.line, time)
            case "compacted" if isinstance(payload, dict):
                self._compacted(payload, record.line, time)
            case "session_meta":
                other = string_of(record_of(payload).get("id"))
                if other not in (None, self._id) and self._forked_from is None:
                    self._forked_from = other
                self.tally.left_out[kind] += 1
            case "turn_context":
                self._model = string_of(record_of(payload).get("model")) or self._model
                self.tally.left_out[kind] += 1
            case "world_state":
                self.tally.left_out[kind] += 1
            case _ if record.value.get("record_type") is not None:
                self.tally.left_out["record_type"] += 1
            case _:
                self.tally.unknown[str(kind)] += 1

    def _item(self, item: dict[str, Any], line: int, time: str | None) -> None:
        kind = item.get("type")
        if kind in _NOT_SHOWN or kind in OPAQUE:
            # An opaque summary is shown by the marker of the compaction that made it.
            self.tally.left_out[f"response_item/{kind}"] += 1
            return
        entry = entry_of(
            item,
            id=self._entry_id(string_of(item.get("id")), line),
            typed=self._typed,
            line=line,
            model=self._model,
            time=time,
            parent=self._newest(),
            sequence=len(self.entries),
        )
        self._append(entry)
        self._originals.add(item, entry.id)

    def _entry_id(self, native: str | None, line: int) -> str:
        return entry_id(self._id, self._names.give(native, line))

    def _append(self, entry: Entry) -> None:
        self._path.append(len(self.entries))
        if entry.role == "assistant":
            self._newest_made = len(self.entries)
        self.entries.append(entry)

    def _newest(self) -> str | None:
        return self.entries[self._path[-1]].id if self._path else None

    def _event(self, event: dict[str, Any], line: int, time: str | None) -> None:
        kind = event.get("type")
        if line in self._typed.only_events and kind == "user_message":
            entry = _typed_entry(event, self._entry_id(None, line), line, time)
            self._append(msgspec.structs.replace(entry, parent=self._newest(), sequence=len(self.entries)))
            self._rescued += 1
            return
        self.tally.left_out[f"event_msg/{kind}"] += 1
        if kind == "token_count":
            self._usage(record_of(event.get("info")))
        elif kind == "task_started":
            self._window = count(event.get("model_context_window")) or self._window
        elif kind == "thread_name_updated":
            self._title = string_of(event.get("thread_name")) or self._title
        elif kind == _ROLLED_BACK:
            self._roll_back(count(event.get("num_turns")))

    def _usage(self, info: dict[str, Any]) -> None:
        """Usage of the last response, put at its last item. The same report can come again unchanged, and all zero after a compaction."""
        self._window = count(info.get("model_context_window")) or self._window
        last, total = record_of(info.get("last_token_usage")), info.get("total_token_usage")
        given, made = count(last.get("input_tokens")), count(last.get("output_tokens"))
        if total == self._total or self._newest_made is None or not (given or made):
            return
        self._total = total
        usage = Usage(
            input_tokens=given,
            output_tokens=made,
            cache_read=count(last.get("cached_input_tokens")),
            reasoning=count(last.get("reasoning_output_tokens")),
        )
        at = self._newest_made
        self.entries[at] = msgspec.structs.replace(self.entries[at], usage=usage)
        self._newest_made, self._reported = None, usage

    def _roll_back(self, turns: int) -> None:
        """The person took back the last turns: what comes next goes on from before them (codex.md 10)."""
        begins = [position for position, at in enumerate(self._path) if _is_prompt(self.entries[at])]
        if not turns or not begins:
            return
        cut = begins[-turns] if turns <= len(begins) else begins[0]
        while cut > begins[0] and self.entries[self._path[cut - 1]].role in ("user", "developer"):
            cut -= 1
        del self._path[cut:]
        self._newest_made = None

    def _compacted(self, payload: dict[str, Any], line: int, time: str | None) -> None:
        self.markers.append(
            marker_of(
                payload,
                session=self._id,
                line=line,
                time=time,
                path=[self.entries[at] for at in self._path],
                originals=self._originals,
                tokens_before=self._reported.total if self._reported else None,
            )
        )
        self._newest_made = None

    def transcript(self) -> Transcript:
        """The session."""
        meta = self._meta
        base = meta.get("base_instructions")
        tools = meta.get("dynamic_tools")
        if self._rescued:
            self.tally.notes.append(f"{self._rescued:,} typed messages stand only in events and were read from there")
        forked = string_of(meta.get("forked_from_id")) or self._forked_from
        return Transcript(
            id=self._id,
            format=FORMAT,
            entries=tuple(self.entries),
            leaf=self._newest(),
            markers=tuple(self.markers),
            title=self._title,
            cwd=string_of(meta.get("cwd")),
            model=self._model,
            client=string_of(meta.get("cli_version")),
            time=string_of(meta.get("timestamp")) or self.entries[0].time,
            window=self._window,
            system=string_of(base) or string_of(record_of(base).get("text")),
            tools=tuple(tools) if isinstance(tools, list) and tools else None,
            parent_session=_parent_of(meta.get("source")) or string_of(meta.get("parent_thread_id")),
            forked_from=forked,
            damaged=self.damaged,
            warnings=self.tally.warnings(),
            extra=self.tally.extra(),
        )


def _first_meta(records: list[Record]) -> dict[str, Any]:
    for record in records:
        if record.value.get("type") == "session_meta":
            return record_of(record.value.get("payload"))
    return {}


def _typed_entry(event: dict[str, Any], id: str, line: int, time: str | None) -> Entry:  # noqa: A002
    """What a person typed, from the event alone."""
    images = event.get("images")
    return Entry(
        id=id,
        role="user",
        blocks=(
            Text(event["message"]),
            *(media_of(None, url) for url in (images if isinstance(images, list) else ()) if isinstance(url, str)),
        ),
        time=time,
        source=Source(FORMAT, line),
        wire="openai-responses",
    )


def _is_prompt(entry: Entry) -> bool:
    return entry.role == "user" and any(True for _ in typed_text(entry))


def _parent_of(source: Any) -> str | None:
    """The thread that started this one, which the header names inside its `source`."""
    if not isinstance(source, dict):
        return None
    for name, value in source.items():
        if name == "parent_thread_id":
            return string_of(value)
        if (found := _parent_of(value)) is not None:
            return found
    return None
