"""What `/metrics` counts."""

from __future__ import annotations

from pathlib import Path

from gatewayed import agent_session
from in_process import InProcess

from firsthand.testing.server import FakeServer


def test_compactions_are_counted_by_outcome(tmp_path: Path) -> None:
    wire = "openai-chat"
    with InProcess(tmp_path, FakeServer(cache=False), windows={"*": 8_000}) as gateway:
        for messages in agent_session(wire, 14):
            gateway.ask(wire, messages)
        page = gateway.do(gateway._client.get("/metrics")).text
    counted = {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in page.splitlines() if line[0] != "#"}
    assert counted['firsthand_gateway_compactions_total{outcome="applied"}'] >= 1
    assert gateway.log.getvalue().count('"event": "compaction"') == sum(
        count for name, count in counted.items() if name.startswith("firsthand_gateway_compactions_total")
    )
