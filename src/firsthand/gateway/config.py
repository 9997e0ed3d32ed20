"""How a gateway is set up: upstreams, windows, tenants, limits. Read from TOML, from flags, or made in code."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args
from urllib.parse import urlsplit

from ..errors import ConfigError
from ..journal.sessions import LOCAL_TENANT
from ..strategies import DEFAULT_STRATEGY, strategy_by_name
from ..strategies.contract import Strategy

__all__ = ["GatewayConfig", "GatewayKey", "Mode", "Upstream", "load_config"]

Mode: TypeAlias = Literal["on", "shadow", "off"]

_MODES = get_args(Mode)


@dataclass(frozen=True)
class Upstream:
    """A provider that requests are sent to."""

    name: str
    url: str
    """Base URL, with or without `/v1` at its end."""
    key_env: str | None = None
    """Environment variable with the key to send there in place of the client's; needed where clients hold gateway keys only."""

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(
                f"the upstream {self.name!r} needs a URL such as https://api.example.com/v1, not {_bare(self.url)!r}"
            )
        if parts.username or parts.password:
            raise ConfigError(
                f"the URL of the upstream {self.name!r} holds a secret; put it into the environment and name it with key_env"
            )

    def target(self, path: str) -> str:
        """The URL for a request's path; a `/v1` that both have is there once."""
        base = self.url.rstrip("/")
        if base.endswith("/v1") and (path == "/v1" or path.startswith("/v1/")):
            base = base.removesuffix("/v1")
        return base + path

    @property
    def key(self) -> str | None:
        """The key to send, if one is set."""
        return os.environ.get(self.key_env) if self.key_env else None

    @property
    def is_loopback(self) -> bool:
        """Whether it is on this machine, where no proxy leads to."""
        return _is_loopback(urlsplit(self.url).hostname or "")


@dataclass(frozen=True)
class GatewayKey:
    """A key that clients show to the gateway. Only its hash is held."""

    id: str
    """Names the tenant; upstream keys may change, this does not."""
    sha256: str

    def matches(self, key: str) -> bool:
        """Whether it is this key, in constant time."""
        return hmac.compare_digest(hashlib.sha256(key.encode()).hexdigest(), self.sha256.lower())


def _default_strategy() -> Strategy:
    return strategy_by_name(DEFAULT_STRATEGY)


