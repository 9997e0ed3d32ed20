"""Above the trigger: valid, bounded, and each request extends the one before between two checkpoints, whatever the client moves."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from gatewayed import LIST, WIRES, request, said, step, user
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from in_process import InProcess

from firsthand.gateway.keys import keys_of
from firsthand.gateway.scan import fields, items
from firsthand.gateway.wires import GATEWAY_WIRES
from firsthand.testing.server import FakeServer, Reply

Raw = dict[str, Any]
WINDOW = 8_000
# Shrinking a conversation takes minutes, and the first failing one can be read as it is.
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)
SETTINGS = settings(max_examples=8, phases=PHASES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
THOROUGH = settings(max_examples=1_000, phases=PHASES, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    server = FakeServer(cache=False)
    with InProcess(tmp_path_factory.mktemp("gateway"), server, windows={"*": WINDOW}) as running:
        yield running


def turns(most: int, steps: int, results: tuple[int, ...]) -> st.SearchStrategy[Any]:
    """For each turn the length of what the person says, and for each step how many calls, how large their results, and whether words go with them."""
    step = st.tuples(st.integers(1, 3), st.sampled_from(results), st.booleans())
    return st.lists(st.tuples(st.integers(5, 400), st.lists(step, max_size=steps)), min_size=3, max_size=most)


TURNS = turns(9, 4, (0, 40, 900, 3_000))
SHORTER = turns(5, 2, (0, 900, 4_000))


def history(wire: str, number: int, turns: Any) -> Iterator[list[Raw]]:
    """The messages of each request of the conversation, as a client without any habits would send them."""
    messages: list[Raw] = []
    calls = 0
    for at, (size, steps) in enumerate(turns):
        messages.append(user(wire, f"conversation {number}, turn {at}: " + "please look " * (size // 12 + 1)))
        yield list(messages)
        for parallel, result, speaks in steps:
            made = []
            for _ in range(parallel):
                calls += 1
                output = f"UID-{calls} of {number} 日本語\n" * (result // 15 + (result > 0))
                made.append(step(wire, f"call_{number:05d}{calls:05d}abcdef", output, "I look." if speaks else ""))
            messages += together(wire, made)
            yield list(messages)
        messages.append(said(wire, f"done with turn {at}"))


def together(wire: str, made: list[list[Raw]]) -> list[Raw]:
    """Several calls with their results as one step of parallel calls."""
    if wire == "openai-responses":
        calls = [item for each in made for item in each if item.get("type") != "function_call_output"]
        return calls + [item for each in made for item in each if item.get("type") == "function_call_output"]
    first, *others = made
    if wire == "openai-chat":
        calling = {**first[0], "tool_calls": [call for each in made for call in each[0]["tool_calls"]]}
        return [calling, *(each[1] for each in made)]
    uses = [block for each in others for block in each[0]["content"] if block["type"] == "tool_use"]
    results = [block for each in made for block in each[1]["content"]]
    return [{"role": "assistant", "content": [*first[0]["content"], *uses]}, {"role": "user", "content": results}]


def with_habits(wire: str, messages: list[Raw], turn: int) -> list[Raw]:
    """The same, as clients send it: marks on the newest, new item ids, a reminder glued to what is newest, keys in another order."""
    out: list[Raw] = json.loads(json.dumps(messages))
    newest = out[-1]
    reminder = f"\n<system-reminder>{1_000 - turn} tokens left</system-reminder>"
    if wire == "openai-responses":
        for number, item in enumerate(out):
            item["id"] = f"item_{turn}_{number}"
            if item.get("role") == "assistant" or item["type" if "type" in item else "role"] == "function_call":
                item["status"] = "completed"
        if newest.get("type") == "function_call_output":
            newest["output"] += reminder
    elif wire == "anthropic":
        for message in out:
            if isinstance(message["content"], str) and turn % 2:
                message["content"] = [{"type": "text", "text": message["content"]}]
        if isinstance(newest["content"], list):
            block = newest["content"][-1]
            if block["type"] == "tool_result":
                block["content"] += reminder
            block["cache_control"] = {"type": "ephemeral"}
    elif newest["role"] == "tool":
        newest["content"] += reminder
    return [dict(reversed(list(message.items()))) if turn % 2 else message for message in out]


def canonical(wire: str, messages: list[Raw]) -> list[bytes]:
    of = next(each for each in GATEWAY_WIRES if each.name == wire)
    return [keys_of(of.outline(message)).content for message in messages]


def list_bytes(wire: str, body: bytes) -> list[bytes]:
    data = fields(body)[LIST[wire]].of(body)
    return [span.of(data) for span in items(data)]


class Checked:
    """Sends a conversation and checks every request that arrives."""

    def __init__(self, gateway: InProcess, wire: str, *, strict: bool) -> None:
        self.gateway, self.wire, self.strict = gateway, wire, strict
        self.before: list[Raw] = []
        self.bytes_before: list[bytes] = []
        self.compactions = 0

    def send(self, messages: list[Raw], **more: Any) -> None:
        answer = self.gateway.ask(self.wire, messages, **more)
        arrived = self.gateway.arrived
        assert answer.status_code == 200, answer.text
        assert arrived.violations == ()
        assert "x-firsthand-error" not in answer.headers
        decision = answer.headers["x-firsthand-decision"]
        # The server counts less than we do, so what fits by its count is the weaker claim; ours is in the header.
        assert int(answer.headers["x-firsthand-tokens-after"]) <= WINDOW - 500 - WINDOW // 16
        shown, raws = arrived.messages, list_bytes(self.wire, arrived.body)
        if decision == "compacted":
            self.compactions += 1
        elif self.strict:
            assert raws[: len(self.bytes_before)] == self.bytes_before
        else:
            kept = canonical(self.wire, self.before)
            assert canonical(self.wire, shown)[: len(kept)] == kept
        self.before, self.bytes_before = shown, raws


_numbers = iter(range(10**9))


def check(gateway: InProcess, wire: str, turns: Any, *, habits: bool) -> None:
    checked = Checked(gateway, wire, strict=not habits)
    tools = [{"name": "bash", "input_schema": {}}] if wire == "anthropic" else None
    for turn, messages in enumerate(history(wire, next(_numbers), turns)):
        checked.send(with_habits(wire, messages, turn) if habits else messages, **({"tools": tools} if tools else {}))
    gateway.server._settings.log.clear()


@pytest.mark.parametrize("habits", [False, True], ids=["plain", "habits"])
@pytest.mark.parametrize("wire", WIRES)
def test_above_the_trigger_requests_are_valid_bounded_and_extend_each_other(
    gateway: InProcess, wire: str, habits: bool
) -> None:
    @SETTINGS
    @given(TURNS)
    def run(turns: Any) -> None:
        check(gateway, wire, turns, habits=habits)

    run()


@pytest.mark.slow
@pytest.mark.parametrize("wire", WIRES)
def test_a_thousand_conversations_above_the_trigger(gateway: InProcess, wire: str) -> None:
    @THOROUGH
    @given(SHORTER, st.booleans())
    def run(turns: Any, habits: bool) -> None:
        check(gateway, wire, turns, habits=habits)

    run()


@pytest.mark.parametrize("wire", WIRES)
def test_a_long_session_crosses_several_checkpoints_and_keeps_what_was_typed(gateway: InProcess, wire: str) -> None:
    checked = Checked(gateway, wire, strict=True)
    turns = [(30, [(2, 900, True)] * 4)] * 12
    for messages in history(wire, next(_numbers), turns):
        checked.send(messages)
    assert checked.compactions >= 3
    last = json.dumps(gateway.arrived.json)
    assert all(f"turn {at}: please look" in last for at in range(12))
    assert len(json.dumps(request(wire, messages))) > 2 * len(last)


@pytest.mark.parametrize("wire", WIRES)
def test_after_a_restart_the_same_bytes_are_sent(tmp_path: Path, wire: str) -> None:
    # Usage is what a restart forgets; without any, both gateways estimate alike.
    server = FakeServer(default=Reply("ok", report_usage=False), cache=False)
    before: list[bytes] = []
    decisions: list[str] = []
    requests = list(history(wire, 7, [(30, [(1, 900, True)] * 4)] * 5))
    for some in (requests[:19], requests[19:]):
        with InProcess(tmp_path, server, windows={"*": WINDOW}) as running:
            for messages in some:
                answer = running.ask(wire, messages)
                decisions.append(answer.headers["x-firsthand-decision"])
                shown = list_bytes(wire, running.arrived.body)
                assert decisions[-1] == "compacted" or shown[: len(before)] == before
                before = shown
    assert "compacted" in decisions[:19]
    assert decisions[19] == "projected"
