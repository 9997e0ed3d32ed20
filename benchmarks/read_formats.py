"""How much longer reading a session file takes than only decoding its lines, in CPU time; the best of several rounds.

python benchmarks/read_formats.py FILE...
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from firsthand.formats import detect
from firsthand.formats.files import Input


def best(run: Callable[[], object], rounds: int = 9) -> float:
    times = []
    for _ in range(rounds):
        gc.collect()
        start = time.process_time()
        kept = run()
        times.append(time.process_time() - start)
        del kept
    return min(times)


def main() -> None:
    decoder = msgspec.json.Decoder()
    for name in sys.argv[1:]:
        source = Input.open(Path(name))
        reader = detect(source)
        lines = [line for line in source.data.split(b"\n") if line.strip()]
        decoded = best(lambda: [decoder.decode(line) for line in lines])  # noqa: B023
        read = best(lambda: reader.read(source))  # noqa: B023
        print(f"{source.name}: decode {decoded * 1e3:.1f} ms, read {read * 1e3:.1f} ms, {read / decoded:.1f} times")


if __name__ == "__main__":
    main()
