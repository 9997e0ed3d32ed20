"""`firsthand session status | watch | undo | resolve`: what the runtime did with a session, and the ways back."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import ConfigError
from .output import stdout_json, table
from .source import JournalOption

if TYPE_CHECKING:
    from ..checkpoint import Operation
    from ..journal import Journal

__all__ = ["register"]

SessionArgument = Annotated[str, typer.Argument(help="Id of the session, or the start of it.")]
JsonOption = Annotated[bool, typer.Option("--json", help="JSON on stdout, for programs.")]


def register(app: typer.Typer) -> None:
    """Adds the commands of this group."""
    group = typer.Typer(
        no_args_is_help=True, help="What the runtime did with a session: checkpoints, operations, the ways back."
    )
    group.command("status", epilog="Example: firsthand session status my-task")(status)
    group.command("watch", epilog="Example: firsthand session watch my-task --seconds 60")(watch)
    group.command("undo", epilog="Example: firsthand session undo my-task")(undo)
    group.command("resolve", epilog="Example: firsthand session resolve op0123456789abcdef --failed")(resolve_operation)
    app.add_typer(group, name="session")


def status(session: SessionArgument, as_json: JsonOption = False, journal: JournalOption = None) -> None:
    """Show a session's size, the checkpoint in force, and the receipts of its compactions."""
    from ..journal import Journal

    with Journal.open(journal) as store:
        found = _status(store, session)
    if as_json:
        stdout_json(found)
    else:
        _print(found)


def watch(
    session: SessionArgument,
    seconds: Annotated[float, typer.Option(min=0, help="Stop after so many seconds; 0: go on until interrupted.")] = 0,
    every: Annotated[float, typer.Option(min=0.1, help="Seconds between two looks.")] = 1.0,
    journal: JournalOption = None,
) -> None:
    """Print a line whenever a session grows or a compaction starts or ends."""
    from ..journal import Journal

    end = time.monotonic() + seconds if seconds else None
    last: dict[str, Any] = {}
    with Journal.open(journal) as store:
        while True:
            found = _status(store, session)
            if found["entries"] != last.get("entries"):
                typer.echo(f"{_clock()} {found['entries']:,} entries")
            for operation in found["operations"]:
                if operation not in last.get("operations", []):
                    typer.echo(
                        f"{_clock()} {operation['id']} {operation['state']} ({operation['trigger']}) {operation['result']}"
                    )
            last = found
            if end is not None and time.monotonic() >= end:
                return
            time.sleep(every)


def undo(session: SessionArgument, as_json: JsonOption = False, journal: JournalOption = None) -> None:
    """Take a session's newest checkpoint back: the one before it, or the whole history, is shown again."""
    from ..checkpoint import CheckpointStore
    from ..journal import Journal

    with Journal.open(journal) as store:
        undone = CheckpointStore(store, store.session(session).id).undo()
    if as_json:
        stdout_json({"undone": None if undone is None else undone.id})
    elif undone is None:
        typer.echo("nothing to undo: the session has no checkpoint of its own in force")
    else:
        typer.echo(f"undone: {undone.id}; the next request shows what stood before it")


def resolve_operation(
    operation: Annotated[str, typer.Argument(help="Id of an operation, as `status` lists it.")],
    failed: Annotated[bool, typer.Option("--failed", help="Declare it failed: its process is gone for good.")] = False,
    as_json: JsonOption = False,
    journal: JournalOption = None,
) -> None:
    """Clear an operation whose process died, so that the same compaction can be made again."""
    if not failed:
        raise ConfigError(
            "say what became of it: --failed (nothing was committed; a committed one would be 'completed')"
        )
    from ..checkpoint import resolve
    from ..journal import Journal

    with Journal.open(journal) as store:
        found = resolve(store, operation)
    if as_json:
        stdout_json(found)
    else:
        typer.echo(f"{found.id} is {found.state}")


def _status(store: Journal, session: str) -> dict[str, Any]:
    from ..checkpoint import CheckpointStore
    from ..strategies import is_current

    info = store.session(session)
    checkpoints = CheckpointStore(store, info.id)
    checkpoint = checkpoints.newest(is_current)
    return {
        "session": info.id,
        "entries": info.path_entries,
        "checkpoint": None
        if checkpoint is None
        else {
            "id": checkpoint.id,
            "window_number": checkpoint.window_number,
            "strategy": checkpoint.plan.strategy,
            "covered_from": checkpoint.plan.covered_from,
            "cutoff": checkpoint.plan.cutoff,
            "tokens_before": checkpoint.plan.tokens_before,
            "tokens_after": checkpoint.baseline,
        },
        "operations": [_operation(operation) for operation in checkpoints.operations()],
    }


def _operation(operation: Operation) -> dict[str, Any]:
    receipt = operation.receipt or {}
    sizes = f"{receipt['tokens_before']:,} -> {receipt['tokens_after']:,} tokens" if "tokens_after" in receipt else ""
    return {
        "id": operation.id,
        "state": "unfinished" if operation.unfinished else operation.state,
        "trigger": operation.trigger,
        "started_ms": operation.started_ms,
        "result": receipt.get("reason") or sizes,
    }


def _print(found: dict[str, Any]) -> None:
    typer.echo(f"Session {found['session']}: {found['entries']:,} entries")
    checkpoint = found["checkpoint"]
    if checkpoint is None:
        typer.echo("No checkpoint: the whole history is shown")
    else:
        typer.echo(
            f"Checkpoint {checkpoint['id']} (number {checkpoint['window_number']}, {checkpoint['strategy']}) covers up to entry "
            f"{checkpoint['cutoff']}: {checkpoint['tokens_before']:,} -> {checkpoint['tokens_after']:,} tokens"
        )
    if found["operations"]:
        table(
            ("operation", "state", "trigger", "started", "result"),
            (
                (
                    operation["id"],
                    operation["state"],
                    operation["trigger"],
                    _time(operation["started_ms"]),
                    operation["result"],
                )
                for operation in found["operations"]
            ),
        )


def _time(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1_000, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _clock() -> str:
    return datetime.now(UTC).strftime("%H:%M:%S")
