"""What the gateway keeps in the journal: entries with what matching needs of them, revisions, and checkpoints as they are sent.

Everything lies in tables that the journal has anyway (derived rows by entry, attachments by session), so that deleting a session deletes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import msgspec
from sqlalchemy import delete, select
from sqlalchemy.dialects.sqlite import insert

from ..checkpoint import Checkpoint, CheckpointStore
from ..errors import SessionNotFoundError
from ..journal import Journal
from ..journal.append import append
from ..journal.features import put_features
from ..journal.rows import packed, unpacked
from ..journal.runtime_tables import attachments
from ..journal.schema import sessions
from ..journal.sessions import session_row
from ..session.store import SessionStore
from ..strategies import is_current
from ..strategies.contract import Strategy
from ..transcript import Entry, Status, Usage
from .paths import Front, Path, root_prefix
from .request import Facts, read_entry
from .wires import GATEWAY_WIRES

__all__ = ["EXTRACTOR", "FORMAT", "GatewayStore", "Recording"]

FORMAT = "gateway"
"""Where the entries of such a session come from, as the list of sessions shows it."""

EXTRACTOR = "gateway-match/1"
_MOST_LOADED = 32
_MOST_REVISIONS = 8
_RENDERED = "rendered"
_REVISION = "revision"


class _Row(msgspec.Struct, frozen=True, array_like=True):
    """The facts of one message, as they are stored with its entry."""

    position: int
    exact: bytes
    key: bytes
    content: bytes
    role: str
    calls: tuple[str, ...]
    results: tuple[str, ...]
    cost: int
    head: bool
    opaque: bool


class _Rendered(msgspec.Struct, frozen=True, array_like=True):
    messages: tuple[bytes, ...]
    cost: int


@dataclass(frozen=True)
class Recording:
    """What one request adds to a path."""

    path: Path
    model: str
    start: int
    """Position of the first new message."""
    raws: Sequence[bytes]
    facts: Sequence[Facts]
    entries: Sequence[str]
    parent: str | None
    created: bool = False
    forked_at: tuple[str, str] | None = None
    replies: Mapping[int, tuple[Usage | None, Status]] = field(default_factory=dict)
    """By position among the new messages: what is known of the reply that it is."""
    revisions: Sequence[tuple[str, bytes, bytes]] = ()
    """Entry, exact hash and bytes of messages that came in another form than before."""


class GatewayStore:
    """Reads and writes the gateway's part of a journal. Synchronous; used from threads."""

    def __init__(self, journal: Journal, strategy: Strategy) -> None:
        self.journal = journal
        self._strategy = strategy
        self._wires = {wire.name: wire for wire in GATEWAY_WIRES}

    def record(self, new: Recording) -> None:
        """Store what a request showed for the first time, in one transaction."""
        path = new.path
        if new.created and new.forked_at is None:
            self.journal.create(
                path.session, format=FORMAT, tenant=path.tenant, model=new.model or None, extra=_extra(path)
            )
        elif new.forked_at is not None:
            self.journal.fork(new.forked_at[0], new.forked_at[1], path.session)
            self.journal.update(path.session, extra=_extra(path))
        entries = self._entries(new)
        rows = {
            entry_id: msgspec.msgpack.encode(_Row(new.start + number, *facts))
            for number, (entry_id, facts) in enumerate(zip(new.entries, new.facts, strict=True))
        }
        extractor = self._strategy.extractor
        features = {entry.id: self._strategy.features(entry) for entry in entries} if extractor else {}
        with self.journal.write() as connection:
            session = session_row(connection, path.session)
            if entries:
                append(connection, session, entries)
                put_features(connection, EXTRACTOR, rows)
                if extractor:
                    put_features(connection, extractor, features)
            for entry_id, exact, raw in new.revisions:
                values = {
                    "session": session.n, "checkpoint": f"{FORMAT}/{_REVISION}", "entry": entry_id, "kind": _REVISION,
                    "call_id": exact.hex(), "payload": packed(raw),
                }  # fmt: skip
                connection.execute(insert(attachments).values(values).on_conflict_do_nothing())
                self._keep_few(connection, session.n, entry_id)

    def _keep_few(self, connection: object, session: int, entry_id: str) -> None:
        """A client that marks its newest message makes a revision of it with each request: the newest few tell what it does."""
        of_entry = (
            select(attachments.c.n)
            .where(attachments.c.session == session, attachments.c.kind == _REVISION, attachments.c.entry == entry_id)
            .order_by(attachments.c.n.desc())
            .offset(_MOST_REVISIONS)
        )
        connection.execute(delete(attachments).where(attachments.c.n.in_(of_entry)))  # type: ignore[attr-defined]

    def _entries(self, new: Recording) -> list[Entry]:
        wire = self._wires[new.path.wire]
        made: list[Entry] = []
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        parent = new.parent
        for number, (entry_id, raw) in enumerate(zip(new.entries, new.raws, strict=True)):
            _, entry = read_entry(wire, raw)
            usage, status = new.replies.get(number, (None, entry.status))
            made.append(
                msgspec.structs.replace(
                    entry,
                    id=entry_id,
                    parent=parent,
                    sequence=0,
                    time=now,
                    model=new.model or None if entry.role == "assistant" else None,
                    usage=usage,
                    status=status,
                )
            )
            parent = entry_id
        return made

    def revisions(self, session: str, entry_id: str) -> list[bytes]:
        """The other forms in which a message came, oldest first, each as its very bytes."""
        with self.journal.read() as connection:
            row = session_row(connection, session)
            chosen = (
                select(attachments.c.payload)
                .where(attachments.c.session == row.n, attachments.c.kind == _REVISION, attachments.c.entry == entry_id)
                .order_by(attachments.c.n)
            )
            return [unpacked(payload) for payload in connection.scalars(chosen)]

    def load(self, tenant: str, root: bytes) -> list[Path]:
        """The paths of a tenant that begin with this message, the one that changed last first."""
        prefix = root_prefix(tenant, root)
        with self.journal.read() as connection:
            chosen = (
                select(sessions.c.id)
                .where(sessions.c.id >= prefix, sessions.c.id < prefix + "\x7f", sessions.c.tenant == tenant)
                .order_by(sessions.c.changed_ms.desc())
                .limit(_MOST_LOADED)
            )
            ids = [str(found) for found in connection.scalars(chosen)]
        loaded = (self._path(session) for session in ids)
        return [path for path in loaded if path is not None]

    def _path(self, session: str) -> Path | None:
        try:
            extra = self.journal.meta(session).extra or {}
            stored = self.journal.features(session, EXTRACTOR)
        except SessionNotFoundError:
            return None
        rows = sorted(
            ((msgspec.msgpack.decode(data, type=_Row), entry_id) for entry_id, data in stored.items()),
            key=lambda found: found[0].position,
        )
        path = Path(
            session, self.journal.session(session).tenant, str(extra.get("scope", "")), str(extra.get("wire", ""))
        )
        for number, (row, entry_id) in enumerate(rows):
            if row.position != number:
                break
            path.facts.append(Facts(*(getattr(row, name) for name in Facts._fields)))
            path.entries.append(entry_id)
        if not path.facts or path.wire not in self._wires:
            return None
        path.learned = SessionStore(self.journal, session).learned()
        checkpoint = CheckpointStore(self.journal, session).newest(is_current)
        if checkpoint is not None and checkpoint.plan.cutoff in path.entries:
            covered = path.entries.index(checkpoint.plan.cutoff) + 1
            rendered = self.rendered(checkpoint)
            if rendered is not None:
                path.fronts.append(Front(checkpoint, covered, *rendered))
        return path

    def keep_rendered(self, session: str, checkpoint: Checkpoint, messages: Sequence[bytes], cost: int) -> None:
        """Store a checkpoint's messages as they are sent from now on."""
        with self.journal.write() as connection:
            row = session_row(connection, session)
            values = {
                "session": row.n, "checkpoint": f"{FORMAT}/{checkpoint.id}", "entry": checkpoint.plan.cutoff, "kind": _RENDERED,
                "call_id": "", "payload": packed(msgspec.msgpack.encode(_Rendered(tuple(messages), cost))),
            }  # fmt: skip
            connection.execute(insert(attachments).values(values).on_conflict_do_nothing())

    def rendered(self, checkpoint: Checkpoint) -> tuple[tuple[bytes, ...], int] | None:
        """The messages of a checkpoint as they were first sent, and what they cost; None where they were not stored."""
        with self.journal.read() as connection:
            chosen = select(attachments.c.payload).where(
                attachments.c.checkpoint == f"{FORMAT}/{checkpoint.id}", attachments.c.kind == _RENDERED
            )
            payload = connection.scalars(chosen).first()
        if payload is None:
            return None
        found = msgspec.msgpack.decode(unpacked(payload), type=_Rendered)
        return found.messages, found.cost


def _extra(path: Path) -> dict[str, str]:
    return {"scope": path.scope, "wire": path.wire}
