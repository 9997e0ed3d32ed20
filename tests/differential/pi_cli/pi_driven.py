"""What Pi sent around each compaction, and what our strategy makes of the same session and the same summaries, as values that compare.

The session is the client's own file, as our reader takes it, written for the wire. A compaction is judged by the conversation, the previous
summary and the output cap of each request for a summary, and by the messages of the step after it. Left out is wording: the instructions, the
sentence around a summary, and the note about what was cut from a tool's output, but for its number.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from pi_client import PiClient

from firsthand.budget import Budget, Occupancy
from firsthand.formats.files.base import Input
from firsthand.formats.files.pi.reader import PiReader
from firsthand.formats.wire import wire_by_name
from firsthand.projection.plan import Plan
from firsthand.projection.render import project
from firsthand.projection.repair import repair
from firsthand.strategies.contract import CompactionRequest, NeedsSummary, Strategy, Summary
from firsthand.testing.server import Failure, Received, Reply
from firsthand.tokens import EstimateCounter
from firsthand.transcript import View

WIRE = wire_by_name("openai-chat")
_CUT = re.compile(r"\n\n\[\D*([\d,]+) more characters[^\]\n]*\]")


@dataclass
class Verdict:
    """Where the two sides differ; empty when they agree."""

    trigger: str
    differences: list[str] = field(default_factory=list)
    requests: int = 0
    """Requests for a summary: two where a turn was split and something came before it."""
    tail: int = 0
    """Messages of the tail."""


def judged(session: PiClient, strategy: Strategy) -> list[Verdict]:
    """A verdict for each compaction of a run."""
    [record] = PiReader().read(Input("session.jsonl", session.stored()))
    positions = {entry.id: number for number, entry in enumerate(record.entries)}
    markers = iter(record.markers)
    limits = Budget.of(session.window, 4_000, counter=EstimateCounter())
    seen = session.model.seen
    system = seen[0][1].messages[0]
    verdicts: list[Verdict] = []
    previous: Plan | None = None
    number = 0
    for kind, group in itertools.groupby(seen, key=lambda pair: pair[0]):
        asked = [got for _, got in group]
        number += len(asked)
        if kind != "summary":
            continue
        marker = next(markers)
        assert marker.after is not None
        before = seen[number - len(asked) - 1][1].answer
        refused = isinstance(before, Failure)
        total = before.usage.total if isinstance(before, Reply) and before.usage else 0
        by_hand = asked[0].number in session.by_hand
        trigger = "provider_context_limit" if refused else "manual" if by_hand else "automatic"
        occupancy = Occupancy(total, total) if trigger == "automatic" else None
        verdict = Verdict(trigger, requests=len(asked))
        verdicts.append(verdict)
        # The answer that failed stands in the file, and is sent to nobody.
        entries = [entry for entry in record.entries[: positions[marker.after] + 1] if entry.status != "error"]
        view = View(WIRE.read([system, *WIRE.write(entries).messages]))
        request = CompactionRequest(trigger=verdict.trigger, phase="pre_turn")  # type: ignore[arg-type]
        decision = strategy.plan(view, limits, request, previous, None, occupancy)
        assert isinstance(decision, NeedsSummary), decision
        answers: dict[str, Summary] = {}
        verdict.differences += _requests(decision, asked, answers)
        plan = strategy.plan(view, limits, request, previous, answers, occupancy)
        assert isinstance(plan, Plan), plan
        ours = [_message(message) for message in WIRE.write(repair(project(view, plan)).entries).messages]
        theirs = [_message(message) for message in seen[number][1].messages]
        verdict.tail = len(ours) - 2
        if not refused:
            theirs = theirs[:-1]
        for place, (mine, other) in enumerate(itertools.zip_longest(ours, theirs)):
            if mine != other:
                verdict.differences.append(f"after, message {place}: ours {str(mine)[:90]}, theirs {str(other)[:90]}")
        previous = plan
    return verdicts


def _requests(decision: NeedsSummary, asked: Sequence[Received], answers: dict[str, Summary]) -> Iterator[str]:
    """Differences between the requests; fills `answers` by what the client got for the one that is like ours."""
    left = list(asked)
    for made in decision.requests:
        mine = _told(made.instruction)
        found = next((got for got in left if _told(_text(got.messages[1])) == mine), None)
        if found is None:
            yield f"request {made.id}: none of the client's is like it"
            found = left[0] if left else asked[0]
        if found in left:
            left.remove(found)
        cap = found.json.get("max_completion_tokens", found.json.get("max_tokens"))
        if cap != made.max_output:
            yield f"request {made.id}: an output cap of {made.max_output} and {cap}"
        assert isinstance(found.answer, Reply)
        answers[made.id] = Summary(found.answer.text)
    if left:
        yield f"the client made {len(left)} more requests"


def _told(text: str) -> tuple[str, str]:
    """The conversation and the previous summary of a request."""
    conversation = _inside("conversation", text)
    assert conversation, "a request for a summary without a conversation"
    return _CUT.sub(r"[cut \1]", conversation).replace(",", ""), _inside("previous-summary", text)


def _inside(tag: str, text: str) -> str:
    _, opened, rest = text.partition(f"<{tag}>")
    inner, closed, _ = rest.rpartition(f"</{tag}>")
    return inner.strip("\n") if opened and closed else ""


def _text(message: dict[str, Any]) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def _message(message: dict[str, Any]) -> tuple[Any, ...]:
    text = _text(message)
    if message["role"] == "user" and (summary := _inside("summary", text)):
        return ("summary", summary)
    calls = [
        (call["id"], call["function"]["name"], call["function"]["arguments"])
        for call in message.get("tool_calls") or ()
    ]
    return (message["role"], text, message.get("tool_call_id"), calls)
