"""Several threads and processes on one session: no entry lost or doubled, one checkpoint for each key, one summary call."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from firsthand.journal import Journal
from firsthand.session.session import Session
from firsthand.strategies.futureos.instruction import HEADINGS
from firsthand.strategies.futureos.strategies import FutureosSummarized
from firsthand.tokens import EstimateCounter
from firsthand.transcript import ToolResult

SECONDS = 20


def asks(call_id: str) -> dict[str, Any]:
    call = {"id": call_id, "type": "function", "function": {"name": "read", "arguments": "{}"}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def opened(journal: Journal, **settings: Any) -> Session:
    return Session.open("s", journal=journal, **{"window": 64_000, "counter": EstimateCounter(), **settings})


def test_four_threads_make_one_summary_and_one_checkpoint(tmp_path: Path) -> None:
    asked: list[Any] = []

    def summariser(body: Any) -> Any:
        asked.append(body)
        time.sleep(0.3)  # the others arrive meanwhile
        return {
            "choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": "\n".join(HEADINGS)}}]
        }

    with Journal.open(tmp_path / "j.db") as journal:
        settings = {"strategy": FutureosSummarized(from_originals=True), "summariser": summariser}
        sessions = [opened(journal, **settings) for _ in range(4)]
        sessions[0].append(
            [
                {"role": "user", "content": "go"},
                asks("c1"),
                {"role": "tool", "tool_call_id": "c1", "content": "x" * 80_000},
                {"role": "user", "content": "on"},
            ]
        )
        outcomes: list[Any] = []
        threads = [threading.Thread(target=lambda s=session: outcomes.append(s.compact())) for session in sessions]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert len(asked) == 1  # IN-08
        assert len({outcome.checkpoint.id for outcome in outcomes}) == 1
        assert [outcome.kind for outcome in outcomes] == ["applied"] * 4
        assert sum(outcome.reused for outcome in outcomes) == 3


@pytest.mark.slow
def test_eight_processes_append_and_compact_for_twenty_seconds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "j.db"
    with Journal.open(path) as journal:
        opened(journal).append([{"role": "user", "content": "Only port 8123 is free."}])
    workers = [
        subprocess.Popen(
            [sys.executable, __file__, str(path), str(number), str(SECONDS)], stdout=subprocess.PIPE, text=True
        )
        for number in range(8)
    ]
    reports = [json.loads(worker.communicate(timeout=SECONDS + 120)[0]) for worker in workers]
    with Journal.open(path) as journal:
        view = journal.view("s")
        session = opened(journal)
        operations = session.operations()
        assert journal.verify().ok
    texts = Counter(block.text for entry in view.entries for block in entry.blocks if isinstance(block, ToolResult))
    appended = [text for report in reports for text in report["appended"]]
    assert len(appended) == len(set(appended))
    assert all(texts[text] == 1 for text in appended)
    assert len(view.entries) == 1 + 2 * len(appended)
    assert [entry.sequence for entry in view.entries] == sorted({entry.sequence for entry in view.entries})
    keys = Counter(operation.key for operation in operations if operation.state == "completed")
    assert set(keys.values()) <= {1}
    assert not any(operation.state == "started" for operation in operations)
    with capsys.disabled():
        compactions = sum(report["compactions"] for report in reports)
        print(
            f"\n8 processes, {SECONDS} s: {len(view.entries):,} entries, {len(keys)} checkpoints, {compactions} outcomes applied"
        )
    assert len(keys) > 8


def worker(path: str, number: int, seconds: float) -> dict[str, Any]:
    appended: list[str] = []
    compactions = 0
    with Journal.open(path, timeout=60) as journal:
        session = opened(journal)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            text = f"{number}:{len(appended)} " + "y" * 2_000
            call_id = f"c{number}-{len(appended)}"
            session.append([asks(call_id), {"role": "tool", "tool_call_id": call_id, "content": text}])
            appended.append(text)
            if len(appended) % 5 == 0:
                compactions += session.compact().kind == "applied"
            session.prepare(system="s")
    return {"appended": appended, "compactions": compactions}


if __name__ == "__main__":
    print(json.dumps(worker(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))))
