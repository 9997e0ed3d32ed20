"""One request as it came: its bytes, where its parts are, and what is known about each message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..codec import decode
from ..errors import FormatError
from ..formats.wire import wire_by_name
from ..tokens import Counter, entry_cost
from ..transcript import Entry
from .keys import exact_hash, keys_of
from .scan import ScanError, Span, fields, items
from .wires.base import GatewayWire

__all__ = ["Facts", "GatewayRequest", "KnownFacts", "Unmanaged", "read_entry", "read_request"]

_STATEFUL = ("previous_response_id", "conversation")


class Unmanaged(Exception):  # noqa: N818 - no failure: the request goes through as it came
    """A request that the gateway does not look into. The text says why and quotes nothing: it is logged."""


class Facts(NamedTuple):
    """What matching and counting need to know of one message; nothing of what it says."""

    exact: bytes
    key: bytes
    content: bytes
    role: str
    calls: tuple[str, ...]
    results: tuple[str, ...]
    cost: int
    """Tokens, by the counter of the model's family."""
    head: bool
    opaque: bool


@dataclass(frozen=True)
class GatewayRequest:
    """A request body taken apart. Everything refers to `raw`, so that any part can be sent on as it came."""

    wire: GatewayWire
    raw: bytes
    fields: Mapping[str, Span]
    items: Sequence[Span]
    """The messages, as spans of `raw`."""
    model: str
    stream: bool
    max_output: int | None

    def item(self, number: int) -> bytes:
        """The bytes of one message."""
        return self.items[number].of(self.raw)

    def value(self, name: str) -> Any:
        """The value of a field; None where there is none.

        Raises:
            Unmanaged: it is no JSON after all.
        """
        span = self.fields.get(name)
        if span is None:
            return None
        try:
            return decode(span.of(self.raw))
        except (ValueError, RecursionError) as error:
            raise Unmanaged(f"its {name} cannot be read") from error

    def with_messages(self, messages: Sequence[bytes]) -> bytes:
        """The same body with other messages; all else is the bytes that came."""
        span = self.fields[self.wire.messages]
        return b"".join((self.raw[: span.start], b"[", b",".join(messages), b"]", self.raw[span.end :]))

    def fixed_tokens(self, counter: Counter) -> int:
        """Tokens of what stands beside the messages: system prompt and tools, counted as the JSON that they are."""
        spans = (self.fields[name] for name in self.wire.fixed if name in self.fields)
        return sum(counter.count(span.of(self.raw).decode("utf-8", "replace")) for span in spans)


def read_request(wire: GatewayWire, raw: bytes) -> GatewayRequest:
    """Take a body apart.

    Raises:
        Unmanaged: it is not of this wire's shape, or its history lies elsewhere.
    """
    try:
        found = fields(raw)
        span = found.get(wire.messages)
        if span is None or raw[span.start : span.start + 1] != b"[":
            raise Unmanaged(f"it has no list under {wire.messages!r}")
        messages = [Span(span.start + start, span.start + end) for start, end in items(span.of(raw))]
    except (ScanError, RecursionError) as error:
        raise Unmanaged("its body cannot be taken apart") from error
    request = GatewayRequest(wire, raw, found, messages, "", False, None)
    for name in _STATEFUL:
        if request.value(name) is not None:
            raise Unmanaged(f"the provider keeps its history ({name})")
    model = request.value("model")
    return GatewayRequest(
        wire,
        raw,
        found,
        messages,
        model if isinstance(model, str) else "",
        request.value("stream") is True,
        next((value for name in wire.output if isinstance(value := request.value(name), int) and value > 0), None),
    )


def read_entry(wire: GatewayWire, raw: bytes) -> tuple[Mapping[str, Any], Entry]:
    """One message as a value and as an entry without a place.

    Raises:
        Unmanaged: it is not of this wire's shape, or means something only beside others.
    """
    try:
        message = decode(raw)
        if not isinstance(message, dict):
            raise Unmanaged("a message is no object")
        if message.get("role") == "function" or message.get("function_call"):
            raise Unmanaged("it has function messages of the old kind, which have no ids")
        (entry,) = wire_by_name(wire.name).read([message])
    except (ValueError, RecursionError, FormatError) as error:
        raise Unmanaged("a message is not of this wire's shape") from error
    return message, entry


class KnownFacts:
    """Facts by exact hash, so that a message is parsed once and not with each request that shows it. Bounded: the oldest go first."""

    def __init__(self, most: int = 100_000) -> None:
        self._most = most
        self._facts: dict[tuple[str, str, bytes], Facts] = {}

    def of(self, request: GatewayRequest, counter: Counter) -> list[Facts]:
        """The facts of all messages of a request, in order.

        Raises:
            Unmanaged: one of them cannot be read.
        """
        view = memoryview(request.raw)
        kind = (request.wire.name, counter.name)
        found: list[Facts] = []
        for span in request.items:
            exact = exact_hash(view[span.start : span.end])
            facts = self._facts.get((*kind, exact))
            if facts is None:
                facts = self._facts[(*kind, exact)] = _facts(request.wire, span.of(request.raw), exact, counter)
            found.append(facts)
        if len(self._facts) > self._most:
            for old in list(self._facts)[: self._most // 2]:
                self._facts.pop(old, None)
        return found

    def unknown_bytes(self, request: GatewayRequest, counter: Counter) -> int:
        """How many bytes of messages would have to be parsed, looking from the end until one is known."""
        view = memoryview(request.raw)
        total = 0
        for span in reversed(request.items):
            if (request.wire.name, counter.name, exact_hash(view[span.start : span.end])) in self._facts:
                break
            total += span.end - span.start
        return total


def _facts(wire: GatewayWire, raw: bytes, exact: bytes, counter: Counter) -> Facts:
    message, entry = read_entry(wire, raw)
    try:
        outline = wire.outline(message)
        keys = keys_of(outline)
    except (TypeError, AttributeError, RecursionError) as error:
        raise Unmanaged("a message is of an unknown shape") from error
    return Facts(
        exact,
        keys.key,
        keys.content,
        outline.role,
        outline.calls,
        outline.results,
        entry_cost(entry, counter),
        wire.is_head(message),
        wire.is_opaque_history(message),
    )
