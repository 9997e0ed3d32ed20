"""`firsthand lab`: what fills the window, what was forgotten, and copies of sessions to measure on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import FormatError
from . import (
    lab_audit,
    lab_bound,
    lab_cache,
    lab_capture,
    lab_model,
    lab_money,
    lab_open,
    lab_report,
    lab_run,
    lab_verify,
)
from .output import progress, stderr, stdout_json, table

if TYPE_CHECKING:
    from ..lab.compose import Composition
    from ..lab.inputs import Source

__all__ = ["lab_app", "read_sources", "register"]

lab_app = typer.Typer(
    name="lab",
    help="Measure your own sessions: what fills the window, what compactions kept, what was forgotten and needed later.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

_LISTED = 8
"""Sessions of one file that the table shows one by one; of more it shows the file's sum."""
_TOOLS = 12


def register(app: typer.Typer) -> None:
    """Adds the commands of this group."""
    lab_app.command("compose", epilog="Example: firsthand lab compose session.jsonl --figure window.png")(compose)
    lab_audit.register(lab_app)
    lab_run.register(lab_app)
    lab_bound.register(lab_app)
    lab_model.register(lab_app)
    lab_money.register(lab_app)
    lab_cache.register(lab_app)
    lab_open.register(lab_app)
    lab_capture.register(lab_app)
    lab_verify.register(lab_app)
    lab_report.register(lab_app)
    lab_app.command("freeze", epilog="Example: firsthand lab freeze ~/.claude/projects --out frozen")(freeze)
    app.add_typer(lab_app)


def read_sources(files: Sequence[Path], format_name: str | None = None) -> Iterator[Source]:
    """The sessions of these files; says on stderr which files hold none.

    Raises:
        FormatError: a file is not there, or none of them holds a session.
    """
    from ..lab.inputs import Skipped, expanded, sessions_in

    found = False
    paths = expanded(files)
    with progress(paths, "reading") as shown:
        for source in sessions_in(shown, format=format_name):
            if isinstance(source, Skipped):
                stderr(f"skipped: {source.reason}")
                continue
            found = True
            yield source
    if not found:
        raise FormatError(f"none of the {len(paths):,} files holds a session that can be read; nothing was measured")


