"""OpenCode's strategies in a running session: compactions follow each other, every request is valid, the continue message is there once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from firsthand.journal import Journal
from firsthand.session.session import Session
from firsthand.strategies import strategy_by_name
from firsthand.strategies.opencode.prompts import CONTINUE, QUESTION
from firsthand.strategies.opencode.size import CLEARED
from firsthand.testing.validate import validate
from firsthand.tokens import EstimateCounter

SUMMARY = "## Objective\n- go on\n\n## Important Details\n- (none)"


def says(text: str | None, *calls: dict[str, Any]) -> dict[str, Any]:
    message = {"role": "assistant", "content": text} | ({"tool_calls": list(calls)} if calls else {})
    finish = "tool_calls" if calls else "stop"
    return {"id": "r", "model": "m", "choices": [{"finish_reason": finish, "message": message}]}


def reads(number: int) -> dict[str, Any]:
    function = {"name": "read", "arguments": f'{{"path":"f{number}.py"}}'}
    return says(None, {"id": f"c{number}", "type": "function", "function": function})


@pytest.mark.parametrize(
    ("name", "options", "summaries"),
    [
        ("opencode-v1", {}, 2),
        ("opencode-v1", {"strict_bugs": True}, 2),
        ("opencode-v1", {"prune": True, "prune_protect": 2_000, "prune_minimum": 4_000}, 1),
        ("opencode-v2", {}, 5),
        ("opencode-v2", {"follows": "V2-d"}, 4),
    ],
)
def test_a_long_session(tmp_path: Path, name: str, options: dict[str, Any], summaries: int) -> None:
    asked: list[Mapping[str, Any]] = []

    def summariser(body: Mapping[str, Any], *_: Any) -> Mapping[str, Any]:
        asked.append(body)
        return says(SUMMARY)

    requests: list[list[dict[str, Any]]] = []
    with Journal.open(tmp_path / "journal.db") as journal:
        session = Session.open(
            "s",
            journal=journal,
            window=32_000,
            counter=EstimateCounter(),
            strategy=strategy_by_name(name, **options),
            summariser=summariser,
        )
        for number in range(49):
            if number % 7 == 0:
                session.append([{"role": "user", "content": f"turn {number // 7}"}])
            requests.append(session.prepare(system="You are careful.").body["messages"])
            session.record(reads(number))
            content = f"{number} " + "x" * 4_000
            session.append([{"role": "tool", "tool_call_id": f"c{number}", "content": content}])
            if number % 7 == 6:
                requests.append(session.prepare(system="You are careful.").body["messages"])
                session.record(says(f"done {number // 7}"))
        for messages in requests:
            assert validate("openai-chat", messages) == []
        texts = [str(message["content"]) for message in requests[-1]]
    assert len(asked) == summaries
    for body in asked:
        assert validate("openai-chat", body["messages"]) == []
    cleared = max(sum(message["content"] == CLEARED for message in messages) for messages in requests)
    # When the fourth prompt comes, the seven outputs of the first turn are older than two turns, and one of them is protected.
    assert cleared == (6 if options.get("prune") else 0)
    if name == "opencode-v1":
        assert texts.count(QUESTION) == 1
        assert sum(CONTINUE in text for messages in requests for text in (str(messages[-1]["content"]),)) == summaries
        assert sum(CONTINUE in text for text in texts) <= summaries
    else:
        assert sum(text.startswith("<conversation-checkpoint>") for text in texts) == 1