@dataclass(frozen=True)
class GatewayConfig:
    """Everything about a gateway. Immutable; checked when it is made.

    Raises:
        ConfigError: a setting cannot work, or would share sessions and keys with the network.
    """

    upstreams: Sequence[Upstream]
    """The first one takes what no other one is named for: `anthropic` takes that API's paths, `/u/NAME/...` goes to NAME."""
    host: str = "127.0.0.1"
    port: int = 8787
    mode: Mode = "on"
    journal: str | None = None
    """Path of the journal; None: the user's own."""
    windows: Mapping[str, int] = field(default_factory=dict)
    """Context windows by model; names may hold `*`."""
    strategy: Strategy = field(default_factory=_default_strategy)
    threshold: float | None = None
    """Occupancy at which a compaction is due, in tokens or as a share of the window; default four fifths."""
    target: int | None = None
    """Wanted size of a projected history, in tokens; default: the strategy's own."""
    recall: int = 1_000
    """Tokens of the recall block of a new message at most; 0: none."""
    summaries: bool = False
    """Let strategies that want a model's summary ask the upstream for it, with the key of the request."""
    registry: bool = True
    """Look for windows in the price registry where neither configuration nor a refusal named one."""
    keys: Sequence[GatewayKey] = ()
    max_body: int = 64 * 1024 * 1024
    """Bytes of a request body."""
    max_concurrent: int = 512
    """Requests at a time; more are asked to come back."""
    connect_timeout: float = 30.0
    client_timeout: float = 120.0
    """Seconds in which the body of a request must arrive."""
    read_timeout: float = 600.0
    """Seconds of silence from an upstream after which it counts as broken."""
    retention_days: float | None = None
    """Days after which a session in which nothing was said is deleted; None: never."""

    def __post_init__(self) -> None:
        if not self.upstreams:
            raise ConfigError("a gateway needs an upstream: --upstream URL, or [upstreams.NAME] in a file")
        names = [upstream.name for upstream in self.upstreams]
        if len(set(names)) < len(names):
            raise ConfigError(f"two upstreams have one name: {', '.join(names)}")
        if self.mode not in _MODES:
            raise ConfigError(f"the mode is one of {', '.join(_MODES)}, not {self.mode!r}")
        if not _is_loopback(self.host) and not self.keys:
            raise ConfigError(
                f"{self.host} can be reached from other machines, and without gateway keys anybody there could read these sessions and "
                "spend your keys; listen on 127.0.0.1, or add [[keys]]"
            )
        if len({key.id for key in self.keys}) < len(self.keys):
            raise ConfigError("two gateway keys have one id; each names a tenant of its own")
        times = (
            ("connect_timeout", self.connect_timeout),
            ("client_timeout", self.client_timeout),
            ("read_timeout", self.read_timeout),
        )
        for name, seconds in times:
            if seconds <= 0:
                raise ConfigError(f"{name} must be above 0 seconds, not {seconds:g}")
        for name, value in (("max_body", self.max_body), ("max_concurrent", self.max_concurrent)):
            if value < 1:
                raise ConfigError(f"{name} must be at least 1, not {value:,}")
        if self.recall < 0:
            raise ConfigError(f"recall is a number of tokens, 0 for none, not {self.recall:,}")
        for model, window in self.windows.items():
            if window < 1:
                raise ConfigError(f"the window of {model!r} must be at least 1 token, not {window:,}")

    def window(self, model: str) -> int | None:
        """The configured window of a model: by its name, else by the first pattern that fits."""
        if model in self.windows:
            return self.windows[model]
        return next((window for name, window in self.windows.items() if fnmatchcase(model, name)), None)

    def upstream(self, path: str) -> tuple[Upstream, str]:
        """Where a path goes, and the path there.

        Raises:
            ConfigError: no upstream of the name in the path.
        """
        named = {upstream.name: upstream for upstream in self.upstreams}
        if path.startswith("/u/"):
            name, _, rest = path[3:].partition("/")
            if name not in named:
                raise ConfigError(f"there is no upstream {name!r}; there are: {', '.join(sorted(named))}")
            return named[name], f"/{rest}"
        if "anthropic" in named and (path.startswith(("/v1/messages", "/messages"))):
            return named["anthropic"], path
        return self.upstreams[0], path

    def tenant(self, shown: Sequence[str]) -> str | None:
        """The tenant of whoever shows one of these keys; None for a stranger. Without gateway keys there is one, the local one."""
        if not self.keys:
            return LOCAL_TENANT
        return next((key.id for key in self.keys for given in shown if given and key.matches(given)), None)


def load_config(path: Path | None = None, **flags: Any) -> GatewayConfig:
    """The configuration of a TOML file, with what flags say in its place.

    Args:
        path: the file; None for none.
        flags: fields of `GatewayConfig`; None counts as not given.

    Raises:
        ConfigError: the file cannot be read, or a setting cannot work.
    """
    given: dict[str, Any] = {} if path is None else _read(path)
    if path is not None:
        given = _converted(given, path)
    given.update({name: value for name, value in flags.items() if value is not None})
    if isinstance(given.get("strategy"), str):
        given["strategy"] = strategy_by_name(given["strategy"], **given.pop("strategy_options", {}))
    else:
        given.pop("strategy_options", None)
    try:
        return GatewayConfig(**{"upstreams": (), **given})
    except TypeError as error:
        raise ConfigError(f"the gateway has no such setting: {error}") from error


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text())
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror or error}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is no TOML: {error}") from error


def _converted(given: dict[str, Any], path: Path) -> dict[str, Any]:
    try:
        upstreams = tuple(Upstream(name, **values) for name, values in given.pop("upstreams", {}).items())
        keys = tuple(_key(**values) for values in given.pop("keys", ()))
    except (TypeError, AttributeError) as error:
        raise ConfigError(f"{path}: an upstream needs a url, a key an id and key_env or sha256 ({error})") from error
    return {**given, "upstreams": upstreams, "keys": keys}


def _key(id: str, sha256: str | None = None, key_env: str | None = None) -> GatewayKey:  # noqa: A002 - its name in the file
    if sha256 is None:
        key = os.environ.get(key_env or "")
        if not key:
            raise ConfigError(
                f"the gateway key {id!r} needs sha256, or key_env with the name of a variable that is set"
            )
        sha256 = hashlib.sha256(key.encode()).hexdigest()
    return GatewayKey(id, sha256)


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _bare(url: str) -> str:
    """A URL without what may be secret in it."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname or ''}{parts.path}" if parts.scheme else url
