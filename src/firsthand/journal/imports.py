"""Taking in what a reader found, again and again, each time only what is new.

An entry is known when the session has one of that id with the same content behind the same parent; where it was read from (`source`) and
its position do not count. One that changed since (the last response of a live file grew, say) is stored as a revision `<id>.r2` beside the
old one, and whatever follows it follows the revision: entries that stood behind the old version are stored again behind the new one, so that
the path shows what the file shows. Old bytes stay.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from typing import Any

import msgspec
from sqlalchemy import Connection, Row, insert, select

from ..codec import wire_safe
from ..errors import EntryNotFoundError, JournalError
from ..formats.files.firsthand import EXTRAS
from ..transcript import Entry, Transcript
from .append import Appender, Placed, placed
from .markers import add_markers
from .schema import adopted, pins, sessions
from .sessions import Meta, add_session, meta_of, set_meta
from .versions import Version, Versions

__all__ = ["Imported", "import_transcript"]

_LONGEST_STEM = 248


@dataclass(frozen=True)
class Imported:
    """What an import did."""

    session: str
    created: bool
    """Whether the journal did not have the session before."""
    new: int
    """Entries that the session did not have."""
    known: int
    """Entries that it had already, the same."""
    revised: tuple[str, ...]
    """Ids, as the file has them, of entries whose content had changed; stored as revisions."""
    moved: int
    """Entries stored again, unchanged, because they now stand behind another entry or version."""
    markers: int
    """Markers that were new or had changed."""
    damaged: int
    """Parts of the file that could not be read."""
    warnings: tuple[str, ...]

    @property
    def changed(self) -> bool:
        """Whether anything of the session's history was stored."""
        return self.created or bool(self.new or self.revised or self.moved or self.markers)


def import_transcript(connection: Connection, transcript: Transcript, *, tenant: str) -> Imported:
    """Store what is new in `transcript`, inside the write transaction of `connection`.

    Raises:
        EntryNotFoundError: the leaf or a parent names no entry, or a parent stands behind its child.
        JournalError: two entries have one id, or an id or a value cannot be stored.
    """
    extra = dict(transcript.extra or {})
    ours = extra.pop(EXTRAS, None)
    ours = ours if isinstance(ours, dict) else {}
    meta = _meta(transcript, extra or None)
    session = connection.execute(select(sessions).where(sessions.c.id == wire_safe(transcript.id))).one_or_none()
    created = session is None
    if session is None:
        session = add_session(connection, transcript.id, format_name=transcript.format, tenant=tenant, meta=meta)
    else:
        set_meta(connection, session.n, _merged(meta_of(session), meta))
    run = _Import(connection, session, transcript, revises=_strings(ours.get("revisions")))
    run.store_entries()
    keys = {entry_id: place.n for entry_id, place in run.here.items()}
    names = {entry_id: place.id for entry_id, place in run.here.items() if place.id != entry_id}
    markers = add_markers(connection, session.n, transcript.markers, keys, names)
    _pin(connection, session.n, [keys[pin] for pin in _list(ours.get("pins")) if pin in keys])
    return Imported(
        session=session.id,
        created=created,
        new=run.new,
        known=run.known,
        revised=tuple(run.revised),
        moved=run.moved,
        markers=markers,
        damaged=len(transcript.damaged),
        warnings=transcript.warnings,
    )


