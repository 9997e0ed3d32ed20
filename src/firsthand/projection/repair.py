"""Pairs made right: every call answered once, right after the assistant run that made it, and no result without its call.

Real transcripts break both rules: calls that the user aborted, results that arrive late or twice, ids that a client counts anew in each turn,
and projections that keep one half of a pair. Providers refuse all of these. What is right already is given back as the very same objects, so
that it is sent byte for byte; what is repaired is repaired in the request only, never in the journal.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from ..codec import decode
from ..transcript import Block, Entry, Media, Text, ToolCall, ToolResult, Unknown

__all__ = ["NOT_EXECUTED", "UNKNOWN_OUTCOME", "Repair", "RepairKind", "Repaired", "repair"]

UNKNOWN_OUTCOME = "[no result was recorded for this call; its outcome is unknown and nothing is known to have run, so check before you repeat it]"
"""Stands for a result that is not there (GW-02)."""

NOT_EXECUTED = "[this call was not executed: its arguments broke off before they were complete]"
"""Stands for the result of a call whose arguments are no JSON object (GW-04)."""

RepairKind: TypeAlias = Literal[
    "entry-dropped", "call-answered", "call-renamed", "result-moved", "result-orphaned", "result-repeated"
]
"""`entry-dropped`: a failed response that the wire must not show (OV-03). `call-answered`: a placeholder stands for the missing result.
`call-renamed`: an id that an earlier call has. `result-moved`: brought back to its call. `result-orphaned`, `result-repeated`: left out, for it
has no call, or its call is answered already."""


class Repair(msgspec.Struct, frozen=True):
    """One thing that was done."""

    kind: RepairKind
    entry: str
    """Id of the entry that it was done to."""
    call_id: str | None = None
    """The call's id as it was."""


class Repaired(NamedTuple):
    """The entries as a wire can take them, and what was done to get there; nothing was done when `repairs` is empty."""

    entries: tuple[Entry, ...]
    repairs: tuple[Repair, ...]


def repair(entries: Iterable[Entry]) -> Repaired:
    """The same history with pairs and order right, for any list of entries.

    After the last entry of each *run* (neighbouring assistant entries; clients of the Responses API spread parallel calls over several) come the
    results of all its calls and nothing in between. Results that stand there already keep their order and their entries; results that have to
    be moved follow in call order. An id that is used again gets a suffix from its second use on, for the call and for its result (SE-09), and a
    result belongs to the newest run before it that has its id. Calls that a provider ran itself (`kind` "server") need no result.

    Entries that it makes (placeholders, results taken out of an entry) have ids derived from the original's, with a `#`.
    """
    source = tuple(entries)
    done: list[Repair] = []
    arranged = _arranged(source, _paired(source, done), done)
    out = _without_failures(arranged, done)
    return Repaired(out, tuple(done))


@dataclass
class _Slot:
    """A call that waits for its result."""

    call: ToolCall
    at: tuple[int, int]
    """Entry and block of the call."""
    id: str
    """The id on the wire."""
    answer: tuple[int, int] | None = None
    """Entry and block of its result."""

    @property
    def optional(self) -> bool:
        return self.call.kind == "server"


@dataclass
class _Run:
    """Neighbouring assistant entries and their calls."""

    last: int
    """Position of its last entry."""
    slots: list[_Slot] = field(default_factory=list)


@dataclass
class _Pairs:
    """What belongs together in a list of entries."""

    runs: list[_Run] = field(default_factory=list)
    owner: dict[tuple[int, int], _Slot] = field(default_factory=dict)
    """The call of each result that has one, by the result's place."""
    renamed: dict[tuple[int, int], str] = field(default_factory=dict)
    """The new ids of calls, by the call's place."""


def _without_failures(source: Sequence[Entry], done: list[Repair]) -> tuple[Entry, ...]:
    """Leaves out responses that failed or were stopped before they said anything, and failed ones that nobody went on from.

    A failed text that the user answered stays. One at the end, or one that the client tried again, would make the provider continue it or
    show the model two answers; what was sent before stays a prefix of what is sent after, since the failed text was in neither.
    """
    out: list[Entry] = []
    dropped: list[Repair] = []
    following: Entry | None = None
    for entry in reversed(source):
        if _failed(entry, following):
            dropped.append(Repair("entry-dropped", entry.id))
            continue
        out.append(entry)
        following = entry
    done += reversed(dropped)
    out.reverse()
    return tuple(out)


def _failed(entry: Entry, following: Entry | None) -> bool:
    if entry.role != "assistant" or entry.status == "complete":
        return False
    if any(isinstance(block, ToolCall | ToolResult) for block in entry.blocks):
        return False
    if not any(
        isinstance(block, Media | Unknown) or (isinstance(block, Text) and block.text.strip()) for block in entry.blocks
    ):
        return True
    if entry.status == "incomplete":
        return False
    return following is None or (entry.status == "error" and following.role == "assistant")


def _paired(entries: Sequence[Entry], done: list[Repair]) -> _Pairs:
    pairs = _Pairs()
    newest: dict[str, _Run] = {}
    used: set[str] = set()
    open_run: _Run | None = None
    for position, entry in enumerate(entries):
        if entry.role != "assistant":
            open_run = None
        elif open_run is None:
            open_run = _Run(position)
            pairs.runs.append(open_run)
        else:
            open_run.last = position
        for number, block in enumerate(entry.blocks):
            at = (position, number)
            if isinstance(block, ToolCall) and open_run is not None:
                wire_id = _free(block.id, used)
                used.add(wire_id)
                if wire_id != block.id:
                    pairs.renamed[at] = wire_id
                    done.append(Repair("call-renamed", entry.id, block.id))
                open_run.slots.append(_Slot(block, at, wire_id))
                newest[block.id] = open_run
            elif isinstance(block, ToolResult):
                run = newest.get(block.call_id)
                slot = next(
                    (s for s in run.slots if s.call.id == block.call_id and s.answer is None) if run else iter(()), None
                )
                if slot is None:
                    done.append(Repair("result-repeated" if run else "result-orphaned", entry.id, block.call_id))
                else:
                    slot.answer = at
                    pairs.owner[at] = slot
    return pairs


