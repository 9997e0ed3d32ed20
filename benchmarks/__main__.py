"""`make bench`: all measurements, one after the other, each with the command that makes it alone.

The real session comes from FIRSTHAND_BENCH_SESSION (a file), or from the real sessions beside the checkout; without either, a synthetic
chain stands in.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from firsthand.codec import encode
from firsthand.formats.wire import wire_by_name
from firsthand.samples import chain

HERE = Path(__file__).parent
SHARED = HERE.resolve().parents[1] / "shared" / "sessions"


def session_file(folder: Path) -> Path:
    """The session to measure on."""
    chosen = os.environ.get("FIRSTHAND_BENCH_SESSION")
    real = Path(chosen) if chosen else SHARED / "codex" / "mise-compact3.jsonl.gz"
    if real.exists():
        return real
    made = folder / "export.jsonl"
    made.write_bytes(b"\n".join(map(encode, wire_by_name("openai-chat").write(chain("export").entries).messages)))
    return made


def main() -> None:
    """Runs each measurement in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        session = session_file(Path(folder))
        commands = [
            ["read_formats.py", str(session)],
            ["journal.py", "import", str(session)],
            ["compaction.py", str(session)],
            ["coverage.py", str(session)],
            ["steps.py"],
            ["gateway.py"],
        ]
        if SHARED.is_dir():
            commands.append(["journal.py", "search", str(SHARED), "10"])
        for script, *arguments in commands:
            print(f"\n$ python benchmarks/{script} {' '.join(arguments)}", flush=True)
            subprocess.run([sys.executable, str(HERE / script), *arguments], check=True)


if __name__ == "__main__":
    main()
