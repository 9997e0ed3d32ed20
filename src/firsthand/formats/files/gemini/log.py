"""What a Gemini CLI session file says happened, record by record.

A file of current versions is a log: messages, corrected copies of messages, rewinds, and lists that say what the client's history is
from now on. The client writes such a list when it compresses the history, but also whenever it resumes a session (first an empty
history, then the restored one). So a list only counts once a message follows it: if messages of the history before are gone by then, it
was a compaction. Originals that a later copy shortens are kept as they first were.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from ..records import Tally, record_of, string_of
from ..values import items_of

__all__ = ["Chat", "Compaction", "Object", "is_client_text", "parts_of"]

Object = dict[str, Any]

_SHOWN = ("user", "gemini")
_DISPLAY_ONLY = ("info", "warning", "error")


def parts_of(content: Any) -> list[Object]:
    """The content of a message, a string or parts, as parts."""
    if isinstance(content, str):
        return [{"text": content}] if content else []
    if isinstance(content, dict):
        return [content]
    return [{"text": part} if isinstance(part, str) else record_of(part) for part in items_of(content) if part]


def is_client_text(message: Object) -> bool:
    """Whether a user message is what the client itself says about the environment or its hooks, or the echo of a bare command."""
    text = _first_text(message)
    return text.startswith(("<session_context>", "<hook_context>")) or bool(re.fullmatch(r"/[a-z][\w-]*", text))


def _is_passed_over(message: Object) -> bool:
    """Whether the client leaves a user message out of the history when it resumes: commands, and what it says itself."""
    return message.get("type") == "user" and _first_text(message).startswith(
        ("/", "?", "<session_context>", "<hook_context>")
    )


def _first_text(message: Object) -> str:
    text = next(iter(parts_of(message.get("content"))), {}).get("text")
    return text.strip() if isinstance(text, str) else ""


@dataclass
class Compaction:
    """A point at which the client went on with another history."""

    after: str | None
    """The message before it."""
    shown: list[str | Object]
    """The new history: ids of messages, and messages that were made for it."""
    time: str | None


@dataclass
class Chat:
    """The session, as far as it has been read."""

    about: Object = field(default_factory=dict)
    """Id, project, times and title."""
    messages: dict[str, Object] = field(default_factory=dict)
    path: list[str] = field(default_factory=list)
    """Messages that were not taken back, in order of arrival."""
    taken_back: list[tuple[str | None, list[str]]] = field(default_factory=list)
    """Runs of messages that a rewind removed, with the message that they followed."""
    compactions: list[Compaction] = field(default_factory=list)
    tally: Tally = field(default_factory=Tally)
    _calls: dict[str, Object] = field(default_factory=dict)
    _made: dict[str, Object] = field(default_factory=dict)
    _listed: dict[str, Object] = field(default_factory=dict)
    _history: list[str] = field(default_factory=list)
    _settled: list[str] = field(default_factory=list)
    _time: str | None = None
    _relisted: bool = False

    def add(self, record: Object) -> None:
        """Takes in one line of a log, or the one document of earlier versions."""
        change = record.get("$set")
        if isinstance(record.get("$rewindTo"), str):
            self._rewind(record["$rewindTo"])
        elif isinstance(change, dict):
            self.about |= {name: value for name, value in change.items() if name != "messages"}
            if isinstance(change.get("messages"), list):
                self._list(change["messages"], string_of(change.get("lastUpdated")))
        elif string_of(record.get("id")) and "type" in record:
            self._add_message(record)
        elif "sessionId" in record or "messages" in record:
            first = {name: value for name, value in record.items() if name != "messages"}
            self.about = first | self.about | {"lastUpdated": first.get("lastUpdated")}
            for message in items_of(record.get("messages")):
                self._add_message(record_of(message))
        else:
            self.tally.unknown[f"record with {', '.join(sorted(record)[:4])}"] += 1

    def end(self) -> None:
        """To be called after the last record: a list behind which nothing came counts when it brought something new."""
        if any(name not in self.messages and name not in self._made for name in self._listed):
            self._settle()

    def _add_message(self, message: Object) -> None:
        name = string_of(message.get("id"))
        kind = str(message.get("type"))
        if name is None or kind not in _SHOWN:
            (self.tally.left_out if kind in _DISPLAY_ONLY else self.tally.unknown)[kind] += 1
        elif name in self.messages:
            self._correct(self.messages[name], message)
        else:
            self._settle()
            if self._take(name, message):
                self._history.append(name)
                self._settled.append(name)
                self.path.append(name)

    def _take(self, name: str, message: Object) -> bool:
        """Stores a new message; False when it only repeats results that are stored with their calls."""
        message = dict(message)
        if message.get("type") == "user":
            message["content"] = rest = self._without_results(message.get("content"))
            if not rest:
                return False
        else:
            self._collect_calls(message)
        self.messages[name] = message
        return True

    def _without_results(self, content: Any) -> Any:
        parts = parts_of(content)
        if not any("functionResponse" in part for part in parts):
            return content
        rest, known = [], []
        for part in parts:
            call = self._calls.get(str(record_of(part.get("functionResponse")).get("id")))
            if call is None:
                rest.append(part)
                continue
            call["result"] = call.get("result") or [part]
            known += items_of(call["result"])
        return [part for part in rest if part not in known]

    def _collect_calls(self, message: Object) -> None:
        """Brings the calls of a response together, whether they stand beside its content or, after a resume, inside it."""
        calls = {str(call.get("id")): dict(call) for call in map(record_of, items_of(message.get("toolCalls")))}
        content = message.get("content")
        if not isinstance(content, str):
            parts = parts_of(content)
            for part in parts:
                given = record_of(part.get("functionCall"))
                if given:
                    signature = {"thoughtSignature": part["thoughtSignature"]} if part.get("thoughtSignature") else {}
                    name = string_of(given.get("id")) or f"{message.get('id')}-{len(calls)}"
                    calls[name] = {**signature, **given, **calls.get(name, {}), "id": name}
            message["content"] = [part for part in parts if "functionCall" not in part]
        message["toolCalls"] = calls
        self._calls |= calls

    def _correct(self, known: Object, newer: Object) -> None:
        """A later copy of a message adds what came since (results, usage); what was there stays, even if the copy shortens it."""
        newer = dict(newer)
        if known.get("type") == "gemini":
            self._collect_calls(newer)
            for name, call in newer.pop("toolCalls").items():
                old = known["toolCalls"].setdefault(name, {})
                old |= {key: value for key, value in call.items() if key != "result" or not old.get("result")}
                self._calls[name] = old
        for name, value in newer.items():
            if name in ("content", "thoughts"):
                known[name] = known.get(name) or value
            elif value is not None:
                known[name] = value

    def _list(self, messages: list[Any], time: str | None) -> None:
        self._history = []
        self._time = time
        self._relisted = True
        for message in map(record_of, messages):
            name = string_of(message.get("id"))
            if name is None or message.get("type") not in _SHOWN:
                continue
            self._history.append(name)
            if name in self.messages:
                self._correct(self.messages[name], {**message, "content": None, "timestamp": None})
            elif name not in self._made:
                self._listed[name] = message

    def _settle(self) -> None:
        """Draws the conclusion from the newest list, now that the conversation goes on from it."""
        if not self._relisted:
            return
        self._relisted = False
        history, before, time = self._history, self._settled, self._time
        listed, self._listed = self._listed, {}
        gone = [name for name in before if name not in history]
        new = [name for name in history if name in listed]
        if any(not _is_passed_over(self.messages.get(name) or self._made[name]) for name in gone):
            shown = [name for name in history if name in self.messages or name in self._made or name in new]
            self._made |= {name: listed[name] for name in new if self._without_results(listed[name].get("content"))}
            self.compactions.append(
                Compaction(
                    self.path[-1] if self.path else None,
                    [
                        name if name in self.messages else self._made[name]
                        for name in shown
                        if name not in new or name in self._made
                    ],
                    time,
                )
            )
        else:
            self.path += [name for name in new if self._take(name, listed[name])]
        self._history = [name for name in history if name in self.messages or name in self._made]
        self._settled = list(self._history)

    def _rewind(self, name: str) -> None:
        self._settle()
        if name in self._history:
            self._history = self._history[: self._history.index(name)]
        elif name not in self.path:
            self._history = []
        self._settled = list(self._history)
        if name in self.path:
            at = self.path.index(name)
            self.taken_back.append((self.path[at - 1] if at else None, self.path[at:]))
            self.path = self.path[:at]
