"""What the tests of the fake model server share: requests of each wire."""

from __future__ import annotations

from typing import Any

from raw_http import PATHS, WIRES, Got, exchanged

from firsthand.testing.server import FakeServer

__all__ = ["PATHS", "WIRES", "ask", "body", "post"]


def body(wire: str, *texts: str, stream: bool = False, **more: Any) -> dict[str, Any]:
    """A valid request whose messages are a user's and the model's texts in turns."""
    messages = [
        {"role": ("user", "assistant")[index % 2], "content": text} for index, text in enumerate(texts or ("hello",))
    ]
    name = "input" if wire == "openai-responses" else "messages"
    needed = {"max_tokens": 100} if wire == "anthropic" else {}
    asked = {"stream_options": {"include_usage": True}} if stream and wire == "openai-chat" else {}
    return {"model": "a-model", **needed, name: messages, "stream": stream, **asked, **more}


def post(
    server: FakeServer, path: str, sent: Any, *, headers: dict[str, str] | None = None, method: str = "POST"
) -> Got:
    return exchanged(server.url, path, sent, headers, method)


def ask(server: FakeServer, wire: str, *texts: str, stream: bool = False, **more: Any) -> Got:
    return post(server, PATHS[wire], body(wire, *texts, stream=stream, **more))
