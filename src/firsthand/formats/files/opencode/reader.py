"""Sessions of OpenCode, in each of the layouts that it has used.

- the database `opencode.db` (1.18 and later), by its path or as bytes;
- the storage tree `session/`, `message/`, `part/` (before that), by the path of a folder or of one session's file in it;
- an export (`opencode export`), the list of messages that its server gives, and dumps of such objects in a row.

The same session gives the same entries from each of them (IM-11). Not taken, because the model never saw them: the display copies and
whole files in `metadata` of tool parts, the file changes in `summary` of messages and sessions, snapshots and patches, project and
share objects, and texts that are marked `ignored`. Attached text files and folders are listed in `Entry.extra["files"]`; their content
stands in the synthetic texts beside them. A call that is still running has no result yet: read again later, its message gives the same
ids, and then the entry with the results.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import msgspec

from ....errors import EmptySessionError, FormatError
from ....transcript import Transcript, chained
from ..base import Input
from ..records import iso_time, record_of, string_of
from .entries import FORMAT, session_parts
from .records import Records, add_document, add_tree, tree_roots
from .sqlite import SQLITE_MAGIC, add_database, is_opencode_database

__all__ = ["OpenCodeReader"]

_ID = re.compile(r'(?<!\\)"(?:id|sessionID|messageID)"\s*:\s*"(?:ses|msg|prt)_\w')


@dataclass(frozen=True)
class OpenCodeReader:
    """Reads OpenCode's database, storage tree, exports and dumps.

    The database and the tree can hold thousands of sessions; with `session` set, only that one is read.
    """

    session: str | None = None

    name = FORMAT
    title = "OpenCode"

    def sniff(self, source: Input) -> bool:
        """Whether it is one of the layouts, by ids that start with `ses_`, `msg_` or `prt_`, by tables, or by folders."""
        if source.data.startswith(SQLITE_MAGIC):
            return is_opencode_database(source.path, source.data)
        if source.path is not None and source.path.is_dir():
            return bool(tree_roots(source.path) or _databases(source.path))
        return bool(_ID.search(source.head))

    def read(self, source: Input) -> list[Transcript]:
        """All sessions, oldest first, each with its sub-agents behind it.

        Raises:
            EmptySessionError: none of them has an entry.
            FormatError: the database cannot be read, or there is no session of the id that was asked for.
        """
        records = Records(only=self.session)
        path = source.path
        if source.data.startswith(SQLITE_MAGIC):
            add_database(records, path, source.data)
        elif path is not None and path.is_dir():
            # After an update both are there; the database is the newer one, and what comes later counts.
            for tree in tree_roots(path):
                add_tree(records, tree)
            for database in _databases(path):
                add_database(records, database)
        elif path is not None and (root := _root_of(path)) is not None:
            records.only = path.stem
            add_tree(records, root)
        else:
            add_document(records, source.data)
        transcripts = [t for session in records.session_ids() if (t := _transcript(session, records)) is not None]
        if not transcripts:
            raise self._nothing(source, records)
        first = transcripts[0]
        transcripts[0] = msgspec.structs.replace(
            first,
            damaged=tuple(records.damaged),
            warnings=(*first.warnings, *records.tally.warnings()),
            extra=records.tally.extra(),
        )
        return transcripts

    def _nothing(self, source: Input, records: Records) -> FormatError:
        if self.session is not None and not records.damaged:
            return FormatError(f"{source.name} holds no entry of the OpenCode session {self.session!r}")
        for session in records.sessions:
            records.tally.left_out["session"] += 1
            records.tally.notes.append(session)
        error: EmptySessionError = records.tally.empty(source, self.title, records.damaged)
        return error


def _databases(path: Path) -> list[Path]:
    return sorted(file for file in path.glob("opencode*.db") if file.is_file())


def _root_of(path: Path) -> Path | None:
    """The storage tree that a session's own file lies in: `session/<project>/<id>.json`, or `session/info/<id>.json`."""
    if not re.fullmatch(r"ses_\w+\.json", path.name):
        return None
    return next((root for root in (path.parents[1], *path.parents[2:3]) if (root / "message").is_dir()), None)


def _transcript(session: str, records: Records) -> Transcript | None:
    made = session_parts(session, records)
    if not made.entries:
        if session in records.messages:
            records.tally.notes.append(f"{session}: {len(records.messages[session]):,} message(s), no entry")
        return None
    info = records.sessions.get(session, {})
    entries = chained(made.entries)
    leaf = entries[-1].id
    # Messages from here on were taken back; the client deletes them at the next prompt (opencode.md 2.13).
    reverted = string_of(record_of(info.get("revert")).get("messageID"))
    if reverted in made.by_message:
        names = list(made.by_message)
        kept = [entry for name in names[: names.index(reverted)] for entry in made.by_message[name]]
        leaf = kept[-1] if kept else ""
    return Transcript(
        id=session,
        format=FORMAT,
        entries=entries,
        leaf=leaf or None,
        markers=tuple(made.markers),
        title=string_of(info.get("title")),
        cwd=string_of(info.get("directory")),
        model=made.model,
        client=string_of(info.get("version")),
        time=iso_time(record_of(info.get("time")).get("created")) or entries[0].time,
        system=made.system,
        parent_session=string_of(info.get("parentID")),
        warnings=tuple(made.notes),
    )
