"""What `firsthand doctor` looks at: each check says in one line how something stands, and what to do where it does not."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, TypeAlias

from .. import __version__
from ..errors import FirsthandError
from ..journal import Journal
from ..journal.location import default_path
from .clients import CLIENTS, ClientSettings, Invocation
from .config import GatewayConfig, Upstream

__all__ = ["EXTRAS", "Check", "State", "checks", "worst"]

State: TypeAlias = Literal["ok", "note", "problem"]

EXTRAS: Mapping[str, tuple[str, ...]] = {
    "gateway": ("genai_prices", "httpx2", "prometheus_client", "starlette", "structlog", "uvicorn"),
    "http": ("httpx2",),
    "mcp": ("mcp",),
    "exact": ("bpe_openai",),
    "lab": ("genai_prices", "jinja2", "matplotlib"),
}
"""The modules that each extra is there for. Without `gateway` nothing below it can be checked; the others are a person's choice."""

_TRIED = {"codex": "0.171.0", "claude": "2.1.332", "opencode": "1.18.31", "pi": "1.6.0"}
"""The releases that the gateway was tried with."""
_PATIENCE = 10.0


@dataclass(frozen=True)
class Check:
    """How one thing stands."""

    about: str
    state: State
    said: str


def checks(
    config: GatewayConfig | None,
    environment: Mapping[str, str],
    folder: Path,
    *,
    port: int,
    journal: Path | None = None,
    network: bool = True,
) -> Iterator[Check]:
    """All checks, one after the other. None of them raises, changes anything, or sends a key.

    Args:
        config: the gateway that is meant; None: one for the providers of the clients that are here.
        environment: variables, as the clients would see them.
        folder: the work folder.
        port: the gateway's port.
        journal: the journal's file; None: the person's own.
        network: whether upstreams are called.
    """
    yield Check("firsthand", "ok", f"{__version__} on Python {sys.version.split()[0]}")
    yield from _extras()
    yield _guarded("journal", lambda: _journal(journal))
    yield _guarded("port", lambda: _port(port))
    yield from _proxies(environment)
    urls: dict[str, str] = {}
    for client in CLIENTS:
        yield from _client(client, environment, folder, urls)
    if config is not None:
        urls = {upstream.name: upstream.url for upstream in config.upstreams}
    if not network:
        yield Check("upstreams", "note", "not called (--no-network)")
        return
    for url in sorted(set(urls.values())):
        yield _guarded(f"upstream {url}", lambda url=url: _upstream(url))  # type: ignore[misc]


def _guarded(about: str, check: Callable[[], Check]) -> Check:
    try:
        return check()
    except FirsthandError as error:
        return Check(about, "problem", str(error))
    except Exception as error:
        return Check(about, "problem", f"could not be checked ({type(error).__name__}: {error})")


def _extras() -> Iterator[Check]:
    for extra, modules in EXTRAS.items():
        missing = [name for name in modules if find_spec(name) is None]
        if not missing:
            yield Check(f"extra {extra}", "ok", "installed")
            continue
        what = f"{', '.join(missing)} missing; pip install 'firsthand[{extra}]'"
        yield Check(f"extra {extra}", "problem" if extra == "gateway" else "note", what)


def _journal(path: Path | None) -> Check:
    file = path or default_path()
    if not file.exists():
        parent = next(folder for folder in file.parents if folder.exists())
        if not parent.is_dir() or not _writable(parent):
            return Check(
                "journal",
                "problem",
                f"{file} is not there and {parent} cannot be written to; choose another with --journal",
            )
        return Check("journal", "ok", f"{file} will be made at the first use")
    with Journal.open(file) as store:
        count = len(store.sessions())
    size = file.stat().st_size / 1_000_000
    return Check("journal", "ok", f"{file}, {count:,} sessions, {size:,.1f} MB")


def _writable(folder: Path) -> bool:
    return os.access(folder, os.W_OK | os.X_OK)


