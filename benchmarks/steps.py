"""What one `append` and `prepare` of a session costs behind a long covered history: at 10,000 and at 40,000 covered entries.

python benchmarks/steps.py [STRATEGY]
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

from firsthand.journal import Journal
from firsthand.session.session import Session
from firsthand.strategies import DEFAULT_STRATEGY, strategy_by_name
from firsthand.testing.builders import call, result, user
from firsthand.transcript import Entry

STEPS = 60


def covered(journal: Journal, name: str, entries: int, strategy: str) -> Session:
    """A session whose first `entries` entries are covered by a checkpoint."""
    session = Session.open(name, journal=journal, window=200_000, strategy=strategy_by_name(strategy))
    steps: list[Entry] = [user("Only port 8123 is free.", id=f"{name}-rule")]
    for number in range(entries // 2):
        steps.append(call("read", id=f"c{number}", path=f"f{number}.py"))
        steps.append(result(f"c{number}", f"{number} " + "x" * 200))
    session.append(
        [Entry(id=entry.id or f"{name}-{n}", role=entry.role, blocks=entry.blocks) for n, entry in enumerate(steps)]
    )
    outcome = session.compact()
    assert outcome.kind == "applied", outcome.reason
    return session


def step(session: Session, name: str, number: int) -> float:
    """One step of an agent's loop, in seconds."""
    start = time.perf_counter()
    made, answered = call("read", id=f"n{number}", path="a.py"), result(f"n{number}", "y" * 200)
    session.append([Entry(id=f"{name}-a{number}", role="assistant", blocks=made.blocks)])
    session.append([Entry(id=f"{name}-r{number}", role="tool", blocks=answered.blocks)])
    session.prepare(system="You are careful.")
    return time.perf_counter() - start


def main() -> None:
    """Prints the medians and their ratio; the two sessions take turns, so that what else the machine does hits both."""
    strategy = sys.argv[1] if len(sys.argv) > 1 else DEFAULT_STRATEGY
    with tempfile.TemporaryDirectory() as folder, Journal.open(Path(folder) / "j.db") as journal:
        small, large = covered(journal, "small", 10_000, strategy), covered(journal, "large", 40_000, strategy)
        times: dict[str, list[float]] = {"small": [], "large": []}
        for number in range(STEPS):
            times["small"].append(step(small, "small", number))
            times["large"].append(step(large, "large", number))
        medians = {name: statistics.median(taken) for name, taken in times.items()}
        print(
            f"{strategy}: append + prepare behind 10,000 covered entries: {medians['small'] * 1e3:.2f} ms, "
            f"behind 40,000: {medians['large'] * 1e3:.2f} ms, ratio {medians['large'] / medians['small']:.2f}"
        )


if __name__ == "__main__":
    main()
