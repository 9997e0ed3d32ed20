"""Runs of OpenHands: evaluation output (one run a line), or a trajectory (one array of events).

An action and what came of it are two events, tied by `cause`. Text, reasoning and the exact arguments of calls are read from the model
response that each event carries along; events of one response make one entry. Without a response they are read from `args`.

Model-visible texts that no response holds: the system prompt (an entry, injected), what a recall found (the texts of knowledge and
instructions, injected; the wording around them is not in the file), errors that answer no call (injected), and of commands the prefix
and suffix around their output. Not taken: `message` (a display copy), whole files and diffs in `extras`, test results, state changes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from ....transcript import Damage, Entry, Transcript, chained
from ..base import Input, json_records
from ..documents import read_document
from ..records import Tally, first_records, has_keys, record_of, string_of
from ..values import items_of, made_id
from .events import FORMAT, Run

__all__ = ["OpenHandsReader"]


class OpenHandsReader:
    """Reads evaluation output and trajectories of OpenHands."""

    name = FORMAT
    title = "OpenHands"

    def sniff(self, source: Input) -> bool:
        """Whether there are lines with an instance and a history, or an array of events."""
        if re.match(r"\[\s*\{", source.head):
            return has_keys(source, "source", "action", "args", "timestamp")
        records = first_records(source, 3)
        return any("instance_id" in record and isinstance(record.get("history"), list) for record in records) or (
            not records and has_keys(source, "instance_id", "instruction")
        )

    def read(self, source: Input) -> list[Transcript]:
        """One session for each run, in the order of the file.

        Raises:
            EmptySessionError: no run has an entry.
        """
        damaged: list[Damage] = []
        tally = Tally()
        out: list[Transcript] = []
        for record in _runs(source.data, damaged):
            if not isinstance(record.get("history"), list):
                tally.unknown["record without a history"] += 1
            elif (transcript := _transcript(record, source, tally)) is None:
                tally.left_out["run without an entry"] += 1
            else:
                out.append(transcript)
        if not out:
            raise tally.empty(source, self.title, damaged)
        out[0] = msgspec.structs.replace(
            out[0],
            damaged=tuple(damaged),
            warnings=(*out[0].warnings, *tally.warnings()),
            extra={**(out[0].extra or {}), **(tally.extra() or {})} or None,
        )
        return out


def _runs(data: bytes, damaged: list[Damage]) -> Iterator[dict[str, Any]]:
    if data.lstrip()[:1] == b"[":
        document = read_document(data, depth=1)
        damaged += document.damaged
        yield {"history": document.value}
        return
    records = json_records(data)
    for record in records:
        yield record.value
    for hurt in records.damaged:
        rescued = _cut_run(data, hurt)
        if rescued is not None:
            yield rescued
    damaged += records.damaged


def _cut_run(data: bytes, hurt: Damage) -> dict[str, Any] | None:
    """What can be read of a run whose line is damaged: its members, and the events of its history."""
    lines = data.split(b"\n")
    line = lines[hurt.line - 1].strip()
    document = read_document(line, depth=2, arrays=("history",))
    value = record_of(document.value)
    return value if isinstance(value.get("history"), list) and value["history"] else None


def _events(history: Sequence[Any]) -> Iterator[dict[str, Any]]:
    """The events in order; early versions stored pairs of an action and its observation."""
    for item in history:
        yield from map(record_of, item if isinstance(item, list) else (item,))


def _transcript(record: dict[str, Any], source: Input, tally: Tally) -> Transcript | None:
    events = list(_events(record["history"]))
    instance = string_of(record.get("instance_id"))
    opening = [(event.get("timestamp"), event.get("message")) for event in events[:2]]
    session = made_id(FORMAT, instance or source.name, *opening)
    metadata = record_of(record.get("metadata"))
    usages = {
        string_of(usage.get("response_id")): usage
        for usage in map(record_of, items_of(record_of(record.get("metrics")).get("token_usages")))
    }
    run = Run(session, usages)
    for event in events:
        run.add(event)
    entries: tuple[Entry, ...] = chained(run.finish())
    for kind, number in run.tally.left_out.items():
        tally.left_out[kind] += number
    for kind, number in run.tally.unknown.items():
        tally.unknown[kind] += number
    if not entries:
        return None
    error = string_of(record.get("error"))
    return Transcript(
        id=session,
        format=FORMAT,
        entries=entries,
        leaf=entries[-1].id,
        markers=tuple(run.markers),
        title=instance,
        model=next((entry.model for entry in entries if entry.model), None)
        or string_of(record_of(metadata.get("llm_config")).get("model")),
        time=entries[0].time,
        tools=run.tools,
        extra={"instance_id": instance, **({"error": error} if error else {})} if instance else None,
    )
