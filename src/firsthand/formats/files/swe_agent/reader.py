"""Trajectories of SWE-agent (`.traj`) and of mini-swe-agent (`.traj.json`).

SWE-agent: `history` is read, which is what the model saw; `trajectory` repeats it step by step and only serves where a history
processor has shortened an observation (then the full one is the original) or where there is no history. mini-swe-agent: `messages`.

In text mode the action stands in a fenced block inside the assistant's prose, and the observation comes as a user message. Both are
made what they are, a call and its result, so that tool output never counts as user text: the block is cut out of the prose and is the
call's argument, byte for byte, with its fences in `extra` (`opener`, `closer`), so that prose + opener + arguments + closer is the
message as it was. Not taken: `state` and per-step queries, the submitted patch, the harness's own exit message.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ....codec import decode
from ....transcript import Block, Entry, Extra, Source, Text, ToolCall, ToolResult, Transcript, chained
from ..base import Input, entry_id
from ..chat_messages import call_blocks, content_blocks, reasoning_blocks
from ..documents import read_document
from ..records import Tally, has_keys, iso_time, record_of, string_of
from ..values import chat_usage, items_of, made_id
from .responses import response_blocks

__all__ = ["SweAgentReader"]

_FORMAT = "swe-agent"
_DEMONSTRATION = re.compile(r"\s*here is a demonstration\b", re.I)
_OPENER = re.compile(r"```[^\n`]*\n\s*\Z")
_CLOSER = re.compile(r"\s*?```")
_FENCED = re.compile(r"```[\w-]*[ \t]*\n(.*?)\n?```", re.S)


class SweAgentReader:
    """Reads trajectories of SWE-agent and mini-swe-agent."""

    name = _FORMAT
    title = "SWE-agent"

    def sniff(self, source: Input) -> bool:
        """Whether it is an object with a trajectory or history of either agent."""
        return source.head.startswith("{") and (
            has_keys(source, "trajectory", "history")
            or has_keys(source, "trajectory", "action", "observation")
            or has_keys(source, "history", "agent", "role")
            or has_keys(source, "messages", "mini_version")
            or has_keys(source, "messages", "trajectory_format")
        )

    def read(self, source: Input) -> list[Transcript]:
        """The one run in the file.

        Raises:
            EmptySessionError: no message could be read.
        """
        document = read_document(source.data, depth=2, arrays=("history", "messages", "trajectory"))
        value = record_of(document.value)
        steps = [record_of(step) for step in items_of(value.get("trajectory"))]
        messages = [record_of(message) for message in items_of(value.get("history")) or items_of(value.get("messages"))]
        task_missing = not messages
        messages = messages or _from_steps(steps)
        stem = source.name.partition(".")[0]
        opening = [message.get("content") for message in messages[:3]]
        run = _Run(made_id(_FORMAT, stem, *opening), steps, task_seen=task_missing)
        for index, message in enumerate(messages):
            run.add(index, message)
        if not run.entries:
            raise run.tally.empty(source, self.title, document.damaged)
        info = record_of(value.get("info"))
        path = chained(run.entries)
        mini = string_of(info.get("mini_version"))
        return [
            Transcript(
                id=run.session,
                format=_FORMAT,
                entries=path,
                leaf=path[-1].id,
                title=stem,
                model=_model(value, info) or next((entry.model for entry in path if entry.model), None),
                client=f"mini-swe-agent {mini}" if mini else string_of(info.get("swe_agent_version")),
                damaged=tuple(document.damaged),
                warnings=run.tally.warnings(),
                extra=_about(value, info) | (run.tally.extra() or {}) or None,
            )
        ]


def _from_steps(steps: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = []
    for step in steps:
        said = step.get("response") or step.get("thought")
        out.append({"role": "assistant", "content": said, "action": step.get("action"), "thought": step.get("thought")})
        out.append({"role": "user", "content": step.get("observation")})
    return out


def _model(value: dict[str, Any], info: dict[str, Any]) -> str | None:
    config = record_of(record_of(info.get("config")).get("model"))
    if name := string_of(config.get("model_name")):
        return name
    replay = value.get("replay_config")
    try:
        replay = decode(replay) if isinstance(replay, str) else replay
    except (ValueError, RecursionError):
        return None
    return string_of(record_of(record_of(record_of(replay).get("agent")).get("model")).get("name"))


def _about(value: dict[str, Any], info: dict[str, Any]) -> Extra:
    about = {name: info[name] for name in ("exit_status", "model_stats") if info.get(name)}
    return about | ({"environment": value["environment"]} if string_of(value.get("environment")) else {})


@dataclass
class _Run:
    """Turns the messages of one run into entries, one by one."""

    session: str
    steps: list[dict[str, Any]]
    task_seen: bool = False
    """Whether the task is behind us, so that what comes from the user is the harness's."""
    entries: list[Entry] = field(default_factory=list)
    tally: Tally = field(default_factory=Tally)
    _pending: str | None = None
    """The call in the prose of the newest response, while it waits for its observation."""
    _step: dict[str, Any] = field(default_factory=dict)
    _taken: int = 0

    def add(self, index: int, message: dict[str, Any]) -> None:
        """The next message; what has no place in the conversation is counted."""
        role = message.get("role")
        if message.get("object") == "response" or role == "assistant":
            self._add_response(index, message)
        elif role in ("system", "developer"):
            self._append(index, message, role, content_blocks(message.get("content"), "injected"))
        elif role == "tool" or message.get("type") == "function_call_output":
            self._append(index, message, "tool", self._results(index, message))
        elif role == "user":
            self._add_user(index, message)
        elif role == "exit":
            self.tally.left_out["exit message"] += 1
        else:
            self.tally.unknown[f"message of role {role}"] += 1

    def _append(self, index: int, message: dict[str, Any], role: Any, blocks: Sequence[Block], **more: Any) -> None:
        if blocks:
            time = iso_time(record_of(message.get("extra")).get("timestamp"))
            self.entries.append(
                Entry(
                    id=entry_id(self.session, index),
                    role=role,
                    blocks=tuple(blocks),
                    time=time,
                    source=Source(_FORMAT, line=index),
                    **more,
                )
            )

    def _add_response(self, index: int, message: dict[str, Any]) -> None:
        if _is_demonstration(message):
            self._append(index, message, "assistant", content_blocks(message.get("content"), "injected"))
            return
        about = record_of(message.get("extra"))
        response = message if message.get("object") == "response" else record_of(about.get("response"))
        name = f"action-{index}"
        if message.get("object") == "response":
            blocks = response_blocks(message, name)
        else:
            blocks = (*reasoning_blocks(message), *content_blocks(message.get("content")), *call_blocks(message, name))
        structured = any(isinstance(block, ToolCall) for block in blocks)
        action = None if structured else _action_of(message)
        self._pending = None
        if action:
            blocks = _with_action(blocks, action, name)
            self._pending = name
        if structured or action:
            self._step = self._next_step(message)
        self._append(
            index,
            message,
            "assistant",
            blocks,
            usage=chat_usage(response.get("usage")),
            model=string_of(response.get("model")),
            group=string_of(response.get("id")),
        )

    def _next_step(self, message: dict[str, Any]) -> dict[str, Any]:
        """The step of `trajectory` that belongs to a response; steps whose response is another one are passed over."""
        said = message.get("content")
        for at in range(self._taken, len(self.steps)):
            response = self.steps[at].get("response")
            if response == said or not isinstance(response, str) or not isinstance(said, str):
                self._taken = at + 1
                return self.steps[at]
        return {}

    def _add_user(self, index: int, message: dict[str, Any]) -> None:
        about = record_of(message.get("extra"))
        if _is_demonstration(message):
            self._append(index, message, "user", content_blocks(message.get("content"), "injected"))
        elif not self.task_seen:
            self.task_seen = True
            self._append(index, message, "user", content_blocks(message.get("content")))
        elif self._pending is not None and "interrupt_type" not in about:
            result = self._result(message, self._pending)
            self._pending = None
            self._append(index, message, "tool", (result,), extra={"role": "user"}, wire=_FORMAT)
        else:
            self._append(index, message, "user", content_blocks(message.get("content"), "injected"))

    def _results(self, index: int, message: dict[str, Any]) -> tuple[ToolResult, ...]:
        """A message of the role `tool`; where it answers several calls at once, the first has the text."""
        ids = items_of(message.get("tool_call_ids")) or [message.get("tool_call_id") or message.get("call_id")]
        names = [string_of(name) or f"call-{index}" for name in ids]
        first = self._result(message, names[0])
        return (first, *(ToolResult(name, (), first.is_error) for name in names[1:]))

    def _result(self, message: dict[str, Any], call: str) -> ToolResult:
        content = content_blocks(message.get("content", message.get("output")))
        code = record_of(message.get("extra")).get("returncode")
        extra: Extra | None = None
        full = self._step.get("observation")
        shown = "\n".join(block.text for block in content if isinstance(block, Text))
        self._step = {}
        if isinstance(full, str) and len(full) > len(shown) and full.strip() not in shown:
            content, extra = (Text(full),), {"shown": shown}
        return ToolResult(call, content, isinstance(code, int) and code != 0, extra=extra)


