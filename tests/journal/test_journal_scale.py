"""Long sessions: CPU time that grows with the session and no faster, memory that does not grow with it."""

from __future__ import annotations

import gc
import sys
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from firsthand.journal import Journal
from firsthand.testing.builders import result, said
from firsthand.transcript import Entry

pytestmark = pytest.mark.slow


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with Journal.open(tmp_path / "journal.db") as opened:
        yield opened


def step(n: int, size: int = 2_000) -> list[Entry]:
    """One step of an agent with a result of about `size` characters, different each time."""
    lines = "\n".join(f"src/file_{n}_{k}.py:{k}: value {n * k % 9_973}" for k in range(size // 40))
    return [said(f"step {n}", id=f"a{n}"), result(f"c{n}", lines, id=f"r{n}")]


def fill(journal: Journal, first: int, last: int) -> None:
    for start in range(first, last, 500):
        journal.append("s", [entry for n in range(start, min(start + 500, last)) for entry in step(n)])


def test_a_hundred_thousand_entries(journal: Journal) -> None:
    """JR-09: each tenth takes about as long as the first, and reading holds one piece in memory."""
    journal.create("s")
    times: list[float] = []
    for tenth in range(10):
        began = time.process_time()
        fill(journal, tenth * 5_000, (tenth + 1) * 5_000)
        times.append(time.process_time() - began)
    assert journal.session("s").entries == 100_000
    assert sorted(times[5:])[2] < 1.5 * sorted(times[:5])[2], times
    tracemalloc.start()
    try:
        read = journal.entries("s")
        keys = tracemalloc.get_traced_memory()[0]
        for _ in range(20_000):
            next(read)
        gc.collect()
        held, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held - keys < 4_000_000, (keys, held, peak)


def test_two_thousand_steps_in_one_process(journal: Journal) -> None:
    """JR-10: an append leaves nothing behind in memory."""
    journal.create("s")
    levels: list[int] = []
    for n in range(2_000):
        journal.append("s", step(n))
        if n % 500 == 499:
            gc.collect()
            levels.append(sys.getallocatedblocks())
    # Keeping one object for every second step would show.
    assert levels[-1] - levels[0] < 750, levels


def test_an_append_does_not_slow_down(journal: Journal) -> None:
    """One step at 40,000 entries costs what it costs at 1,000, path and all."""
    journal.create("s")

    def steps(first: int) -> float:
        times = []
        for n in range(first, first + 200):
            began = time.process_time()
            journal.append("s", step(n))
            times.append(time.process_time() - began)
        return sorted(times)[len(times) // 2]

    fill(journal, 0, 500)
    early = steps(500)
    fill(journal, 1_000, 20_000)
    late = steps(20_000)
    assert late < 1.6 * early, (early, late)
