"""What a plan of `coverage` costs: with stored features and cold, growth, and memory; times as multiples of decoding the file's lines.

python benchmarks/coverage.py FILE
"""

from __future__ import annotations

import gc
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from firsthand.budget import Budget, Occupancy
from firsthand.formats import read_sessions
from firsthand.formats.files import Input
from firsthand.projection.features import rows as rows_module
from firsthand.projection.features import terms as terms_module
from firsthand.projection.features.rows import extract
from firsthand.strategies import strategy_by_name
from firsthand.strategies.contract import CompactionRequest, Plan
from firsthand.tokens import counter_for_model, total_cost
from firsthand.transcript import Transcript, View

WINDOW = 200_000


def forget() -> None:
    """Empties every cache of words and lines, so that the next plan starts from nothing."""
    for module in (rows_module, terms_module):
        for value in vars(module).values():
            if hasattr(value, "cache_clear"):
                value.cache_clear()


def least(run: Callable[[], object], rounds: int, before: Callable[[], None] = lambda: None) -> float:
    """The least CPU time of several runs, in seconds; what goes before each of them is not counted."""
    times = []
    for _ in range(rounds):
        before()
        gc.collect()
        start = time.process_time()
        kept = run()
        times.append(time.process_time() - start)
        del kept
    return min(times)


def loaded(path: Path) -> Transcript:
    """The file's main session."""
    return next(found for found in read_sessions(path) if found.parent_session is None)


def planning(session: Transcript, share: int, *, stored: bool) -> Callable[[], object]:
    """A run of one plan of the first `share` percent, with the size of the request known, as a running session knows it."""
    entries = session.path()
    entries = entries[: max(2, len(entries) * share // 100)]
    counter = counter_for_model(session.model)
    budget = Budget.of(WINDOW, counter=counter)
    size = Occupancy(total_cost(entries, counter))
    rows = {entry.id: extract(entry) for entry in entries} if stored else {}
    strategy, request = strategy_by_name("coverage"), CompactionRequest(trigger="manual")

    def run() -> object:
        plan = strategy.plan(View(entries, features=rows), budget, request, occupancy=size)
        assert isinstance(plan, Plan), plan
        return plan

    return run


def megabytes() -> float:
    """Most memory that this process had so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def memory(path: Path) -> None:
    """Prints the memory before and after a cold plan; in a process of its own, since a peak never falls."""
    session = loaded(path)
    run = planning(session, 100, stored=False)
    forget()
    before = megabytes()
    run()
    print(f"  peak memory: {megabytes():.0f} MB, {before:.0f} of them before planning (cold)")


def main(path: Path) -> None:
    """Prints what everything takes."""
    source = Input.open(path)
    decoder = msgspec.json.Decoder()
    lines = [line for line in source.data.split(b"\n") if line.strip()]
    decoded = least(lambda: [decoder.decode(line) for line in lines], 5)
    session = loaded(path)
    print(f"{source.name}: {len(session.path()):,} entries, lines decoded in {decoded * 1e3:.1f} ms")
    for name, stored, rounds in (("with stored features", True, 5), ("cold", False, 2)):
        first = 0.0
        for share in (10, 25, 50, 100):
            run = planning(session, share, stored=stored)
            took = least(run, rounds) if stored else least(run, rounds, forget)
            first = first or took
            print(
                f"  {name}, {share:>3} %: {took * 1e3:7.1f} ms, {took / decoded:5.1f} times decoding, "
                f"{took / first / (share / 10):.2f} of linear growth"
            )
    subprocess.run([sys.executable, __file__, str(path), "--memory"], check=True)


if __name__ == "__main__":
    if sys.argv[2:] == ["--memory"]:
        memory(Path(sys.argv[1]))
    else:
        main(Path(sys.argv[1]))
