"""One run of a client: signals go on to it, its exit code comes back."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from types import FrameType

__all__ = ["run_client"]

_RELAYED = ("SIGTERM", "SIGHUP", "SIGINT", "SIGQUIT", "SIGUSR1", "SIGUSR2")
_FROM_THE_TERMINAL = ("SIGINT", "SIGQUIT")


def run_client(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run a program to its end, with this one's terminal.

    A signal to this process goes to the program. What a terminal sends, it sends to both; there this process only waits.

    Returns:
        Its exit code, or 128 plus the number of the signal that ended it.

    Raises:
        OSError: it cannot be started.
    """
    process: subprocess.Popen[bytes] | None = None
    waiting: list[int] = []
    told_already = _FROM_THE_TERMINAL if sys.stdin is not None and sys.stdin.isatty() else ()

    def relay(number: int, frame: FrameType | None) -> None:
        if signal.Signals(number).name in told_already:
            return
        if process is None:
            waiting.append(number)
        elif process.poll() is None:
            process.send_signal(number)

    numbers = [getattr(signal, name) for name in _RELAYED if hasattr(signal, name)]
    before = {number: signal.signal(number, relay) for number in numbers}
    try:
        process = subprocess.Popen(list(command), env=dict(environment))
        for number in waiting:
            process.send_signal(number)
        code = process.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return code if code >= 0 or os.name == "nt" else 128 - code
