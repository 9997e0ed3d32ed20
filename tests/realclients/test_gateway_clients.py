"""The published clients through the gateway: jobs that come to their end only where nothing was lost on the way.

In a network namespace that has only loopback: `make clients`.
"""

from __future__ import annotations

import contextlib
import io
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from gateway_clients import CLIENTS, OTHER_WIRES, Client, drive, repository
from gateway_job import PROMPTS, Job, executed, expected, gateway_events, prepare
from real_clients import Place

from firsthand.gateway.config import GatewayConfig, Upstream
from firsthand.gateway.serving import Gateway
from firsthand.gateway.telemetry import Telemetry
from firsthand.journal import Journal
from firsthand.testing.server import FakeServer

pytestmark = pytest.mark.realclients


def each(*clients: Client) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("client", clients, ids=lambda client: client.name)


_WIDE = 2_000_000


@dataclass
class Ran:
    job: Job
    server: FakeServer
    work: Path
    printed: list[str]
    log: str = ""

    @property
    def steps(self) -> list[str]:
        return executed(self.work)

    def compactions(self) -> list[dict[str, object]]:
        """Those that the gateway made."""
        return [
            event for event in gateway_events(self.log, "compaction") if event["outcome"] in ("applied", "fallback")
        ]

    def decisions(self) -> list[str]:
        return [event["decision"] for event in gateway_events(self.log, "answered")]


def run(
    client: Client, folder: Path, *, own: bool, window: int | None, known: bool = True, restarted: bool = False
) -> Ran:
    """One job.

    Args:
        client: which client does it.
        folder: where everything about it goes.
        own: the client compacts by itself.
        window: the gateway's, and the provider's where the client does not compact; None for no gateway.
        known: whether the gateway is told the window; else only the provider knows it.
        restarted: whether each prompt meets another gateway, with the same journal.
    """
    folder.mkdir()
    place = Place.under(folder)
    client.commands(place)  # skips where it is not installed
    prepare(place.work, client.lines)
    repository(place)
    job = Job(client.kind_of, client.call, client.full if own else 0, (4, 9) if own else ())
    limit = window if known else client.refusing or window
    server = FakeServer(job, window=None if limit == _WIDE else limit)
    ran = Ran(job, server, place.work, [])
    log = io.StringIO()
    with server, contextlib.ExitStack() as stack:

        def entrance() -> str:
            if window is None:
                return server.url
            windows = {"*": window} if known else {}
            config = GatewayConfig(
                [Upstream("default", server.url)],
                port=0,
                registry=False,
                journal=str(folder / "gateway.db"),
                windows=windows,
            )
            return stack.enter_context(Gateway(config, Telemetry(log))).url

        url = entrance()
        for number, prompt in enumerate(PROMPTS):
            if restarted and number:
                stack.close()
                url = entrance()
            job.part = number
            ran.printed.append(drive(client, place, url, prompt, first=number == 0, small=own))
    ran.log = log.getvalue()
    (folder / "gateway.log").write_text(ran.log)
    return ran


def finished(ran: Ran) -> None:
    refused = [(got.number, got.violations) for got in ran.server.turns if got.violations]
    assert (ran.job.problems, refused, ran.server.problems) == ([], [], [])
    assert ran.steps == expected()
    assert "Part 3 is finished." in ran.printed[-1]
    assert gateway_events(ran.log, "gateway failed; the request goes through as it came") == []


@each(*CLIENTS)
def test_a_job_across_two_compactions_of_the_gateway(client: Client, tmp_path: Path) -> None:
    direct = run(client, tmp_path / "direct", own=False, window=None)
    finished(direct)
    ran = run(client, tmp_path / "gateway", own=False, window=client.window)
    finished(ran)
    assert ran.steps == direct.steps
    assert len(ran.compactions()) >= 2
    assert ran.job.summaries == []
    # All of it was known as one conversation, beside one for the title.
    sides = sum(kind == "side" for kind, _ in ran.job.requests)
    assert len({event["session"] for event in gateway_events(ran.log, "answered")}) == 1 + sides
    with Journal.open(tmp_path / "gateway" / "gateway.db") as journal:
        assert journal.verify().problems == ()


@each(*OTHER_WIRES)
def test_the_other_wires(client: Client, tmp_path: Path) -> None:
    ran = run(client, tmp_path / "gateway", own=False, window=client.window)
    finished(ran)
    assert len(ran.compactions()) >= 2
    assert ran.job.summaries == []


@each(*CLIENTS)
def test_where_only_the_provider_knows_the_window(client: Client, tmp_path: Path) -> None:
    """It refuses, the gateway compacts and asks again, and the client hears nothing of it."""
    ran = run(client, tmp_path / "gateway", own=False, window=client.window, known=False)
    assert any(got.status == 400 for got in ran.server.turns)
    finished(ran)
    assert len(ran.compactions()) >= 1
    assert ran.job.summaries == []


@each(*CLIENTS)
def test_a_gateway_that_was_started_again_knows_the_conversation(client: Client, tmp_path: Path) -> None:
    ran = run(client, tmp_path / "gateway", own=False, window=client.window, restarted=True)
    finished(ran)
    assert len(ran.compactions()) >= 2
    sides = sum(kind == "side" for kind, _ in ran.job.requests)
    assert len({event["session"] for event in gateway_events(ran.log, "answered")}) == 1 + sides


@each(*CLIENTS, OTHER_WIRES[0])
def test_a_job_across_two_compactions_of_the_client(client: Client, tmp_path: Path) -> None:
    direct = run(client, tmp_path / "direct", own=True, window=None)
    finished(direct)
    ran = run(client, tmp_path / "gateway", own=True, window=_WIDE)
    finished(ran)
    assert ran.steps == direct.steps
    assert len(ran.job.summaries) >= 2
    assert len(ran.job.summaries) == len(direct.job.summaries)
    assert ran.compactions() == []
    # Behind an opaque compaction stands nothing that could be looked into.
    assert set(ran.decisions()) <= ({"forwarded", "passed"} if client.name == "codex-built-in" else {"forwarded"})
    # The gateway knew each of them, and recorded none.
    known = [
        event for event in gateway_events(ran.log, "answered") if event["reason"].startswith("client-compaction: ")
    ]
    assert len(known) == len(ran.job.summaries)


@each(*CLIENTS, OTHER_WIRES[0])
def test_a_job_wrapped(client: Client, tmp_path: Path) -> None:
    """As a new user would: the client's own settings name the provider, and nothing of them is touched."""
    place = Place.under(tmp_path)
    client.commands(place)
    prepare(place.work, client.lines)
    repository(place)
    job = Job(client.kind_of, client.call)
    log, journal = tmp_path / "wrap.log", tmp_path / "wrapped.db"
    before = [
        sys.executable,
        "-m",
        "firsthand",
        "wrap",
        "--window",
        str(client.window),
        "--log",
        str(log),
        "--journal",
        str(journal),
        "--",
    ]
    with FakeServer(job, window=client.window) as server:
        printed = []
        for number, prompt in enumerate(PROMPTS):
            job.part = number
            printed.append(drive(client, place, server.url, prompt, first=number == 0, small=False, before=before))
    ran = Ran(job, server, place.work, printed, log.read_text())
    finished(ran)
    assert len(ran.compactions()) >= 2
    assert [event["code"] for event in gateway_events(ran.log, "client ended")] == [0, 0, 0]
    told = (place.home / "stderr").read_text()
    assert told.count("tokens saved") == 3
