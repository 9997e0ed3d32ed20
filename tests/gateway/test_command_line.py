"""`firsthand gateway` and `firsthand gateway status`, as a person runs them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from gatewayed import PATHS, agent_session, request

from firsthand.testing.server import FakeServer


def run(*args: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "firsthand", "gateway", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[str, FakeServer]]:
    with FakeServer(cache=False) as server:
        command = [
            sys.executable, "-m", "firsthand", "gateway", "--upstream", server.url, "--port", "0", "--window", "8_000", "--journal", str(tmp_path / "j.db"),
        ]  # fmt: skip
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ.copy())
        try:
            assert process.stderr is not None
            first = json.loads(process.stderr.readline())
            assert first["event"] == "gateway serves"
            yield first["url"], server
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=20)
            assert process.returncode == 130
        finally:
            process.kill()
            process.communicate()


def test_it_serves_and_says_what_it_does(served: tuple[str, FakeServer]) -> None:
    url, _ = served
    *_, messages = agent_session("openai-chat", 14)
    with httpx2.Client(base_url=url, trust_env=False) as client:
        for _ in range(50):
            try:
                answer = client.post(PATHS["openai-chat"], json=request("openai-chat", messages), timeout=20)
                break
            except httpx2.ConnectError:
                continue
    assert answer.headers["x-firsthand-decision"] == "compacted"
    told = run("status", "--url", url)
    assert told.returncode == 0, told.stderr
    assert answer.headers["x-firsthand-session"] in told.stdout
    assert "tokens saved" in told.stdout
    assert json.loads(run("status", "--url", url, "--json").stdout)["sessions"][0]["checkpoints"] == 1


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ((), "needs an upstream"),
        (("--upstream", "http://x", "--host", "0.0.0.0"), "gateway keys"),
        (("--upstream", "http://x", "--window", "many"), "--window"),
        (("--upstream", "http://x", "--strategy", "nonsense"), "no strategy named 'nonsense'"),
        (("--config", "/nowhere.toml"), "cannot read"),
        (("status", "--url", "http://127.0.0.1:9"), "no gateway answers"),
    ],
)
def test_what_cannot_work_is_one_clear_line(args: tuple[str, ...], words: str) -> None:
    done = run(*args)
    assert done.returncode == 1
    assert words in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "missing", ["uvicorn", "starlette", "httpx2", "structlog", "prometheus_client", "genai_prices"]
)
def test_a_missing_package_names_the_extra(missing: str) -> None:
    code = f"import sys; sys.modules['{missing}'] = None; sys.argv[1:] = ['gateway', '--upstream', 'http://x']; from firsthand.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "firsthand[gateway]" in done.stderr
    assert "Traceback" not in done.stderr
