"""Several processes and threads on one journal, and processes that are killed in the middle of an append."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from firsthand.journal import Journal
from firsthand.testing.builders import user

APPEND = """
import sys
from firsthand.journal import Journal
from firsthand.testing.builders import user
path, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
with Journal.open(path, timeout=60) as journal:
    print("ready", flush=True)
    for n in range(count):
        batch = [user(f"{name} {n} {k} " * 20, id=f"{name}-{n}-{k}") for k in range(2)]
        journal.append("s", batch)
        print(n, flush=True)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "journal.db"
    with Journal.open(path) as journal:
        journal.create("s")
    return path


def start(path: Path, name: str, count: int) -> subprocess.Popen[str]:
    arguments = [sys.executable, "-c", APPEND, str(path), name, str(count)]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)


def test_two_writers(path: Path) -> None:
    """JR-02: two processes with 500 appends each; 2,000 whole entries with unique rising sequences, one path."""
    writers = [start(path, name, 500) for name in ("a", "b")]
    for writer in writers:
        out, _ = writer.communicate(timeout=120)
        assert (writer.returncode, out.splitlines()[-1]) == (0, "499")
    with Journal.open(path) as journal:
        stored = list(journal.entries("s"))
        assert [entry.sequence for entry in stored] == list(range(2_000))
        for name in ("a", "b"):
            mine = [entry.id for entry in stored if entry.id.startswith(name)]
            assert mine == [f"{name}-{n}-{k}" for n in range(500) for k in range(2)]
        # Batches are never torn apart.
        assert all(stored[at].id[:-1] == stored[at + 1].id[:-1] for at in range(0, 2_000, 2))
        assert journal.verify().ok


def test_two_processes_make_one_journal(tmp_path: Path) -> None:
    path = tmp_path / "new" / "journal.db"
    code = f"from firsthand.journal import Journal; Journal.open({str(path)!r}).create(__import__('sys').argv[1])"
    makers = [subprocess.Popen([sys.executable, "-c", code, name]) for name in ("a", "b", "c")]
    assert [maker.wait(60) for maker in makers] == [0, 0, 0]
    with Journal.open(path) as journal:
        assert {info.id for info in journal.sessions()} == {"a", "b", "c"}


@pytest.mark.parametrize("after", [0, 1, 7, 23])
def test_a_killed_process_loses_nothing_committed(path: Path, after: int) -> None:
    writer = start(path, "k", 100_000)
    assert writer.stdout is not None
    assert writer.stdout.readline() == "ready\n"
    seen = -1
    while seen < after:
        seen = int(writer.stdout.readline())
    writer.send_signal(signal.SIGKILL)
    out, _ = writer.communicate(timeout=60)
    lines = [line for line in out.splitlines() if line]
    seen = max(seen, *(int(line) for line in lines), seen)
    with Journal.open(path) as journal:
        stored = [entry.id for entry in journal.entries("s")]
        assert stored[: 2 * (seen + 1)] == [f"k-{n}-{k}" for n in range(seen + 1) for k in range(2)]
        assert len(stored) % 2 == 0
        assert len(stored) <= 2 * (seen + 2)
        assert journal.verify().ok
        journal.append("s", [user("after", id="after")])
        assert next(reversed(list(journal.entries("s")))).id == "after"


def test_threads_share_a_journal(path: Path) -> None:
    failed: list[BaseException] = []

    def work(name: str) -> None:
        try:
            for n in range(50):
                journal.append("s", [user(str(n), id=f"{name}{n}")])
                assert len(journal.view("s")) > n
        except BaseException as error:
            failed.append(error)

    with Journal.open(path, timeout=60) as journal:
        threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failed == []
        assert [entry.sequence for entry in journal.entries("s")] == list(range(200))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_forked_child_gets_connections_of_its_own(path: Path) -> None:
    with Journal.open(path) as journal:
        journal.append("s", [user("parent", id="p1")])
        child = os.fork()
        if child == 0:
            try:
                journal.append("s", [user("child", id="c1")])
                journal.close()
            finally:
                os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        journal.append("s", [user("parent", id="p2")])
        assert [entry.id for entry in journal.entries("s")] == ["p1", "c1", "p2"]