def compose(
    files: Annotated[list[Path], typer.Argument(metavar="FILES", help="Session files, or folders of them.")],
    counter: Annotated[str, typer.Option(help="o200k (exact), estimate, calibrated or calibrated:MODEL.")] = "o200k",
    published: Annotated[
        bool, typer.Option("--published", help="Count as the published study does, for comparison with it.")
    ] = False,
    figure: Annotated[
        Path | None, typer.Option(help="Draw the shares of tokens to this file (.png, .svg or .pdf).")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout, every session in it.")] = False,
    format_name: Annotated[
        str | None, typer.Option("--format", help="Format of the files; told by content when left out.")
    ] = None,
) -> None:
    """Say what sessions consist of: by kind, by tool, in records, characters and tokens."""
    from ..lab.compose import compose as composed
    from ..lab.compose import total
    from ..tokens import counter_by_name

    used = counter_by_name(counter)
    parts = [composed(found.transcript, used, source=found.label) for found in read_sources(files, format_name)]
    whole = total(parts)
    if figure is not None:
        from ..lab.figures.composition import draw

        bars = _by_file(parts)
        draw([*bars, whole] if len(bars) > 1 else bars, figure)
        stderr(f"figure: {figure}")
    if as_json:
        stdout_json(
            {
                "counter": used.name,
                "counter_error": used.error,
                "sessions": [_row(part) for part in parts],
                "total": _row(whole),
            }
        )
        return
    if published:
        _print_published([*_by_file(parts), whole])
        return
    for part in _by_file(parts):
        _print_kinds(part)
    if len(parts) > 1:
        _print_kinds(whole)
    _print_tools(whole)
    typer.echo(
        f"Tokens: {used.name} ({used.error}). Shares leave out what the client's own compactions made (recorded)."
    )


def _by_file(parts: Sequence[Composition]) -> list[Composition]:
    """Sessions one by one, but for files with many of them, which become one sum."""
    from ..lab.compose import total

    files: dict[str, list[Composition]] = {}
    for part in parts:
        files.setdefault(part.source, []).append(part)
    shown: list[Composition] = []
    for name, sessions in files.items():
        shown += sessions if len(sessions) <= _LISTED else [total(sessions, name)]
    return shown


def _row(part: Composition) -> dict[str, Any]:
    import msgspec

    row: dict[str, Any] = msgspec.to_builtins(part)
    row["counted"] = msgspec.to_builtins(part.counted)
    row["published"] = msgspec.to_builtins(part.published) | {"tool_share": part.published.tool_share}
    return row


def _print_kinds(part: Composition) -> None:
    whole = part.counted
    many = f", {part.sessions:,} sessions" if part.sessions > 1 else f" {part.session}"
    table(
        ("kind", "records", "characters", "share of characters", f"tokens ({part.counter})", "share of tokens"),
        [
            *(
                (
                    kind,
                    amount.records,
                    amount.characters,
                    _share(amount.characters, whole.characters) if kind != "recorded" else "",
                    amount.tokens,
                    _share(amount.tokens, whole.tokens) if kind != "recorded" else "",
                )
                for kind, amount in part.kinds.items()
            ),
            ("all", whole.records, whole.characters, "", whole.tokens, ""),
        ],
        title=_safe(f"{part.source} ({part.format}{many}, {part.entries:,} entries)"),
    )


def _print_tools(part: Composition) -> None:
    if not part.tools:
        return
    rows = [
        (
            _safe(tool.tool),
            tool.calls,
            tool.results,
            tool.errors,
            tool.argument_tokens,
            tool.output_tokens,
            _share(tool.tokens, part.counted.tokens),
        )
        for tool in part.tools[:_TOOLS]
    ]
    more = len(part.tools) - _TOOLS
    table(
        ("tool", "calls", "results", "errors", "tokens of calls", "tokens of output", "share of tokens"),
        rows,
        title="By tool" + (f" (the heaviest {_TOOLS} of {len(part.tools):,}; all: --json)" if more > 0 else ""),
    )


def _print_published(parts: Sequence[Composition]) -> None:
    from ..lab.compose import STUDY_FLOOR

    rows = []
    for part in parts:
        counted = part.published
        share = counted.tool_share
        rows.append(
            (
                _safe(part.source),
                *(
                    f"{counted.records[kind]:,} / {counted.characters[kind]:,}"
                    for kind in ("tool output", "assistant", "user")
                ),
                counted.records["tool call"],
                "none" if share is None else f"{share:.1f} %",
            )
        )
    table(
        ("session", "tool output", "assistant text", "user text", "calls", "tool output of characters"),
        rows,
        title="Records / characters, as the published study counts: arguments of calls are left out",
    )
    typer.echo(f"The study's own chains lie between {STUDY_FLOOR} % and 99.4 %.")


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else ""


def _safe(text: str) -> str:
    """A name from a session, for a terminal: control characters would move the cursor or colour the screen."""
    return "".join(char if char.isprintable() else "?" for char in text)


def freeze(
    files: Annotated[list[Path], typer.Argument(metavar="FILES", help="Session files, or folders of them.")],
    out: Annotated[Path, typer.Option(help="Folder for the copies and their manifest.")],
    as_json: Annotated[bool, typer.Option("--json", help="The manifest as one JSON object on stdout.")] = False,
) -> None:
    """Make read-only copies of session files, with their hashes, so that a measurement can be repeated on the same bytes."""
    from ..lab.freeze import freeze as frozen
    from ..lab.inputs import expanded

    manifest = frozen(expanded(files), out)
    if as_json:
        import msgspec

        stdout_json(msgspec.to_builtins(manifest))
        return
    table(
        ("copy", "bytes", "sha256", "from"),
        ((row.name, row.size, row.sha256[:16], _safe(row.origin)) for row in manifest.files),
        title=f"{len(manifest.files):,} frozen files in {out}",
    )
    typer.echo(
        f"Measure on them with `firsthand lab compose {out}`; `firsthand lab freeze FILES --out {out}` checks them again."
    )
