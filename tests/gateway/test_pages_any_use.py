"""The gateway's own pages under whatever somebody sends them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from gatewayed import Both, agent_session, running
from hypothesis import HealthCheck, given, settings

from firsthand.gateway.pages import API
from firsthand.testing.server import FakeServer

schemathesis = pytest.importorskip("schemathesis")
OPERATIONS = [found.ok() for found in schemathesis.openapi.from_dict(API).get_all_operations()]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    folder: Path = tmp_path_factory.mktemp("pages")
    with FakeServer() as server, running(folder, server) as both:
        for messages in agent_session("openai-chat", 2):
            both.ask("openai-chat", messages)
        yield both


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.label)
def test_the_pages_keep_their_promises(both: Both, operation: Any) -> None:
    """The driver of schemathesis for pytest follows another pytest, so its cases are drawn here."""

    @settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
    @given(operation.as_strategy())
    def run(case: Any) -> None:
        case.validate_response(case.call(base_url=both.gateway.url))

    run()
    assert both.server.requests == both.server.turns, "a page of the gateway was asked of the upstream"
