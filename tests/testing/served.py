"""What the tests of the fake model server share: requests of each wire, and raw HTTP that sees how a body ended."""

from __future__ import annotations

import http.client
import json
from dataclasses import dataclass
from typing import Any

from firsthand.testing.server import FakeServer

PATHS = {"openai-chat": "/v1/chat/completions", "openai-responses": "/v1/responses", "anthropic": "/v1/messages"}
WIRES = list(PATHS)


@dataclass
class Got:
    status: int
    headers: dict[str, str]
    body: bytes
    whole: bool
    """Whether the body ended in good order."""

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def events(self) -> list[Any]:
        """The `data` of each event; text where it is no JSON."""
        found = []
        for block in self.body.decode().split("\n\n"):
            for line in block.split("\n"):
                if line.startswith("data: "):
                    try:
                        found.append(json.loads(line[6:]))
                    except ValueError:
                        found.append(line[6:])
        return found

    @property
    def kinds(self) -> list[str]:
        """The events in short: their types, or what a chunk of Chat Completions carries."""
        return [kind(event) for event in self.events]


def kind(event: Any) -> str:
    if isinstance(event, str):
        return event
    if "type" in event:
        return str(event["type"])
    if "error" in event:
        return "error"
    if not event["choices"]:
        return "usage"
    choice = event["choices"][0]
    if choice["finish_reason"]:
        return f"finish:{choice['finish_reason']}"
    delta = choice["delta"]
    if delta.get("role"):
        return "role"
    return next(iter(delta))


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
    connection = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=20)
    try:
        data = sent if isinstance(sent, bytes) else json.dumps(sent).encode()
        connection.request(method, path, data, {"content-type": "application/json", **(headers or {})})
        response = connection.getresponse()
        try:
            read, whole = response.read(), True
        except http.client.IncompleteRead as error:
            read, whole = error.partial, False
        return Got(response.status, {name.lower(): value for name, value in response.getheaders()}, read, whole)
    finally:
        connection.close()


def ask(server: FakeServer, wire: str, *texts: str, stream: bool = False, **more: Any) -> Got:
    return post(server, PATHS[wire], body(wire, *texts, stream=stream, **more))
