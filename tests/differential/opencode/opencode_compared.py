"""What OpenCode sent around each compaction, and what our strategy makes of the same session and the same summary, as values that compare.

The session is the client's own record of it, as our reader takes it. A compaction is judged by the conversation, the prior summary and the output
cap of its request for a summary, by the messages of the step after it, and every step by whether the client and we find a compaction due.
Left out is wording: the question before a summary, the message that asks to go on, and the instruction of the request.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from opencode_client import OpenCode

from firsthand.budget import Budget, Occupancy
from firsthand.formats.files.base import Input
from firsthand.formats.files.opencode import reader
from firsthand.formats.wire import wire_by_name
from firsthand.projection.plan import Plan
from firsthand.projection.render import project
from firsthand.projection.repair import repair
from firsthand.strategies.contract import CompactionRequest, DueState, NeedsSummary, Strategy, Summary
from firsthand.testing.server import Failure, Received, Reply
from firsthand.tokens import EstimateCounter
from firsthand.transcript import Entry, Marker, Text, Transcript, View

WIRE = wire_by_name("openai-chat")


@dataclass
class Compaction:
    """One compaction as the client made it."""

    trigger: str
    reported: int
    """Tokens that the provider had reported before it; 0 where it had refused."""
    asked: Received
    answer: str
    after: list[Any]
    """The messages of the next step."""


@dataclass
class Verdict:
    """Where the two sides differ; empty when they agree."""

    trigger: str
    differences: list[str] = field(default_factory=list)
    tail: int = 0
    """Messages of the tail."""
    split: bool = False
    """Whether the tail begins inside a turn."""
    resurfaced: bool = False
    """Whether an older summary stands in the tail again."""
    copied: bool = False
    """Whether a message that is sent again stands there twice."""


def stored(session: OpenCode) -> Transcript:
    """The session as our reader takes it from the client."""
    return reader.OpenCodeReader().read(Input("export.json", session.stored()))[0]


def compactions(seen: Sequence[tuple[str, Received]], record: Transcript) -> Iterator[tuple[Compaction, Marker]]:
    """The compactions in a run's requests, oldest first, each with the client's own record of it."""
    markers = iter(record.markers)
    for number, (kind, got) in enumerate(seen):
        if kind != "summary":
            continue
        marker = next(markers)
        assert isinstance(got.answer, Reply)
        before = seen[number - 1][1].answer
        reported = before.usage.total if isinstance(before, Reply) and before.usage else 0
        trigger = "manual" if marker.trigger == "manual" else "automatic"
        if isinstance(before, Failure):
            trigger = "provider_context_limit"
        yield Compaction(trigger, reported, got, got.answer.text, seen[number + 1][1].messages), marker


def judged(session: OpenCode, record: Transcript, strategy: Strategy, *, defects: bool) -> list[Verdict]:
    """A verdict for each compaction of a run.

    Args:
        session: after the run.
        record: what the client stored.
        strategy: ours.
        defects: whether `strategy` does what the client does by mistake. Otherwise three things are taken out of the client's requests before
            they are compared: older summaries that stand in the tail again, the older summary that is then taken for the prior one, and the
            copy of a message that is sent again. In a journal such a message stands once.
    """
    limits = Budget.of(session.window, session.output, counter=EstimateCounter())
    seen = session.model.seen
    system = seen[0][1].messages[0]
    verdicts: list[Verdict] = []
    previous: Plan | None = None
    summaries: list[str] = []
    positions = {entry.id: position for position, entry in enumerate(record.entries)}
    for made, marker in compactions(seen, record):
        assert marker.after is not None
        entries = record.entries[: positions[marker.after] + 1]
        if not defects:
            entries = tuple(entry for entry in entries if not (entry.extra or {}).get("replayed"))
        # Through the wire, as a gateway sees the session.
        view = View(WIRE.read([system, *WIRE.write(entries).messages]))
        summaries.append(made.answer)
        phase = "standalone" if made.trigger == "manual" else "mid_turn"
        request = CompactionRequest(trigger=made.trigger, phase=phase)  # type: ignore[arg-type]
        occupancy = Occupancy(made.reported, made.reported) if made.trigger == "automatic" else None
        verdict = Verdict(made.trigger)
        verdicts.append(verdict)
        decision = strategy.plan(view, limits, request, previous, None, occupancy)
        assert isinstance(decision, NeedsSummary), decision
        stale = not defects and len(verdicts) > 1 and verdicts[-2].resurfaced
        verdict.differences += _request(decision.requests[0], made.asked, ("conversation",) if stale else _TAGS)
        answers = {decision.requests[0].id: Summary(made.answer)}
        plan = strategy.plan(view, limits, request, previous, answers, occupancy)
        assert isinstance(plan, Plan), plan
        follow_up = [
            Entry(id=f"f{number}", role="user", blocks=(Text(item.text, item.origin),))
            for number, item in enumerate(plan.follow_up)
        ]
        ours = WIRE.write(repair([*project(view, plan), *follow_up]).entries).messages
        theirs = made.after[:-1] if made.trigger == "manual" else made.after
        told = _told(theirs, summaries, record, follow=made.trigger != "manual" and "replayed" not in plan.notes)
        verdict.tail = len(theirs) - 3 - (made.trigger != "manual")
        verdict.split = len(told) > 3 and told[3][0] == "assistant"
        verdict.resurfaced = sum(item[1] == "[question]" for item in told) > 1
        verdict.copied = made.trigger == "provider_context_limit" and told.count(told[-1]) > 1
        if not defects:
            told = _mended(told, summaries)
        mine = _told(ours, summaries, None, follow=bool(follow_up) and "replayed" not in plan.notes)
        verdict.differences += _differences(mine, told)
        previous = plan
    return verdicts


def untimely(session: OpenCode, strategy: Strategy) -> list[str]:
    """Steps after which only one of the two sides finds a compaction due."""
    limits = Budget.of(session.window, session.output, counter=EstimateCounter())
    found = []
    for number, ((kind, got), (following, asked)) in enumerate(itertools.pairwise(session.model.seen)):
        if kind != "step" or not isinstance(got.answer, Reply) or got.answer.usage is None:
            continue
        total = got.answer.usage.total
        ours = strategy.due(Occupancy(total, total), limits, DueState(phase="mid_turn")) is not None
        if ours != (following == "summary") and asked.number not in session.by_hand:
            found.append(f"step {number} at {total:,} tokens: ours {ours}, theirs {following == 'summary'}")
    return found


_TAGS = ("conversation", "prior-summary")


def _request(ours: Any, asked: Received, tags: Sequence[str]) -> Iterator[str]:
    theirs = asked.messages[-1]["content"]
    assert _inside("conversation", theirs), "a request for a summary without a conversation"
    for tag in tags:
        mine, other = _inside(tag, ours.instruction), _inside(tag, theirs)
        if mine != other:
            at = len(_common(mine, other))
            yield f"request, {tag}: {len(mine):,} and {len(other):,} characters, apart from {at:,} on: {mine[at : at + 40]!r}, {other[at : at + 40]!r}"
    if ours.max_output != asked.json["max_tokens"]:
        yield f"request: an output cap of {ours.max_output} and {asked.json['max_tokens']}"
    if [message["role"] for message in asked.messages] != ["system", "user"] or ours.items or ours.system is None:
        yield "request: other messages than a system prompt and one of the user"


def _common(one: str, other: str) -> str:
    return one[
        : next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    ]


def _inside(tag: str, text: str) -> str:
    _, opened, rest = text.partition(f"<{tag}>")
    inner, closed, _ = rest.rpartition(f"</{tag}>")
    return inner.strip("\n") if opened and closed else ""


def _differences(ours: list[Any], theirs: list[Any]) -> Iterator[str]:
    for number, (mine, other) in enumerate(itertools.zip_longest(ours, theirs)):
        if mine != other:
            yield f"after, message {number}: ours {_short(mine)}, theirs {_short(other)}"


def _short(told: Any) -> str:
    return "nothing" if told is None else f"{told[0]} of {len(str(told[1:]))} characters {str(told[1:])[:60]}"


def _told(messages: Sequence[Any], summaries: Sequence[str], record: Transcript | None, *, follow: bool) -> list[Any]:
    """What the messages say; the client's fixed texts by their names."""
    told = [_message(message) for message in messages]
    for number, message in enumerate(told):
        if message[0] == "assistant" and message[1] in summaries and told[number - 1][0] == "user":
            told[number - 1] = ("user", "[question]")
    if follow:
        last = told[-1]
        assert record is None or any(last[1] == text for text in _synthetic(record)), "no message that asks to go on"
        told[-1] = (last[0], "[continue]")
    return told


