"""Runs the command line: in this process where exit code and output are all that matters, in one of its own where the process is the matter."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Done:
    """What came of a command, as a shell would see it."""

    returncode: int
    stdout: str
    stderr: str


def run(*arguments: object, check: bool = True) -> Done:
    """`firsthand ARGUMENTS` in this process. Any exception that would be a traceback in a shell escapes and fails the test."""
    from firsthand.cli import main

    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    before = sys.argv
    sys.argv = ["firsthand", *map(str, arguments)]
    code: object = 0
    try:
        with redirect_stdout(out), redirect_stderr(err):
            main()
    except SystemExit as end:
        code = end.code
    finally:
        sys.argv = before
    texts = [stream.buffer.getvalue().decode() for stream in (out, err)]  # type: ignore[attr-defined]
    done = Done(code if isinstance(code, int) else int(code is not None), *texts)
    if check:
        assert done.returncode == 0, done.stderr
    return done


def command(*arguments: object) -> list[str]:
    """The command line of a process of its own."""
    return [sys.executable, "-m", "firsthand", *map(str, arguments)]


def shell(
    *arguments: object, environment: dict[str, str] | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """`firsthand ARGUMENTS` as a process of its own."""
    return subprocess.run(
        command(*arguments), capture_output=True, text=True, cwd=cwd, timeout=120, check=False,
        env={**os.environ, "COLUMNS": "120", **(environment or {})},
    )  # fmt: skip


def lines(text: str) -> Sequence[str]:
    """The lines of an output, without the empty ones."""
    return [line for line in text.splitlines() if line.strip()]
