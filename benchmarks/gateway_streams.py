"""Many clients that stream through the gateway at once: every byte must be its own client's, none may be lost, and memory must stay flat.

python benchmarks/gateway_streams.py [--clients 200] [--seconds 60]

Each client has a conversation of its own, which grows by a turn with each request and starts anew after six, so that the gateway soon has
seen all there is to see. The provider's stream pauses
between its events, so all of them are open at the same time.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import tempfile
import time
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from gateway_parts import events, gateway, memory, responder

TURNS = 6


@dataclass
class Counts:
    """What all clients saw."""

    streams: int = 0
    bytes: int = 0
    open: int = 0
    most_open: int = 0
    wrong: list[str] = field(default_factory=list)
    memory: list[tuple[float, int]] = field(default_factory=list)


async def client(number: int, url: str, until: float, counts: Counts, length: int) -> None:
    """Asks until the time is up, and compares each answer with what was sent to it."""
    address = urlsplit(url)
    reader = writer = None
    turn = 0
    messages: list[dict[str, str]] = []
    while time.monotonic() < until:
        if turn % TURNS == 0:
            messages = [{"role": "user", "content": f"I am client {number}."}]
        name = f"c{number}-{turn % TURNS}"
        turn += 1
        body = json.dumps({"model": "m", "messages": messages, "stream": True}).encode()
        if writer is None:
            reader, writer = await asyncio.open_connection(address.hostname, address.port)
        assert reader is not None
        head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: {address.netloc}\r\ncontent-type: application/json\r\n"
        head += f"x-bench-name: {name}\r\nx-bench-events: {length}\r\nsession-id: s{number}\r\ncontent-length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        counts.open += 1
        counts.most_open = max(counts.most_open, counts.open)
        try:
            got = await answer_of(reader)
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            counts.wrong.append(f"{name}: {type(error).__name__}")
            writer = None
            continue
        finally:
            counts.open -= 1
        if got != b"".join(events(name, length)):
            counts.wrong.append(f"{name}: {len(got)} bytes, other ones than were sent")
        counts.streams += 1
        counts.bytes += len(got)
        messages += [
            {"role": "assistant", "content": f"{name} said"},
            {"role": "user", "content": f"Go on after {name}."},
        ]
    if writer is not None:
        writer.close()


async def answer_of(reader: asyncio.StreamReader) -> bytes:
    """The body of one answer in chunks."""
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    if b" 200 " not in head.split(b"\r\n", 1)[0]:
        raise ConnectionError(head.split(b"\r\n", 1)[0].decode())
    body = b""
    while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
        body += await reader.readexactly(size)
        await reader.readexactly(2)
    await reader.readexactly(2)
    return body


async def watch(pid: int, began: float, counts: Counts) -> None:
    """Notes the gateway's memory, once a second."""
    while True:
        counts.memory.append((time.monotonic() - began, memory(pid)))
        await asyncio.sleep(1)


async def run(clients: int, seconds: float, length: int, url: str, pid: int) -> Counts:
    counts = Counts()
    began = time.monotonic()
    watching = asyncio.ensure_future(watch(pid, began, counts))
    await asyncio.gather(*(client(number, url, began + seconds, counts, length) for number in range(clients)))
    watching.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await watching
    return counts


def measured(clients: int, seconds: float, length: int = 20) -> Counts:
    """One run, with responder and gateway in processes of their own."""
    with tempfile.TemporaryDirectory() as folder, responder() as upstream:
        flags = ["--window", "1000000"]
        with gateway(upstream, f"{folder}/j.db", *flags) as (url, pid):
            return asyncio.run(run(clients, seconds, length, url, pid))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--clients", type=int, default=200)
    options.add_argument("--seconds", type=float, default=60)
    options.add_argument("--events", type=int, default=20, help="events of each stream")
    given = options.parse_args()
    counts = measured(given.clients, given.seconds, given.events)
    print(
        f"{given.clients} clients, {given.seconds:g} s: {counts.streams:,} streams, {counts.bytes:,} bytes, {counts.most_open} open at once"
    )
    print(f"lost or mixed: {len(counts.wrong)}")
    for line in counts.wrong[:10]:
        print(f"  {line}")
    for at, size in counts.memory[:: max(1, len(counts.memory) // 6)]:
        print(f"  memory after {at:4.0f} s: {size / 1_000_000:,.1f} MB")
    print(f"  memory at the end: {counts.memory[-1][1] / 1_000_000:,.1f} MB")


if __name__ == "__main__":
    main()
