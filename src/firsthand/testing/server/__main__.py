"""The fake model server for shells: `python -m firsthand.testing.server --script replies.json`."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from ...codec import encode
from ...errors import FirsthandError
from .fake_server import FakeServer
from .received import Received
from .script import Reply, Script, read_script

__all__ = ["main"]


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m firsthand.testing.server",
        description="Serves scripted model answers on this machine. Prints its address, then serves until SIGTERM, SIGINT or the time is up.",
    )
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0 (the default) takes a free one")
    parser.add_argument(
        "--script", type=Path, help="JSON file: a list of answers, or an object with replies, default and lanes"
    )
    parser.add_argument("--window", type=int, help="refuse requests above so many tokens")
    parser.add_argument("--truncate", action="store_true", help="with --window: cut silently instead of refusing")
    parser.add_argument("--provider", help="whose overflow error to refuse with, such as mistral or vllm/input")
    parser.add_argument(
        "--no-validate", action="store_true", help="take requests whose messages break the provider's rules"
    )
    parser.add_argument("--log", type=Path, help="append each request as one line of JSON, keys left out")
    parser.add_argument(
        "--max-seconds", type=float, default=3600, help="stop by itself after so many seconds (default 3600)"
    )
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the server; returns the exit code: 0 when it was stopped, 2 when it could not start."""
    options = _arguments(argv)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    try:
        script = read_script(options.script) if options.script else Script(default=Reply("ok"))
        server = FakeServer(
            script.replies,
            default=script.default,
            lanes=script.lanes,
            window=options.window,
            overflow="truncate" if options.truncate else "refuse",
            provider=options.provider,
            validate=not options.no_validate,
            host=options.host,
            port=options.port,
            on_request=_logger(options.log) if options.log else None,
        ).start()
    except FirsthandError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write(f"{server.url}\n")
    sys.stdout.flush()
    stop.wait(options.max_seconds)
    server.stop()
    for problem in server.problems:
        sys.stderr.write(f"{problem}\n")
    return 0


def _logger(path: Path) -> Callable[[Received], None]:
    def write(got: Received) -> None:
        secret = {"authorization", "x-api-key", "cookie", "proxy-authorization"}
        line = {
            "number": got.number,
            "method": got.method,
            "path": got.path,
            "query": got.query,
            "headers": {name: value for name, value in got.headers.items() if name not in secret},
            "wire": got.wire,
            "tokens": got.tokens,
            "cached": got.cached,
            "violations": got.violations,
            "json": got.json,
        }
        with path.open("ab") as file:
            file.write(encode(line) + b"\n")

    return write


if __name__ == "__main__":
    sys.exit(main())
