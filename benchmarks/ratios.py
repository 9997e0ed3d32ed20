"""How many o200k tokens an estimated token is, by kind of block: what the ratios in `firsthand.tokens` rest on where they can be had offline.

python benchmarks/ratios.py FILE...
"""

from __future__ import annotations

import sys
from pathlib import Path

from firsthand.formats import read_sessions
from firsthand.projection.fates import KINDS, block_kind
from firsthand.tokens import EstimateCounter, O200kCounter, block_cost
from firsthand.transcript import Media


def main(files: list[Path]) -> None:
    """Prints a line for each kind of block, and one for all."""
    estimate, exact = EstimateCounter(), O200kCounter()
    sums: dict[str, list[int]] = {}
    for path in files:
        for session in read_sessions(path):
            for entry in session.entries:
                for block in entry.blocks:
                    if not isinstance(block, Media):
                        found = sums.setdefault(block_kind(entry, block), [0, 0])
                        found[0] += block_cost(block, estimate)
                        found[1] += block_cost(block, exact)
    for kind in (*KINDS, "all"):
        estimated, counted = (
            sums.get(kind, [0, 0]) if kind != "all" else [sum(column) for column in zip(*sums.values(), strict=True)]
        )
        if estimated:
            print(f"{kind:<12} {estimated:>10,} estimated, {counted:>10,} o200k, ratio {counted / estimated:.2f}")


if __name__ == "__main__":
    main([Path(name) for name in sys.argv[1:]])
