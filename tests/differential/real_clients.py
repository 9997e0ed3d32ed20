"""What the tests that drive a published client share: where the programs are, a clean place to run one in, and a scripted model."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from firsthand.testing.server import Answer, Received, Reply
from firsthand.transcript import Usage

PATIENCE = 120.0
"""Seconds that one step of a client may take."""

_NOWHERE = "http://127.0.0.1:9"
"""A port that nobody listens at. Whatever a client wants from the outside ends there."""


TALLY: Counter[tuple[str, str]] = Counter()
"""How often what was compared, by client and kind; `conftest.py` prints it at the end."""


def _clients() -> Path:
    """Where `install.sh` puts the clients."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("FIRSTHAND_REALCLIENTS") or Path(cache) / "firsthand" / "realclients")


CLIENTS = _clients()
"""Found when this is imported: while a test runs, HOME is a folder of its own."""


def program(folder: str, path: str) -> Path:
    """A client's program, or the test is skipped."""
    found = CLIENTS / folder / "node_modules" / path
    if not found.exists():
        pytest.skip(f"{folder} is not in {CLIENTS}; `make realclients` puts it there")
    return found


@dataclass(frozen=True)
class Place:
    """A home and a work folder that no other run shares."""

    home: Path
    work: Path

    @classmethod
    def under(cls, folder: Path) -> Place:
        place = cls(folder / "home", folder / "work")
        place.home.mkdir()
        place.work.mkdir()
        (place.work / "README.md").write_text("# scratch\n")
        return place

    def environment(self, **more: str) -> dict[str, str]:
        """The little that a client is told, with every way out but loopback closed."""
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        proxies = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy"), _NOWHERE)
        direct = dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost")
        return {**kept, **proxies, **direct, "HOME": str(self.home), "TERM": "dumb", **more}


@contextlib.contextmanager
def running(command: list[str], place: Place, environment: Mapping[str, str], **more: Any) -> Iterator[Any]:
    """A client in a process group of its own, which is ended by its id whatever happens."""
    process = subprocess.Popen(
        command,
        cwd=place.work,
        env=dict(environment),
        start_new_session=True,
        stdout=subprocess.PIPE,
        text=True,
        **more,
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(10)
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()


class Told:
    """A client that is told what to do, and tells what it did, in lines of JSON.

    Args:
        process: as `running` gave it, with its stdin open.
        name: of the client, for a wait that was too long.
        model: the model behind it.
    """

    def __init__(self, process: subprocess.Popen[str], name: str, model: ScriptedModel) -> None:
        self._process = process
        self._name = name
        self._model = model
        self._lines: queue.Queue[dict[str, Any]] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()

    def wait(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The next line that is wanted; those before it are dropped."""
        end = time.monotonic() + PATIENCE
        while (left := end - time.monotonic()) > 0:
            with contextlib.suppress(queue.Empty):
                got = self._lines.get(timeout=left)
                if wanted(got):
                    return got
        raise TimeoutError(
            f"{self._name} did not answer within {PATIENCE:.0f} s; {len(self._model.seen)} requests came in"
        )

    def _read(self) -> None:
        assert self._process.stdout is not None
        with contextlib.suppress(ValueError):  # closed at the end of the run
            for line in self._process.stdout:
                with contextlib.suppress(json.JSONDecodeError):
                    self._lines.put(json.loads(line))


@dataclass
class ScriptedModel:
    """Answers to agent steps and to requests for a summary, each from a queue of its own; it keeps which request was which."""

    kind_of: Callable[[Received], str]
    """`step`, `summary` or `side`."""
    steps: deque[Answer] = field(default_factory=deque)
    summaries: deque[Answer] = field(default_factory=deque)
    seen: list[tuple[str, Received]] = field(default_factory=list)
    """Steps and requests for a summary, in order."""

    def __call__(self, got: Received) -> Answer:
        kind = self.kind_of(got)
        if kind == "side":
            return Reply("a title")
        self.seen.append((kind, got))
        queue = self.steps if kind == "step" else self.summaries
        if not queue:
            raise AssertionError(f"the script has no answer for {kind} {len(self.seen)}")
        return queue.popleft()


def used(total: int, output: int = 20) -> Usage:
    """Usage that adds up to `total`."""
    return Usage(input_tokens=total - output, output_tokens=output)


def says(text: str, tokens: int = 1_000) -> Reply:
    """An answer of the model and the usage that goes with it."""
    return Reply(text, usage=used(tokens))


def lines(mark: str, length: int) -> str:
    """A text of so many characters; each line is another one, and some characters are wider than a byte."""
    text, number = "", 0
    while len(text) < length:
        text += f"{mark}-{number:05d} plain words to fill a line, and é\n"
        number += 1
    return text[:length]
