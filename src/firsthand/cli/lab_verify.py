"""`firsthand lab verify`: checks, without any model, that an exam sends what it says."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .output import stdout_json, table

__all__ = ["register"]


def register(lab_app: typer.Typer) -> None:
    """Adds the command to the lab's group."""
    lab_app.command("verify", epilog="Example: firsthand lab verify session.jsonl --shape shape.json")(verify)


def verify(
    files: Annotated[list[Path], typer.Argument(metavar="FILES", help="Session files, or folders of them.")],
    strategy: Annotated[str, typer.Option(help="Whose projection is sent.")] = "futureos-deterministic",
    shape: Annotated[Path | None, typer.Option(help="System prompt and tools from `firsthand lab capture`.")] = None,
    window: Annotated[int, typer.Option(min=1, help="Context window of the strategy's budget.")] = 200_000,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON list on stdout.")] = False,
) -> None:
    """Check that the exam sends the session's own prompt and tools, and that the history can be searched. Ends with status 1 if a check fails."""
    from ..lab.model.shape import read_shape
    from ..lab.model.verify import verify as verified
    from ..strategies import strategy_class
    from .lab_asking import sessions_of

    strategy_class(strategy)
    taken = None if shape is None else read_shape(shape)
    failed = 0
    out: list[dict[str, str]] = []
    for session in sessions_of(files):
        checks = verified(session, strategy=strategy, shape=taken, window=window)
        failed += sum(check.state == "failed" for check in checks)
        if as_json:
            out += [
                {"session": session.id, "check": check.name, "state": check.state, "told": check.told}
                for check in checks
            ]
        else:
            table(
                ("check", "state", "found"),
                [(check.name, check.state, check.told[:90]) for check in checks],
                title=session.id,
            )
    if as_json:
        stdout_json(out)
    if failed:
        raise typer.Exit(1)