@dataclass
class _Import:
    connection: Connection
    session: Row[Any]
    transcript: Transcript
    revises: dict[str, str]
    here: dict[str, Placed] = field(default_factory=dict)
    """The stored version that each entry of the file is, by the id in the file."""
    known: int = 0
    new: int = 0
    moved: int = 0
    revised: list[str] = field(default_factory=list)
    adopted: list[int] = field(default_factory=list)

    def store_entries(self) -> None:
        first_time = self.session.next_sequence == 0 and self.session.base is None
        self._keep_sequences = first_time
        self._versions = Versions(self.connection)
        if not first_time:
            self._versions.load_session(self.session)
        self._versions.load_elsewhere(entry.id for entry in self.transcript.entries)
        self._appender = Appender(self.connection, self.session)
        for entry in self.transcript.entries:
            if entry.id in self.here:
                raise JournalError(
                    f"session {self.transcript.id!r} holds two entries with the id {entry.id!r}; nothing was stored"
                )
            self.here[entry.id] = self._take(entry)
        if self.adopted:
            self.connection.execute(insert(adopted), [{"session": self.session.n, "entry": n} for n in self.adopted])
        self._appender.finish(**self._leaf())

    def _take(self, entry: Entry) -> Placed:
        parent = self._parent(entry)
        versions = self._versions.of(entry.id)
        if not versions:
            self.new += 1
            return self._appender.put(self._final(entry, entry.id, parent), parent, revises=self.revises.get(entry.id))
        known = self._versions.find(entry, parent)
        if known is None:
            return self._revision(entry, versions, parent)
        if known.foreign:
            self.new += 1
            self.adopted.append(known.place.n)
            self._appender.adopt(known.role, known.counts, known.place.sequence)
        else:
            self.known += 1
        return known.place

    def _parent(self, entry: Entry) -> Placed | None:
        if entry.parent is None:
            return None
        parent = self.here.get(entry.parent)
        if parent is None:
            raise EntryNotFoundError(
                f"entry {entry.id!r} of session {self.transcript.id!r} names the parent {entry.parent!r}, which does not stand before it; "
                "nothing was stored"
            )
        return parent

    def _revision(self, entry: Entry, versions: list[Version], parent: Placed | None) -> Placed:
        ours = [version for version in versions if not version.foreign]
        if not ours:
            # Another session's entry has the id, so this one is new here, under a name of its own.
            self.new += 1
        else:
            self._appender.supersede(ours[-1].role, ours[-1].counts)
            if any(self._versions.same_content(entry, version) for version in ours):
                self.moved += 1
            else:
                self.revised.append(entry.id)
        name = self._free_name(entry.id, len(versions) + 1)
        return self._appender.put(self._final(entry, name, parent), parent, revises=entry.id)

    def _final(self, entry: Entry, entry_id: str, parent: Placed | None) -> Entry:
        """The entry as it is stored: under its parent's stored id, and with a sequence that rises where the session has entries."""
        parent_id = None if parent is None else parent.id
        sequence = entry.sequence if self._keep_sequences else max(entry.sequence, self._appender.sequence)
        if (entry.id, entry.parent, entry.sequence) == (entry_id, parent_id, sequence):
            return entry
        return msgspec.structs.replace(entry, id=entry_id, parent=parent_id, sequence=sequence)

    def _free_name(self, entry_id: str, first: int) -> str:
        names = (f"{entry_id[:_LONGEST_STEM]}.r{number}" for number in count(first))
        name = next(name for name in names if name not in self._names and placed(self.connection, name) is None)
        self._names.add(name)
        return name

    @cached_property
    def _names(self) -> set[str]:
        """The ids of the file and those given to revisions in this run."""
        return {entry.id for entry in self.transcript.entries}

    def _leaf(self) -> dict[str, int | None]:
        """The session's new leaf: that of the file, unless the file says what it said before and the session has gone on since."""
        named = self.transcript.leaf
        if named is not None and named not in self.here:
            raise EntryNotFoundError(
                f"session {self.transcript.id!r} names the leaf {named!r}, but has no such entry; nothing was stored"
            )
        leaf = None if named is None else self.here[named].n
        if leaf == self.session.imported_leaf and not (self.new or self.revised or self.moved):
            return {}
        return {"leaf": leaf, "imported_leaf": leaf}


def _meta(transcript: Transcript, extra: dict[str, Any] | None) -> Meta:
    values = {name: getattr(transcript, name) for name in Meta.__struct_fields__}
    return Meta(**{**values, "extra": extra})


def _merged(old: Meta, new: Meta) -> Meta:
    """What the newer file says, and what only the older one said."""
    kept = {name: getattr(old, name) for name in Meta.__struct_fields__ if getattr(new, name) is None}
    return msgspec.structs.replace(new, **kept)


def _pin(connection: Connection, session: int, keys: list[int]) -> None:
    there = set(connection.scalars(select(pins.c.entry).where(pins.c.session == session)))
    rows = [{"session": session, "entry": key} for key in sorted(set(keys) - there)]
    if rows:
        connection.execute(insert(pins), rows)


def _list(value: Any) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, (list, tuple)) else []


def _strings(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        return {}
    return {key: item for key, item in value.items() if isinstance(key, str) and isinstance(item, str)}
