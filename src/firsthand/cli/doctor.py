"""`firsthand doctor`: says what stands in the way of the gateway on this machine."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .output import stdout_json
from .source import JournalOption

if TYPE_CHECKING:
    from ..gateway.doctor import Check

__all__ = ["register"]

_EXIT_PROBLEM = 1
_MARKS = {"ok": "ok      ", "note": "note    ", "problem": "PROBLEM "}


def register(app: typer.Typer) -> None:
    """Adds the commands of this group."""
    app.command("doctor", epilog="Example: firsthand doctor --config gateway.toml")(doctor)


def doctor(
    config: Annotated[Path | None, typer.Option(help="The gateway's TOML file.")] = None,
    port: Annotated[int | None, typer.Option(min=1, max=65_535, help="The gateway's port; default 8787.")] = None,
    network: Annotated[bool, typer.Option("--network/--no-network", help="Call upstreams, without a key.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="JSON on stdout, for programs.")] = False,
    journal: JournalOption = None,
) -> None:
    """Look at extras, journal, port, clients, their settings and their providers. Exit code 1 where something is wrong."""
    from ..errors import FirsthandError
    from ..gateway.config import load_config
    from ..gateway.doctor import Check, checks, worst

    found: list[Check] = []
    settings = None
    if config is not None:
        try:
            settings = load_config(config)
            found.append(Check("config", "ok", str(config)))
        except FirsthandError as error:
            found.append(Check("config", "problem", str(error)))
    named = Path(settings.journal) if settings is not None and settings.journal else None
    where = port or (settings.port if settings is not None and settings.port else 8787)
    if not as_json:
        _print(found)
    for check in checks(settings, dict(os.environ), Path.cwd(), port=where, journal=journal or named, network=network):
        found.append(check)
        if not as_json:
            _print([check])
    if as_json:
        stdout_json([{"about": check.about, "state": check.state, "said": check.said} for check in found])
    if worst(found) == "problem":
        raise typer.Exit(_EXIT_PROBLEM)


def _print(found: list[Check]) -> None:
    for check in found:
        # Names and texts may come out of a file that is not the person's own.
        typer.echo(f"{_MARKS[check.state]}{check.about}: {check.said}")
