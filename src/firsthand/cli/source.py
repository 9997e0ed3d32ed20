"""What a command works on: a session of a journal, or one of a file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from ..errors import ConfigError, FormatError, SessionNotFoundError
from ..transcript import Transcript, View
from .output import stderr

__all__ = ["JournalOption", "pick", "session_source", "tell_damage"]

JournalOption: TypeAlias = Annotated[
    Path | None,
    typer.Option("--journal", envvar="FIRSTHAND_JOURNAL", help="Journal file; default in your data directory."),
]


def session_source(
    source: str, journal: Path | None, session: str | None, format_name: str | None
) -> tuple[Transcript, View, str]:
    """The session that a user named, from a file when there is one of that name, else from the journal.

    Returns:
        The session, its active path as a view, and where the originals can be fetched from, in words.

    Raises:
        ConfigError: an option for files came with a session of the journal.
        FormatError: the file cannot be read, or holds several sessions and none was chosen.
        JournalError: the journal has no such session.
    """
    path = Path(source)
    if path.exists() or os.sep in source:
        from ..formats import read_sessions

        chosen = pick(read_sessions(path, format=format_name), session, source)
        tell_damage(chosen, path)
        return (
            chosen,
            chosen.view(),
            f"in {source}, which is unchanged; `firsthand import {source}` makes it searchable by entry id",
        )
    if session is not None or format_name is not None:
        raise ConfigError(f"--session and --format are for files, and there is no file {source!r}")
    from ..journal import Journal

    with Journal.open(journal) as store:
        try:
            found = store.transcript(store.session(source).id)
        except SessionNotFoundError as error:
            raise SessionNotFoundError(f"there is no file {source!r}, and {error}") from None
        return found, store.view(found.id), f"with `firsthand show {found.id} --entry ID`"


def tell_damage(transcript: Transcript, path: Path) -> None:
    """Says on the error stream where a file could not be read; what could be is used."""
    if transcript.damaged:
        places = "place" if len(transcript.damaged) == 1 else "places"
        lines = ", ".join(str(damage.line) for damage in transcript.damaged[:5])
        stderr(f"warning: {path}: {len(transcript.damaged)} damaged {places} (line {lines}); the rest was read")


def pick(sessions: list[Transcript], wanted: str | None, source: str) -> Transcript:
    """The one session that is meant: the named one, or the only one that is no sub-agent of another.

    Raises:
        FormatError: none or several fit; the message lists ids.
    """
    if wanted is not None:
        found = [session for session in sessions if session.id == wanted] or [
            s for s in sessions if s.id.startswith(wanted)
        ]
    else:
        ids = {session.id for session in sessions}
        found = [session for session in sessions if session.parent_session not in ids]
    if len(found) == 1:
        return found[0]
    listed = ", ".join(session.id for session in (found or sessions)[:8])
    more = f" and {len(found or sessions) - 8} more" if len(found or sessions) > 8 else ""
    problem = f"has no session {wanted!r}" if wanted is not None and not found else f"holds {len(found)} sessions"
    raise FormatError(f"{source} {problem}; choose one with --session: {listed}{more}")
