"""`firsthand import | sessions | show | export | fork | verify`: the journal."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from ..errors import ConfigError, EntryNotFoundError, FirsthandError
from ..transcript import Entry, Transcript, count
from .output import progress, stderr, stdout_json, table, write_bytes
from .source import JournalOption, tell_damage
from .upkeep import found_sessions

__all__ = ["register"]

JsonOption = Annotated[bool, typer.Option("--json", help="JSON on stdout, for programs.")]

EXIT_ERROR = 1
EXIT_DAMAGED = 4


def register(app: typer.Typer) -> None:
    """Adds the commands of this group."""
    app.command("import", epilog="Example: firsthand import ~/.claude/projects/*/*.jsonl")(import_files)
    app.command("sessions", epilog="Example: firsthand sessions --json")(sessions)
    app.command("show", epilog="Example: firsthand show 5c0375b4 --entry e0123456789abcdef")(show)
    app.command("export", epilog="Example: firsthand export 5c0375b4 --out session.jsonl")(export)
    app.command("fork", epilog="Example: firsthand fork 5c0375b4 --at e0123456789abcdef")(fork)
    app.command("verify", epilog="Example: firsthand verify")(verify)


def import_files(
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="[FILE...]", help="Session files of any known format, plain or gzip.")
    ] = None,
    scan: Annotated[bool, typer.Option("--scan", help="Also all sessions that agents keep in your home.")] = False,
    format_name: Annotated[str | None, typer.Option("--format", help="Format; told by content when left out.")] = None,
    as_json: JsonOption = False,
    journal: JournalOption = None,
) -> None:
    """Take session files into the journal, whole. Importing again adds only what is new; files are never changed."""
    from ..formats import read_sessions
    from ..journal import Journal
    from ..session.features import store_missing
    from ..strategies import DEFAULT_STRATEGY, strategy_by_name

    strategy = strategy_by_name(DEFAULT_STRATEGY)
    wanted = [*(files or ()), *((found.path for found in found_sessions()) if scan else ())]
    if not wanted:
        raise ConfigError("name session files, or give --scan" if not scan else "no agent keeps sessions in your home")
    wanted = list(dict.fromkeys(wanted))
    failed = 0
    rows: list[dict[str, Any]] = []
    with Journal.open(journal) as store, progress(wanted, "Importing") as shown:
        for path in shown:
            try:
                found = read_sessions(path, format=format_name)
            except FirsthandError as error:
                # One unreadable file must not keep the others out.
                failed += 1
                if as_json:
                    stdout_json({"file": str(path), "error": str(error)})
                else:
                    stderr(f"error: {path}: {error}")
                continue
            for transcript in found:
                imported = store.import_transcript(transcript)
                if imported.changed:
                    store_missing(store, imported.session, strategy)
                row = _imported(transcript, imported)
                rows.append(row)
                if as_json:
                    stdout_json(row)
                for warning in transcript.warnings:
                    stderr(f"warning: {path}: {warning}")
                tell_damage(transcript, path)
    if not as_json and rows:
        _print_imported(rows)
    if failed:
        raise typer.Exit(EXIT_ERROR)


def _print_imported(rows: list[dict[str, Any]]) -> None:
    counted = ("entries", "new", "user_texts", "assistant_texts", "tool_calls", "tool_results", "damaged")
    table(
        ("session", "format", *(column.replace("_", " ") for column in counted)),
        ((row["session"], row["format"], *(row[column] for column in counted)) for row in rows),
    )
    if len(rows) == 1:
        return
    sums = ", ".join(f"{sum(row[column] for row in rows):,} {column.replace('_', ' ')}" for column in counted)
    typer.echo(f"{len(rows):,} sessions: {sums}")


def _imported(transcript: Transcript, result: Any) -> dict[str, Any]:
    return {
        "session": result.session,
        "format": transcript.format,
        "entries": len(transcript.entries),
        **msgspec.structs.asdict(count(transcript.entries)),
        "markers": len(transcript.markers),
        "damaged": len(transcript.damaged),
        "warnings": list(transcript.warnings),
        "new": result.new,
        "known": result.known,
        "revised": result.revised,
    }


def sessions(
    limit: Annotated[int, typer.Option(min=1, help="How many to list; --json lists all.")] = 50,
    as_json: JsonOption = False,
    journal: JournalOption = None,
) -> None:
    """List the sessions of the journal, those that changed last first."""
    from ..journal import Journal

    with Journal.open(journal) as store:
        found = store.sessions()
        if as_json:
            for info in found:
                stdout_json(info)
            return
        if not found:
            typer.echo(f"{store.path} holds no session yet; `firsthand import FILE` takes one in")
            return
        table(
            ("session", "format", "entries", "last entry", "model", "title"),
            (
                (info.id, info.format, info.entries, _day(info.last_ms), info.model or "", _line(info.title or ""))
                for info in found[:limit]
            ),
            short=("model", "title"),
        )
        if len(found) > limit:
            typer.echo(f"{len(found) - limit:,} more; see them with --limit {len(found)}, or --json")


def _day(ms: int | None) -> str:
    return "" if ms is None else datetime.fromtimestamp(ms / 1_000, UTC).strftime("%Y-%m-%d %H:%M")


def show(
    session: Annotated[str, typer.Argument(help="Id of the session, or the start of it.")],
    entry: Annotated[str | None, typer.Option(help="Show this entry whole; the start of its id will do.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many entries to list.")] = 50,
    start: Annotated[int, typer.Option("--from", min=0, help="Sequence number to start at.")] = 0,
    as_json: JsonOption = False,
    journal: JournalOption = None,
) -> None:
    """List a session's entries, or show one whole."""
    from ..journal import Journal

    with Journal.open(journal) as store:
        found = store.session(session).id
        wanted = None if entry is None else store.full_id(entry, found)
        transcript = store.transcript(found)
    if entry is not None:
        named = [candidate for candidate in transcript.entries if candidate.id == wanted]
        if not named:
            raise EntryNotFoundError(
                f"session {transcript.id} has no entry {entry!r}; `firsthand show {transcript.id}` lists them"
            )
        _show_entry(named[0], as_json)
        return
    active = {member.id for member in transcript.path()}
    listed = [member for member in transcript.entries if member.sequence >= start]
    if as_json:
        for member in listed:
            stdout_json({"active": member.id in active, "entry": member})
        return
    if not listed:
        typer.echo(f"session {transcript.id} has {len(transcript.entries):,} entries, none from {start:,} on")
        return
    table(
        ("seq", "entry", "role", "text"),
        (
            (member.sequence, member.id, member.role + ("" if member.id in active else " (branch)"), _glimpse(member))
            for member in listed[:limit]
        ),
        short=("text",),
    )
    if len(listed) > limit:
        typer.echo(f"{len(listed) - limit:,} more; go on with --from {listed[limit].sequence}, or see all with --json")


