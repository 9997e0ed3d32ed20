"""From OpenCode's objects to entries and markers (session-formats.md, "OpenCode"; opencode.md 2.7 to 2.12).

An assistant message becomes an entry with its text, reasoning and calls in the order of their parts, and an entry with the results.
Where a step ends inside a message (`step-finish`, then `step-start`), the model was asked again with the results so far, so a new
pair begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ....transcript import (
    Block,
    Entry,
    Extra,
    Marker,
    Media,
    Origin,
    Reasoning,
    Source,
    Status,
    Text,
    ToolCall,
    ToolResult,
    Unknown,
    Usage,
)
from ..base import entry_id
from ..records import count, iso_time, record_of, string_of
from ..values import arguments_of, items_of, media_of, usage_of
from .records import Object, Records

__all__ = ["FORMAT", "SessionParts", "session_parts"]

FORMAT = "opencode"

# Whole-file snapshots, undo data and progress: no part of what the model saw.
_NOT_SHOWN = frozenset({"step-start", "step-finish", "patch", "snapshot", "retry", "agent", "compaction"})
# The client puts the content of these into synthetic text parts beside them (opencode.md 2.7).
_EXPANDED = frozenset({"text/plain", "application/x-directory"})
_KEPT_OF_MESSAGE = ("agent", "mode", "providerID", "variant", "cost", "finish", "error", "tools", "format")


@dataclass
class SessionParts:
    """What one session consists of, before it is a transcript."""

    entries: list[Entry] = field(default_factory=list)
    markers: list[Marker] = field(default_factory=list)
    by_message: dict[str, list[str]] = field(default_factory=dict)
    """Ids of the entries made of each message."""
    model: str | None = None
    system: str | None = None
    notes: list[str] = field(default_factory=list)


def session_parts(session: str, records: Records) -> SessionParts:
    """Entries (not yet chained) and markers of one session, in order."""
    out = SessionParts()
    messages = records.ordered_messages(session)
    parts = {str(m["id"]): records.ordered_parts(str(m["id"])) for m in messages}
    pairs = _compaction_pairs(messages, parts)
    answers = {str(answer["id"]) for answer in pairs.values()}
    replays = _replays(messages, parts, pairs)
    previous: list[Marker] = []
    for at, message in enumerate(messages):
        name = str(message["id"])
        if name in answers:
            continue
        if name in pairs:
            marker = _marker(session, name, pairs[name], messages[:at], parts, out, previous)
            if marker is not None:
                out.markers.append(marker)
                previous.append(marker)
        made = list(_entries_of(session, message, parts[name], replayed=name in replays))
        out.by_message[name] = [entry.id for entry in made]
        out.entries += made
        out.model = next((entry.model for entry in made if entry.model), out.model)
        out.system = string_of(message.get("system")) or out.system
    return out


def _compaction_part(parts: Iterable[Object]) -> Object | None:
    return next((part for part in parts if part.get("type") == "compaction"), None)


def _compaction_pairs(messages: Sequence[Object], parts: dict[str, list[Object]]) -> dict[str, Object]:
    """The assistant message that answers each user message with a compaction part; the last one that succeeded, else the last."""
    pairs: dict[str, Object] = {}
    for message in messages:
        asked = string_of(message.get("parentID"))
        if message.get("summary") is True and asked in parts and _compaction_part(parts[asked]) is not None:
            if asked in pairs and _succeeded(pairs[asked]) and not _succeeded(message):
                continue
            pairs[asked] = message
    return pairs


def _succeeded(answer: Object) -> bool:
    return bool(answer.get("finish")) and not answer.get("error")


def _texts(parts: Iterable[Object]) -> list[str]:
    return [part["text"] for part in parts if part.get("type") == "text" and isinstance(part.get("text"), str)]


def _replays(messages: Sequence[Object], parts: dict[str, list[Object]], pairs: dict[str, Object]) -> set[str]:
    """User messages that the client sent again by itself, after a compaction that a provider's refusal had caused (opencode.md 2.8)."""
    out: set[str] = set()
    users = [str(m["id"]) for m in messages if m.get("role") == "user"]
    for at, name in enumerate(users[:-1]):
        asked = _compaction_part(parts[name])
        if asked is None or not asked.get("overflow") or name not in pairs or not _succeeded(pairs[name]):
            continue
        earlier = next((u for u in reversed(users[:at]) if _compaction_part(parts[u]) is None), None)
        if earlier is not None and _texts(parts[users[at + 1]]) == _texts(parts[earlier]):
            out.add(users[at + 1])
    return out


