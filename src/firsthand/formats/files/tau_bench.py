"""Trajectories of tau-bench: an array of runs, each of them one session in the shape of the Chat Completions API.

The user's turns come from a simulated person and count as typed. A result that starts with "Error" is an error; the format has no flag
for it. Not taken: `info`, which holds the simulated person's instruction and the expected actions, and which the agent never saw.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from ...transcript import Entry, Role, Source, Transcript, chained
from .base import Input, entry_id
from .chat_messages import call_blocks, content_blocks, reasoning_blocks, result_of
from .documents import read_document
from .records import Tally, record_of, string_of
from .values import made_id

__all__ = ["TauBenchReader"]

_FORMAT = "tau-bench"
_ROLES: dict[str, Role] = {"system": "system", "developer": "developer", "user": "user", "assistant": "assistant"}


class TauBenchReader:
    """Reads files of tau-bench trajectories."""

    name = _FORMAT
    title = "tau-bench"

    def sniff(self, source: Input) -> bool:
        """Whether it is an array of objects with a task id and a `traj`."""
        return bool(re.match(r"\[\s*\{", source.head)) and all(
            re.search(rf'(?<!\\)"{name}"\s*:', source.head) for name in ("task_id", "traj")
        )

    def read(self, source: Input) -> list[Transcript]:
        """One session for each run, in the order of the file.

        Raises:
            EmptySessionError: no run has an entry.
        """
        document = read_document(source.data, depth=3)
        tally = Tally()
        out: list[Transcript] = []
        runs = document.value if isinstance(document.value, list) else [document.value]
        for run in map(record_of, runs):
            messages = run.get("traj")
            if not isinstance(messages, list):
                tally.unknown["run without a list of messages"] += 1
            elif (transcript := _transcript(run, messages, tally)) is None:
                tally.left_out["run without an entry"] += 1
            else:
                out.append(transcript)
        if not out:
            raise tally.empty(source, self.title, document.damaged)
        out[0] = msgspec.structs.replace(
            out[0],
            damaged=tuple(document.damaged),
            warnings=tally.warnings(),
            extra={**(out[0].extra or {}), **(tally.extra() or {})},
        )
        return out


def _transcript(run: dict[str, Any], messages: list[Any], tally: Tally) -> Transcript | None:
    task, trial = run.get("task_id"), run.get("trial")
    opening = [str(record_of(message).get("content")) for message in messages[:2]]
    session = made_id(f"tau-bench-{task}-{trial}", *opening)
    entries = []
    for index, message in enumerate(messages):
        entry = _entry(session, index, record_of(message), tally)
        if entry is not None:
            entries.append(entry)
    if not entries:
        return None
    path = chained(entries)
    return Transcript(
        id=session,
        format=_FORMAT,
        entries=path,
        leaf=path[-1].id,
        title=f"task {task}, trial {trial}",
        extra={name: run[name] for name in ("task_id", "trial", "reward") if name in run},
    )


def _entry(session: str, index: int, message: dict[str, Any], tally: Tally) -> Entry | None:
    name = f"{session}/{index}"
    source = Source(_FORMAT, line=index)
    role = str(message.get("role"))
    if role == "tool":
        text = message.get("content")
        failed = isinstance(text, str) and text.startswith("Error")
        result = result_of(message, string_of(message.get("tool_call_id")) or name, is_error=failed)
        return Entry(id=entry_id(session, index), role="tool", blocks=(result,), source=source)
    if role not in _ROLES:
        tally.unknown[f"message of role {role}"] += 1
        return None
    blocks = (
        *reasoning_blocks(message),
        *content_blocks(message.get("content"), "injected" if role in ("system", "developer") else "typed"),
        *call_blocks(message, name),
    )
    return Entry(id=entry_id(session, index), role=_ROLES[role], blocks=blocks, source=source) if blocks else None
