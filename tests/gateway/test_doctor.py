"""`firsthand doctor`: names what is wrong, in a line each, and never ends in a traceback."""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from firsthand.gateway import doctor
from firsthand.gateway.config import GatewayConfig, Upstream
from firsthand.gateway.serving import Gateway
from firsthand.testing.server import FakeServer

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))
from running import run


def looked(
    tmp_path: Path, config: GatewayConfig | None = None, *, port: int = 0, **more: Any
) -> dict[str, doctor.Check]:
    environment = {"HOME": str(tmp_path), "PATH": str(tmp_path / "bin"), **more.pop("environment", {})}
    journal = more.pop("journal", tmp_path / "j.db")
    found = doctor.checks(config, environment, tmp_path, port=port, journal=journal, **{"network": False, **more})
    return {check.about: check for check in found}


def program(tmp_path: Path, name: str, script: str) -> None:
    file = tmp_path / "bin" / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)


def test_where_all_is_well(tmp_path: Path) -> None:
    program(tmp_path, "codex", "echo codex-cli 0.171.0")
    with FakeServer() as server:
        config = GatewayConfig([Upstream("default", server.url)])
        found = looked(tmp_path, config, network=True)
    assert (
        doctor.worst([found[name] for name in ("extra gateway", "journal", "port", "Codex", "Codex's settings")])
        == "ok"
    )
    assert found[f"upstream {server.url}"].state == "ok"
    assert found["Codex"].said == f"0.171.0 at {tmp_path}/bin/codex"
    assert found["Pi"].state == "note"
    assert not (tmp_path / "j.db").exists()


def test_what_is_wrong_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path, "codex", "echo codex-cli 0.99.0")
    program(tmp_path, "claude", "exit 3")
    program(tmp_path, "opencode", "echo 1.18.31")
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / "settings.json").write_text('{"env": {"CLAUDE_CODE_USE_VERTEX": "1"}}')
    (tmp_path / ".codex").mkdir()
    (tmp_path / ".codex" / "config.toml").write_text('model_provider = "x"')
    (tmp_path / "opencode.json").write_text(
        '{"provider": {"a": {"options": {"baseURL": "https://me:hunter2@a.example/v1"}}}}'
    )
    (tmp_path / "j.db").write_text("no journal, but long enough to be looked at as one" * 20)
    monkeypatch.setitem(doctor.EXTRAS, "gateway", ("no_such_module",))  # type: ignore[arg-type]
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        config = GatewayConfig([Upstream("default", "http://127.0.0.1:9/v1")])
        found = looked(tmp_path, config, port=port, network=True, environment={"HTTP_PROXY": "http://p.example"})
    said = {about: check.said for about, check in found.items() if check.state == "problem"}
    assert said.keys() == {
        "extra gateway", "journal", "port", "proxy", "Claude Code", "Claude Code's settings", "Codex's settings",
        "OpenCode's settings", "upstream http://127.0.0.1:9/v1",
    }  # fmt: skip
    assert said["extra gateway"] == "no_such_module missing; pip install 'firsthand[gateway]'"
    assert "--port" in said["port"]
    assert "CLAUDE_CODE_USE_VERTEX" in said["Claude Code's settings"]
    assert "exit code 3" in said["Claude Code"]
    assert found["Codex"].said.startswith("0.99.0 at ")
    assert found["Codex"].state == "note"
    assert "hunter2" not in str(found)


def test_a_gateway_that_serves_already_is_no_problem(tmp_path: Path) -> None:
    config = GatewayConfig([Upstream("default", "http://127.0.0.1:9")], port=0, mode="off")
    with Gateway(config) as gateway:
        port = int(gateway.url.rpartition(":")[2])
        assert "serves at" in looked(tmp_path, port=port)["port"].said


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ran = run("doctor", "--no-network", "--json", "--port", port, check=False)
    assert (ran.returncode, ran.stderr) == (1, "")
    assert [row["about"] for row in json.loads(ran.stdout) if row["state"] == "problem"] == ["port"]
    assert run("doctor", "--no-network", "--port", port).stdout.startswith("ok      firsthand: ")