def _marker(
    session: str,
    name: str,
    answer: Object,
    before: Sequence[Object],
    parts: dict[str, list[Object]],
    made: SessionParts,
    previous: Sequence[Marker],
) -> Marker | None:
    """The compaction that `answer` ended, as the client showed it from then on: the summary, then the tail (opencode.md 2.7).

    A compaction that failed shows nothing new, unless it had noted down where its tail begins: then what is older vanishes without a
    summary (opencode.md 2.10), and the marker says that.
    """
    asked = _compaction_part(parts[name]) or {}
    tail = string_of(asked.get("tail_start_id"))
    summary = _summary(session, answer, parts.get(str(answer["id"]), []))
    failed = not _succeeded(answer)
    if failed:
        made.notes.append(f"compaction {name} failed in the client: {_error_name(answer) or 'it was not finished'}")
        if tail is None:
            return None
    shown: list[str | Entry] = [] if failed else [summary]
    older = {marker.id: marker for marker in previous}
    names = [str(message["id"]) for message in before]
    if tail is not None and tail in names:
        for shown_message in names[names.index(tail) :]:
            shown += made.by_message.get(shown_message, [])
            # A tail that reaches back before an earlier compaction shows that one's summary again.
            resurfacing = older.get(entry_id(session, shown_message))
            shown += [item for item in resurfacing.shown if isinstance(item, Entry)][:1] if resurfacing else []
    elif tail is not None:
        made.notes.append(f"compaction {name} keeps a tail from {tail}, which is not there")
        shown += [entry_id_ for message in names for entry_id_ in made.by_message.get(message, [])]
    extra: Extra = {"overflow": True} if asked.get("overflow") else {}
    if failed:
        extra["failed"] = answer.get("error") or True
    return Marker(
        id=entry_id(session, name),
        after=made.entries[-1].id if made.entries else None,
        shown=tuple(shown),
        trigger="auto" if asked.get("auto") else "manual",
        time=summary.time,
        extra=extra or None,
    )


def _summary(session: str, answer: Object, parts: Sequence[Object]) -> Entry:
    blocks = [block for part in parts for block in _assistant_blocks(part, "summary")]
    return Entry(
        id=entry_id(session, str(answer["id"])),
        role="assistant",
        blocks=tuple(blocks),
        model=string_of(answer.get("modelID")),
        time=iso_time(record_of(answer.get("time")).get("created")),
        usage=_usage(answer),
        status=_status(answer),
        source=Source(FORMAT, id=str(answer["id"])),
    )


def _entries_of(session: str, message: Object, parts: Sequence[Object], *, replayed: bool) -> Iterator[Entry]:
    if message.get("role") == "assistant":
        yield from _assistant_entries(session, message, parts)
        return
    blocks: list[Block] = []
    files: list[Any] = []
    for part in parts:
        _add_user_part(part, blocks, files, "injected" if replayed else "typed")
    if not blocks:
        return
    model = record_of(message.get("model"))
    yield Entry(
        id=entry_id(session, str(message["id"])),
        role="user",
        blocks=tuple(blocks),
        time=iso_time(record_of(message.get("time")).get("created")),
        source=Source(FORMAT, id=str(message["id"])),
        **_extra_of(message, {"model": model or None, "files": files or None, "replayed": replayed or None}),
    )


def _add_user_part(part: Object, blocks: list[Block], files: list[Any], origin: Origin) -> None:
    kind = string_of(part.get("type"))
    if kind == "text":
        # An ignored text is shown to the person only.
        if isinstance(part.get("text"), str) and part["text"] and not part.get("ignored"):
            blocks.append(Text(part["text"], "injected" if part.get("synthetic") else origin, _metadata(part)))
    elif kind == "file":
        media_type, url = string_of(part.get("mime")), string_of(part.get("url"))
        if media_type not in _EXPANDED:
            blocks.append(_media(part))
        elif url and not url.startswith("data:"):
            files.append({"filename": part.get("filename"), "url": url})
    elif kind not in _NOT_SHOWN:
        blocks.append(Unknown(part))


def _media(part: Object) -> Media:
    name = string_of(part.get("filename"))
    return media_of(string_of(part.get("mime")), string_of(part.get("url")), extra={"filename": name} if name else None)


def _metadata(part: Object) -> Extra | None:
    metadata = record_of(part.get("metadata"))
    return {"metadata": metadata} if metadata else None


def _extra_of(message: Object, more: Extra) -> dict[str, Any]:
    """The arguments `extra` and `wire` of an entry."""
    extra = {name: message[name] for name in _KEPT_OF_MESSAGE if message.get(name) is not None}
    extra |= {name: value for name, value in more.items() if value is not None}
    return {"extra": extra, "wire": FORMAT} if extra else {}


@dataclass
class _Step:
    """The parts of one model call."""

    blocks: list[Block] = field(default_factory=list)
    results: list[ToolResult] = field(default_factory=list)
    ended: list[float] = field(default_factory=list)
    usage: Usage | None = None
    finished: bool = False


