"""The paths that the gateway remembers, and finding the one that a request continues.

A path is the list of messages of one conversation, without the instructions that stand in front of them. It has a session of its own in the
journal; where a request goes another way than the path it shares its beginning with, a fork does (design.md 9, GW-18). Nothing of what the
messages say is kept in memory.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from hashlib import blake2b
from uuid import uuid4

from ..checkpoint import Checkpoint
from ..codec import decode
from ..transcript import Usage
from .keys import chain, exact_hash
from .request import Facts
from .stitch import Piece

__all__ = ["Anchor", "Front", "Match", "Path", "Paths", "Tenant", "root_of", "root_prefix"]

_SHARED_AT_LEAST = 3
"""So many messages must be equal before a path of another session key counts as the same conversation: openings are often alike."""


@dataclass(frozen=True)
class Front:
    """A checkpoint as it is sent: the same bytes with every request, until the next one."""

    checkpoint: Checkpoint
    covered: int
    """How many messages of the path it stands for."""
    messages: tuple[bytes, ...]
    """The rendered messages."""
    cost: int
    """Tokens of them."""

    @cached_property
    def pieces(self) -> tuple[Piece, ...]:
        """The rendered messages with their roles."""
        return tuple(Piece(raw, str(decode(raw).get("role", "assistant")), True) for raw in self.messages)


@dataclass(frozen=True)
class Anchor:
    """What the provider counted for the newest answered request."""

    sent: int
    """How many messages of the path the request showed or stood for."""
    usage: Usage
    fixed: int
    """Tokens of system prompt and tools at that time, by our counter."""
    under: str
    """Id of the checkpoint that was in force; empty for none."""


@dataclass(eq=False)
class Path:
    """One conversation."""

    session: str
    """Its session in the journal."""
    tenant: str
    scope: str
    """The client's session key; empty where it sends none."""
    wire: str
    facts: list[Facts] = field(default_factory=list)
    entries: list[str] = field(default_factory=list)
    """Ids of the entries, one for each message."""
    chains: list[bytes] = field(default_factory=list)
    fronts: list[Front] = field(default_factory=list)
    """The checkpoints of this path, oldest first."""
    anchor: Anchor | None = None
    pending: tuple[Anchor, bool] | None = None
    """What was counted for a reply that no request has shown yet, and whether it came to its end."""
    tried_at: int = 0
    """Occupancy at which a compaction last came to nothing."""
    refused: str = ""
    """Why it did."""
    tools: int = 0
    """How many tools the newest request offered."""
    learned: dict[str, int] = field(default_factory=dict)
    busy: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while a compaction is made."""
    stored: int = 0
    """How many messages were handed to the journal."""
    sent: int = 0
    """How many messages some request has sent on; only what is new is looked up for recall."""

    @property
    def weight(self) -> int:
        """What it takes in memory, in KB, about."""
        return len(self.facts) + sum(len(raw) for front in self.fronts for raw in front.messages) // 1_000

    def front(self, length: int) -> Front | None:
        """The newest checkpoint that covers no more than the first `length` messages."""
        return next((front for front in reversed(self.fronts) if front.covered <= length), None)


@dataclass(frozen=True)
class Match:
    """Where a request stands."""

    path: Path
    length: int
    """How many messages of the path it shows."""
    new: int
    """How many of them the path did not have before."""
    revised: tuple[int, ...]
    """Positions at which it shows another form of a message that the path has."""
    forked_at: tuple[str, str] | None = None
    """Session and entry that a new path leaves another one at."""
    created: bool = False


@dataclass(eq=False)
class Tenant:
    """All that belongs to one gateway key; nothing of it is looked at for another."""

    id: str
    paths: OrderedDict[str, Path] = field(default_factory=OrderedDict)
    """By session, the one used last at the end."""
    by_chain: dict[tuple[str, bytes], tuple[Path, int]] = field(default_factory=dict)
    """Path and length by session key and chain; under the key `*` by chain alone."""
    loaded: dict[bytes, asyncio.Task[None] | None] = field(default_factory=dict)
    """Roots whose sessions were looked for in the journal; the task while that goes on."""


ANY = "*"


class Paths:
    """The paths of all tenants, up to about `most` KB; what was not used for long is forgotten and read again from the journal.

    A message takes about 1 KB (hashes, ids, its places in the index), whatever it says; a checkpoint what it is sent as.
    """

    def __init__(self, most: int = 300_000) -> None:
        self._most = most
        self._count = 0
        self.tenants: dict[str, Tenant] = {}

    def tenant(self, tenant_id: str) -> Tenant:
        """The tenant of that id."""
        return self.tenants.setdefault(tenant_id, Tenant(tenant_id))

    def match(self, tenant: Tenant, scope: str, wire: str, facts: Sequence[Facts]) -> Match:
        """Find the longest path that the request continues, and add what is new to it.

        Never waits and is never interrupted, so two requests at a time cannot both add the same message.
        """
        chains = list(chain((one.key for one in facts), _start(wire)))
        path, shared = self._longest(tenant, scope, chains)
        if path is None:
            created = self._new(tenant, scope, wire, chains[0])
            self._extend(tenant, created, facts, chains)
            return Match(created, len(facts), len(facts), (), created=True)
        revised = tuple(n for n in range(shared) if path.facts[n].exact != facts[n].exact)
        for n in revised:
            # The newest form is what the next request most likely shows; the entry and its first form stay.
            path.facts[n] = facts[n]
        forked_at = None
        if path.scope != scope or shared < min(len(path.facts), len(facts)):
            forked_at = (path.session, path.entries[shared - 1])
            path = self._forked(tenant, scope, path, shared)
        new = len(facts) - shared
        self._extend(tenant, path, facts[shared:], chains[shared:])
        tenant.paths.move_to_end(path.session)
        return Match(path, len(facts), new, revised, forked_at, forked_at is not None)

    def look(self, tenant: Tenant, scope: str, wire: str, facts: Sequence[Facts]) -> tuple[Path, int] | None:
        """The longest path that a request begins with, and how many messages they share; adds nothing."""
        path, shared = self._longest(tenant, scope, list(chain((one.key for one in facts), _start(wire))))
        return None if path is None else (path, shared)

    def put(self, tenant: Tenant, path: Path) -> None:
        """Take in a path that was read from the journal."""
        if path.session in tenant.paths:
            return
        tenant.paths[path.session] = path
        path.chains = list(chain((one.key for one in path.facts), _start(path.wire)))
        path.stored = path.sent = len(path.facts)
        self._count += path.weight
        self._index(tenant, path, 0)

    def forget(self, tenant: Tenant, path: Path) -> None:
        """Drop a path from memory; the journal still has it."""
        if tenant.paths.pop(path.session, None) is None:
            return
        self._count -= path.weight
        for n, name in enumerate(path.chains):
            for scope in (path.scope, ANY):
                if tenant.by_chain.get((scope, name), (None, 0))[0] is path:
                    del tenant.by_chain[scope, name]
            if n == 0:
                tenant.loaded.pop(name, None)

    def add_front(self, path: Path, front: Front) -> None:
        """Take in a new checkpoint of a path. The one before it stays for a branch that leaves the path before the new one's end."""
        if any(known.checkpoint.id == front.checkpoint.id for known in path.fronts):
            return
        self._count -= path.weight
        path.fronts = [*path.fronts[-1:], front]
        self._count += path.weight
        self._forget_oldest(path)

    def _forget_oldest(self, used: Path) -> None:
        """Forgets paths, the one used longest ago first, of the tenant that has most; never the one in use."""
        while self._count > self._most:
            largest = max(self.tenants.values(), key=lambda tenant: len(tenant.by_chain))
            oldest = next(iter(largest.paths.values()), None)
            if oldest is None or oldest is used:
                break
            self.forget(largest, oldest)

    def _longest(self, tenant: Tenant, scope: str, chains: Sequence[bytes]) -> tuple[Path | None, int]:
        for name in reversed(chains):
            found = tenant.by_chain.get((scope, name))
            if found is not None:
                return found
        if scope:
            for name in reversed(chains[_SHARED_AT_LEAST - 1 :]):
                found = tenant.by_chain.get((ANY, name))
                if found is not None:
                    return found
        return None, 0

    def _new(self, tenant: Tenant, scope: str, wire: str, root: bytes) -> Path:
        path = Path(f"{root_prefix(tenant.id, root)}{uuid4().hex[:12]}", tenant.id, scope, wire)
        tenant.paths[path.session] = path
        return path

    def _forked(self, tenant: Tenant, scope: str, parent: Path, shared: int) -> Path:
        path = self._new(tenant, scope, parent.wire, parent.chains[0])
        path.facts = parent.facts[:shared]
        path.entries = parent.entries[:shared]
        path.chains = parent.chains[:shared]
        path.fronts = [front for front in parent.fronts if front.covered <= shared]
        path.learned = dict(parent.learned)
        path.stored = shared
        path.sent = min(parent.sent, shared)
        if parent.anchor is not None and parent.anchor.sent <= shared:
            path.anchor = parent.anchor
        if parent.pending is not None and parent.pending[0].sent <= shared:
            path.pending = parent.pending
        self._count += path.weight
        self._index(tenant, path, 0)
        return path

    def _extend(self, tenant: Tenant, path: Path, facts: Sequence[Facts], chains: Sequence[bytes]) -> None:
        start = len(path.facts)
        path.facts.extend(facts)
        path.entries.extend(f"g{uuid4().hex}" for _ in facts)
        path.chains.extend(chains)
        self._count += len(facts)
        self._index(tenant, path, start)
        self._forget_oldest(path)

    def _index(self, tenant: Tenant, path: Path, start: int) -> None:
        for n in range(start, len(path.chains)):
            # The longer path wins where both go the same way: it is the one that is continued.
            tenant.by_chain.setdefault((path.scope, path.chains[n]), (path, n + 1))
            tenant.by_chain.setdefault((ANY, path.chains[n]), (path, n + 1))


def root_prefix(tenant: str, root: bytes) -> str:
    """How the ids of all sessions of a tenant begin that have this first message, so that the journal finds them by their ids."""
    named = blake2b(tenant.encode() + b"\0" + root, digest_size=8, person=b"gateway").hexdigest()
    return f"gw-{named}-"


def root_of(wire: str, first: Facts) -> bytes:
    """The chain of a path's first message."""
    return next(chain((first.key,), _start(wire)))


@cache
def _start(wire: str) -> bytes:
    return exact_hash(wire.encode())
