"""Writes what `make demo` prints into the README: `python scripts/readme_demo.py`. A test fails when it is stale."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

README = Path(__file__).resolve().parents[1] / "README.md"

COMMANDS = (
    ("sample", "export", "--out", "demo/session.json"),
    ("compact", "demo/session.json", "--window", "200000", "--to", "openai-chat", "--out", "demo/projection.json"),
)


def main() -> None:
    """Runs the demo's commands in an empty folder."""
    printed = ""
    environment = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1"}
    with tempfile.TemporaryDirectory() as folder:
        for command in COMMANDS:
            done = subprocess.run(
                [sys.executable, "-m", "firsthand", *command],
                cwd=folder, env=environment, capture_output=True, text=True, check=True,
            )  # fmt: skip
            printed += done.stderr + done.stdout
    text = README.read_text()
    start = text.index("```\nwrote demo/session.json") + len("```\n")
    README.write_text(text[:start] + printed + text[text.index("```", start) :])


if __name__ == "__main__":
    main()
