"""What the tests of the gateway share: a gateway in front of a fake model server, and conversations on each wire."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from raw_http import PATHS, WIRES, Got, exchanged

from firsthand.gateway.config import GatewayConfig, Upstream
from firsthand.gateway.serving import Gateway
from firsthand.gateway.telemetry import Telemetry
from firsthand.testing.server import FakeServer

__all__ = ["LIST", "PATHS", "WIRES", "Both", "Raw", "agent_session", "request", "running", "said", "step", "user"]

LIST = {"openai-chat": "messages", "openai-responses": "input", "anthropic": "messages"}
Raw = dict[str, Any]


@dataclass
class Both:
    """A gateway and the server behind it."""

    gateway: Gateway
    server: FakeServer
    log: io.StringIO

    def post(self, path: str, body: Any, headers: dict[str, str] | None = None, method: str = "POST") -> Got:
        return exchanged(self.gateway.url, path, body, headers, method)

    def ask(self, wire: str, messages: list[Raw], headers: dict[str, str] | None = None, **more: Any) -> Got:
        return self.post(PATHS[wire], request(wire, messages, **more), headers)

    @property
    def last(self) -> Any:
        """The newest request for a model that arrived upstream."""
        return self.server.turns[-1]


def request(wire: str, messages: list[Raw], **more: Any) -> Raw:
    needed = {"max_tokens": 500} if wire == "anthropic" else {}
    return {"model": "a-model", **needed, LIST[wire]: messages, **more}


@contextlib.contextmanager
def running(tmp_path: Path, server: FakeServer, **settings: Any) -> Iterator[Both]:
    log = io.StringIO()
    settings.setdefault("registry", False)
    settings.setdefault("journal", str(tmp_path / "gateway.db"))
    config = GatewayConfig([Upstream("default", server.url)], port=0, **settings)
    with Gateway(config, Telemetry(log, debug=True)) as gateway:
        yield Both(gateway, server, log)


def user(wire: str, text: str) -> Raw:
    return {"role": "user", "content": text}


def said(wire: str, text: str) -> Raw:
    return {"role": "assistant", "content": text}


def step(wire: str, call_id: str, output: str, text: str = "") -> list[Raw]:
    """A call and its result."""
    if wire == "openai-chat":
        call = {"id": call_id, "type": "function", "function": {"name": "bash", "arguments": '{"cmd":"ls"}'}}
        return [
            {"role": "assistant", "content": text or None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": call_id, "content": output},
        ]
    if wire == "openai-responses":
        items = (
            [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}]
            if text
            else []
        )
        return [
            *items,
            {"type": "function_call", "call_id": call_id, "name": "bash", "arguments": '{"cmd":"ls"}'},
            {"type": "function_call_output", "call_id": call_id, "output": output},
        ]
    said_ = [{"type": "text", "text": text}] if text else []
    return [
        {
            "role": "assistant",
            "content": [*said_, {"type": "tool_use", "id": call_id, "name": "bash", "input": {"cmd": "ls"}}],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call_id, "content": output}]},
    ]


def agent_session(wire: str, steps: int, size: int = 2_000) -> Iterator[list[Raw]]:
    """The growing histories of an agent that works through one task: a request after each step."""
    messages: list[Raw] = [user(wire, "Find MARK-USER and fix it; never touch the port 8123.")]
    yield list(messages)
    for number in range(steps):
        output = f"UID-{number:05d} line\n" * (size // 15)
        messages += step(
            wire, f"call_{number:04d}Abcdefghijklmn", output, f"MARK-SAID-{number}: I look at file {number}."
        )
        yield list(messages)
