"""`firsthand lab bound`: how near the default strategy comes to the best choice there is."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from ..errors import ConfigError
from .output import stdout_json, table

__all__ = ["register"]


def register(lab_app: typer.Typer) -> None:
    """Adds the command to the lab's group."""
    lab_app.command("bound", epilog="Example: firsthand lab bound session.jsonl --target 2000,5000,12000")(bound)


def bound(
    files: Annotated[list[Path], typer.Argument(metavar="FILES", help="Session files, or folders of them.")],
    target: Annotated[str, typer.Option(metavar="N[,N...]", help="Sizes of the projection, in tokens.")] = "12000",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON list on stdout.")] = False,
) -> None:
    """Compare what `coverage` chooses with an upper bound of what any choice could be worth (a linear program; needs scipy)."""
    import msgspec

    from ..lab.bounds import bound as compared
    from ..tokens import counter_for_model
    from .lab import read_sources

    sizes = list(_sizes(target))
    rows = []
    for source in read_sources(files):
        session = source.transcript
        for size in sizes:
            found = compared(session.view(), counter_for_model(session.model), size)
            if found is not None:
                rows.append({"session": session.id, "source": source.label, **msgspec.to_builtins(found)})
    if as_json:
        stdout_json(rows)
        return
    table(
        ("session", "target", "units", "greedy", "with what is always shown"),
        [(row["source"], row["target"], row["units"], f"{row['greedy']:.3f}", f"{row['plan']:.3f}") for row in rows],
        title="Worth of the choice, as a share of an upper bound of any choice's in the same room",
    )


def _sizes(text: str) -> Iterable[int]:
    for part in text.split(","):
        if not part.strip().isdigit() or int(part) < 1:
            raise ConfigError(f"--target takes sizes in tokens, separated by commas, not {text!r}")
        yield int(part)
