"""Checks without any model that an exam sends what it says, and that the history can be searched (futureos.md 8.11).

A fake server stands where the endpoint would, so what is compared is what really went over the wire.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from ...codec import compact_json, decode, to_utf8
from ...errors import FirsthandError
from ...formats.wire import wire_by_name
from ...journal.readable import passages
from ...projection.repair import repair
from ...testing.server import FakeServer, Received, Reply
from ...transcript import Entry, Text, Transcript
from ..arms import Arm
from ..money.prices import PICO, price_given
from ..values import Value, homes, reading, shows
from .bodies import question_body, without_repeated_system
from .endpoint import Endpoint
from .history_tools import DEFINITIONS, GET, SEARCH, History, Lookups
from .ledger import Ledger
from .reading import Place, Plan, places
from .shape import RequestShape

__all__ = ["Check", "verify"]

State: TypeAlias = Literal["passed", "failed", "absent"]
"""`absent`: the session's file does not record what would be compared."""
_KEY = "firsthand-verify-key"
_PAGE = 256


@dataclass(frozen=True, slots=True)
class Check:
    """One check and how it came out."""

    name: str
    state: State
    told: str = ""


def verify(
    session: Transcript, *, strategy: str, shape: RequestShape | None = None, window: int = 200_000
) -> list[Check]:
    """All checks on one session, in order.

    Args:
        session: the session.
        strategy: whose projection is sent; one that calls no model.
        shape: a captured shape; None for the session's own.
        window: of the strategy's budget.

    Raises:
        FirsthandError: the session has no boundary, or nothing was recorded for `recorded`.
        MissingExtraError: the extra `testing` or `http` is not installed.
    """
    plan = Plan(arms=(Arm(strategy, summariser="extractive"),), values=4, replicates=1, shape=shape, window=window)
    place = next(iter(places([session], plan)), None)
    if place is None or not place.shown:
        raise FirsthandError(f"{session.id} is empty, or {strategy} does not apply to it; nothing was checked")
    entries = repair(place.shown[0][1].entries).entries
    whole = repair(session.view().entries[: place.boundary.position]).entries
    # A session whose exam tail is all there is has nothing to be asked; how it is sent can be checked all the same.
    question = place.batches[0].text if place.batches else 'Which of these strings did you see?\n\n- "none"'
    with tempfile.TemporaryDirectory(prefix="firsthand-lab-") as folder:
        ledger_file = Path(folder) / "ledger.db"
        compacted, uncompacted, opened = _sent(place, (entries, whole), question, ledger_file)
        kept = b"".join(path.read_bytes() for path in Path(folder).iterdir())
    checks = [*_shape_checks(place.shape, session, compacted, uncompacted)]
    checks += _message_checks(place.shape, entries, question, compacted)
    names = [tool["function"]["name"] for tool in opened.json.get("tools", [])]
    own = [tool["function"]["name"] for tool in place.shape.tools]
    checks.append(
        _check(
            "open book adds the two history tools behind the session's own",
            names == [*own, SEARCH, GET],
            f"sent: {', '.join(names)}",
        )
    )
    checks.append(
        _check("the key is sent, and the ledger does not hold it", compacted.key == _KEY and _KEY.encode() not in kept)
    )
    with History(session.view().entries[: place.boundary.position]) as history:
        checks += _history_checks(history, entries)
    return checks


def _sent(place: Place, shown: Sequence[Sequence[Entry]], question: str, ledger_file: Path) -> list[Received]:
    """What arrives of the question behind the projection, behind the whole history, and with the history tools offered."""
    shapes = (
        place.shape,
        place.shape,
        RequestShape(place.shape.system, (*place.shape.tools, *DEFINITIONS), place.shape.source),
    )
    with (
        FakeServer(default=Reply('{"appeared": []}')) as server,
        Ledger(ledger_file, currency="USD", budget=PICO) as ledger,
    ):
        endpoint = Endpoint(server.url + "/v1", "verify", price_given("verify", "0,0", "USD"), _KEY)
        for number, (entries, shape) in enumerate(zip((*shown, shown[0]), shapes, strict=True)):
            endpoint.ask(ledger, f"{number}", question_body("session", shape, entries, question, max_output=64))
        return server.turns


