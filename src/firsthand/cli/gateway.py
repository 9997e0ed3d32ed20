"""`firsthand gateway` and `firsthand gateway status`: serve the gateway, and look at one that serves."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import ConfigError, MissingExtraError
from .output import stdout_json, table
from .source import JournalOption

__all__ = ["register"]

_DEFAULT_PORT = 8787


def register(app: typer.Typer) -> None:
    """Adds the commands of this group."""
    group = typer.Typer(
        help="Serve any agent: an HTTP server between clients and their provider that keeps originals and projects.",
        invoke_without_command=True,
        epilog="Example: firsthand gateway --upstream https://api.openai.com/v1",
    )
    group.callback()(serve)
    group.command("status", epilog="Example: firsthand gateway status --watch")(status)
    app.add_typer(group, name="gateway")


def serve(
    context: typer.Context,
    upstream: Annotated[
        list[str] | None,
        typer.Option(
            "--upstream", help="URL of the provider, or NAME=URL; several: the first takes what no other does."
        ),
    ] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65_535, help=f"Port; default {_DEFAULT_PORT}, 0: a free one.")
    ] = None,
    host: Annotated[str | None, typer.Option(help="Address; default 127.0.0.1. Others need gateway keys.")] = None,
    mode: Annotated[
        str | None, typer.Option(help="on: project. shadow: decide and log only. off: pass everything, store nothing.")
    ] = None,
    window: Annotated[
        list[str] | None, typer.Option("--window", help="TOKENS, or MODEL=TOKENS; MODEL may hold *.")
    ] = None,
    strategy: Annotated[str | None, typer.Option(help="Strategy; `firsthand strategies` lists them.")] = None,
    threshold: Annotated[
        float | None, typer.Option(help="Occupancy at which to compact, in tokens or as a share.")
    ] = None,
    recall: Annotated[
        int | None, typer.Option(min=0, help="Tokens of what a new message brings back at most; default 1000, 0: none.")
    ] = None,
    config: Annotated[Path | None, typer.Option(help="A TOML file with all settings; flags go before it.")] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Log more.")] = False,
    journal: JournalOption = None,
) -> None:
    """Serve until interrupted."""
    if context.invoked_subcommand is not None:
        return
    from ..gateway.config import load_config
    from ..gateway.serving import serve as run
    from ..gateway.telemetry import Telemetry

    settings = load_config(
        config,
        upstreams=tuple(_upstreams(upstream)) if upstream else None,
        port=port,
        host=host,
        mode=mode,
        windows=dict(_windows(window)) if window else None,
        strategy=strategy,
        threshold=threshold,
        recall=recall,
        journal=None if journal is None else str(journal),
    )
    run(settings, Telemetry(debug=debug))


def status(
    url: Annotated[str, typer.Option(help="Address of the gateway.")] = f"http://127.0.0.1:{_DEFAULT_PORT}",
    key: Annotated[
        str | None, typer.Option(envvar="FIRSTHAND_GATEWAY_KEY", help="Gateway key, where it has any.")
    ] = None,
    watch: Annotated[bool, typer.Option("--watch", help="Go on until interrupted.")] = False,
    every: Annotated[float, typer.Option(min=0.2, help="Seconds between two looks.")] = 1.0,
    as_json: Annotated[bool, typer.Option("--json", help="JSON on stdout, for programs.")] = False,
) -> None:
    """Show what a gateway is doing: sessions, checkpoints, tokens saved."""
    while True:
        found = _asked(url, key)
        if as_json:
            stdout_json(found)
        else:
            _print(found)
        if not watch:
            return
        time.sleep(every)


def _asked(url: str, key: str | None) -> dict[str, Any]:
    try:
        import httpx2
    except ImportError:
        raise MissingExtraError("asking a gateway", "gateway") from None

    headers = {"x-firsthand-key": key} if key else {}
    try:
        answer = httpx2.get(f"{url.rstrip('/')}/_firsthand/status", headers=headers, timeout=5, trust_env=False)
    except httpx2.HTTPError as error:
        raise ConfigError(
            f"no gateway answers at {url} ({type(error).__name__}); start one with: firsthand gateway --upstream URL"
        ) from error
    if answer.status_code != 200:
        raise ConfigError(f"the gateway at {url} answered {answer.status_code}; with gateway keys, give one with --key")
    value: dict[str, Any] = answer.json()
    return value


def _print(found: dict[str, Any]) -> None:
    totals = found["totals"]
    before, after = totals.get("tokens_before", 0), totals.get("tokens_after", 0)
    typer.echo(
        f"gateway {found['version']}, mode {found['mode']}, strategy {found['strategy']}, since {found['since']}, tenant {found['tenant']}"
    )
    if totals:
        saved = f"{before - after:,.0f} of {before:,.0f}"
        typer.echo(
            f"in flight {totals.get('in_flight', 0):.0f}, tokens saved {saved}, journal waits {totals.get('journal_waiting', 0):.0f}"
        )
    names = ("session", "wire", "messages", "checkpoints", "covered", "reported")
    rows = [[row[name] for name in names] for row in found["sessions"]]
    if rows:
        table(names, rows)


def _upstreams(given: list[str]) -> Any:
    from ..gateway.config import Upstream

    for number, text in enumerate(given):
        name, _, url = text.partition("=")
        if not url or "://" in name:
            name, url = ("default" if number == 0 else f"upstream{number + 1}"), text
        yield Upstream(name, url)


def _windows(given: list[str]) -> Any:
    for text in given:
        model, _, tokens = text.rpartition("=")
        number = tokens.replace("_", "").replace(",", "")
        if not number.isdigit():
            raise ConfigError(f"--window is TOKENS or MODEL=TOKENS, not {text!r}")
        yield model or "*", int(number)
