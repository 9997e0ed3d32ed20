"""What the gateway's benchmarks share: a plain responder in the provider's place, processes, and a client with a stopwatch.

The responder answers at once and keeps nothing, so that what is measured is the way and not its end.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

PAUSE = 0.05
"""Seconds between two events of a slow stream."""


def events(name: str, count: int) -> list[bytes]:
    """A stream of Chat Completions for one request; each event says whose it is."""
    made = [
        json.dumps({"id": name, "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": f"{name} {n} " + "é" * 20}}]})
        for n in range(count)
    ]  # fmt: skip
    made.append(
        json.dumps(
            {
                "id": name,
                "object": "chat.completion.chunk",
                "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}],
            }
        )
    )
    return [f"data: {event}\n\n".encode() for event in made] + [b"data: [DONE]\n\n"]


def whole(tokens: int) -> bytes:
    """An answer in one piece."""
    choice = {"index": 0, "message": {"role": "assistant", "content": "Understood."}, "finish_reason": "stop"}
    usage = {"prompt_tokens": tokens, "completion_tokens": 5, "total_tokens": tokens + 5}
    return json.dumps(
        {"id": "c", "object": "chat.completion", "model": "m", "choices": [choice], "usage": usage}
    ).encode()


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
            named = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
            body = await reader.readexactly(int(named.get("content-length", "0")))
            if b'"stream": true' not in body and b'"stream":true' not in body:
                answer = whole(len(body) // 4)
                writer.write(
                    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(answer)
                    + answer
                )
                await writer.drain()
                continue
            name, count = named.get("x-bench-name", "x"), int(named.get("x-bench-events", "3"))
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
            for event in events(name, count):
                writer.write(b"%x\r\n%s\r\n" % (len(event), event))
                await writer.drain()
                if count > 3:
                    await asyncio.sleep(PAUSE)
            writer.write(b"0\r\n\r\n")
            await writer.drain()
    writer.close()


async def respond() -> None:
    """Serves until the process is ended; prints the address."""
    server = await asyncio.start_server(_serve, "127.0.0.1", 0, limit=64 * 1024 * 1024, backlog=1_024)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


@contextlib.contextmanager
def process(command: list[str], **more: Any) -> Iterator[subprocess.Popen[str]]:
    """A process that is ended when the measurement is."""
    started = subprocess.Popen(command, text=True, **more)
    try:
        yield started
    finally:
        started.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            started.wait(20)
        started.kill()
        started.wait()
        if started.stdout is not None:
            started.stdout.close()


@contextlib.contextmanager
def responder() -> Iterator[str]:
    """The responder in a process of its own; its address."""
    with process([sys.executable, __file__], stdout=subprocess.PIPE) as started:
        assert started.stdout is not None
        yield started.stdout.readline().strip()


@contextlib.contextmanager
def gateway(upstream: str, journal: str, *flags: str) -> Iterator[tuple[str, int]]:
    """The gateway in a process of its own; its address and process id."""
    command = [
        sys.executable,
        "-m",
        "firsthand",
        "gateway",
        "--upstream",
        upstream,
        "--port",
        "0",
        "--journal",
        journal,
        *flags,
    ]
    with open(f"{journal}.log", "w") as log, process(command, stderr=log) as started:
        end = time.monotonic() + 30
        url = ""
        while not url and time.monotonic() < end:
            time.sleep(0.05)
            with open(f"{journal}.log") as told:
                line = told.readline()
            url = json.loads(line)["url"] if line.endswith("\n") else ""
        wait_for(url, "/_firsthand/health")
        yield url, started.pid


def wait_for(url: str, path: str, seconds: float = 60) -> None:
    """Returns when something answers there.

    Raises:
        TimeoutError: nothing does.
    """
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=5)
        try:
            connection.request("GET", path)
            connection.getresponse().read()
            return
        except OSError:
            time.sleep(0.1)
        finally:
            connection.close()
    raise TimeoutError(f"nothing answers at {url}")


class Timed:
    """A client with one connection that is kept open."""

    def __init__(self, url: str) -> None:
        self._connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=120)
        self.headers: dict[str, str] = {}
        self.arrived = 0
        """Bytes of the newest request that arrived at the responder, as far as its answer says so."""

    def ask(self, body: bytes) -> tuple[float, float]:
        """Seconds until the first byte of the answer's body, and until its last."""
        sent = {"content-type": "application/json", "authorization": "Bearer bench"}
        began = time.perf_counter()
        self._connection.request("POST", "/v1/chat/completions", body, sent)
        answer = self._connection.getresponse()
        first = answer.read(1)
        at_first = time.perf_counter() - began
        rest = answer.read()
        at_last = time.perf_counter() - began
        if answer.status != 200:
            raise RuntimeError(f"{answer.status}: {(first + rest)[:300]!r}")
        if answer.headers.get_content_type() == "application/json":
            self.arrived = 4 * json.loads(first + rest)["usage"]["prompt_tokens"]
        self.headers = {name.lower(): value for name, value in answer.getheaders()}
        return at_first, at_last


def memory(pid: int) -> int:
    """Bytes that a process holds in memory."""
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(respond())
