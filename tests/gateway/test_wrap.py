"""`firsthand wrap`: starts gateway and client, relays exit code and signals, and leaves nothing behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from firsthand.journal import Journal
from firsthand.testing.server import FakeServer

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))
from running import run

ASK = """
import json, os, sys, urllib.request
opener = urllib.request.build_opener(urllib.request.ProxyHandler())
body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hello"}]}).encode()
request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body, {"content-type": "application/json"})
print(json.load(opener.open(request))["choices"][0]["message"]["content"])
sys.exit(int(sys.argv[1]))
"""


def wrap(tmp_path: Path, *words: str, **environment: str) -> subprocess.Popen[str]:
    command = [
        sys.executable,
        "-m",
        "firsthand",
        "wrap",
        "--journal",
        str(tmp_path / "j.db"),
        "--log",
        str(tmp_path / "log"),
        *words,
    ]
    told = {**os.environ, "HOME": str(tmp_path), **environment}
    return subprocess.Popen(
        command, env=told, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def finished(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    try:
        out, error = process.communicate(timeout=60)
    finally:
        process.kill()
    return process.returncode, out, error


def events(tmp_path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]


def test_a_program_with_an_sdk_talks_through_the_gateway(tmp_path: Path) -> None:
    # A proxy that the person has set is not asked for this machine.
    proxies = {"http_proxy": "http://127.0.0.1:9", "no_proxy": ""}
    with FakeServer(["heard"]) as server:
        process = wrap(
            tmp_path, "--upstream", f"openai={server.url}/v1", "--", sys.executable, "-c", ASK, "7", **proxies
        )
        code, out, error = finished(process)
        assert (code, out) == (7, "heard\n"), error
        assert error.startswith("firsthand: 1 requests, 0 compactions, 0 tokens saved; ")
        assert [got.path for got in server.requests] == ["/v1/chat/completions"]
    assert [event["event"] for event in events(tmp_path)] == ["client starts", "answered", "client ended"]
    with Journal.open(tmp_path / "j.db") as journal:
        assert len(journal.sessions()) == 1


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 128 + 15), (signal.SIGINT, 5)])
def test_signals_go_to_the_client(tmp_path: Path, number: signal.Signals, code: int) -> None:
    script = tmp_path / "client.sh"
    script.write_text("#!/bin/sh\ntrap 'exit 5' INT\necho ready\nwhile :; do sleep 0.1; done\n")
    script.chmod(0o755)
    process = wrap(tmp_path, "--quiet", "--", str(script))
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    assert finished(process) == (code, "", "")


def test_what_cannot_work_is_said_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    ran = run("wrap", "--upstream", "https://one.example", "--", "sh", "-c", "exit 0", check=False)
    assert ran.returncode == 1
    assert "say which one with --upstream NAME=https://one.example" in ran.stderr
    monkeypatch.setenv("PATH", "/nowhere")
    ran = run("wrap", "--", "codex", "exec", check=False)
    assert (ran.returncode, ran.stderr) == (
        1,
        "error: there is no program 'codex' on the PATH; it is had by: npm install -g @openai/codex\n",
    )
