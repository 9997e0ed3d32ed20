"""`firsthand wrap -- codex ...`: a gateway and one client behind it, for one run."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from ..errors import ConfigError
from .output import stderr
from .source import JournalOption

if TYPE_CHECKING:
    from ..gateway.clients import Invocation, Launch
    from ..gateway.telemetry import Telemetry

__all__ = ["register"]

_LARGEST_LOG = 10_000_000


def register(app: typer.Typer) -> None:
    """Adds the commands of this group."""
    app.command(
        "wrap",
        epilog="Example: firsthand wrap -- codex exec 'mend the failing test'",
        context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    )(wrap)


def wrap(
    command: Annotated[
        list[str],
        typer.Argument(metavar="-- CLIENT [ARGUMENTS]", help="The client as you would call it.", show_default=False),
    ],
    upstream: Annotated[
        list[str] | None,
        typer.Option(
            "--upstream", help="URL of the provider, or NAME=URL; default: what the client's own settings say."
        ),
    ] = None,
    mode: Annotated[str | None, typer.Option(help="on, shadow or off, as for `firsthand gateway`.")] = None,
    window: Annotated[
        list[str] | None, typer.Option("--window", help="TOKENS, or MODEL=TOKENS; MODEL may hold *.")
    ] = None,
    strategy: Annotated[str | None, typer.Option(help="Strategy; `firsthand strategies` lists them.")] = None,
    threshold: Annotated[
        float | None, typer.Option(help="Occupancy at which to compact, in tokens or as a share.")
    ] = None,
    config: Annotated[Path | None, typer.Option(help="A gateway's TOML file; flags go before it.")] = None,
    log: Annotated[
        Path | None, typer.Option(help="Where the gateway logs; default: wrap.log beside the journal.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No line about the run at its end.")] = False,
    journal: JournalOption = None,
) -> None:
    """Run codex, claude, opencode, pi or any program with an SDK behind a gateway of its own.

    The client's own settings stay as they are; only its base URL is another one, for this run. Its exit code is this command's.
    """
    from ..gateway.clients import Invocation, client_of
    from ..gateway.clients.running import run_client
    from ..gateway.config import Upstream, load_config
    from ..gateway.serving import Gateway
    from ..gateway.telemetry import Telemetry
    from .gateway import _windows

    client = client_of(command[0])
    found = shutil.which(command[0])
    if found is None:
        how = f"; it is had by: {client.install}" if client.install else ""
        raise ConfigError(f"there is no program {command[0]!r} on the PATH{how}")
    call = Invocation(tuple(command), dict(os.environ), Path.cwd())
    urls = _chosen(client.upstreams(call), upstream or [], client.name)
    names = _path_names(urls)
    settings = load_config(
        config,
        upstreams=tuple(Upstream(names[name], url) for name, url in urls.items()),
        host="127.0.0.1",
        port=0,
        keys=(),
        mode=mode,
        windows=dict(_windows(window)) if window else None,
        strategy=strategy,
        threshold=threshold,
        journal=None if journal is None else str(journal),
    )
    with _log_file(log) as (stream, path), tempfile.TemporaryDirectory(prefix="firsthand-wrap-") as scratch:
        telemetry = Telemetry(stream)
        with Gateway(settings, telemetry) as gateway:
            here = {
                name: f"{gateway.url}/u/{names[name]}" + ("/v1" if url.rstrip("/").endswith("/v1") else "")
                for name, url in urls.items()
            }
            launch = client.launch(call, here, Path(scratch))
            telemetry.info("client starts", client=client.name, url=gateway.url, upstreams=dict(urls))
            code = run_client([found, *launch.command[1:]], _environment(call, launch))
            telemetry.info("client ended", client=client.name, code=code)
        if not quiet:
            stderr(_told(telemetry, path))
    raise typer.Exit(code)


def _chosen(found: Mapping[str, str], given: list[str], client: str) -> dict[str, str]:
    """The providers of the client's settings, with what the flags say in their place."""
    urls = dict(found)
    for text in given:
        name, _, url = text.partition("=")
        if not url or "://" in name:
            if len(found) > 1:
                listed = ", ".join(found)
                raise ConfigError(
                    f"{client} may use several providers ({listed}); say which one with --upstream NAME={text}"
                )
            name, url = next(iter(found)), text
        urls[name] = url
    for name, url in urls.items():
        if not url:
            raise ConfigError(
                f"the settings of {client} choose the provider {name!r} and name no URL for it; give one with --upstream {name}=URL"
            )
    return urls


def _path_names(urls: Mapping[str, str]) -> dict[str, str]:
    """Each provider's name as it can stand in a path, no two alike."""
    names: dict[str, str] = {}
    for name in urls:
        plain = re.sub(r"[^A-Za-z0-9._-]+", "-", name) or "provider"
        names[name] = plain if plain not in names.values() else f"{plain}-{len(names)}"
    return names


def _environment(call: Invocation, launch: Launch) -> dict[str, str]:
    """The client's variables. A proxy that the person has set must not be asked for this machine."""
    environment = {**call.environment, **launch.environment}
    for name in ("NO_PROXY", "no_proxy"):
        here = [environment[name]] if environment.get(name) else []
        environment[name] = ",".join([*here, "127.0.0.1", "localhost"])
    return environment


@contextmanager
def _log_file(wanted: Path | None) -> Iterator[tuple[TextIO, Path]]:
    from ..journal.location import default_path

    path = wanted or default_path().with_name("wrap.log")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if wanted is None and path.exists() and path.stat().st_size > _LARGEST_LOG:
            path.replace(path.with_name("wrap.log.1"))
        stream = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "w", buffering=1)
    except OSError as error:
        raise ConfigError(
            f"cannot write the log {path}: {error.strerror or error}; choose another with --log"
        ) from error
    with stream:
        yield stream, path


def _told(telemetry: Telemetry, log: Path) -> str:
    sums: Mapping[str, Any] = telemetry.sums()
    requests = sum(value for name, value in sums.items() if name.startswith("requests."))
    compacted = sum(value for name, value in sums.items() if name.startswith("requests.") and ".compacted." in name)
    saved = sums.get("tokens_before", 0) - sums.get("tokens_after", 0)
    return (
        f"firsthand: {requests:,.0f} requests, {compacted:,.0f} compactions, {saved:,.0f} tokens saved; "
        f"what was said is in the journal (firsthand sessions), the log in {log}"
    )
