"""`firsthand strategies`: what there is to choose from."""

from __future__ import annotations

from typing import Annotated

import typer

from ..strategies import DEFAULT_STRATEGY, strategy_class, strategy_names
from .output import stdout_json, table

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Adds the commands of this group."""
    app.command("strategies", epilog="Example: firsthand strategies --json")(strategies)


def strategies(as_json: Annotated[bool, typer.Option("--json", help="One JSON list on stdout.")] = False) -> None:
    """List the strategies, what they keep, and their options with defaults."""
    rows = []
    for name in strategy_names():
        kind = strategy_class(name)
        rows.append(
            {
                "name": name,
                "version": kind.version,
                "default": name == DEFAULT_STRATEGY,
                "recomputed": kind().recomputed,
                "about": (kind.__doc__ or "").strip().split("\n", 1)[0],
                "options": kind().options(),
            }
        )
    if as_json:
        stdout_json(rows)
        return
    table(
        ("strategy", "what it keeps", "options"),
        [
            (
                f"{row['name']} *" if row["default"] else row["name"],
                row["about"],
                ", ".join(f"{key}={value}" for key, value in row["options"].items()),
            )
            for row in rows
        ],
    )
    typer.echo("* default")
