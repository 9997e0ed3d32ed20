"""Which tool outputs OpenCode had cleared at the start of each turn, and which ours would have."""

from __future__ import annotations

from typing import Any

from opencode_client import OpenCode
from opencode_compared import WIRE

from firsthand.budget import Budget
from firsthand.projection.plan import Plan
from firsthand.projection.render import project
from firsthand.projection.repair import repair
from firsthand.strategies.contract import CompactionRequest, Strategy
from firsthand.strategies.opencode.size import CLEARED
from firsthand.tokens import EstimateCounter
from firsthand.transcript import Transcript, View


def cleared(session: OpenCode, record: Transcript, strategy: Strategy) -> list[tuple[list[str], list[str]]]:
    """For each turn the call ids whose outputs the client had cleared, and those that the strategy clears before it."""
    limits = Budget.of(session.window, session.output, counter=EstimateCounter())
    whole = WIRE.write(record.entries).messages
    outputs = {message["tool_call_id"]: message["content"] for message in whole if message["role"] == "tool"}
    found: list[tuple[list[str], list[str]]] = []
    previous: Plan | None = None
    for _, got in session.model.seen:
        system, *history, last = got.messages
        if last["role"] != "user":
            continue
        theirs = [call for call, text in _outputs(history) if text != outputs[call]]
        view = View(WIRE.read([system, *whole[: len(history)]]))
        decision = strategy.plan(view, limits, CompactionRequest(), previous)
        previous = decision if isinstance(decision, Plan) else previous
        ours = WIRE.write(repair(project(view, previous)).entries).messages
        found.append((theirs, [call for call, text in _outputs(ours) if text == CLEARED]))
        assert [_shape(message) for message in ours[1:]] == [_shape(message) for message in history]
    return found


def _outputs(messages: list[Any]) -> list[tuple[str, str]]:
    return [(message["tool_call_id"], message["content"]) for message in messages if message["role"] == "tool"]


def _shape(message: dict[str, Any]) -> tuple[Any, ...]:
    return (message["role"], message.get("tool_call_id") or message.get("content") or "")
