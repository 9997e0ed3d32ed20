"""The published OpenCode, driven through its own server against the fake model server."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from real_clients import PATIENCE, Place, ScriptedModel, program, running, used

from firsthand.testing.server import Answer, Call, FakeServer, Received, Reply

RELEASE = "1.18.31"
_MODEL = {"providerID": "fake", "modelID": "fake-model"}
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def kind_of(got: Received) -> str:
    """Titles go to the small model; a request for a summary offers no tools."""
    if got.json["model"] == "fake-small":
        return "side"
    return "step" if got.tool_names else "summary"


@dataclass
class OpenCode:
    """A session of the client. Each turn's answers are given along with it, those after an automatic compaction included."""

    url: str
    model: ScriptedModel
    window: int
    output: int
    session: str = ""
    by_hand: list[int] = field(default_factory=list)
    """Numbers of the requests for a summary that were asked for explicitly."""

    def start(self) -> None:
        """Opens the session, in which everything is allowed."""
        allowed = [{"permission": "*", "pattern": "*", "action": "allow"}]
        self.session = self._call("/session", {"permission": allowed})["id"]

    def turn(self, text: str, *answers: Answer) -> None:
        """Sends a prompt and waits until the client has nothing more to do."""
        self.model.steps.extend(answers)
        self._call(f"/session/{self.session}/message", {"model": _MODEL, "parts": [{"type": "text", "text": text}]})

    def compact(self) -> None:
        """The explicit compaction."""
        known = len(self.model.seen)
        self._call(f"/session/{self.session}/summarize", _MODEL)
        self.by_hand += [got.number for _, got in self.model.seen[known:]]

    def stored(self) -> bytes:
        """The session as the client keeps it."""
        return json.dumps(self._call(f"/session/{self.session}/message")).encode()

    def _call(self, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"content-type": "application/json"})
        with _DIRECT.open(request, timeout=PATIENCE) as answer:
            return json.loads(answer.read() or b"null")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        number: int = probe.getsockname()[1]
        return number


def _settings(url: str, window: int, output: int, options: dict[str, Any]) -> dict[str, Any]:
    limit = {"context": window, "output": output}
    models = {
        "fake-model": {"name": "Fake", "tool_call": True, "limit": limit},
        "fake-small": {"name": "Small", "limit": limit},
    }
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Fake",
        "options": {"baseURL": f"{url}/v1", "apiKey": "fake"},
        "models": models,
    }
    return {
        "model": "fake/fake-model",
        "small_model": "fake/fake-small",
        "autoupdate": False,
        "share": "disabled",
        "provider": {"fake": provider},
        "compaction": options,
    }


@contextlib.contextmanager
def opencode(folder: Path, *, window: int, output: int = 8_000, **options: Any) -> Iterator[OpenCode]:
    """A session with the fake server as its provider; `options` are the client's own for compaction."""
    binary = program(f"opencode-{RELEASE}", "opencode-linux-x64/bin/opencode")
    place = Place.under(folder)
    home = place.home
    settings = home / ".config" / "opencode" / "opencode.json"
    settings.parent.mkdir(parents=True)
    model = ScriptedModel(kind_of)
    with FakeServer(model) as server:
        settings.write_text(json.dumps(_settings(server.url, window, output, options)))
        environment = place.environment(
            XDG_CONFIG_HOME=str(home / ".config"),
            XDG_DATA_HOME=str(home / ".local" / "share"),
            XDG_CACHE_HOME=str(home / ".cache"),
            XDG_STATE_HOME=str(home / ".local" / "state"),
            **{
                f"OPENCODE_DISABLE_{name}": "1"
                for name in ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS", "SHARE")
            },
            npm_config_registry="http://127.0.0.1:9/",
            npm_config_fetch_retries="0",
        )
        command = [str(binary), "serve", "--hostname", "127.0.0.1", "--port", str(_free_port())]
        log = (folder / "stderr").open("w")
        with log, running(command, place, environment, stderr=log) as process:
            session = OpenCode(_address(process.stdout), model, window, output)
            session.start()
            yield session


def _address(lines: Any) -> str:
    for line in lines:
        found = re.search(r"http://127\.0\.0\.1:\d+", line)
        if found:
            return found[0]
    raise AssertionError("OpenCode ended before it served anything")


def runs(mark: str, count: int = 20, tokens: int = 1_000, text: str = "") -> Reply:
    """A shell call that prints so many lines."""
    command = f"seq -f '{mark}-%05g of the lines that this command prints' {count}"
    call = Call("bash", {"command": command, "description": f"prints {mark}"})
    return Reply(text, calls=(call,), usage=used(tokens))