def _port(port: int) -> Check:
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError as error:
        served = _gateway_at(port)
        if served:
            return Check("port", "ok", f"a gateway {served} serves at 127.0.0.1:{port}")
        reason = error.strerror or error
        return Check(
            "port",
            "problem",
            f"127.0.0.1:{port} cannot be had ({reason}); choose another with firsthand gateway --port",
        )
    return Check("port", "ok", f"127.0.0.1:{port} is free; no gateway serves there now")


def _gateway_at(port: int) -> str:
    if find_spec("httpx2") is None:
        return ""
    import httpx2

    try:
        answer = httpx2.get(f"http://127.0.0.1:{port}/_firsthand/health", timeout=3, trust_env=False)
        return str(answer.json()["version"]) if answer.status_code == 200 else ""
    except (httpx2.HTTPError, ValueError, KeyError, TypeError):
        return ""


def _proxies(environment: Mapping[str, str]) -> Iterator[Check]:
    named = [name for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy") if environment.get(name)]
    spared = f"{environment.get('NO_PROXY', '')},{environment.get('no_proxy', '')}"
    if named and not any(host in spared for host in ("127.0.0.1", "localhost", "*")):
        # `wrap` does that by itself.
        yield Check(
            "proxy",
            "problem",
            f"{named[0]} is set and NO_PROXY does not name 127.0.0.1, so clients would ask the proxy for the gateway; "
            "set NO_PROXY=127.0.0.1,localhost",
        )


def _client(
    client: ClientSettings, environment: Mapping[str, str], folder: Path, urls: dict[str, str]
) -> Iterator[Check]:
    found = shutil.which(client.program, path=environment.get("PATH"))
    if found is None:
        yield Check(client.name, "note", f"not found on the PATH; it is had by: {client.install}")
        return
    yield _guarded(client.name, lambda: _version(client, found, environment))
    try:
        theirs = client.upstreams(Invocation((client.program,), environment, folder))
    except FirsthandError as error:
        yield Check(f"{client.name}'s settings", "problem", str(error))
        return
    told: list[str] = []
    for name, url in theirs.items():
        if not url:
            yield Check(f"{client.name}'s settings", "problem", f"the provider {name!r} is chosen and has no URL")
            continue
        try:
            Upstream("default", url)
        except FirsthandError as error:
            yield Check(f"{client.name}'s settings", "problem", f"the provider {name!r}: {error}")
            continue
        urls[f"{client.program}/{name}"] = url
        told.append(f"{name}: {url}")
    if len(told) == len(theirs):
        yield Check(f"{client.name}'s settings", "ok", ", ".join(told))


def _version(client: ClientSettings, found: str, environment: Mapping[str, str]) -> Check:
    try:
        answered = subprocess.run(
            [found, "--version"], env=dict(environment), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_PATIENCE, check=False
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return Check(client.name, "problem", f"{found} does not tell its version ({type(error).__name__})")
    told = re.search(r"\d+\.\d+\.\d+\S*", answered.stdout + answered.stderr)
    if answered.returncode or told is None:
        return Check(client.name, "problem", f"{found} does not tell its version (exit code {answered.returncode})")
    tried = _TRIED[client.program]
    if told[0] != tried:
        return Check(client.name, "note", f"{told[0]} at {found}; the gateway was tried with {tried}")
    return Check(client.name, "ok", f"{told[0]} at {found}")


def _upstream(url: str) -> Check:
    """Whether anything answers there. No key is sent, so a refusal is as good as a welcome."""
    about = f"upstream {url}"
    if find_spec("httpx2") is None:
        return Check(about, "note", "cannot be called without the extra gateway")
    import httpx2

    loopback = Upstream("default", url).is_loopback
    try:
        answer = httpx2.get(url, timeout=5, trust_env=not loopback, follow_redirects=False)
    except httpx2.HTTPError as error:
        return Check(about, "problem", f"cannot be reached ({type(error).__name__}: {error})")
    return Check(about, "ok", f"answers ({answer.status_code} without a key)")


def worst(found: Sequence[Check]) -> State:
    """The state of the whole."""
    states = {check.state for check in found}
    return "problem" if "problem" in states else "note" if "note" in states else "ok"
