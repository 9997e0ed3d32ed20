"""Many clients that stream at once: a short run of what `benchmarks/gateway_streams.py` does for a minute."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")
def test_no_byte_is_lost_or_mixed_and_memory_stays_flat() -> None:
    from gateway_streams import measured

    counts = measured(clients=20, seconds=2.5, length=10)
    assert counts.wrong == []
    assert counts.most_open == 20
    assert counts.streams >= 40
    settled = [size for at, size in counts.memory if at >= 1]
    assert max(settled) - settled[0] < 20_000_000
