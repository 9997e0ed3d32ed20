"""`firsthand scan | delete | backup | reindex`: what comes into the journal by itself, and what keeps it whole."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import ConfigError
from .output import stdout_json, table
from .source import JournalOption

if TYPE_CHECKING:
    from ..formats.scan import Found

__all__ = ["found_sessions", "register"]

JsonOption = Annotated[bool, typer.Option("--json", help="JSON on stdout, for programs.")]


def register(app: typer.Typer) -> None:
    """Adds the commands of this group."""
    app.command("scan", epilog="Example: firsthand scan")(scan_home)
    app.command("delete", epilog="Example: firsthand delete 5c0375b4 --yes")(delete)
    app.command("backup", epilog="Example: firsthand backup journal-copy.db")(backup)
    app.command("reindex", epilog="Example: firsthand reindex")(reindex)


def found_sessions(projects: Iterable[Path] = ()) -> list[Found]:
    """The sessions that agents keep in this person's home, the newest first."""
    from ..formats.scan import scan

    found = scan(Path.home(), os.environ, projects=projects)
    return sorted(found, key=lambda one: one.modified.timestamp() if one.modified else 0.0, reverse=True)


def scan_home(
    project: Annotated[
        list[Path] | None, typer.Option(help="Folder of a project with an Aider history; repeatable.")
    ] = None,
    as_json: JsonOption = False,
    journal: JournalOption = None,
) -> None:
    """List the sessions that agents keep in your home, and whether the journal has them. `firsthand import --scan` takes them in."""
    from ..journal import Journal

    found = found_sessions(project or ())
    with Journal.open(journal) as store:
        known = {info.id for info in store.sessions()}
    if as_json:
        for one in found:
            stdout_json({**vars(one), "path": str(one.path), "known": one.session in known})
        return
    if not found:
        typer.echo("no agent keeps sessions in your home, as far as we know their places (docs/formats.md lists them)")
        return
    table(
        ("session", "format", "bytes", "changed", "in the journal", "model", "title"),
        (
            (
                one.session or one.path.name,
                one.format,
                one.size,
                one.modified.strftime("%Y-%m-%d %H:%M") if one.modified else "",
                "yes" if one.session in known else "",
                one.model or "",
                " ".join((one.title or "").split()),
            )
            for one in found
        ),
        short=("model", "title"),
    )


def delete(
    session: Annotated[str | None, typer.Argument(help="Id of the session, or the start of it.")] = None,
    older_than: Annotated[
        str | None, typer.Option(metavar="DATE", help="Instead: all sessions in which nothing was said since.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do it; without, only say what would go.")] = False,
    as_json: JsonOption = False,
    journal: JournalOption = None,
) -> None:
    """Delete a session for good. Entries that another session needs stay; everything else is overwritten."""
    if (session is None) == (older_than is None):
        raise ConfigError("name a session, or give --older-than DATE")
    from ..journal import Journal

    with Journal.open(journal) as store:
        if not yes:
            names = store.silent_since(older_than or "") if session is None else [store.session(session).id]
            if as_json:
                stdout_json({"would_delete": list(names)})
                return
            typer.echo(f"would delete {len(names)} sessions: {', '.join(names[:20]) or 'none'}; add --yes to do it")
            return
        deleted = (
            store.delete_before(older_than or "") if session is None else [store.delete(store.session(session).id)]
        )
    if as_json:
        for one in deleted:
            stdout_json(one)
    else:
        for one in deleted:
            kept = f"; {one.kept:,} stay, because another session needs them" if one.kept else ""
            typer.echo(f"deleted {one.session}: {one.entries:,} entries{kept}")
        if not deleted:
            typer.echo("nothing to delete")


def backup(
    path: Annotated[Path, typer.Argument(help="New file for the copy.")],
    journal: JournalOption = None,
) -> None:
    """Copy the journal to a new file while others go on writing."""
    from ..journal import Journal

    with Journal.open(journal) as store:
        typer.echo(f"{store.path} copied to {store.backup(path)}")


def reindex(journal: JournalOption = None) -> None:
    """Make the search index anew from the entries."""
    from ..journal import Journal

    with Journal.open(journal) as store:
        typer.echo(f"{store.rebuild_index():,} entries indexed")