def _is_demonstration(message: dict[str, Any]) -> bool:
    if message.get("is_demo") or message.get("message_type") == "demonstration":
        return True
    first = next((b.text for b in content_blocks(message.get("content")) if isinstance(b, Text)), "")
    return message.get("role") == "user" and bool(_DEMONSTRATION.match(first))


def _action_of(message: dict[str, Any]) -> str | None:
    """The action of a response in text mode: as the agent noted it down, else the only fenced block of the prose."""
    if "action" in message:
        return string_of(message["action"])
    actions = items_of(record_of(message.get("extra")).get("actions"))
    if len(actions) == 1 and (command := string_of(record_of(actions[0]).get("command"))):
        return command
    texts = [block.text for block in content_blocks(message.get("content")) if isinstance(block, Text)]
    fenced = _FENCED.findall("\n".join(texts))
    return string_of(fenced[0]) if len(fenced) == 1 else None


def _with_action(blocks: Sequence[Block], action: str, call: str) -> tuple[Block, ...]:
    """The blocks of a response with the action cut out of the prose and put in its place as a call."""
    for at in range(len(blocks) - 1, -1, -1):
        block = blocks[at]
        if not isinstance(block, Text) or (start := block.text.rfind(action)) < 0:
            continue
        before, after = block.text[:start], block.text[start + len(action) :]
        opener, closer = _OPENER.search(before), _CLOSER.match(after)
        if not opener or not closer:
            break
        prose, rest = before[: opener.start()], after[closer.end() :]
        extra = {"opener": opener[0], "closer": closer[0] if rest.strip() else after}
        made: list[Block] = [Text(prose, block.origin, block.extra)] if prose else []
        made.append(ToolCall(call, "bash", action, "custom", extra))
        made += [Text(rest, block.origin)] if rest.strip() else []
        return (*blocks[:at], *made, *blocks[at + 1 :])
    # The action is not there as it was noted down; the prose stays whole and the call says that it repeats a part of it.
    return (*blocks, ToolCall(call, "bash", action, "custom", {"in_text": True}))