def _assistant_entries(session: str, message: Object, parts: Sequence[Object]) -> Iterator[Entry]:
    origin: Origin = "summary" if message.get("summary") is True else "typed"
    steps = [_Step()]
    for part in parts:
        kind = string_of(part.get("type"))
        if kind == "step-start" and (steps[-1].finished or steps[-1].results):
            steps.append(_Step())
        elif kind == "step-finish":
            steps[-1].finished = True
            steps[-1].usage = _usage(part)
        elif kind not in _NOT_SHOWN:
            steps[-1].blocks += _assistant_blocks(part, origin)
            if kind == "tool" and (result := _result(part)) is not None:
                steps[-1].results.append(result)
                end = record_of(record_of(part.get("state")).get("time")).get("end")
                steps[-1].ended += [end] if isinstance(end, int | float) else []
    steps = [step for step in steps if step.blocks] or ([steps[-1]] if message.get("error") else [])
    name = str(message["id"])
    for number, step in enumerate(steps):
        native = name if number == 0 else f"{name}#{number + 1}"
        last = number == len(steps) - 1
        yield Entry(
            id=entry_id(session, native),
            role="assistant",
            blocks=tuple(step.blocks),
            model=string_of(message.get("modelID")),
            time=iso_time(record_of(message.get("time")).get("created")),
            usage=step.usage or (_usage(message) if len(steps) == 1 else None),
            status=_status(message) if last else "complete",
            source=Source(FORMAT, id=name),
            **_extra_of(message, {}),
        )
        if step.results:
            yield Entry(
                id=entry_id(session, f"{native}:results"),
                role="tool",
                blocks=tuple(step.results),
                time=iso_time(max(step.ended, default=None)),
                source=Source(FORMAT, id=name),
            )


def _assistant_blocks(part: Object, origin: Origin) -> tuple[Block, ...]:
    kind = string_of(part.get("type"))
    text = part.get("text")
    if kind == "text" and isinstance(text, str):
        return (Text(text, origin, _metadata(part)),) if text else ()
    if kind == "reasoning":
        opaque = record_of(part.get("metadata"))
        return (Reasoning(text if isinstance(text, str) else "", opaque or None),) if text or opaque else ()
    if kind == "tool":
        state = record_of(part.get("state"))
        arguments = state.get("input")
        # While a call is streaming in, its arguments stand in `raw` and `input` is empty.
        if not arguments and isinstance(state.get("raw"), str):
            arguments = state["raw"]
        call = string_of(part.get("callID")) or str(part.get("id"))
        return (ToolCall(call, string_of(part.get("tool")) or "", arguments_of(arguments), extra=_metadata(part)),)
    if kind == "file":
        return (_media(part),)
    return () if kind in _NOT_SHOWN else (Unknown(part),)


def _result(part: Object) -> ToolResult | None:
    """The result of a tool part; None while the tool runs.

    An output that the client no longer shows (`time.compacted`) is still stored, and is the original (IM-12).
    """
    state = record_of(part.get("state"))
    call = string_of(part.get("callID")) or str(part.get("id"))
    pruned = record_of(state.get("time")).get("compacted")
    extra: Extra | None = {"compacted": pruned} if pruned else None
    content: list[Text | Media | Unknown] = []
    status = state.get("status")
    output = state.get("output")
    interrupted = record_of(state.get("metadata"))
    if status == "error" and interrupted.get("interrupted") is True and isinstance(interrupted.get("output"), str):
        # What a stopped command had written so far is what the model sees.
        output = interrupted["output"]
    elif status == "error":
        output = state.get("error")
    elif status != "completed" and output is None:
        return None
    if isinstance(output, str):
        content += [Text(output)] if output else []
    elif output is not None:
        content.append(Unknown(output))
    attachments = state.get("attachments")
    content += [_media(record_of(file)) for file in items_of(attachments)]
    return ToolResult(call, tuple(content), status == "error", extra=extra)


def _usage(given: Object) -> Usage | None:
    """Usage of a message or a finished step. Input is stored without its cached part.

    Clients that write a `total` store the output without reasoning; the earlier ones, with it.
    """
    tokens = record_of(given.get("tokens"))
    cache = record_of(tokens.get("cache"))
    read, written = count(cache.get("read")), count(cache.get("write"))
    output, reasoning = count(tokens.get("output")), count(tokens.get("reasoning"))
    apart = "total" in tokens or reasoning > output
    return usage_of(
        count(tokens.get("input")) + read + written,
        output + reasoning if apart else output,
        read=read,
        written=written,
        reasoning=reasoning,
    )


def _error_name(message: Object) -> str | None:
    return string_of(record_of(message.get("error")).get("name"))


def _status(message: Object) -> Status:
    if message.get("error"):
        name = _error_name(message) or ""
        return "aborted" if "Abort" in name else "incomplete" if "OutputLength" in name else "error"
    if message.get("finish") == "length":
        return "incomplete"
    done = message.get("finish") or record_of(message.get("time")).get("completed")
    return "complete" if done else "incomplete"
