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
    known = {name: strategy_class(name) for name in strategy_names()}
    about = {name: (kind.__doc__ or "").strip().split("\n", 1)[0] for name, kind in known.items()}
    if as_json:
        stdout_json(
            [
                {
                    "name": name,
                    "version": kind.version,
                    "default": name == DEFAULT_STRATEGY,
                    "recomputed": kind().recomputed,
                    "about": about[name],
                    "options": kind().options(),
                }
                for name, kind in known.items()
            ]
        )
        return
    table(
        ("strategy", "what it keeps"),
        ((name + (" *" if name == DEFAULT_STRATEGY else ""), about[name]) for name in known),
    )
    typer.echo("* default; options with defaults: --json, or docs/strategies/")
