"""The messages of a projected request: the checkpoint's stored bytes, then this request's own, with the seam made right.

Repairs apply only to what we render: a message of the client is taken as it came wherever its neighbours allow it (GW-01 to GW-08).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from ..codec import decode, encode
from ..formats.wire import wire_by_name
from ..formats.wire.cache_marks import with_few_marks
from ..formats.wire.placeholders import OPENING, relabelled
from ..projection.repair import repair
from ..session.requests import Attachment, attached
from ..tokens import Counter, total_cost
from ..transcript import Entry, Reasoning, Text
from .request import Facts, read_entry
from .scan import fields, items
from .wires.base import GatewayWire

__all__ = ["Piece", "joined", "rendered", "tail_pieces"]

_OPENING = {"role": "user", "content": [{"type": "text", "text": OPENING}]}


class Piece(NamedTuple):
    """One message to send."""

    raw: bytes
    role: str
    ours: bool
    """Rendered, so it may be merged with a neighbour."""


def rendered(wire: str, entries: Sequence[Entry], counter: Counter) -> tuple[tuple[bytes, ...], int]:
    """A checkpoint's front as messages of a wire, and its tokens.

    Thinking is dropped whole, since its provider may refuse it outside of its turn, and another model always does (GW-07, GW-08). Cache marks
    are dropped, so that those of the client stay within four (GW-11), and so are item ids, which would claim that a dropped reasoning item
    follows.
    """
    kept = [entry for entry in map(_without_reasoning, entries) if entry.blocks]
    kept = list(repair(kept).entries)
    if wire == "anthropic":
        kept = [_for_user(entry) if entry.role in ("system", "developer") else entry for entry in kept]
    messages = wire_by_name(wire).write(kept).messages
    if wire == "anthropic":
        messages, _ = with_few_marks(messages, None, 0)
    elif wire == "openai-responses":
        messages = [{name: value for name, value in item.items() if name not in ("id", "status")} for item in messages]
    return tuple(encode(message) for message in messages), total_cost(kept, counter)


def _without_reasoning(entry: Entry) -> Entry:
    if not any(isinstance(block, Reasoning) for block in entry.blocks):
        return entry
    return msgspec.structs.replace(
        entry, blocks=tuple(block for block in entry.blocks if not isinstance(block, Reasoning))
    )


def _for_user(entry: Entry) -> Entry:
    """An instruction of a list that has no place for one, as a text of the user that says who is speaking."""
    texts = tuple(
        Text(relabelled(entry.role, block.text), "injected") for block in entry.blocks if isinstance(block, Text)
    )
    return msgspec.structs.replace(entry, role="user", blocks=texts, wire=None, extra=None)


def tail_pieces(
    wire: GatewayWire,
    raws: Sequence[bytes],
    facts: Sequence[Facts],
    ids: Sequence[str],
    stored: Sequence[Attachment],
    cutoff: str,
) -> tuple[list[Piece], tuple[Attachment, ...]]:
    """The messages behind a checkpoint, and the attachments that sending them adds.

    Where all calls and results pair as they stand, which is nearly always, these are the bytes that came. A result whose call is covered
    becomes a labelled row of data, a call that nothing answers gets a placeholder; both stay so until the next checkpoint (GW-02).
    """
    if not stored and pairs_stand(facts, loose=wire.name == "openai-responses"):
        return [Piece(raw, one.role, False) for raw, one in zip(raws, facts, strict=True)], ()
    entries = [
        msgspec.structs.replace(read_entry(wire, raw)[1], id=entry_id) for raw, entry_id in zip(raws, ids, strict=True)
    ]
    shown, new = attached((), entries, stored, cutoff)
    own = {id(entry): number for number, entry in enumerate(entries)}
    pieces: list[Piece] = []
    run: list[Entry] = []
    for entry in repair(shown).entries:
        number = own.get(id(entry))
        if number is None:
            run.append(entry)
            continue
        pieces += _written(wire.name, run)
        run = []
        pieces.append(Piece(raws[number], facts[number].role, False))
    return [*pieces, *_written(wire.name, run)], new


def pairs_stand(facts: Sequence[Facts], *, loose: bool) -> bool:
    """Whether every call is answered right behind it and every result has its call.

    Args:
        facts: the messages.
        loose: whether other items of the assistant may stand between calls and results, as in the Responses API.
    """
    waiting: set[str] = set()
    for one in facts:
        if one.results:
            if not waiting.issuperset(one.results):
                return False
            waiting.difference_update(one.results)
        elif waiting and not (loose and one.role == "assistant"):
            return False
        if waiting.intersection(one.calls):
            return False
        waiting.update(one.calls)
    return not waiting


def _written(wire: str, run: Sequence[Entry]) -> Iterator[Piece]:
    if not run:
        return
    messages = wire_by_name(wire).write(run).messages
    if wire == "anthropic" and run[0].role == "assistant" and messages and messages[0]["role"] == "user":
        messages = messages[1:]
    for message in messages:
        role = message.get("role") or ("tool" if str(message.get("type", "")).endswith("_output") else "assistant")
        yield Piece(encode(message), role, True)


def joined(wire: str, pieces: Iterable[Piece]) -> list[bytes]:
    """The messages in an order of roles that the wire takes: only Anthropic's needs anything.

    It begins with the user (GW-05), and neighbours of one role become one message, as the API would read them (GW-06); but what we render of
    the assistant and what the client sent are kept apart, since thinking may only stand where it stood.
    """
    pieces = list(pieces)
    if wire != "anthropic":
        return [piece.raw for piece in pieces]
    out: list[Piece] = []
    for piece in pieces:
        role = "assistant" if piece.role == "assistant" else "user"
        piece = piece._replace(role=role)
        before = out[-1] if out else None
        if role == "assistant" and (before is None or (before.role == role and before.ours)):
            out.append(Piece(encode(_OPENING), "user", True))
        elif before is not None and before.role == role:
            out[-1] = Piece(_merged(role, before.raw, piece.raw), role, before.ours and piece.ours)
            continue
        out.append(piece)
    return [piece.raw for piece in out]


def _merged(role: str, first: bytes, second: bytes) -> bytes:
    """Two messages of one role as one; results stand in front, everything else keeps its order and its bytes."""
    blocks = [*_blocks(first), *_blocks(second)]
    blocks.sort(key=lambda block: not _is_result(block))
    return b'{"role":"' + role.encode() + b'","content":[' + b",".join(blocks) + b"]}"


def _blocks(raw: bytes) -> list[bytes]:
    span = fields(raw)["content"]
    content = span.of(raw)
    if content.startswith(b'"'):
        return [b'{"type":"text","text":' + content + b"}"] if content != b'""' else []
    return [found.of(content) for found in items(content)]


def _is_result(block: bytes) -> bool:
    value: Any = decode(block)
    return isinstance(value, dict) and value.get("type") == "tool_result"
