"""How much the gateway adds: each request goes to the provider directly and through the gateway in turn, in one run.

python benchmarks/gateway.py [--rounds 200] [--other /path/to/headroom]

With `--other` the proxy of headroom-ai stands beside it in the same run, as it is set up by default (`pip install 'headroom-ai[proxy]'`).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from statistics import median
from typing import Any

from gateway_parts import Timed, gateway, process, responder, wait_for

WORDS = [*"ledger posting account branch build error warning src test value index report queue".split()]  # noqa: SIM905
LONG = 200_000


def history(tokens: int) -> list[dict[str, Any]]:
    """A conversation of an agent of so many tokens at four characters each: one request, then calls and what they printed."""
    chance = random.Random(7)
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Go through the ledger and mend what is wrong."}]
    size, number = 0, 0
    while size < 4 * tokens:
        number += 1
        lines = "\n".join(
            f"{number:05d}:{n} src/{chance.choice(WORDS)}/{chance.choice(WORDS)}_{chance.randrange(9999)}.py "
            + " ".join(chance.choices(WORDS, k=8))
            for n in range(40)
        )
        call = {
            "id": f"call_{number:08d}abcdefghij",
            "type": "function",
            "function": {"name": "bash", "arguments": f'{{"cmd":"step {number}"}}'},
        }
        messages.append({"role": "assistant", "content": f"I look at step {number}.", "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": lines})
        size += len(lines) + 120
    return messages


def bodies(model: str, tokens: int, count: int, *, stream: bool = False) -> Iterator[bytes]:
    """Requests of one conversation; each says a little more than the one before."""
    messages = history(tokens) if tokens else [{"role": "user", "content": "Is the ledger in order?"}]
    for number in range(count):
        yield json.dumps({"model": model, "messages": messages, "stream": stream}).encode()
        messages += [{"role": "assistant", "content": "Understood."}, {"role": "user", "content": f"Go on, {number}."}]


def measure(
    name: str, targets: dict[str, Timed], requests: list[bytes], *, first: bool, unmeasured: int
) -> dict[str, Any]:
    """Times each request at each target in turn. The first ones are not counted: connections open, caches fill, a compaction is made."""
    times: dict[str, list[float]] = {target: [] for target in targets}
    order = list(targets)
    for number, body in enumerate(requests):
        order = order[1:] + order[:1]
        for target in order:
            at_first, at_last = targets[target].ask(body)
            if number >= unmeasured:
                times[target].append(1_000 * (at_first if first else at_last))
    row: dict[str, Any] = {"case": name, "requests": len(requests) - unmeasured, "bytes": len(requests[-1])}
    for target, found in times.items():
        row[target] = {"median": median(found), "p99": percentile(found, 99)}
        if target != "direct":
            added = [through - direct for through, direct in zip(found, times["direct"], strict=True)]
            row[f"{target} adds"] = {"median": median(added), "p99": percentile(added, 99)}
    row["arrived"] = {target: timed.arrived for target, timed in targets.items() if timed.arrived}
    row["decision"] = targets["gateway"].headers.get("x-firsthand-decision")
    row["tokens sent"] = targets["gateway"].headers.get("x-firsthand-tokens-after")
    return row


def percentile(values: list[float], percent: int) -> float:
    """The smallest value that so many per cent do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, -(-len(ordered) * percent // 100) - 1)]


@contextlib.contextmanager
def other_proxy(program: str, upstream: str, folder: str) -> Iterator[str]:
    """The proxy of headroom-ai, on a free port, with nothing set but its upstream and no limit on requests a minute."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    command = [program, "proxy", "--port", str(port), "--openai-api-url", upstream, "--no-rate-limit", "--no-telemetry"]
    environment = {**os.environ, "HOME": folder, "HF_HUB_OFFLINE": "1"}
    with (
        open(f"{folder}/other.log", "w") as log,
        process(command, stdout=log, stderr=subprocess.STDOUT, env=environment),
    ):
        wait_for(f"http://127.0.0.1:{port}", "/health", 120)
        yield f"http://127.0.0.1:{port}"


def report(row: dict[str, Any]) -> None:
    print(f"\n{row['case']} ({row['bytes']:,} bytes, {row['requests']} requests)")
    direct = row["direct"]["median"]
    for target, found in row.items():
        if not isinstance(found, dict) or target == "arrived":
            continue
        ratio = (
            "" if target == "direct" or target.endswith("adds") else f"  {found['median'] / direct:.2f} times direct"
        )
        print(f"  {target:<14} median {found['median']:8.2f} ms  p99 {found['p99']:8.2f} ms{ratio}")
    if row["arrived"]:
        print("  bytes that arrived: " + ", ".join(f"{target} {size:,}" for target, size in row["arrived"].items()))
    if row["decision"]:
        print(f"  gateway: {row['decision']}, {int(row['tokens sent'] or 0):,} tokens sent")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=200)
    options.add_argument("--other", help="headroom's program")
    options.add_argument("--json", help="write the rows there as well")
    given = options.parse_args()
    rounds = given.rounds
    cases: list[tuple[str, list[bytes], bool, int]] = [
        ("small request", [next(bodies("wide", 0, 1))] * (2 * rounds), False, 20),
        ("first byte of a stream", [next(bodies("wide", 0, 1, stream=True))] * (2 * rounds), True, 20),
        ("200k-token history, below the trigger", list(bodies("wide", LONG, rounds)), False, 10),
        ("200k-token history, with a checkpoint", list(bodies("narrow", LONG, rounds)), False, 10),
    ]
    rows = []
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        upstream = stack.enter_context(responder())
        flags = ["--window", "wide=2000000", "--window", "narrow=200000"]
        url, _ = stack.enter_context(gateway(upstream, f"{folder}/j.db", *flags))
        urls = {"direct": upstream, "gateway": url}
        if given.other:
            urls["headroom"] = stack.enter_context(other_proxy(given.other, upstream, folder))
        for name, requests, first, unmeasured in cases:
            targets = {target: Timed(address) for target, address in urls.items()}
            rows.append(measure(name, targets, requests, first=first, unmeasured=unmeasured))
            report(rows[-1])
    if given.json:
        with open(given.json, "w") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