def _shape_checks(
    shape: RequestShape, session: Transcript, compacted: Received, uncompacted: Received
) -> Iterator[Check]:
    own = "the captured one" if shape.source == "captured" else "the session's own"
    first = _systems(compacted)
    if shape.system:
        wanted = to_utf8(shape.system)
        sent = to_utf8(first[0]) if first else b""
        yield _check(
            f"the system prompt is {own}, byte for byte",
            sent == wanted,
            f"{len(sent):,} bytes sent, {len(wanted):,} expected",
        )
        yield _check("it is sent once", compacted.json["messages"].count(compacted.json["messages"][0]) == 1)
    elif first:
        named = next(entry for entry in session.view().entries if entry.role in ("system", "developer"))
        wanted = to_utf8("\n".join(block.text for block in named.blocks if isinstance(block, Text)))
        yield _check(
            "the system prompt is the session's own, byte for byte", to_utf8(first[0]) == wanted, "among its messages"
        )
    else:
        yield Check(
            "the system prompt", "absent", "the file records none; take it from the client with `firsthand lab capture`"
        )
    if shape.tools:
        same = compacted.json.get("tools") == list(shape.tools)
        yield _check(
            f"the tools are {'those captured' if shape.source == 'captured' else own}",
            same,
            ", ".join(compacted.tool_names),
        )
    else:
        yield Check(
            "the tools", "absent", "the file records none; take them from the client with `firsthand lab capture`"
        )
    if shape.left_out:
        yield Check("tools that a chat request cannot offer", "absent", ", ".join(shape.left_out))
    yield _check(
        "system prompt and tools are the same with and without a compaction",
        _systems(compacted) == _systems(uncompacted) and compacted.json.get("tools") == uncompacted.json.get("tools"),
    )


def _systems(got: Received) -> list[str]:
    """The texts of the system and developer messages that stand at the beginning."""
    found: list[str] = []
    for message in got.messages:
        if message.get("role") not in ("system", "developer"):
            break
        content = message.get("content")
        found.append(content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content or ()))
    return found


def _message_checks(shape: RequestShape, entries: Sequence[Entry], question: str, got: Received) -> Iterator[Check]:
    expected: list[Any] = wire_by_name("openai-chat").write(without_repeated_system(entries, shape)).messages
    sent = got.messages[1:-1] if shape.system else got.messages[:-1]
    yield _check("the projection is sent as the session would send it", sent == expected, f"{len(sent):,} messages")
    last = got.messages[-1]
    yield _check("the question is the next user message", last == {"role": "user", "content": question})
    yield _check("the request is valid by the provider's rules", not got.violations, "; ".join(got.violations[:3]))


def _history_checks(history: History, entries: Sequence[Entry]) -> Iterator[Check]:
    text = "\n".join(reading(entries))
    found = homes(history.entries)
    hidden = [value for value in found.values() if not shows(text, value.text)]
    if not hidden:
        yield Check("history search", "absent", "the projection shows every value of the history")
        return
    missed = [value.text for value in _spread(hidden) if not _finds(history, value)]
    yield _check(
        "history search finds what the projection left out",
        not missed,
        f"{len(_spread(hidden)) - len(missed)} of {len(_spread(hidden))} values found",
    )
    home = next(entry for entry in history.entries if entry.id == hidden[0].entry)
    yield _check("an entry comes back whole, in small pages", _pages(history, home) == _whole(home))
    lookups = Lookups(history)
    refused = lookups.execute("read", '{"path": "/etc/passwd"}')
    yield _check("a tool outside of the exam is refused", refused.status == "denied", refused.returned)
    wrong = lookups.execute(GET, '{"entry": "no-such-entry"}')
    yield _check("an entry that is not there is said", wrong.status == "error", wrong.returned)


def _spread(values: Sequence[Value]) -> list[Value]:
    """At most eight, from the oldest to the newest."""
    step = max(1, len(values) // 8)
    return list(values)[::step][:8]


def _finds(history: History, value: Value) -> bool:
    """Whether a search for the value names an entry; in the words of the entry, where its text has the value escaped."""
    call = Lookups(history).execute(SEARCH, compact_json({"query": value.text}))
    return call.status == "native" and bool(decode(call.returned)["hits"])


def _pages(history: History, entry: Entry) -> str:
    """The entry's text through the journal, a few bytes at a time."""
    return history.text(entry.id, _PAGE)


def _whole(entry: Entry) -> str:
    """The same in one piece, from the entry itself."""
    return "".join(passage.text for passage in passages(entry))


def _check(name: str, good: bool, told: str = "") -> Check:
    return Check(name, "passed" if good else "failed", told)
