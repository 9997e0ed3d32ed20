"""Compactions as published builds of Codex made them against a scripted server, with every text of the vendor replaced by an invented one.

Each file of `fixtures/codex` holds the history before, what the server answered, and the conversation of the next request. Long texts are written as
(mark, length), a text that the client cut by its length, the number in its marker and its hash.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from firsthand.budget import Budget
from firsthand.formats.wire import wire_by_name
from firsthand.projection.render import project
from firsthand.projection.repair import repair
from firsthand.strategies import strategy_by_name
from firsthand.strategies.codex.kinds import element
from firsthand.strategies.codex.texts import SUMMARY_PREFIX
from firsthand.strategies.contract import CompactionRequest, Kept, NeedsSummary, Plan, Summary
from firsthand.testing.builders import entry
from firsthand.tokens import EstimateCounter
from firsthand.transcript import Block, Entry, Media, Text, ToolCall, ToolResult, Unknown, View, chained

FIXTURES = Path(__file__).parent / "fixtures" / "codex"
ROOMY = Budget.of(2_000_000, counter=EstimateCounter())
OPAQUE = {"type": "compaction", "id": "cmp_1", "encrypted_content": "aW52ZW50ZWQ="}

runs = sorted(path.stem for path in FIXTURES.glob("*.json") if "overflow" not in path.stem)
overflows = sorted(path.stem for path in FIXTURES.glob("*overflow*.json"))


def load(name: str) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((FIXTURES / f"{name}.json").read_text())
    return value


@cache
def made(mark: str, length: int) -> str:
    text, count = "", 0
    while len(text) < length:
        text += f"{mark}-{count:05d} some plain words to fill the line é\n"
        count += 1
    return text[:length]


def block(part: Any, role: str) -> Block:
    match part:
        case str():
            injected = role == "developer" or (role == "user" and element(part) is not None)
            return Text(part, "injected" if injected else "typed")
        case {"made": [mark, length]}:
            return Text(made(mark, length))
        case {"image": url}:
            return Media("image", url=url)
    raise ValueError(part)


def read(items: Iterable[dict[str, Any]], start: int = 0) -> list[Entry]:
    entries = []
    for number, item in enumerate(items, start=start):
        match item:
            case {"call": call_id, "name": name, "arguments": arguments}:
                new = entry("assistant", ToolCall(call_id, name, arguments))
            case {"output": call_id, "text": text}:
                new = entry("tool", ToolResult(call_id, (Text(text),)))
            case {"role": role, "parts": parts}:
                new = entry(role, *(block(part, role) for part in parts))
            case _:
                raise ValueError(item)
        entries.append(Entry(id=f"e{number}", role=new.role, blocks=new.blocks, wire="openai-responses"))
    return entries


def matches(shown: Entry, item: dict[str, Any]) -> bool:
    """Whether an entry of the projection says what the item of the captured request said; how it is split into parts may differ."""
    if item.get("compaction"):
        return shown.blocks == (Unknown(OPAQUE),)
    if "role" not in item or item["role"] != shown.role:
        return False
    text = "".join(block.text for block in shown.blocks if isinstance(block, Text))
    pictures = sum(isinstance(block, Media) for block in shown.blocks)
    expected, expected_pictures = "", 0
    for part in item["parts"]:
        match part:
            case {"summary": summary}:
                expected += f"{SUMMARY_PREFIX}\n{summary}"
            case {"cut": {"characters": size, "marker": removed, "sha256": digest}}:
                marker = re.search(r"…(\d+) tokens truncated…", text)
                return (
                    marker is not None
                    and int(marker[1]) == removed
                    and len(text) == size
                    and hashlib.sha256(text.encode()).hexdigest() == digest
                )
            case {"window": True}:
                return text.startswith("[Context window of /root:")
            case {"image": _}:
                expected_pictures += 1
            case _:
                found = block(part, item["role"])
                assert isinstance(found, Text)
                expected += found.text
    return (text, pictures) == (expected, expected_pictures)


@pytest.mark.parametrize("name", runs)
def test_the_next_request_is_the_client_s(name: str) -> None:
    run = load(name)
    strategy = strategy_by_name(run["strategy"], **run["options"])
    history: list[Entry] = []
    previous: Plan | None = None
    for step in run["steps"]:
        known = len(history)
        history += read(step["added"], known)
        incoming = read(step["incoming"], len(history)) if step["phase"] != "standalone" else []
        view = View(chained([*history, *incoming]))
        request = CompactionRequest(trigger="manual", phase=step["phase"])
        plan = strategy.plan(view, ROOMY, request, previous)
        if isinstance(plan, NeedsSummary):
            answer = Summary(step["answer"]) if step["answer"] else Summary(raw=OPAQUE)
            plan = strategy.plan(view, ROOMY, request, previous, {plan.requests[0].id: answer})
        assert isinstance(plan, Plan)
        shown = [*project(view, plan)]
        if step["phase"] == "standalone":
            shown += read(step["incoming"], len(history))
        assert len(shown) == len(step["next"])
        assert all(matches(have, want) for have, want in zip(shown, step["next"], strict=True))
        sent = wire_by_name("openai-responses").write(repair(shown).entries).messages
        assert [item.get("role", item["type"]) for item in sent] == [
            item.get("role", "compaction") for item in step["next"]
        ]
        history += read(step["incoming"], len(history))
        previous = plan


@pytest.mark.parametrize("name", overflows)
def test_the_summary_request_shrinks_like_the_client_s(name: str) -> None:
    run = load(name)
    strategy = strategy_by_name(run["strategy"], **run["options"])
    view = View(chained(read(run["history"])))
    asked = strategy.plan(view, ROOMY, CompactionRequest(trigger="manual", phase="mid_turn"))
    assert isinstance(asked, NeedsSummary)
    request = asked.requests[0]
    tries = []
    at: Any = request
    while at is not None:
        tries.append([view.positions[item.entry] for item in at.items if isinstance(item, Kept)])
        at = strategy.shrink(at)
    assert tries == run["tries"]
