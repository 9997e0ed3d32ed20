from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import httpx2
import pytest
import typer
from reading_model import SYSTEM, TOOLS, session_file
from real_sessions import shared
from typer.testing import CliRunner

from firsthand.cli import lab_capture, lab_verify
from firsthand.errors import ConfigError, FirsthandError
from firsthand.formats import read_sessions
from firsthand.lab.model.bodies import question_body
from firsthand.lab.model.capture import Captured, capture
from firsthand.lab.model.shape import RequestShape, chat_tools, read_shape, shape_of, shape_of_body, write_shape
from firsthand.lab.model.verify import verify
from firsthand.testing.builders import session, system, user

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
CHAT = {"type": "function", "function": {"name": "read", "description": "Read.", "parameters": SCHEMA}}


@pytest.mark.parametrize(
    ("tool", "made"),
    [
        (CHAT, CHAT),
        ({"type": "function", "name": "read", "description": "Read.", "parameters": SCHEMA}, CHAT),
        ({"name": "read", "description": "Read.", "input_schema": SCHEMA}, CHAT),
        ({"type": "custom", "name": "read", "description": "Read.", "input_schema": SCHEMA}, CHAT),
        ({"type": "web_search_20250305", "name": "web_search"}, None),
        ({"type": "custom", "name": "apply_patch", "format": {"type": "grammar"}}, None),
        ("read", None),
        (None, None),
    ],
    ids=["chat", "responses", "anthropic", "anthropic custom", "server", "free text", "name", "nothing"],
)
def test_tools_of_any_api(tool: Any, made: dict[str, Any] | None) -> None:
    tools, left_out = chat_tools([tool])
    assert tools == (() if made is None else (made,))
    assert len(left_out) == (made is None)


BODIES = {
    "openai-chat": ("/v1/chat/completions", {"messages": [{"role": "system", "content": SYSTEM}, {"role": "user", "content": "hi"}], "tools": TOOLS, "temperature": 0.3}),
    "openai-responses": ("/v1/responses", {"instructions": SYSTEM, "input": [{"role": "user", "content": "hi"}], "tools": [{"type": "function", "name": "read", "parameters": SCHEMA}], "store": False}),
    "anthropic": ("/v1/messages", {"system": [{"type": "text", "text": SYSTEM, "cache_control": {"type": "ephemeral"}}], "messages": [{"role": "user", "content": "hi"}], "tools": [{"name": "read", "input_schema": SCHEMA}], "max_tokens": 64}),
}  # fmt: skip


@pytest.mark.parametrize("wire", BODIES)
def test_a_client_is_captured_on_every_wire_and_its_key_is_not(wire: str, tmp_path: Path) -> None:
    path, body = BODIES[wire]
    found: list[Captured] = []

    def client(url: str) -> None:
        def work() -> None:
            headers = {"authorization": "Bearer sk-secret-1", "x-api-key": "sk-secret-1", "user-agent": "client/1.2"}
            httpx2.get(url + "/v1/models", headers=headers)
            httpx2.post(
                url + path, json={"model": "m", **{k: v for k, v in body.items() if k != "tools"}}, headers=headers
            )
            httpx2.post(url + path, json={"model": "m", **body}, headers=headers)

        threading.Thread(target=work).start()

    found.append(capture(20, ready=client))
    (one,) = found
    assert (one.wire, one.client, one.others) == (wire, "client/1.2", 1)
    assert one.shape.system == SYSTEM
    assert [tool["function"]["name"] for tool in one.shape.tools] == ["read"]
    written = write_shape(one.shape, one.wire, one.client)
    assert b"sk-secret" not in written
    assert b'"hi"' not in written
    (tmp_path / "shape.json").write_bytes(written)
    again = read_shape(tmp_path / "shape.json")
    assert (again.system, again.tools, again.settings) == (one.shape.system, one.shape.tools, one.shape.settings)
    assert not again.settings.keys() & {"messages", "input", "tools", "system", "instructions", "model"}