def _mended(told: list[Any], summaries: Sequence[str]) -> list[Any]:
    """The client's messages without older summaries, and with the message that is sent again only where it is sent."""
    out = []
    for number, item in enumerate(told):
        answer = told[number + 1][1] if item[1] == "[question]" else item[1]
        if item[0] not in ("user", "assistant") or answer not in summaries[:-1]:
            out.append(item)
    if out[-1][0] == "user" and out.count(out[-1]) > 1:
        del out[out.index(out[-1]) : -1]
    return out


def _synthetic(record: Transcript) -> Iterator[str]:
    return (
        "\n\n".join(block.text for block in entry.blocks if isinstance(block, Text))
        for entry in record.entries
        if entry.role == "user"
        and all(isinstance(block, Text) and block.origin == "injected" for block in entry.blocks)
    )


def _message(message: dict[str, Any]) -> tuple[Any, ...]:
    content = message.get("content") or ""
    text = content if isinstance(content, str) else "\n\n".join(part.get("text", "") for part in content)
    calls = [
        (call["id"], call["function"]["name"], json.loads(call["function"]["arguments"]))
        for call in message.get("tool_calls") or ()
    ]
    return (
        (message["role"], text, message.get("tool_call_id"), calls)
        if calls or "tool_call_id" in message
        else (message["role"], text)
    )
