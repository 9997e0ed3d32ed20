"""`firsthand mcp`: an agent's own history as tools, over stdio or HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import ConfigError
from .output import stderr
from .source import JournalOption

__all__ = ["register"]

_DEFAULT_PORT = 8788


def register(app: typer.Typer) -> None:
    """Adds the commands of this group."""
    app.command("mcp", epilog="Example: claude mcp add history -- firsthand mcp")(serve)


def serve(
    session: Annotated[str | None, typer.Option(help="Only this session (its id, or the start of it).")] = None,
    tenant: Annotated[str | None, typer.Option(help="The sessions of this tenant; default: the local one.")] = None,
    http: Annotated[bool, typer.Option("--http", help="Serve HTTP at /mcp instead of stdio.")] = False,
    host: Annotated[
        str, typer.Option(help="With --http: the address. Others than loopback need gateway keys.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="With --http: the port; 0: a free one.")] = _DEFAULT_PORT,
    config: Annotated[
        Path | None, typer.Option(help="With --http: a gateway's TOML file; its keys say who sees which tenant.")
    ] = None,
    journal: JournalOption = None,
) -> None:
    """Offer history_search and history_get, with no way to change anything, for one session or one tenant."""
    from ..journal import Journal
    from ..mcp.scope import HistoryScope
    from ..mcp.server import history_server

    if not http:
        if config is not None:
            raise ConfigError("--config says who may come in over HTTP; it needs --http")
        with Journal.open(journal) as store:
            history_server(HistoryScope(store, session=session, tenant=tenant)).run("stdio")
        return
    settings = _settings(config, host)
    with Journal.open(journal or (Path(settings.journal) if settings.journal else None)) as store:
        if settings.keys:
            if tenant is not None or session is not None:
                raise ConfigError("with gateway keys each key sees its own tenant; leave --tenant and --session out")
            scopes = {key.id: HistoryScope(store, tenant=key.id) for key in settings.keys}
            _serve(scopes, settings, host, port)
        else:
            scope = HistoryScope(store, session=session, tenant=tenant)
            _serve({scope.tenant: scope}, settings, host, port)


def _settings(config: Path | None, host: str) -> Any:
    """The gateway's own check of addresses and keys; no upstream is ever called."""
    from ..gateway.config import Upstream, load_config

    given = {} if config is not None else {"upstreams": (Upstream("none", "http://127.0.0.1:9"),)}
    return load_config(config, host=host, **given)


def _serve(scopes: Any, settings: Any, host: str, port: int) -> None:
    import uvicorn

    from ..gateway.headers import shown_keys
    from ..listening import listening
    from ..mcp.server import http_app

    opened = listening(host, port, backlog=128)
    tenant_of = (lambda named: settings.tenant(shown_keys(named))) if settings.keys else None
    stderr(f"history at http://{host}:{opened.getsockname()[1]}/mcp, for {', '.join(scopes)}")
    app = http_app(scopes, tenant_of, host=host)
    with opened:
        uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False, server_header=False)).run(
            sockets=[opened]
        )
