"""What a request costs and how much of it a prefix cache would serve, by a count of the server's own.

Nothing here shares code with the wires that it is used to test, except the counter: a request is counted from its JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...codec import compact_json
from ...tokens import FRAMING, MEDIA_TOKENS, Counter
from .script import Reply

__all__ = ["Piece", "PrefixCache", "output_tokens", "request_pieces"]

_MEDIA = frozenset({"image", "image_url", "input_image", "document", "input_file", "file", "input_audio", "audio"})
_OPAQUE = frozenset({"redacted_thinking", "compaction", "compaction_summary", "compaction_trigger", "item_reference"})
_DEFINITION = "tool definition"
# What a model never sees of an item or block: marks for the cache, ids and states of the Responses API.
_UNSEEN = frozenset({"cache_control", "status", "encrypted_content", "signature"})


@dataclass(frozen=True)
class Piece:
    """One tool, system block or message, in the order in which a model reads them."""

    identity: str
    """What must be equal for a cache to serve it whole."""
    head: str
    """Role or type: without the same head nothing of the piece is served."""
    text: str
    """The readable text, of which a cache serves the common beginning."""
    tokens: int


def request_pieces(body: Mapping[str, Any], counter: Counter) -> list[Piece]:
    """The parts of a request in rendered order: tools, system prompt, messages (real-clients.md: bytes of the body have another order)."""
    pieces = [_piece(_DEFINITION, tool, counter, 0) for tool in _list(body.get("tools"))]
    for key in ("system", "instructions"):
        system = body.get(key)
        blocks = system if isinstance(system, list) else [system] if system else []
        pieces += [_piece("system", block, counter, 0) for block in blocks]
    messages = body.get("messages", body.get("input"))
    if isinstance(messages, str):
        messages = [{"role": "user", "content": messages}]
    return pieces + [_piece(_head(message), message, counter, FRAMING) for message in _list(messages)]


def output_tokens(reply: Reply, counter: Counter) -> int:
    """Tokens of a scripted reply."""
    calls = sum(counter.count(call.name) + counter.count(call.text) for call in reply.calls)
    return counter.count(reply.reasoning) + counter.count(reply.text) + calls


class PrefixCache:
    """All requests so far as a tree of pieces, so that the longest common prefix with any of them is found in one walk."""

    def __init__(self) -> None:
        self._root = _Node()

    def serve(self, pieces: Iterable[Piece], counter: Counter) -> int:
        """Tokens of `pieces` that an earlier request already began with; the request is remembered for later ones.

        Equal pieces count whole; of the first different one the common beginning of its text counts, rounded down.
        """
        node = self._root
        served = 0
        hit = True
        for piece in pieces:
            below = node.below.get(piece.identity)
            if hit and below is None:
                hit = False
                served += _common(piece, node, counter)
            elif hit:
                served += piece.tokens
            if below is None:
                below = node.below[piece.identity] = _Node(piece)
            node = below
        return served


@dataclass
class _Node:
    piece: Piece | None = None
    below: dict[str, _Node] = field(default_factory=dict)


def _common(piece: Piece, node: _Node, counter: Counter) -> int:
    """Tokens of the longest beginning that `piece` has in common with a piece that once stood at its place."""
    longest = ""
    for other in node.below.values():
        if other.piece is not None and other.piece.head == piece.head:
            longest = max(longest, _beginning(piece.text, other.piece.text), key=len)
    return max(0, min(counter.count(longest), piece.tokens) - 1)


def _beginning(one: str, other: str) -> str:
    """The longest common beginning, found by halving (the texts may be megabytes)."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[low:middle] == other[low:middle] else (low, middle - 1)
    return one[:low]


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _head(message: Any) -> str:
    return str(message.get("role") or message.get("type")) if isinstance(message, dict) else ""


def _piece(head: str, value: Any, counter: Counter, framing: int) -> Piece:
    seen = compact_json(_seen(value, top=True))
    texts: list[str] = []
    flat = 0
    if head == _DEFINITION:
        # A tool's definition is read by the model as the JSON that it is.
        texts.append(seen)
    else:
        flat = _leaves(value, texts)
    return Piece(seen, head, "\n".join(texts), framing + flat + sum(map(counter.count, texts)))


def _seen(value: Any, *, top: bool = False) -> Any:
    """`value` without what no model sees."""
    if isinstance(value, dict):
        # Ids of Responses items are the server's own; ids of calls, one level down or under other names, are not rendered either.
        skipped = _UNSEEN | {"id"} if top else _UNSEEN
        return {key: _seen(inner) for key, inner in value.items() if key not in skipped}
    if isinstance(value, list):
        return [_seen(inner) for inner in value]
    return value


def _leaves(value: Any, texts: list[str]) -> int:
    """Collects the texts that cost tokens; returns the tokens of what costs a flat charge (futureos.md 1.3)."""
    if isinstance(value, str):
        texts.append(value)
        return 0
    if isinstance(value, list):
        return sum(_leaves(inner, texts) for inner in value)
    if not isinstance(value, dict):
        return 0
    kind = value.get("type")
    if kind in _MEDIA:
        return MEDIA_TOKENS
    if kind in _OPAQUE:
        return 0
    flat = 0
    for key in (
        "name",
        "content",
        "text",
        "thinking",
        "reasoning_content",
        "refusal",
        "summary",
        "arguments",
        "output",
    ):
        flat += _leaves(value.get(key), texts)
    given = value.get("input")
    if given is not None:
        texts.append(given if isinstance(given, str) else compact_json(given))
    for call in _list(value.get("tool_calls")):
        if isinstance(call, dict):
            flat += _leaves(call.get("function") or call.get("custom"), texts)
    return flat
