"""OpenHands events, one by one, to entries and markers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ....transcript import (
    Block,
    Entry,
    Marker,
    Media,
    Role,
    Source,
    Text,
    ToolCall,
    ToolResult,
    Unknown,
    Usage,
)
from ..base import entry_id
from ..chat_messages import call_blocks, content_blocks, reasoning_blocks
from ..records import Tally, count, record_of, string_of
from ..values import arguments_of, chat_usage, media_of, usage_of

__all__ = ["FORMAT", "Run"]

FORMAT = "openhands"

_NOT_SHOWN_ACTIONS = frozenset(
    {"recall", "change_agent_state", "null", "pause", "resume", "stop", "start", "condensation_request", "start_hook"}
)
_NOT_SHOWN_OBSERVATIONS = frozenset({"null", "agent_state_changed"})
# Arguments that the harness adds to a call; a call that is read from `args` is better off without them.
_NOT_ARGUMENTS = frozenset(
    {
        "thought",
        "confirmation_state",
        "security_risk",
        "is_input",
        "blocking",
        "hidden",
        "is_static",
        "cwd",
        "impl_source",
    }
)
_RECALLED = ("repo_instructions", "additional_agent_instructions", "conversation_instructions")


class Run:
    """Collects the entries of one run. Add the events in order, then `finish`."""

    def __init__(self, session: str, usages: Mapping[str | None, Any]) -> None:
        self.session = session
        self.tally = Tally()
        self.markers: list[Marker] = []
        self.tools: tuple[Any, ...] | None = None
        self._usages = usages
        self._entries: list[Entry] = []
        self._calls: dict[str, str] = {}
        """The call that each action event made, by the event's id."""
        self._responses: dict[str, str] = {}
        """The entry of each model response, by the response's id."""
        self._entry_of: dict[str, str] = {}
        self._forgotten: set[str] = set()

    def finish(self) -> list[Entry]:
        """The entries, in order, not yet chained."""
        return self._entries

    def add(self, event: dict[str, Any]) -> None:
        """The next event; one that the model never saw, or of an unknown kind, is counted."""
        action, observation = event.get("action"), event.get("observation")
        if isinstance(observation, str):
            self._add_observation(event, observation)
        elif not isinstance(action, str):
            self.tally.unknown["event without an action or an observation"] += 1
        elif action in _NOT_SHOWN_ACTIONS:
            self.tally.left_out[f"action {action}"] += 1
        elif action == "system":
            args = record_of(event.get("args"))
            tools = args.get("tools")
            self.tools = tuple(tools) if isinstance(tools, list) else self.tools
            self._append(event, "system", content_blocks(args.get("content"), "injected"))
        elif action == "condensation":
            self._add_condensation(event)
        elif event.get("source") == "agent":
            self._add_action(event, action)
        elif action == "message" and event.get("source") == "user":
            self._append(event, "user", _message_blocks(event))
        else:
            # A command that the person ran beside the agent: what came of it is injected text, as the command is.
            self._append(event, "user", (Text(arguments_of(_arguments(event)), "injected"),))

    def _append(self, event: dict[str, Any], role: Role, blocks: Sequence[Block], **more: Any) -> str | None:
        number = event.get("id")
        native = str(number)
        # Event ids count up; where one is missing or comes again, the entry's own number tells it from the others.
        unique = f"{native}#{len(self._entries)}" if number is None or native in self._entry_of else native
        if not blocks:
            return None
        entry = Entry(
            id=entry_id(self.session, unique),
            role=role,
            blocks=tuple(blocks),
            time=string_of(event.get("timestamp")),
            source=Source(FORMAT, id=native),
            **more,
        )
        self._entries.append(entry)
        self._entry_of[native] = entry.id
        return entry.id

    def _add_action(self, event: dict[str, Any], action: str) -> None:
        about = record_of(event.get("tool_call_metadata"))
        response = record_of(about.get("model_response"))
        choices = response.get("choices")
        message = record_of(record_of(choices[0]).get("message")) if isinstance(choices, list) and choices else {}
        call = string_of(about.get("tool_call_id"))
        known = string_of(response.get("id"))
        if call is not None:
            self._calls[str(event.get("id"))] = call
        if known is not None and known in self._responses:
            self._entry_of[str(event.get("id"))] = self._responses[known]
            return
        blocks: tuple[Block, ...]
        if message:
            blocks = (
                *reasoning_blocks(message),
                *content_blocks(message.get("content")),
                *call_blocks(message, f"event-{event.get('id')}"),
            )
        elif action == "message":
            blocks = _message_blocks(event)
        else:
            blocks = self._action_blocks(event, action, call or f"event-{event.get('id')}", about)
        finish = record_of(choices[0]).get("finish_reason") if isinstance(choices, list) and choices else None
        made = self._append(
            event,
            "assistant",
            blocks,
            group=known,
            model=string_of(response.get("model")),
            usage=chat_usage(response.get("usage")) or self._usage(known),
            status="incomplete" if finish == "length" else "complete",
        )
        if made is not None and known is not None:
            self._responses[known] = made

    def _action_blocks(
        self, event: dict[str, Any], action: str, call: str, about: Mapping[str, Any]
    ) -> tuple[Block, ...]:
        args = record_of(event.get("args"))
        self._calls[str(event.get("id"))] = call
        thought = string_of(args.get("thought"))
        prose = (Text(thought),) if thought and action != "think" else ()
        given = args if action == "think" else _arguments(event)
        return (*prose, ToolCall(call, string_of(about.get("function_name")) or action, arguments_of(given)))

    def _usage(self, response: str | None) -> Usage | None:
        given = record_of(self._usages.get(response)) if response else {}
        return usage_of(
            count(given.get("prompt_tokens")),
            count(given.get("completion_tokens")),
            read=count(given.get("cache_read_tokens")),
            written=count(given.get("cache_write_tokens")),
        )

    def _add_observation(self, event: dict[str, Any], observation: str) -> None:
        if observation in _NOT_SHOWN_OBSERVATIONS:
            self.tally.left_out[f"observation {observation}"] += 1
            return
        if observation == "recall":
            self._append(event, "user", _recalled(record_of(event.get("extras"))))
            return
        call = string_of(record_of(event.get("tool_call_metadata")).get("tool_call_id"))
        call = call or self._calls.get(str(event.get("cause")))
        content = _observed(event)
        if call is None:
            self._append(event, "user", tuple(_injected(part) for part in content))
        else:
            self._append(event, "tool", (ToolResult(call, content, _failed(event, observation)),))

    def _add_condensation(self, event: dict[str, Any]) -> None:
        """A condensation forgets events and may put a summary in their place; what was forgotten stays forgotten."""
        args = record_of(event.get("args"))
        ids = args.get("forgotten_event_ids")
        if not isinstance(ids, list):
            start, end = args.get("forgotten_events_start_id"), args.get("forgotten_events_end_id")
            ids = range(start, end + 1) if isinstance(start, int) and isinstance(end, int) else ()
        self._forgotten |= {self._entry_of[name] for name in map(str, ids) if name in self._entry_of}
        shown: list[str | Entry] = [entry.id for entry in self._entries if entry.id not in self._forgotten]
        native = str(event.get("id"))
        time = string_of(event.get("timestamp"))
        if text := string_of(args.get("summary")):
            summary = Entry(
                id=entry_id(self.session, f"{native}:summary"),
                role="user",
                blocks=(Text(text, "summary"),),
                time=time,
                source=Source(FORMAT, id=native),
            )
            offset = args.get("summary_offset")
            shown.insert(offset if isinstance(offset, int) and 0 <= offset <= len(shown) else len(shown), summary)
        self.markers.append(
            Marker(
                id=entry_id(self.session, native),
                after=self._entries[-1].id if self._entries else None,
                shown=tuple(shown),
                time=time,
            )
        )


