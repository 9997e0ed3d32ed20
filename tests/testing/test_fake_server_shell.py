"""`python -m firsthand.testing.server`, as a shell sees it, and the scripts that it reads."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from served import ask, body, post

from firsthand.errors import ConfigError
from firsthand.testing.server import Call, Failure, FakeServer, Lane, Raw, Reply, Script, read_script
from firsthand.transcript import Usage


class Process:
    """A running server process; looks like a `FakeServer` to `ask`."""

    def __init__(self, process: subprocess.Popen[str], url: str) -> None:
        self.process = process
        self.url = url

    def stop(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        self.process.send_signal(number)
        _, errors = self.process.communicate(timeout=30)
        return self.process.returncode, errors


@contextmanager
def running(*arguments: str) -> Iterator[Any]:
    command = [sys.executable, "-m", "firsthand.testing.server", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    watchdog = threading.Timer(60, process.kill)
    watchdog.start()
    try:
        assert process.stdout is not None
        yield Process(process, process.stdout.readline().strip())
    finally:
        watchdog.cancel()
        process.kill()
        process.communicate()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_serves_a_script_until_it_is_told_to_stop(tmp_path: Path, number: int) -> None:
    script = tmp_path / "script.json"
    script.write_text(json.dumps(["one", {"text": "two", "calls": [{"name": "bash", "arguments": {"cmd": "ls"}}]}]))
    log = tmp_path / "log.jsonl"
    with running("--port", "0", "--script", str(script), "--log", str(log), "--window", "1000") as server:
        assert server.url.startswith("http://127.0.0.1:")
        assert b"one" in ask(server, "openai-chat").body
        assert ask(server, "anthropic").json["stop_reason"] == "tool_use"
        assert ask(server, "openai-chat", "x" * 5_000).status == 400
        post(server, "/v1/messages", body("anthropic"), headers={"x-api-key": "key-to-hide", "x-session": "s1"})
        code, errors = server.stop(number)
    assert (code, errors) == (0, "the script has no reply left for request 4\n")
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [line["number"] for line in lines] == [1, 2, 3, 4]
    assert lines[3]["headers"]["x-session"] == "s1"
    assert lines[3]["json"] == body("anthropic")
    assert "key-to-hide" not in log.read_text()


def test_stops_by_itself() -> None:
    with running("--max-seconds", "0.1") as server:
        assert server.url
        _, errors = server.process.communicate(timeout=30)
        assert (server.process.returncode, errors) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--script", "/nowhere.json"], "cannot read the script"),
        (["--window", "0"], "at least 1"),
        (["--provider", "nobody"], "mistral"),
    ],
)
def test_says_why_it_cannot_start(arguments: list[str], reason: str) -> None:
    with running(*arguments) as server:
        _, errors = server.process.communicate(timeout=30)
        assert server.process.returncode == 2
        assert reason in errors
        assert "Traceback" not in errors


def written(tmp_path: Path, value: Any) -> Script:
    path = tmp_path / "script.json"
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return read_script(path)


def test_scripts(tmp_path: Path) -> None:
    assert written(tmp_path, ["a", {"text": "b", "cut": "text"}]) == Script((Reply("a"), Reply("b", cut="text")))
    value = {
        "replies": [
            {"kind": "overflow", "provider": "mistral", "limit": 9},
            {"body": "data: 漢\n\n", "status": 500},
            {"calls": [{"name": "a", "arguments": {"b": 1}}], "usage": {"input_tokens": 5, "output_tokens": 2}},
        ],
        "default": "later",
        "lanes": [{"pattern": "title", "tools": False, "replies": ["t"], "default": {"kind": "server"}}],
    }
    assert written(tmp_path, value) == Script(
        (
            Failure("overflow", provider="mistral", limit=9),
            Raw("data: 漢\n\n".encode(), status=500),
            Reply(calls=(Call("a", {"b": 1}),), usage=Usage(input_tokens=5, output_tokens=2)),
        ),
        Reply("later"),
        (Lane((Reply("t"),), Failure("server"), "title", False),),
    )


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("{", "no JSON"),
        (7, "a list of answers or an object"),
        ({"reply": []}, "unknown fields: reply"),
        ({"replies": "a"}, "replies must be a list"),
        ([{"text": 7}], r"replies\[0\]"),
        (["a", {"texts": "b"}], r"replies\[1\].*texts"),
        ([{"kind": "flood"}], r"replies\[0\].*flood"),
        ([{"text": "a", "cut": "text", "chunk_size": 0}], r"replies\[0\].*chunk_size"),
        ([{"body": 7}], "body must be a text"),
        ([7], r"replies\[0\] must be an object or a text"),
        ({"lanes": [7]}, r"lanes\[0\]"),
        ({"lanes": 7}, "lanes must be a list"),
        ({"lanes": [{"tool": True}]}, r"lanes\[0\].*tool"),
        ({"default": {"kind": "overflow", "provider": "nobody"}}, "default.*nobody"),
    ],
)
def test_scripts_that_are_none(tmp_path: Path, value: Any, reason: str) -> None:
    with pytest.raises(ConfigError, match=f"(?s){reason}"):
        written(tmp_path, value)


def test_importing_the_server_needs_no_extra() -> None:
    code = "import sys, firsthand.testing.server; print([n for n in ('starlette', 'uvicorn', 'anyio') if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"


def test_a_script_from_a_file_serves_in_a_thread_too(tmp_path: Path) -> None:
    script = written(tmp_path, ["from a file"])
    with FakeServer(script.replies, default=script.default, lanes=script.lanes) as server:
        assert b"from a file" in ask(server, "openai-responses").body
