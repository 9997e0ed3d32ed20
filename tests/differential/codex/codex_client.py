"""One published Codex, driven through its app server against the fake model server."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from real_clients import Place, ScriptedModel, Told, program, running, used

from firsthand.testing.server import Call, FakeServer, Received, Reply

RELEASES = ("0.171.0", "0.147.0")
LIMIT = 180_000
"""Reported tokens at which the client compacts in these runs."""

_CUSTOM = """
model_provider = "fake"
[model_providers.fake]
name = "fake"
base_url = "{url}/v1"
env_key = "FAKE_KEY"
wire_api = "responses"
request_max_retries = 1
stream_max_retries = 1
"""
_BUILT_IN = """
openai_base_url = "{url}/v1"
"""
_ALWAYS = """
model = "fake-model"
model_context_window = 272000
model_auto_compact_token_limit = {limit}
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false
web_search = "disabled"
"""
_TABLES = """
[analytics]
enabled = false
[feedback]
enabled = false
"""


def kind_of(got: Received) -> str:
    """Local compaction asks without tools, remote compaction with a trigger as the last item."""
    last = got.messages[-1] if got.messages else {}
    return "summary" if last.get("type") == "compaction_trigger" or not got.tool_names else "step"


class Codex:
    """A session of the client. Each turn's answers are given along with it."""

    def __init__(self, process: subprocess.Popen[str], model: ScriptedModel, work: Path) -> None:
        self._told = Told(process, "Codex", model)
        self._model = model
        self._number = 0
        self._ask("initialize", {"clientInfo": {"name": "differential", "title": "differential", "version": "0"}})
        self._told.send({"method": "initialized", "params": {}})
        options = {"cwd": str(work), "approvalPolicy": "never", "sandbox": "danger-full-access"}
        self._thread = self._ask("thread/start", options)["thread"]["id"]

    def turn(self, text: str, *answers: Reply, image: str | None = None) -> None:
        """Sends a prompt and waits until the turn has ended."""
        self._model.steps.extend(answers)
        parts: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
        if image:
            parts.append({"type": "image", "url": image})
        self._ask("turn/start", {"threadId": self._thread, "input": parts})
        self._told.wait(lambda got: got.get("method") == "turn/completed")

    def compact(self) -> None:
        """The explicit compaction."""
        self._ask("thread/compact/start", {"threadId": self._thread})
        self._told.wait(lambda got: got.get("method") == "turn/completed")

    def _ask(self, method: str, params: dict[str, Any]) -> Any:
        self._number += 1
        number = self._number
        self._told.send({"id": number, "method": method, "params": params})
        got = self._told.wait(lambda got: got.get("id") == number and "method" not in got)
        assert "result" in got, got
        return got["result"]


@contextlib.contextmanager
def codex(release: str, folder: Path, *, built_in: bool = False) -> Iterator[tuple[Codex, ScriptedModel]]:
    """A session of that release with the fake server as its provider; `built_in`: as OpenAI's own, so that it compacts remotely."""
    binary = program(f"codex-{release}", ".bin/codex")
    place = Place.under(folder)
    settings = place.home / ".codex"
    settings.mkdir()
    model = ScriptedModel(kind_of)
    with FakeServer(model) as server:
        provider = (_BUILT_IN if built_in else _CUSTOM).format(url=server.url)
        (settings / "config.toml").write_text(_ALWAYS.format(limit=LIMIT) + provider + _TABLES)
        keys = {"CODEX_HOME": str(settings), "FAKE_KEY": "fake", "CODEX_API_KEY": "fake"}
        log = (folder / "stderr").open("w")
        with (
            log,
            running(
                [str(binary), "app-server"], place, place.environment(**keys), stdin=subprocess.PIPE, stderr=log
            ) as process,
        ):
            yield Codex(process, model, place.work), model


def runs(mark: str, count: int = 20, tokens: int = 1_000, text: str = "") -> Reply:
    """A shell call that prints so many lines."""
    command = f"seq -f '{mark}-%05g of the lines that this command prints' {count}"
    return Reply(text, calls=(Call("exec_command", {"cmd": command}),), usage=used(tokens))
