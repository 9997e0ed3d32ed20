"""Real sessions through the gateway, step by step, on each wire: valid, within the limit, without an error, and every original in the journal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from gatewayed import LIST, WIRES
from in_process import InProcess
from real_sessions import shared

from firsthand.formats import read_sessions
from firsthand.formats.wire import wire_by_name
from firsthand.journal import Journal
from firsthand.projection.repair import repair
from firsthand.testing.server import FakeServer

SESSIONS = ["claude-code/technocore-images.jsonl.gz", "codex/hk-compact2.jsonl.gz", "pi/pi-before-compaction.jsonl.gz"]
WINDOW = 60_000


@pytest.mark.slow
@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("name", SESSIONS)
def test_a_real_session_grows_through_the_gateway(tmp_path: Path, wire: str, name: str) -> None:
    (session, *_) = read_sessions(shared(name))
    written = wire_by_name(wire).write(repair(session.view().entries).entries)
    with InProcess(tmp_path, FakeServer(cache=False), windows={"*": WINDOW}) as gateway:
        decisions: list[str] = []
        messages = written.messages
        for end in range(1, len(messages) + 1, max(1, len(messages) // 60)):
            last = messages[end - 1]
            if last.get("role") not in ("user", "tool") and not str(last.get("type")).endswith("_output"):
                continue  # no agent asks in the middle of what the model says
            body: dict[str, Any] = {
                "model": "gpt-5.2",
                "max_output_tokens" if wire == "openai-responses" else "max_tokens": 2_000,
            }
            body |= {LIST[wire]: messages[:end], **({"system": written.system} if written.system else {})}
            answer = gateway.send(wire, json.dumps(body).encode())
            decisions.append(answer.headers.get("x-firsthand-decision", ""))
            assert "x-firsthand-error" not in answer.headers, gateway.log.getvalue()[-2_000:]
            if decisions[-1] in ("compacted", "projected"):
                # What is forwarded as it came may be cut in the middle of a step; what we made may not.
                assert gateway.arrived.violations == ()
                assert answer.status_code == 200, answer.text
                assert int(answer.headers["x-firsthand-tokens-after"]) <= WINDOW - 2_000 - 2_048
        session_id = answer.headers["x-firsthand-session"]
    assert {"compacted", "projected"} <= set(decisions)
    with Journal.open(tmp_path / "gateway.db") as journal:
        assert journal.verify().ok
        assert len(list(journal.entries(session_id))) > len(messages) * 9 // 10