def test_nothing_arrives_in_time() -> None:
    with pytest.raises(FirsthandError, match=r"nothing was captured in 0\.05 s: no request came"):
        capture(0.05)

    def bare(url: str) -> None:
        httpx2.post(url + "/v1/chat/completions", json={"model": "m", "messages": [{"role": "user", "content": "hi"}]})

    with pytest.raises(FirsthandError, match=r"none of them with both \(the request has no system prompt\)"):
        capture(0.05, ready=bare)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"system_bytes": 3}, "capture it again"),
        ({"tools": []}, "0 tools"),
        ({"more": 1}, "no shape"),
        (None, "no shape"),
    ],
)
def test_a_shape_that_was_changed_is_refused(tmp_path: Path, change: dict[str, Any] | None, problem: str) -> None:
    path = tmp_path / "shape.json"
    written = write_shape(
        shape_of_body({"messages": [{"role": "system", "content": "größer"}], "tools": TOOLS}), "openai-chat"
    )
    path.write_bytes(b"[]" if change is None else json.dumps(json.loads(written) | change).encode())
    with pytest.raises(ConfigError, match=problem):
        read_shape(path)


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ({"messages": [{"role": "user", "content": "x"}], "tools": TOOLS}, "no system prompt"),
        ({"instructions": "x", "input": "y"}, "no tools"),
    ],
)
def test_a_request_without_prompt_or_tools_is_no_shape(body: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        shape_of_body(body)


@pytest.mark.parametrize("source", ["session", "captured"])
def test_a_system_prompt_among_the_messages_is_sent_once(source: str) -> None:
    entries = session(system("own prompt"), user("hello"))
    shape = RequestShape("own prompt" if source == "session" else "captured prompt", (), source)
    sent = question_body("session", shape, entries, "which?", max_output=10)["messages"]
    assert [(message["role"], message["content"]) for message in sent] == [
        ("system", shape.system),
        ("user", "hello"),
        ("user", "which?"),
    ]
    kept = question_body("session", RequestShape(None), entries, "which?", max_output=10)["messages"]
    assert kept[0] == {"role": "system", "content": "own prompt"}


def test_every_check_passes_on_a_session_with_prompt_and_tools(tmp_path: Path) -> None:
    (found,) = read_sessions(session_file(tmp_path))
    checks = verify(found, strategy="futureos-deterministic", window=20_000)
    assert {check.state for check in checks} == {"passed"}, checks
    assert len(checks) == 12
    assert shape_of(found).told == "a system prompt among its messages, 1 tools (session)"


@pytest.mark.parametrize("name", ["pi/preloop-omp-thinking.jsonl.gz", "gemini-cli/c-blosc2-gemini-3-pro.json"])
def test_no_check_fails_on_real_sessions_and_what_is_not_recorded_is_said(name: str) -> None:
    for found in read_sessions(shared(name)):
        checks = verify(found, strategy="futureos-deterministic")
        assert [check for check in checks if check.state == "failed"] == []
        assert "absent" in {check.state for check in checks}


def test_the_commands(tmp_path: Path) -> None:
    app = typer.Typer()
    app.callback()(lambda: None)
    lab_capture.register(app)
    lab_verify.register(app)
    done = CliRunner().invoke(app, ["capture", "--out", str(tmp_path / "s.json"), "--seconds", "1"])
    assert isinstance(done.exception, FirsthandError)
    assert not (tmp_path / "s.json").exists()
    file = str(session_file(tmp_path))
    done = CliRunner().invoke(app, ["verify", file, "--window", "20000"])
    assert done.exit_code == 0, done.output
    assert "byte for byte" in done.stdout
    shape = RequestShape("another prompt", (CHAT,), "captured")
    (tmp_path / "s.json").write_bytes(write_shape(shape, "openai-chat"))
    rows = json.loads(
        CliRunner()
        .invoke(app, ["verify", file, "--window", "20000", "--shape", str(tmp_path / "s.json"), "--json"])
        .stdout
    )
    assert {row["state"] for row in rows} == {"passed"}
    assert rows[0]["check"] == "the system prompt is the captured one, byte for byte"
