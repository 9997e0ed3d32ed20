"""One job for a coding agent, played by the fake model server: a chain of tool calls, each of whose arguments stands in the request alone.

The first call prints a marker and a token; each further call needs the token that the one before printed. So a job comes to its end only where
every request still shows what it has to: the newest token, and three markers of turn 1, out of the user's text, the assistant's and a tool's.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from firsthand.testing.server import Answer, Call, Failure, Received, Reply
from firsthand.transcript import Usage

PARTS = (5, 10, 14)
"""How many calls there have been when each prompt is answered."""
MARKS = ("usr-4f81c2", "said-93ab07", "tool-c5d1e8")
"""What the user, the assistant and the first tool output said in turn 1, and nobody since."""
PROMPTS = (
    f"Work through the ledger of the branch {MARKS[0]}; the first step is: sh step.sh start",
    "Go on with the ledger.",
    "Finish the ledger, please.",
)
_TOKEN = re.compile(r"next-token[ :]+([0-9a-f]{12})")
_STEP = f"""\
printf '%s\\n' "$1" >> executed.log
echo "next-token $(printf %s "$1" | sha256sum | cut -c1-12)"
[ "$1" = start ] && echo "ERROR in src/ledger/posting_{MARKS[2]}.rs:118: balance is off by 4217"
seq -f "line %05g of the ledger after $1: nothing unusual in this account" {{lines}}
"""

Kind = Callable[[Received], str]


def prepare(work: Path, lines: int) -> None:
    """The program that the job's calls run; each prints about 60 bytes times `lines`."""
    (work / "step.sh").write_text(_STEP.format(lines=lines))
    (work / "executed.log").touch()


def executed(work: Path) -> list[str]:
    """The arguments of all calls that really ran, in order."""
    return (work / "executed.log").read_text().split()


def expected() -> list[str]:
    """What a whole job executes."""
    chain = ["start"]
    while len(chain) < PARTS[-1]:
        chain.append(hashlib.sha256(chain[-1].encode()).hexdigest()[:12])
    return chain


@dataclass
class Job:
    """The server's script. `part` is the prompt that the client works at, counted from 0; whoever drives the client sets it."""

    kind_of: Kind
    """`step`, `summary` (the client's own compaction) or `side` (a title)."""
    call: Callable[[str], Call]
    """The client's shell tool with this command."""
    full: int = 0
    """Tokens that are reported as used where the client is to compact; 0: what was counted, always."""
    full_at: tuple[int, ...] = ()
    """After so many calls that is reported."""
    part: int = 0
    issued: int = 0
    summaries: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    used: set[str] = field(default_factory=set)
    requests: list[tuple[str, Received]] = field(default_factory=list)

    def __call__(self, got: Received) -> Answer:
        kind = self.kind_of(got)
        self.requests.append((kind, got))
        text = shown(got)
        if kind == "side":
            return Reply("A ledger")
        # A summary may tell of older ones behind the newest.
        tokens = [token for token in _TOKEN.findall(text) if token not in self.used]
        if kind == "summary":
            found = [mark for mark in MARKS if mark in text]
            token = f" The next-token {tokens[-1]} is unused." if tokens else ""
            self.summaries.append(" ".join(found) + token)
            kept = f"Kept: {', '.join(found)}.{token}"
            return Reply(f"<summary>{kept}</summary>")
        missing = [mark for mark in MARKS[: None if self.issued else 1] if mark not in text]
        if missing:
            return self._failed(f"request {got.number}, after {self.issued} calls: {', '.join(missing)} missing")
        if self.issued >= PARTS[self.part]:
            return Reply(f"Part {self.part + 1} is finished.")
        if self.issued and not tokens:
            return self._failed(f"request {got.number}, after {self.issued} calls: no new token in it")
        argument = tokens[-1] if self.issued else "start"
        self.issued += 1
        self.used.add(argument)
        said = f"I begin with {MARKS[1]}." if self.issued == 1 else f"Step {self.issued} of the ledger."
        usage = Usage(input_tokens=self.full, output_tokens=40) if self.issued in self.full_at else None
        return Reply(said, calls=(self.call(f"sh step.sh {argument}"),), usage=usage)

    def _failed(self, why: str) -> Failure:
        self.problems.append(why)
        return Failure("invalid_request", message=why)


def shown(got: Received) -> str:
    """All that a request's messages say, in order."""
    pieces: list[str] = []

    def walk(value: Any) -> None:
        if isinstance(value, str):
            pieces.append(value)
        elif isinstance(value, list):
            for inner in value:
                walk(inner)
        elif isinstance(value, dict):
            for inner in value.values():
                walk(inner)

    walk(got.messages)
    return "\n".join(pieces)


def gateway_events(log: str, event: str) -> list[dict[str, Any]]:
    """The lines of a gateway's log that tell of one kind of event."""
    lines = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
    return [line for line in lines if line["event"] == event]
