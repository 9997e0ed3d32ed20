"""What a compaction of a long session costs: time against decoding the file's lines, memory, and growth from 10 % to 100 % of the file.

python benchmarks/compaction.py FILE [STRATEGY...]
"""

from __future__ import annotations

import gc
import resource
import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import msgspec

from firsthand.budget import Budget
from firsthand.formats import read_sessions
from firsthand.formats.files import Input
from firsthand.quick import compact_view
from firsthand.strategies import strategy_by_name
from firsthand.strategies.contract import CompactionRequest
from firsthand.tokens import counter_for_model
from firsthand.transcript import View


def best(run: Callable[[], object], rounds: int = 5) -> float:
    """The least CPU time of several runs, in seconds."""
    times = []
    for _ in range(rounds):
        gc.collect()
        start = time.process_time()
        kept = run()
        times.append(time.process_time() - start)
        del kept
    return min(times)


def main(path: Path, strategies: list[str]) -> None:
    """Prints a line for each strategy and share of the session."""
    source = Input.open(path)
    decoder = msgspec.json.Decoder()
    lines = [line for line in source.data.split(b"\n") if line.strip()]
    decoded = best(lambda: [decoder.decode(line) for line in lines])
    (session,) = [found for found in read_sessions(source) if found.parent_session is None][:1]
    entries = session.path()
    budget = Budget.of(200_000, counter=counter_for_model(session.model))
    print(f"{source.name}: {len(entries):,} entries, lines decoded in {decoded * 1e3:.1f} ms")
    for name in strategies:
        strategy = strategy_by_name(name)
        first = 0.0
        for share in (10, 25, 50, 100):
            view = View(entries[: max(2, len(entries) * share // 100)])
            took = best(lambda: compact_view(view, budget, strategy, CompactionRequest(trigger="manual")), 3)  # noqa: B023
            first = first or took
            print(
                f"  {name} at {share:>3} %: {took * 1e3:7.1f} ms, {took / decoded:5.2f} times decoding, "
                f"{took / first / (share / 10):.2f} of linear growth"
            )
        tracemalloc.start()
        compact_view(View(entries), budget, strategy, CompactionRequest(trigger="manual"))
        print(f"  {name}: {tracemalloc.get_traced_memory()[1] / 1e6:.1f} MB at the peak of planning")
        tracemalloc.stop()
    print(f"  peak memory of this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:] or ["futureos-deterministic"])