def _free(call_id: str, used: set[str]) -> str:
    """`call_id`, or the first of `call_id_2`, `call_id_3`, ... that no earlier call has."""
    found, number = call_id, 1
    while found in used:
        number += 1
        found = f"{call_id}_{number}"
    return found


def _arranged(entries: Sequence[Entry], pairs: _Pairs, done: list[Repair]) -> tuple[Entry, ...]:
    """The entries with results where they belong."""
    ends = {run.last: run for run in pairs.runs if run.slots}
    in_place: set[int] = set()
    """Positions of entries whose results stand right."""
    for run in ends.values():
        in_place.update(_standing(entries, run, pairs))
    out: list[Entry] = []
    for position, entry in enumerate(entries):
        if position in in_place:
            out.append(entry)
        else:
            out.extend(_without_results(position, entry, pairs))
        if position in ends:
            out.extend(_answers(entries, ends[position], in_place, done))
    return tuple(out)


def _standing(entries: Sequence[Entry], run: _Run, pairs: _Pairs) -> list[int]:
    """Positions right after the run whose entries hold its results and nothing wrong; empty unless all its calls are answered there.

    The last of them may hold other blocks beside its results; wires write results first.
    """
    waiting = {
        slot.at
        for slot in run.slots
        if not slot.optional or (slot.answer is not None and entries[slot.answer[0]].role != "assistant")
    }
    positions: list[int] = []
    position = run.last + 1
    while waiting and position < len(entries):
        entry = entries[position]
        results = [number for number, block in enumerate(entry.blocks) if isinstance(block, ToolResult)]
        slots = [pairs.owner.get((position, number)) for number in results]
        if not results or any(slot is None or slot not in run.slots or slot.id != slot.call.id for slot in slots):
            return []
        waiting -= {slot.at for slot in slots if slot is not None}
        if waiting and len(results) < len(entry.blocks):
            return []
        positions.append(position)
        position += 1
    return [] if waiting else positions


def _without_results(position: int, entry: Entry, pairs: _Pairs) -> Iterable[Entry]:
    """The entry without results that go elsewhere or have no call, its calls under their wire ids; nothing when nothing is left."""
    blocks: list[Block] = []
    changed = False
    for number, block in enumerate(entry.blocks):
        if isinstance(block, ToolResult):
            slot = pairs.owner.get((position, number))
            if not (slot is not None and slot.optional and entry.role == "assistant"):
                changed = True
                continue
            if block.call_id != slot.id:
                block = msgspec.structs.replace(block, call_id=slot.id)
                changed = True
        elif isinstance(block, ToolCall) and (position, number) in pairs.renamed:
            block = msgspec.structs.replace(block, id=pairs.renamed[position, number])
            changed = True
        blocks.append(block)
    if not changed:
        return (entry,)
    return (msgspec.structs.replace(entry, blocks=tuple(blocks)),) if blocks else ()


def _answers(entries: Sequence[Entry], run: _Run, in_place: set[int], done: list[Repair]) -> Iterable[Entry]:
    """Entries with the results of the run's calls that do not stand in place, in call order, placeholders included."""
    for slot in run.slots:
        if slot.answer is None:
            if not slot.optional:
                maker = entries[slot.at[0]]
                done.append(Repair("call-answered", maker.id, slot.call.id))
                yield _placeholder(slot, maker)
            continue
        position, number = slot.answer
        entry = entries[position]
        if position in in_place or (slot.optional and entry.role == "assistant"):
            continue
        block = entry.blocks[number]
        assert isinstance(block, ToolResult)
        if any(_parts(entry) for entry in entries[run.last + 1 : position]):
            done.append(Repair("result-moved", entry.id, slot.call.id))
        alone = len(entry.blocks) == 1 and entry.role != "assistant"
        if slot.id != block.call_id:
            block = msgspec.structs.replace(block, call_id=slot.id)
        elif alone:
            yield entry
            continue
        if alone:
            yield msgspec.structs.replace(entry, blocks=(block,))
        else:
            # What the entry says about itself as a whole does not hold for a part of it.
            yield msgspec.structs.replace(
                entry, id=f"{entry.id}#{number}", role="tool", blocks=(block,), usage=None, extra=None
            )


def _parts(entry: Entry) -> bool:
    """Whether the entry, standing between a call and its result, parts them."""
    return not all(isinstance(block, ToolResult) for block in entry.blocks)


def _placeholder(slot: _Slot, maker: Entry) -> Entry:
    text = UNKNOWN_OUTCOME
    if slot.call.kind == "function" and slot.call.arguments.strip() and not _is_object(slot.call.arguments):
        text = NOT_EXECUTED
    block = ToolResult(slot.id, (Text(text, "injected"),), is_error=True)
    return Entry(id=f"{maker.id}#{slot.at[1]}", role="tool", blocks=(block,))


def _is_object(arguments: str) -> bool:
    try:
        return isinstance(decode(arguments), dict)
    except (ValueError, RecursionError):
        return False
