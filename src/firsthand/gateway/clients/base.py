"""What every client's settings have in common."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from ...errors import ConfigError

__all__ = ["ANTHROPIC", "OPENAI", "ClientSettings", "Invocation", "Launch", "Named", "json_object"]

OPENAI = "https://api.openai.com/v1"
ANTHROPIC = "https://api.anthropic.com"

Named = Mapping[str, str]
"""Base URLs by the provider's name."""


@dataclass(frozen=True)
class Invocation:
    """One call of a client, as the person wrote it."""

    command: tuple[str, ...]
    """The program and its arguments."""
    environment: Mapping[str, str]
    folder: Path
    """The work folder."""

    @property
    def home(self) -> Path:
        """The person's home."""
        return Path(self.environment.get("HOME") or self.environment.get("USERPROFILE") or Path.home())

    def path(self, variable: str, default: str) -> Path:
        """A folder that a variable names, else one in the home."""
        named = self.environment.get(variable)
        return Path(named).expanduser() if named else self.home / default

    def options(self, *names: str) -> Iterator[str]:
        """The values that the command gives for an option, in order: `--name value`, `--name=value`, `-n value`, `-nvalue`."""
        words = iter(self.command[1:])
        for word in words:
            if word == "--":
                return
            if word in names:
                value = next(words, None)
                if value is not None:
                    yield value
                continue
            for name in names:
                short = re.fullmatch(r"-[a-zA-Z]", name) is not None
                if word.startswith(name if short else f"{name}="):
                    yield word[len(name) :].removeprefix("=")


@dataclass(frozen=True)
class Launch:
    """How the client is to be started."""

    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables that differ from the person's own."""


class ClientSettings(Protocol):
    """How one client is set up for a run behind a gateway."""

    name: str
    """What people call it."""
    program: str
    """Its file's name."""
    install: str
    """How it is had."""

    def upstreams(self, call: Invocation) -> dict[str, str]:
        """The providers that this call may talk to, by name, as the client's own settings have them; "" for one that they give no URL for.

        Raises:
            ConfigError: its settings cannot be read, or send requests where no gateway can stand.
        """
        ...

    def launch(self, call: Invocation, urls: Named, scratch: Path) -> Launch:
        """The call with the gateway in place of the providers.

        Args:
            call: the call.
            urls: base URLs at the gateway, by the provider's name. One ends in `/v1` where the provider's does.
            scratch: an empty folder that lasts as long as the run.
        """
        ...


def json_object(path: Path, what: str) -> dict[str, Any]:
    """A JSON file's object; {} where there is no such file. Comments and commas at the end of a list are no error (JSONC).

    Raises:
        ConfigError: it cannot be read, or holds something else.
    """
    try:
        text = path.read_text()
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {what} at {path}: {error}") from error
    try:
        found = json.loads(_plain(text) or "{}")
    except ValueError as error:
        raise ConfigError(f"{what} at {path} is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise ConfigError(f"{what} at {path} holds a {type(found).__name__}, not an object")
    return found


_STRING_OR_COMMENT = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
_STRING_OR_COMMA = re.compile(r'"(?:[^"\\]|\\.)*"|,(?=\s*[}\]])', re.DOTALL)


def _plain(text: str) -> str:
    """JSON out of JSONC."""
    text = _STRING_OR_COMMENT.sub(lambda found: found[0] if found[0].startswith('"') else " ", text)
    return _STRING_OR_COMMA.sub(lambda found: found[0] if found[0].startswith('"') else "", text).strip()
