"""`firsthand lab audit`: what became of a session at each compaction that its client made."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .. import __version__
from ..strategies import DEFAULT_STRATEGY
from .output import stderr, stdout_json, table, write_bytes

if TYPE_CHECKING:
    from ..lab.audit_rows import Audit

__all__ = ["register"]

_SHOWN = 8
"""Rows of a table in the terminal; all of them are in --html and --json."""
_WIDTH = 44


def register(lab_app: typer.Typer) -> None:
    """Adds the command."""
    lab_app.command("audit", epilog="Example: firsthand lab audit session.jsonl --html audit.html")(audit)


def audit(
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[FILES]", help="Session files or folders; your newest sessions when left out."),
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Also write the page, all in one file, to show to others.")] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON list on stdout, with a row for each recorded compaction.")
    ] = False,
    newest: Annotated[int, typer.Option(min=1, help="Without FILES: how many of your newest session files.")] = 10,
    strategy: Annotated[str, typer.Option(help="What to compare with; see `firsthand strategies`.")] = DEFAULT_STRATEGY,
    counter: Annotated[str, typer.Option(help="o200k (exact), estimate, calibrated or calibrated:MODEL.")] = "o200k",
    format_name: Annotated[
        str | None, typer.Option("--format", help="Format of the files; told by content when left out.")
    ] = None,
) -> None:
    """For each compaction that your client made: what it kept, what was forgotten and needed later, what was read again.

    Nothing is sent anywhere, and no model is asked.
    """
    from ..lab.inputs import newest as newest_files
    from ..tokens import counter_by_name
    from .lab import read_sources

    used = counter_by_name(counter)
    chosen = files or newest_files(Path.home(), os.environ, newest)
    if not chosen:
        stderr("no sessions found where clients keep them (`firsthand scan` says where it looks); name session files")
        raise typer.Exit(1)
    from ..lab.audit import audit as audited

    rows: list[Audit] = []
    sessions = 0
    for source in read_sources(chosen, format_name):
        sessions += 1
        rows += audited(source.transcript, used, source=source.label, strategy=strategy)
    command = shlex.join(
        ["firsthand", "lab", "audit", *map(str, chosen)]
        + (["--strategy", strategy] if strategy != DEFAULT_STRATEGY else [])
        + (["--counter", counter] if counter != "o200k" else [])
        + (["--format", format_name] if format_name else [])
    )
    if html is not None:
        from ..lab.audit_report import html_page

        page = html_page(
            rows, command=f"{command} --html {shlex.quote(str(html))}", version=__version__, sessions=sessions
        )
        write_bytes(html, [page.encode("utf-8", "replace")])
        stderr(f"page: {html}")
    if as_json:
        stdout_json([_json_row(row) for row in rows])
        return
    _print(rows, sessions, command)


def _json_row(row: Audit) -> dict[str, Any]:
    import msgspec

    counts = {
        "asked": len(row.asked),
        "lost": len(row.lost),
        "missed": len(row.missed),
        "re_read_calls": len(row.re_reads),
        "re_read_tokens": row.re_read_tokens,
        "seen_again_tokens": row.seen_again_tokens,
    }
    found: dict[str, Any] = msgspec.to_builtins(row)
    return found | counts


def _print(rows: Sequence[Audit], sessions: int, command: str) -> None:
    from ..lab.audit_report import cautions, rules

    if not rows:
        many = "1 session" if sessions == 1 else f"{sessions:,} sessions"
        typer.echo(
            f"No compaction by a client is on record in {many}, so nothing was forgotten yet. "
            "`firsthand lab compose FILES` says what fills their windows."
        )
        return
    for row in rows:
        _print_row(row)
    if len(rows) > 1:
        _print_overview(rows)
    for line in (*cautions(rows), *rules(rows)):
        typer.echo(f"- {line}")
    typer.echo(f"Again: {command}   As a page: --html FILE   All of it: --json")


def _print_row(row: Audit) -> None:
    from ..lab.audit_report import by_interest, headline, kept_in_words, lesson, used_in_words, wholes_in_words
    from ..lab.visible import visible

    typer.echo(f"\n{visible(row.source or row.session, 80)} · {headline(row)}\n")
    typer.echo(kept_in_words(row))
    if not row.judged:
        return
    _print_bars(row)
    typer.echo(used_in_words(row))
    typer.echo(lesson(row))
    typer.echo(wholes_in_words(row))
    missed = by_interest(row.missed)
    if missed:
        table(
            ("gone, and used again", "said in", "home entry", "used by entry", "later", "ours"),
            (
                (visible(use.value, 40), use.kind, use.home, use.used, use.entries_later, "shown" if use.ours else "")
                for use in missed[:_SHOWN]
            ),
            title=_title("Forgotten", len(missed)),
        )
    if row.re_reads:
        table(
            ("looked at again", "tool", "tokens", "seen", "entry", "ours"),
            (
                (
                    visible(read.target, 50),
                    visible(read.tool, 16),
                    read.tokens,
                    read.seen_tokens,
                    read.entry,
                    "shown" if read.ours else "",
                )
                for read in row.re_reads[:_SHOWN]
            ),
            title=_title("Read again", len(row.re_reads)),
        )


def _title(name: str, number: int) -> str:
    return f"{name} (the first {_SHOWN} of {number:,}; all: --html, --json)" if number > _SHOWN else name


def _print_bars(row: Audit) -> None:
    from ..lab.audit_report import bars

    drawn = bars(row)
    most = max(bar.tokens for bar in drawn) or 1
    for bar in drawn:
        length = -(-bar.tokens * _WIDTH // most)
        parts = (
            " · ".join(f"{part.label} {part.tokens:,}" for part in bar.parts if part.tokens)
            if len(bar.parts) > 1
            else bar.parts[0].label
        )
        typer.echo(f"  {bar.name:7}{'█' * length:{_WIDTH}} {bar.tokens:>9,}  {parts}")


def _print_overview(rows: Sequence[Audit]) -> None:
    from ..lab.visible import visible

    table(
        ("session", "no.", "before", "client kept", "ours takes", "used again", "lost", "lost by ours", "seen again"),
        (
            (
                visible(row.source or row.session, 34) + (" *" if row.kept.unreadable else ""),
                f"{row.number}/{row.of}",
                row.context_tokens if row.judged else None,
                row.kept.tokens,
                row.ours.tokens,
                len(row.asked) if row.judged else None,
                len(row.lost) if row.judged else None,
                len(row.asked) - row.ours.used_kept if row.ours.tokens is not None else None,
                row.seen_again_tokens if row.judged else None,
            )
            for row in rows
        ),
        title=f"{len(rows):,} recorded compactions; sizes in tokens, used and lost in values"
        + (" (* its summary can be read by its provider only)" if any(row.kept.unreadable for row in rows) else ""),
    )
