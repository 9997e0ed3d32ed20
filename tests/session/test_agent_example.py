"""The example of the documentation is run as a person would run it, against the fake model server."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from firsthand.journal import Journal
from firsthand.testing.server import Call, FakeServer, Reply
from firsthand.transcript import ToolResult

AGENT = Path(__file__).resolve().parents[2] / "examples" / "agent.py"


def run(server: FakeServer, question: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "FIRSTHAND_JOURNAL": str(folder / "j.db"), "OPENAI_API_KEY": "key-123"}
    return subprocess.run(
        [sys.executable, str(AGENT), server.url + "/v1", "fake-model", question],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def test_the_agent_works_over_its_trigger_and_goes_on_in_the_next_run(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x" * 40_000)
    replies = [
        Reply("I look.", calls=(Call("shell", {"command": "ls *.py | wc -l; exit 3"}),)),
        Reply(calls=(Call("shell", "{not json"), Call("shell", {"command": "cat a.py"}))),
        Reply(calls=(Call("shell", {"command": "cat a.py"}),)),
        Reply(calls=(Call("shell", {"command": "cat a.py; echo read again"}),)),
        "There is one Python file.",
        "As I said: one.",
    ]
    with FakeServer(replies) as server:
        first = run(server, "How many Python files are here?", tmp_path)
        assert (first.returncode, first.stdout) == (0, "There is one Python file.\n"), first.stderr
        second = run(server, "Sure?", tmp_path)
        assert (second.returncode, second.stdout) == (0, "As I said: one.\n"), second.stderr
        assert [got.violations for got in server.turns] == [()] * 6
        assert "Applied(" in first.stderr + second.stderr
        assert "key-123" not in first.stderr + second.stderr
        assert {message["role"] for message in server.turns[-1].json["messages"]} >= {"system", "user"}
        assert "How many Python files are here?" in str(server.turns[-1].json)
    with Journal.open(tmp_path / "j.db") as journal:
        assert journal.verify().ok
        results = [b.text for e in journal.view("agent-example").entries for b in e.blocks if isinstance(b, ToolResult)]
    assert results[0].split() == ["exit", "code", "3", "1"]
    assert "not run to its end" in results[1]


def test_the_example_stays_short() -> None:
    assert len(AGENT.read_text("utf-8").splitlines()) <= 52
