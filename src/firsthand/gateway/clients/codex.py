"""Codex: the provider that is in use keeps its key, headers and wire, and gets another base URL by `-c`."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

from ...errors import ConfigError
from .base import OPENAI, Invocation, Launch, Named, json_object

__all__ = ["Codex"]

_CHATGPT = "https://chatgpt.com/backend-api/codex"
"""Where the built-in provider sends requests for who is logged in with a subscription instead of a key."""
_BARE = re.compile(r"[A-Za-z0-9_-]+")


class Codex:
    """Codex, `codex`."""

    name = "Codex"
    program = "codex"
    install = "npm install -g @openai/codex"

    def upstreams(self, call: Invocation) -> dict[str, str]:
        """The one provider that this call would use."""
        settings = _settings(call)
        provider = _provider(call, settings)
        if provider == "openai":
            return {provider: str(settings.get("openai_base_url") or _built_in(call))}
        known = settings.get("model_providers")
        table = known.get(provider) if isinstance(known, dict) else None
        url = table.get("base_url") if isinstance(table, dict) else None
        return {provider: url if isinstance(url, str) else ""}

    def launch(self, call: Invocation, urls: Named, scratch: Path) -> Launch:
        """One setting, before the person's own arguments, so that a `-c` of theirs still holds."""
        [(provider, url)] = urls.items()
        name = provider if _BARE.fullmatch(provider) else json.dumps(provider)
        key = "openai_base_url" if provider == "openai" else f"model_providers.{name}.base_url"
        program, *arguments = call.command
        return Launch((program, "-c", f"{key}={json.dumps(url)}", *arguments))


def _settings(call: Invocation) -> dict[str, Any]:
    path = call.path("CODEX_HOME", ".codex") / "config.toml"
    try:
        return tomllib.loads(path.read_text())
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"Codex's settings at {path} cannot be read: {error}") from error


def _provider(call: Invocation, settings: dict[str, Any]) -> str:
    """What the command says, else the profile, else the file."""
    for setting in call.options("-c", "--config"):
        name, _, value = setting.partition("=")
        if name.strip() == "model_provider":
            return value.strip().strip("\"'")
    chosen = next(call.options("-p", "--profile"), settings.get("profile"))
    profiles = settings.get("profiles")
    profile = profiles.get(chosen) if isinstance(profiles, dict) else None
    named = profile.get("model_provider") if isinstance(profile, dict) else None
    return str(named or settings.get("model_provider") or "openai")


def _built_in(call: Invocation) -> str:
    if call.environment.get("CODEX_API_KEY"):
        return OPENAI
    login = json_object(call.path("CODEX_HOME", ".codex") / "auth.json", "Codex's login")
    return _CHATGPT if login.get("tokens") and not login.get("OPENAI_API_KEY") else OPENAI
