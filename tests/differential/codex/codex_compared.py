"""What Codex sent around each compaction, and what our strategy makes of the same history and the same summary, as values that compare.

A compaction is judged by the conversation in its requests for a summary and by the conversation of the step after it, item by item. Left out are
ids, the client's metadata, and the vendor's own sentence in front of a summary, which only has to be one constant.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from firsthand.budget import Budget
from firsthand.formats.wire import wire_by_name
from firsthand.projection.plan import Item, Phase, Plan
from firsthand.projection.render import project
from firsthand.projection.repair import repair
from firsthand.strategies.contract import CompactionRequest, NeedsSummary, Strategy, Summary
from firsthand.testing.server import Received, Reply
from firsthand.tokens import EstimateCounter
from firsthand.transcript import Entry, View

WIRE = wire_by_name("openai-responses")
ROOMY = Budget.of(2_000_000, counter=EstimateCounter())
_PHASES: dict[str, Phase] = {"mid_turn": "mid_turn", "pre_turn": "pre_turn", "standalone_turn": "standalone"}


@dataclass
class Compaction:
    """One compaction as the client made it."""

    phase: Phase
    trigger: str
    tries: list[list[Any]]
    """The conversation in each request for its summary, without what asks for it."""
    answer: Summary
    after: list[Any]
    """The conversation of the next step, without what came in after the compaction."""
    incoming: list[Any]
    """That."""


def compactions(seen: Sequence[tuple[str, Received]]) -> Iterator[Compaction]:
    """The compactions in a run's requests, oldest first."""
    number = 0
    for kind, group in itertools.groupby(seen, key=lambda pair: pair[0]):
        requests = [got for _, got in group]
        number += len(requests)
        if kind != "summary":
            continue
        told = json.loads(requests[-1].headers["x-codex-turn-metadata"])["compaction"]
        phase = _PHASES[told["phase"]]
        after = seen[number][1].messages
        size = len(after) if phase == "mid_turn" else len(after) - 1
        answered = requests[-1].answer
        assert isinstance(answered, Reply)
        opaque = next((item for item in after if item.get("type") == "compaction"), None)
        answer = Summary(raw=opaque) if opaque is not None else Summary(answered.text)
        tries = [got.messages[:-1] for got in requests]
        yield Compaction(phase, told["trigger"], tries, answer, after[:size], after[size:])


@dataclass
class Verdict:
    """Where the two sides differ; empty when they agree."""

    phase: Phase
    differences: list[str] = field(default_factory=list)
    cut: int = 0
    """Messages that the client had cut."""
    tries: int = 0
    """Requests for a summary that were compared."""


def judged(seen: Sequence[tuple[str, Received]], strategy: Strategy) -> list[Verdict]:
    """A verdict for each compaction of a run. Ours works on the originals, as they were before anybody compacted anything."""
    verdicts: list[Verdict] = []
    originals: list[Any] = []
    previous: Plan | None = None
    before: list[Any] = []
    leads: set[str] = set()
    for made in compactions(seen):
        assert _told(before, "") == _told(made.tries[0][: len(before)], ""), "the client changed what it had sent"
        originals += made.tries[0][len(before) :]
        incoming = made.incoming if made.phase == "pre_turn" else []
        view = View(WIRE.read([*originals, *incoming]))
        request = CompactionRequest(trigger="manual", phase=made.phase)
        verdict = Verdict(made.phase)
        plan = strategy.plan(view, ROOMY, request, previous)
        if isinstance(plan, NeedsSummary):
            asked = plan.requests[0]
            if asked.items and made.answer.raw is None:
                verdict.tries = len(made.tries)
                verdict.differences += _tries(strategy, view, asked, made, previous)
            plan = strategy.plan(view, ROOMY, request, previous, {asked.id: made.answer})
        assert isinstance(plan, Plan), plan
        ours = list(project(view, plan))
        if incoming:
            ours = ours[: -len(incoming)]
        text = made.answer.text
        leads |= {lead for item in made.after if (lead := _lead(item, text)) is not None}
        theirs = _told(made.after, text)
        verdict.differences += _differences(_told(_written(ours), text), theirs, "after")
        verdict.cut = sum("tokens truncated" in str(item) for item in theirs)
        verdicts.append(verdict)
        previous, before = plan, made.after
    assert len(leads) <= 1, "the sentence in front of a summary is not constant"
    return verdicts


def _tries(strategy: Strategy, view: View, asked: Any, made: Compaction, previous: Plan | None) -> Iterator[str]:
    """Differences between the client's requests for a summary and ours, the first and those that a refusal shrinks."""
    prior = previous.summary or "" if previous is not None else ""
    for number, theirs in enumerate(made.tries):
        if asked is None:
            yield f"try {number}: the client asked again and ours has nothing smaller"
            return
        yield from _differences(_told(_written(_of(view, asked.items)), prior), _told(theirs, prior), f"try {number}")
        asked = strategy.shrink(asked)


def _of(view: View, items: Sequence[Item]) -> list[Entry]:
    """The entries that these items show, without any tail."""
    whole = Plan(
        strategy="none", version="0", covered_from=view.entries[0].id, cutoff=view.entries[-1].id, items=tuple(items)
    )
    return list(project(view, whole))


def _written(entries: Sequence[Entry]) -> list[Any]:
    return WIRE.write(repair(entries).entries).messages


def _differences(ours: list[Any], theirs: list[Any], where: str) -> Iterator[str]:
    for number, (mine, other) in enumerate(itertools.zip_longest(ours, theirs)):
        if mine != other:
            # Sizes and beginnings only: what the client says itself is the vendor's.
            yield f"{where}, item {number}: ours {_short(mine)}, theirs {_short(other)}"


def _short(told: Any) -> str:
    return "nothing" if told is None else f"{told[0]} of {len(str(told[1:]))} characters {str(told[1:])[:60]}"


def _told(items: Sequence[Any], summary: str) -> list[Any]:
    """What the items say, without ids and metadata; how a text is split into parts does not count."""
    return [_item(item, summary) for item in items]


def _item(item: dict[str, Any], summary: str) -> tuple[Any, ...]:
    match item:
        case {"role": role, "content": content}:
            lead = _lead(item, summary)
            text = _text(content) if lead is None else f"[summary]\n{summary}"
            pictures = tuple(str(part.get("image_url")) for part in content if part.get("type") == "input_image")
            return (role, text, pictures)
        case {"type": "function_call", "call_id": call, "name": name, "arguments": arguments}:
            return ("call", call, name, json.loads(arguments))
        case {"type": "function_call_output", "call_id": call, "output": output}:
            return ("output", call, output if isinstance(output, str) else _text(output))
        case {"type": "compaction", "encrypted_content": opaque}:
            return ("compaction", opaque)
    raise AssertionError(f"an item of an unknown kind: {sorted(item)}")


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def _lead(item: dict[str, Any], summary: str) -> str | None:
    """The sentence in front of the summary when the item is the message that holds it."""
    text = _text(item.get("content") or "") if item.get("role") == "user" else ""
    return text.removesuffix(f"\n{summary}") if summary and text.endswith(f"\n{summary}") else None
