"""`firsthand search` and `firsthand history get`: anything ever said, found and fetched byte for byte."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from ..codec import to_utf8
from .output import stderr, stdout_json, write_bytes
from .source import JournalOption

__all__ = ["register"]

JsonOption = Annotated[bool, typer.Option("--json", help="JSON on stdout, for programs.")]

_EXIT_NOTHING = 1


def register(app: typer.Typer) -> None:
    """Adds the commands of this group."""
    app.command("search", epilog="Example: firsthand search 'port 8123' --role user")(search)
    group = typer.Typer(no_args_is_help=True, help="Fetch originals from the journal.")
    group.command("get", epilog="Example: firsthand history get e0123456789abcdef --context 2")(get)
    app.add_typer(group, name="history")


def search(
    query: Annotated[
        str, typer.Argument(help="Literal text: no operators, no wildcards; ASCII letters in either case.")
    ],
    session: Annotated[str | None, typer.Option(help="Only this session (its id, or the start of it).")] = None,
    role: Annotated[str | None, typer.Option(help="Only entries of this role.")] = None,
    kind: Annotated[
        list[str] | None, typer.Option(help="text, tool_call, tool_result or reasoning; repeatable.")
    ] = None,
    tool: Annotated[str | None, typer.Option(help="Only calls of this tool and their results.")] = None,
    since: Annotated[str | None, typer.Option(help="Only entries of this ISO 8601 time or later.")] = None,
    until: Annotated[str | None, typer.Option(help="Only entries before this time.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=200, help="Matches on a page.")] = 20,
    cursor: Annotated[str | None, typer.Option(help="Go on where the page before ended.")] = None,
    as_json: JsonOption = False,
    journal: JournalOption = None,
) -> None:
    """Find a text in everything that was ever said, the newest first. Exit code 1 when nothing matches."""
    filters: dict[str, Any] = {
        "role": role,
        "tool": tool,
        "since": since,
        "until": until,
        "limit": limit,
        "cursor": cursor,
    }
    if kind:
        filters["kinds"] = kind
    from ..journal import Journal

    with Journal.open(journal) as store:
        if session is not None:
            filters["session"] = store.session(session).id
        found = store.find(query, **filters)
    if as_json:
        stdout_json(found)
    else:
        for match in found.matches:
            age = "off the active path" if match.age is None else f"{match.age:,} entries ago"
            where = f"block {match.block}, {match.kind}" + (f" {match.tool}" if match.tool else "")
            typer.echo(f"{match.entry}  {match.role}, {where}, byte {match.offset:,}, {age}, session {match.session}")
            typer.echo("    " + " ".join(match.snippet.split()) + "\n")
        if found.timed_out:
            stderr(f"the search ran out of time; go on with --cursor {found.cursor}")
        elif found.has_more:
            typer.echo(f"more: --cursor {found.cursor}")
        if not found.matches and not found.timed_out:
            typer.echo("nothing matches")
    for entry in found.damaged:
        stderr(f"warning: entry {entry} is damaged and was not searched; `firsthand verify` says more")
    if not found.matches:
        raise typer.Exit(_EXIT_NOTHING)


def get(
    entry: Annotated[
        str, typer.Argument(help="Id of the entry, or the start of it, as `search` and excerpts name it.")
    ],
    offset: Annotated[int, typer.Option(min=0, help="Bytes to skip.")] = 0,
    limit: Annotated[int | None, typer.Option(min=1, help="Bytes on the page; everything when left out.")] = None,
    block: Annotated[int | None, typer.Option(min=0, help="Only this block.")] = None,
    context: Annotated[int, typer.Option(min=0, help="Show so many entries before and after it as well.")] = 0,
    session: Annotated[
        str | None,
        typer.Option(
            help="Session in which a short id is looked up, and whose entries stand around it where forks share it."
        ),
    ] = None,
    as_json: JsonOption = False,
    journal: JournalOption = None,
) -> None:
    """Print an entry's readable text exactly as it was stored: nothing added, nothing cut."""
    from ..formats.wire.text import as_text
    from ..journal import Journal

    with Journal.open(journal) as store:
        home = None if session is None else store.session(session).id
        if context:
            home = home or store.session_of(entry)
            around = store.around(home, entry, context)
            if as_json:
                stdout_json(list(around))
            else:
                write_bytes(None, (to_utf8(as_text((member,))) + b"\n\n" for member in around))
            return
        page = store.get(entry, session=home, offset=offset, limit=limit or 1_048_576, block=block)
        pages = [page]
        while limit is None and pages[-1].next_offset is not None:
            pages.append(store.get(page.entry, offset=pages[-1].next_offset, limit=1_048_576, block=block))
    if as_json:
        stdout_json(pages[0] if len(pages) == 1 else pages)
        return
    write_bytes(None, (to_utf8(piece.text) for piece in pages))
    sys.stdout.flush()
    if page.next_offset is not None and limit is not None:
        stderr(f"\n{page.total - page.next_offset:,} bytes more: --offset {page.next_offset}")
    for kind in page.omitted:
        stderr(f"\n(the entry also holds {kind}, which has no readable text; `firsthand show` prints it as JSON)")