def _arguments(event: Mapping[str, Any]) -> dict[str, Any]:
    args = record_of(event.get("args"))
    return {name: value for name, value in args.items() if name not in _NOT_ARGUMENTS and value is not None}


def _message_blocks(event: Mapping[str, Any]) -> tuple[Block, ...]:
    args = record_of(event.get("args"))
    urls = args.get("image_urls")
    images = [media_of(None, url) for url in urls if isinstance(url, str)] if isinstance(urls, list) else []
    return (*content_blocks(args.get("content")), *images)


def _recalled(extras: Mapping[str, Any]) -> tuple[Text, ...]:
    """The texts that a recall brought into the context."""
    texts = [extras.get(name) for name in _RECALLED]
    knowledge = extras.get("microagent_knowledge")
    texts += [record_of(item).get("content") for item in knowledge] if isinstance(knowledge, list) else []
    return tuple(Text(text, "injected") for text in texts if isinstance(text, str) and text)


def _observed(event: Mapping[str, Any]) -> tuple[Text | Media | Unknown, ...]:
    """The content of an observation, with what the shell's prefix and suffix add to it for the model."""
    content = event.get("content")
    if not isinstance(content, str):
        return content_blocks(content)
    about = record_of(record_of(event.get("extras")).get("metadata"))
    text = f"{about.get('prefix') or ''}{content}{about.get('suffix') or ''}"
    return (Text(text),) if text else ()


def _injected(part: Text | Media | Unknown) -> Block:
    return Text(part.text, "injected", part.extra) if isinstance(part, Text) else part


def _failed(event: Mapping[str, Any], observation: str) -> bool:
    extras = record_of(event.get("extras"))
    code = record_of(extras.get("metadata")).get("exit_code", extras.get("exit_code"))
    content = event.get("content")
    return (
        observation in ("error", "user_rejected")
        or (isinstance(content, str) and content.startswith("ERROR"))
        # -1 says that the command still runs.
        or (isinstance(code, int) and code not in (0, -1))
    )
