"""What the runtime keeps in the journal for one session beside checkpoints: attachments, and what was learned about the model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from sqlalchemy import func, select
from sqlalchemy.dialects.sqlite import insert

from ..codec import decode_as, encode
from ..journal import Journal
from ..journal.runtime_tables import attachments, checkpoints, learned
from ..journal.schema import entries
from ..journal.sessions import session_row
from .requests import Attachment

__all__ = ["SessionStore", "Standing"]


class Standing(NamedTuple):
    """How a session stands in the journal."""

    leaf: str | None
    """Id of its newest entry."""
    token: tuple[Any, ...]
    """Another one whenever a checkpoint was committed or undone."""
    attachments: int
    undone: bool
    """The checkpoint that was committed last was taken back, by whichever process, and none was committed since."""


class SessionStore:
    """Reads and writes the runtime's own rows of one session. Safe to use from several threads and processes."""

    def __init__(self, journal: Journal, session_id: str) -> None:
        self._journal = journal
        self._session = session_id

    def state(self, checkpoint_id: str) -> Standing:
        """What may have changed by another object's doing; attachments are counted under this checkpoint."""
        with self._journal.read() as connection:
            session = session_row(connection, self._session)
            leaf = connection.scalar(select(entries.c.id).where(entries.c.n == session.leaf))
            token = connection.execute(
                select(func.max(checkpoints.c.n), func.count(checkpoints.c.undone_ms)).where(
                    checkpoints.c.session == session.n
                )
            ).one()
            newest = connection.scalar(select(checkpoints.c.undone_ms).where(checkpoints.c.n == token[0]))
            under = (attachments.c.session == session.n) & (attachments.c.checkpoint == checkpoint_id)
            count = connection.scalar(select(func.count()).select_from(attachments).where(under))
            return Standing(leaf, tuple(token), count or 0, newest is not None)

    def attachments(self, checkpoint_id: str) -> tuple[Attachment, ...]:
        """The attachments made under a checkpoint ('' for none), in the order in which they were first sent."""
        with self._journal.read() as connection:
            session = session_row(connection, self._session)
            rows = connection.execute(
                select(attachments.c.payload)
                .where(attachments.c.session == session.n, attachments.c.checkpoint == checkpoint_id)
                .order_by(attachments.c.n)
            )
            return tuple(decode_as(row.payload, Attachment) for row in rows)

    def attach(self, checkpoint_id: str, new: Iterable[Attachment]) -> None:
        """Store attachments before the request that shows them is sent; one that is there already stays as it is."""
        with self._journal.write() as connection:
            session = session_row(connection, self._session)
            for item in new:
                values = {
                    "session": session.n, "checkpoint": checkpoint_id, "entry": item.entry, "kind": item.kind,
                    "call_id": item.call_id or "", "payload": encode(item),
                }  # fmt: skip
                connection.execute(insert(attachments).values(values).on_conflict_do_nothing())

    def learned(self) -> dict[str, int]:
        """What was learned, by name.

        `window/CONFIGURED/MODEL` is the limit that a provider named for this model, `last_window` the window of the model that served the last
        step, `fixed` what system prompt and tools took in the last step that usage is known of.
        """
        with self._journal.read() as connection:
            session = session_row(connection, self._session)
            rows = connection.execute(select(learned.c.name, learned.c.value).where(learned.c.session == session.n))
            return {str(name): int(value) for name, value in rows}

    def learn(self, numbers: Mapping[str, int]) -> None:
        """Remember numbers under names."""
        with self._journal.write() as connection:
            session = session_row(connection, self._session)
            for name, value in numbers.items():
                values = {"session": session.n, "name": name, "value": value}
                statement = insert(learned).values(values)
                connection.execute(
                    statement.on_conflict_do_update(index_elements=["session", "name"], set_={"value": value})
                )
