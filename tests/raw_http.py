"""Raw HTTP for tests of servers: no client that mends anything, and one that sees how a body ended."""

from __future__ import annotations

import http.client
import json
from dataclasses import dataclass
from typing import Any

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
    def decision(self) -> str:
        """What the gateway says it did."""
        return self.headers.get("x-firsthand-decision", "")

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


def exchanged(
    url: str, path: str, sent: Any, headers: dict[str, str] | None = None, method: str = "POST", patience: float = 20
) -> Got:
    """What a server at `url` answers; `sent` is bytes as they are, None for no body, or a value for JSON."""
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=patience)
    try:
        data = sent if isinstance(sent, bytes) or sent is None else json.dumps(sent).encode()
        connection.request(method, path, data, {"content-type": "application/json", **(headers or {})})
        response = connection.getresponse()
        try:
            read, whole = response.read(), True
        except http.client.IncompleteRead as error:
            read, whole = error.partial, False
        return Got(response.status, {name.lower(): value for name, value in response.getheaders()}, read, whole)
    finally:
        connection.close()
