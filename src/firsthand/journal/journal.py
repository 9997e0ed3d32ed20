"""The journal: an append-only store of sessions. This module is its face; each job behind it has a module of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec
from sqlalchemy import delete
from sqlalchemy.dialects.sqlite import insert

from ..errors import ConfigError
from ..transcript import Entry, Transcript, View
from . import append as appending
from . import fork as forking
from . import imports, reading, sessions
from .export import export_lines
from .features import Rows, StoredFeatures, forget_features, get_features, lacking, put_features
from .schema import pins
from .searching import Searching
from .sessions import LOCAL_TENANT, Meta, SessionInfo, session_row
from .tree import entries_at
from .upkeep import Upkeep

__all__ = ["Journal"]

_CHUNK = 500
_FILTERS = frozenset({"tenant", "format", "cwd", "model", "parent_session", "forked_from"})


class Journal(Searching, Upkeep):
    """The durable originals of many sessions, in one SQLite file. Make one with `Journal.open`.

    * What was appended is never changed, and comes back byte for byte or as an error that names the damage.
    * Each append and each import is one transaction: a process that dies leaves all of it or nothing.
    * Several threads and processes may use one journal; writers take turns.
    * A session is a path in a tree of entries; a fork shares what came before it.
    """

    # Sessions

    def create(
        self,
        session_id: str,
        *,
        format: str = "firsthand",  # noqa: A002 - the name it has in a transcript
        tenant: str = LOCAL_TENANT,
        **meta: Any,
    ) -> SessionInfo:
        """Make an empty session.

        Args:
            session_id: 1 to 256 characters, unique in the journal.
            format: where its entries come from.
            tenant: whose it is.
            meta: fields of `Meta`: title, cwd, model, client, time, window, system, tools, parent_session, extra.

        Raises:
            SessionExistsError: the id is taken.
            ConfigError: a field that `Meta` does not have, or of another type.
        """
        with self.write() as connection:
            sessions.add_session(connection, session_id, format_name=format, tenant=tenant, meta=_meta(Meta(), meta))
            return sessions.describe(connection, session_id)

    def update(self, session_id: str, **meta: Any) -> SessionInfo:
        """Change what is known about a session; fields as in `create`. Its entries stay as they are.

        Raises:
            SessionNotFoundError: there is no such session.
            ConfigError: a field that `Meta` does not have, or of another type.
        """
        with self.write() as connection:
            row = session_row(connection, session_id)
            sessions.set_meta(connection, row.n, _meta(sessions.meta_of(row), meta))
            return sessions.describe(connection, session_id)

    def sessions(self, **wanted: str) -> list[SessionInfo]:
        """The sessions, the one that changed last first.

        Args:
            wanted: exact values of tenant, format, cwd, model, parent_session or forked_from.

        Raises:
            ConfigError: a filter of another name.
        """
        unknown = wanted.keys() - _FILTERS
        if unknown:
            raise ConfigError(
                f"sessions are not filtered by {', '.join(sorted(unknown))}; use {', '.join(sorted(_FILTERS))}"
            )
        with self.read() as connection:
            return sessions.infos(connection, wanted)

    def session(self, session_id: str) -> SessionInfo:
        """The session with this id, or the only one whose id starts with it.

        Raises:
            SessionNotFoundError: there is none, or several; lists the candidates.
        """
        with self.read() as connection:
            return sessions.describe(connection, sessions.resolved_id(connection, session_id))

    def meta(self, session_id: str) -> Meta:
        """All that is known about a session beside its entries: system prompt, tools, damage and warnings of its import.

        Raises:
            SessionNotFoundError: there is no such session.
        """
        with self.read() as connection:
            return sessions.meta_of(session_row(connection, session_id))

    # Writing

    def append(self, session_id: str, new: Iterable[Entry], *, features: Rows | None = None) -> list[Entry]:
        """Append entries, all or none, and return them as they are stored.

        An entry without a parent is put behind the one before it, the first one behind the session's leaf; a sequence that the session has
        reached already becomes the next free one. The last entry becomes the leaf.

        Args:
            session_id: the session.
            new: the entries.
            features: derived rows of them, stored in the same transaction.

        Raises:
            SessionNotFoundError: there is no such session.
            EntryNotFoundError: an entry names a parent that the session does not have.
            JournalError: an id is taken or cannot be stored.
            JournalBusyError: another process held the write lock for too long.
        """
        with self.write() as connection:
            stored = appending.append(connection, session_row(connection, session_id), new)
            if features is not None and features.data:
                put_features(connection, features.extractor, features.data)
            return stored

    def import_transcript(self, transcript: Transcript, *, tenant: str = LOCAL_TENANT) -> imports.Imported:
        """Take in what a reader found; of a session that is there already, only what is new.

        Raises:
            EntryNotFoundError: the leaf or a parent names no entry.
            JournalError: two entries have one id, or something cannot be stored.
            JournalBusyError: another process held the write lock for too long.
        """
        with self.write() as connection:
            return imports.import_transcript(connection, transcript, tenant=tenant)

    def import_transcripts(
        self, transcripts: Iterable[Transcript], *, tenant: str = LOCAL_TENANT
    ) -> list[imports.Imported]:
        """Take in all sessions of a file in one transaction: faster than one by one where there are many, and all or nothing.

        Raises:
            EntryNotFoundError: the leaf or a parent names no entry.
            JournalError: two entries have one id, or something cannot be stored.
            JournalBusyError: another process held the write lock for too long.
        """
        with self.write() as connection:
            return [imports.import_transcript(connection, transcript, tenant=tenant) for transcript in transcripts]

    def fork(self, session_id: str, at: str | None = None, new_id: str | None = None) -> str:
        """Make a session that shares the path of this one up to the entry `at` (its leaf when None); returns the new id.

        Raises:
            SessionNotFoundError: there is no such session.
            EntryNotFoundError: it has no entry `at`.
            SessionExistsError: `new_id` is taken.
        """
        with self.write() as connection:
            return forking.fork(connection, session_row(connection, session_id), at, new_id)

    def pin(self, session_id: str, entry_id: str) -> None:
        """Keep an entry whole in every projection of a session. Pinning twice is pinning once.

        Raises:
            SessionNotFoundError: there is no such session.
            EntryNotFoundError: it has no such entry.
        """
        with self.write() as connection:
            session, place = reading.place_in(connection, session_id, entry_id)
            connection.execute(insert(pins).values(session=session.n, entry=place.n).on_conflict_do_nothing())

    def unpin(self, session_id: str, entry_id: str) -> None:
        """Take a pin away; nothing happens where there is none.

        Raises:
            SessionNotFoundError: there is no such session.
            EntryNotFoundError: it has no such entry.
        """
        with self.write() as connection:
            session, place = reading.place_in(connection, session_id, entry_id)
            connection.execute(delete(pins).where(pins.c.session == session.n, pins.c.entry == place.n))

    def put_features(self, extractor: str, rows: Mapping[str, bytes]) -> int:
        """Store derived rows by entry id under a name that includes the extractor's version; returns how many were stored."""
        with self.write() as connection:
            return put_features(connection, extractor, rows)

    def forget_features(self, extractor: str) -> int:
        """Drop the rows of an extractor's version that nobody uses any more; returns how many."""
        with self.write() as connection:
            return forget_features(connection, extractor)

    # Reading

    def entry(self, entry_id: str) -> Entry:
        """One entry, as it was stored.

        Raises:
            EntryNotFoundError: the journal has none of that id.
            JournalDamagedError: its bytes do not match their hash.
        """
        with self.read() as connection:
            return reading.entry(connection, entry_id)

    def chain(self, entry_id: str) -> bytes:
        """The chain hash of an entry: equal exactly where its whole path is equal. 32 bytes.

        Raises:
            EntryNotFoundError: the journal has none of that id.
        """
        with self.read() as connection:
            return reading.placed_anywhere(connection, entry_id).chain_hash

    def entries(self, session_id: str, *, after: str | None = None, upto: str | None = None) -> Iterator[Entry]:
        """The entries of the active path, oldest first, read in pieces: memory does not grow with the session.

        Args:
            session_id: the session.
            after: only those behind this entry of the path.
            upto: the path to this entry of the session instead of its leaf.

        Raises:
            SessionNotFoundError: there is no such session.
            EntryNotFoundError: it has no entry `upto`, or none `after` on the path.
            JournalDamagedError: a payload does not match its hash; names the entry.
        """
        with self.read() as connection:
            _, keys = reading.path_of(connection, session_id, upto=upto, after=after)
        return self._in_pieces(keys)

    def view(self, session_id: str, upto: str | None = None, *, extractor: str | None = None) -> View:
        """The active path as a strategy sees it, with pins, markers and stored features.

        Args:
            session_id: the session.
            upto: the path to this entry of the session instead of its leaf.
            extractor: whose derived rows the view carries; they are read when the first one is wanted.

        Raises:
            SessionNotFoundError: there is no such session.
            EntryNotFoundError: it has no entry `upto`.
            JournalDamagedError: a payload does not match its hash; names the entry.
        """
        with self.read() as connection:
            found, keys = reading.view(connection, session_id, upto)
        if extractor is None:
            return found
        return replace(found, features=StoredFeatures(lambda: self._features(extractor, keys)))

    def features(self, session_id: str, extractor: str) -> dict[str, bytes]:
        """The derived rows of the active path, by entry id.

        Raises:
            SessionNotFoundError: there is no such session.
        """
        with self.read() as connection:
            _, keys = reading.path_of(connection, session_id)
            return get_features(connection, extractor, keys)

    def lacking_features(self, session_id: str, extractor: str) -> Iterator[Entry]:
        """The entries of the active path that have no derived row of this extractor, oldest first, read in pieces.

        Raises:
            SessionNotFoundError: there is no such session.
            JournalDamagedError: a payload does not match its hash; names the entry.
        """
        with self.read() as connection:
            _, keys = reading.path_of(connection, session_id)
            keys = lacking(connection, extractor, keys)
        return self._in_pieces(keys)

    def transcript(self, session_id: str) -> Transcript:
        """The whole session: all entries in order of arrival, those off the active path too, its markers and metadata.

        Raises:
            SessionNotFoundError: there is no such session.
            JournalDamagedError: a payload does not match its hash; names the entry.
        """
        with self.read() as connection:
            return reading.transcript(connection, session_id)

    def export(self, session_id: str) -> Iterator[bytes]:
        """The lines of an export: JSON, one object a line (docs/journal.md). Read in pieces, so that memory stays flat.

        Raises:
            SessionNotFoundError: there is no such session.
            JournalDamagedError: a payload does not match its hash; names the entry.
        """
        with self.read() as connection:
            parts = reading.export_parts(connection, session_id)
        return export_lines(parts.head, self._in_pieces(parts.keys), parts.pins, parts.revisions)

    def _features(self, extractor: str, keys: Sequence[int]) -> dict[str, bytes]:
        with self.read() as connection:
            return get_features(connection, extractor, keys)

    def _in_pieces(self, keys: Sequence[int]) -> Iterator[Entry]:
        for start in range(0, len(keys), _CHUNK):
            with self.read() as connection:
                piece = list(entries_at(connection, keys[start : start + _CHUNK]))
            yield from piece


def _meta(old: Meta, changes: Mapping[str, Any]) -> Meta:
    """`old` with these fields changed, checked."""
    unknown = changes.keys() - set(Meta.__struct_fields__)
    if unknown:
        raise ConfigError(
            f"a session has no field {', '.join(sorted(unknown))}; it has {', '.join(Meta.__struct_fields__)}"
        )
    values = {name: getattr(old, name) for name in Meta.__struct_fields__}
    try:
        return msgspec.convert({**values, **changes}, Meta, from_attributes=True)
    except msgspec.ValidationError as error:
        raise ConfigError(f"a session cannot have that: {error}") from error