def _glimpse(entry: Entry) -> str:
    from ..formats.wire.text import as_text

    # The first line names role and id, which have columns of their own.
    return _line(as_text((entry,)).partition("\n")[2])


def _line(text: str, width: int = 240) -> str:
    """One line of a text, as much of it as a wide terminal could show."""
    start = " ".join(text[: 4 * width].split())
    return start if len(start) <= width and len(text) <= 4 * width else start[: width - 1] + "…"


def _show_entry(entry: Entry, as_json: bool) -> None:
    from ..formats.wire.text import as_text

    if as_json:
        stdout_json(entry)
    else:
        write_bytes(None, (as_text((entry,)).encode("utf-8", "replace"), b"\n"))


def export(
    session: Annotated[str, typer.Argument(help="Id of the session, or the start of it.")],
    out: Annotated[Path | None, typer.Option(help="File to write; stdout when left out.")] = None,
    journal: JournalOption = None,
) -> None:
    """Write a session as JSONL: one entry per line, everything in it; `firsthand import` reads it back to equal entries."""
    from ..journal import Journal

    with Journal.open(journal) as store:
        write_bytes(out, store.export(store.session(session).id))


def fork(
    session: Annotated[str, typer.Argument(help="Id of the session, or the start of it.")],
    at: Annotated[
        str, typer.Option(help="Id of the entry, or the start of it, after which the fork goes its own way.")
    ],
    new_id: Annotated[str | None, typer.Option("--id", help="Id of the new session; made when left out.")] = None,
    as_json: JsonOption = False,
    journal: JournalOption = None,
) -> None:
    """Start a new session that shares the history up to an entry; nothing is copied."""
    if new_id is not None and not new_id.isprintable():
        raise ConfigError(f"{new_id!r} cannot be typed again; name the session with printable characters")
    from ..journal import Journal

    with Journal.open(journal) as store:
        found = store.session(session).id
        created = store.fork(found, at=store.full_id(at, found), new_id=new_id)
    if as_json:
        stdout_json({"session": created})
    else:
        typer.echo(created)


def verify(
    session: Annotated[str | None, typer.Argument(help="Id of the session; all when left out.")] = None,
    as_json: JsonOption = False,
    journal: JournalOption = None,
) -> None:
    """Check every stored entry against the hashes that were stored with it. Repairs nothing."""
    from ..journal import Journal

    with Journal.open(journal) as store:
        report = store.verify(None if session is None else store.session(session).id)
    if as_json:
        stdout_json(report)
    else:
        typer.echo(f"{report.sessions:,} sessions, {report.entries:,} entries checked, {len(report.problems)} problems")
        for problem in report.problems:
            stderr(f"damaged: {problem}")
    if report.problems:
        raise typer.Exit(EXIT_DAMAGED)
