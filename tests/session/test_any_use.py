"""Whatever is done with sessions, in whatever order: requests are valid, bounded, extensions of the last, and equal after a restart."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from agent_run import RULE, SYSTEM, TOOLS, WIRES, calls, opened, user

from firsthand.errors import RequestTooLargeError
from firsthand.journal import Journal
from firsthand.session.session import Session
from firsthand.testing.validate import assert_valid
from firsthand.transcript import Entry, Text, ToolCall, ToolResult

STEPS = 45
ACTS = (
    ["reply"] * 6 + ["answer"] * 6 + ["user"] * 3 + ["both", "failed", "late", "compact", "undo", "pin", "branch", "fork", "other", "postpone"]
)  # fmt: skip


class Agent:
    """An agent that knows no order: calls stay open, results come late or twice, histories branch."""

    def __init__(self, journal: Journal, wire: str, seed: int) -> None:
        self.random = random.Random(seed)
        self.journal = journal
        self.wire = wire
        self.session = opened(journal, wire=wire, window=16_000)
        self.number = 0
        self.open: list[str] = []
        self.last: tuple[Any, ...] | None = None

    def entry(self, role: Any, *blocks: Any, **fields: Any) -> Entry:
        self.number += 1
        return Entry(id=f"n{self.number}", role=role, blocks=blocks, **fields)

    def act(self, name: str) -> None:
        session, choose = self.session, self.random.choice
        match name:
            case "user":
                session.append([user(f"do {self.number} " + "w" * choose((10, 400)))])
            case "reply":
                self.number += 1
                session.record(calls(self.number, self.wire))
                self.open.append(f"c{self.number}")
            case "both":
                blocks = [ToolCall(choose(("same", f"p{self.number}")), "read", "{}") for _ in range(2)]
                session.append([self.entry("assistant", Text("two"), *blocks)])
                self.open += [block.id for block in blocks]
            case "answer" | "late":
                call_id = self.open.pop(-1 if name == "answer" else 0) if self.open else "nobody"
                text = "y" * choose((40, 4_000, 12_000))
                session.append([self.entry("tool", ToolResult(call_id, (Text(text),)))])
            case "failed":
                session.append(
                    [self.entry("assistant", Text("half"), status=choose(("error", "aborted", "incomplete")))]
                )
            case "compact":
                session.compact(choose((None, "mind the port")))
            case "undo":
                session.undo()
            case "postpone":
                session.postpone()
            case "pin":
                session.pin(choose(self.journal.view(session.id).entries).id)
            case "branch":
                parent = choose(self.journal.view(session.id).entries[-6:]).id
                session.append([self.entry("user", Text("instead"), parent=parent)])
                self.last = None
            case "fork":
                self.session = session.fork()
                self.last = None
            case "other":
                self.session = opened(self.journal, session_id=session.id, wire=self.wire, window=16_000)

    def looked_at(self) -> bool:
        """Makes the next request and checks all that must hold of it; whether it could be made."""
        try:
            prepared = self.session.prepare(system=SYSTEM, tools=TOOLS[self.wire], max_output=2_000)
        except RequestTooLargeError:
            return False
        assert_valid(self.wire, prepared.body)
        assert prepared.occupancy.tokens <= prepared.budget.input_limit
        again = opened(self.journal, session_id=self.session.id, wire=self.wire, window=16_000)
        again.postpone()
        sent = again.prepare(system=SYSTEM, tools=TOOLS[self.wire], max_output=2_000).body
        assert json.dumps(sent) == json.dumps(prepared.body)
        checkpoint = self.session.checkpoint
        state = (self.session.id, checkpoint.id if checkpoint else "")
        pieces = flat(prepared.messages)
        if self.last is not None and self.last[0] == state:
            assert pieces[: len(self.last[1])] == self.last[1]
        self.last = (state, pieces)
        return True


def flat(messages: list[dict[str, Any]]) -> list[str]:
    """The messages in pieces that only ever get more: on Anthropic's wire neighbours of one role share a message."""
    pieces = []
    for message in messages:
        content = message.get("content")
        parts = content if isinstance(content, list) else [content]
        if isinstance(content, str):
            parts = [{"type": "text", "text": content}]
        rest = {key: value for key, value in message.items() if key != "content"}
        pieces += [json.dumps([rest, part]) for part in parts]
    return pieces


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("seed", range(3))
def test_any_use(tmp_path: Path, wire: str, seed: int) -> None:
    with Journal.open(tmp_path / "j.db") as journal:
        agent = Agent(journal, wire, seed)
        agent.session.append([user(RULE)])
        made = 0
        for _ in range(STEPS):
            agent.act(agent.random.choice(ACTS))
            made += agent.looked_at()
        assert made > STEPS // 2
        assert journal.verify().ok
        for operation in Session(journal, agent.session.id, agent.session.settings).operations():
            assert operation.state in ("completed", "failed")
