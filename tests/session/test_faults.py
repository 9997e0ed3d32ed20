"""A fault at every step of a compaction: before and after each write and each call, as an error and as SIGKILL.

After each: all originals are there byte for byte, the projection is the old one or the new one, the next compaction works, receipts tell the
truth. The table of points is printed.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from firsthand.checkpoint import resolve
from firsthand.journal import Journal
from firsthand.session import effects
from firsthand.session.effects import AskModel, Effect, Pause, Store
from firsthand.session.session import Session
from firsthand.strategies.futureos.instruction import HEADINGS
from firsthand.strategies.futureos.strategies import FutureosSummarized
from firsthand.tokens import EstimateCounter

RULE = "Only port 8123 is free for the stub."
SUMMARY = {"choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": "\n".join(HEADINGS)}}]}


def opened(journal: Journal) -> Session:
    return Session.open(
        "s", journal=journal, window=32_000, counter=EstimateCounter(),
        strategy=FutureosSummarized(from_originals=True), summariser=lambda body: SUMMARY,
    )  # fmt: skip


def prepared_journal(path: Path) -> Path:
    with Journal.open(path) as journal:
        session = opened(journal)
        session.append([{"role": "user", "content": RULE}])
        for number in range(5):
            call = {"id": f"c{number}", "type": "function", "function": {"name": "read", "arguments": "{}"}}
            session.record(
                {
                    "choices": [
                        {
                            "finish_reason": "tool_calls",
                            "message": {"role": "assistant", "content": None, "tool_calls": [call]},
                        }
                    ]
                }
            )
            session.append([{"role": "tool", "tool_call_id": f"c{number}", "content": f"{number} " + "x" * 8_000}])
    return path


class FaultError(Exception):
    """Raised by the test in place of a disk or a network that fails."""


def name_of(effect: Effect) -> str:
    match effect:
        case Store(name=name):
            return name
        case AskModel():
            return "call the model"
        case Pause():
            return "pause"


def armed(monkeypatch: pytest.MonkeyPatch | None, point: str, where: str, act: Any) -> list[str]:
    """Makes the sync driver call `act` before or after the first effect of that name; returns the names of all effects performed."""
    seen: list[str] = []
    perform = effects._perform

    def performed(effect: Effect) -> Any:
        first = name_of(effect) == point and point not in seen
        seen.append(name_of(effect))
        if first and where == "before":
            act()
        result = perform(effect)
        if first and where == "after":
            act()
        return result

    if monkeypatch is not None:
        monkeypatch.setattr(effects, "_perform", performed)
    else:
        effects._perform = performed
    return seen


# Every effect of `Session.compact()` with a summary, in order; the first test holds the list to what really happens.
POINTS = [
    "look at the session", "read the view", "read the chain hash", "look up", "claim", "call the model", "commit",
]  # fmt: skip


def test_these_are_all_the_steps_of_a_compaction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Journal.open(prepared_journal(tmp_path / "j.db")) as journal:
        session = opened(journal)
        seen = armed(monkeypatch, "none", "before", lambda: None)
        assert session.compact().kind == "applied"
    assert list(dict.fromkeys(seen)) == [*POINTS, "load"]


def state(path: Path) -> tuple[list[bytes], str, list[Any]]:
    with Journal.open(path) as journal:
        assert journal.verify().ok
        session = opened(journal)
        return list(journal.export("s")), json.dumps(session.prepare(system="s").messages), session.operations()


def check(path: Path, originals: list[bytes], old: str, new: str, label: str, rows: list[str]) -> None:
    """What must hold after the fault; ends with a compaction that works."""
    exported, projection, operations = state(path)
    assert exported == originals, label
    shown = "old" if projection == old else "new" if projection == new else "neither"
    assert shown != "neither", label
    states = [operation.state + (" (unfinished)" if operation.unfinished else "") for operation in operations]
    completed = states.count("completed")
    assert completed == (shown == "new"), (label, states)
    with Journal.open(path) as journal:
        for operation in operations:
            if operation.unfinished:
                resolve(journal, operation.id)
        outcome = opened(journal).compact()
        assert outcome.kind == "applied", (label, outcome.reason)
        assert outcome.reused == (shown == "new"), label
    assert state(path)[1] == new, label
    rows.append(f"{label:<44} projection {shown:<4} receipts {', '.join(states) or 'none'}")


def expected(path: Path) -> str:
    with Journal.open(path) as journal:
        opened(journal).compact()
    return state(path)[1]


def test_errors_at_every_step(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = prepared_journal(tmp_path / "source.db")
    originals, old, _ = state(source)
    new = expected(copy(source, tmp_path / "expected.db"))
    rows: list[str] = []
    for point in POINTS:
        for where in ("before", "after"):
            path = copy(source, tmp_path / f"{point}-{where}.db".replace(" ", "-"))
            with pytest.MonkeyPatch.context() as patch, Journal.open(path) as journal:
                session = opened(journal)

                def fail() -> None:
                    raise FaultError("the disk is gone")

                armed(patch, point, where, fail)
                with pytest.raises(FaultError):
                    session.compact()
            check(path, originals, old, new, f"error {where} '{point}'", rows)
    with capsys.disabled():
        print("\n" + "\n".join(rows))


@pytest.mark.slow
def test_sigkill_at_every_step(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = prepared_journal(tmp_path / "source.db")
    originals, old, _ = state(source)
    new = expected(copy(source, tmp_path / "expected.db"))
    rows: list[str] = []
    for point in POINTS:
        for where in ("before", "after"):
            path = copy(source, tmp_path / f"{point}-{where}.db".replace(" ", "-"))
            done = subprocess.run([sys.executable, __file__, str(path), point, where], timeout=60, check=False)
            assert done.returncode == -signal.SIGKILL
            check(path, originals, old, new, f"SIGKILL {where} '{point}'", rows)
    with capsys.disabled():
        print("\n" + "\n".join(rows))


def copy(source: Path, target: Path) -> Path:
    with Journal.open(source):
        pass  # the last one out folds the write-ahead log into the file
    target.write_bytes(source.read_bytes())
    return target


if __name__ == "__main__":
    journal_path, at, side = sys.argv[1:]
    armed(None, at, side, lambda: os.kill(os.getpid(), signal.SIGKILL))
    opened(Journal.open(journal_path)).compact()
