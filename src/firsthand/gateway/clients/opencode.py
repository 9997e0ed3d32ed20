"""OpenCode: settings in a variable, which it lays over all files, set the base URL of each provider."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from ...errors import ConfigError
from .base import ANTHROPIC, OPENAI, Invocation, Launch, Named, json_object

__all__ = ["OpenCode"]

_CONTENT = "OPENCODE_CONFIG_CONTENT"
_NAMES = ("config.json", "opencode.json", "opencode.jsonc")


class OpenCode:
    """OpenCode, `opencode`."""

    name = "OpenCode"
    program = "opencode"
    install = "npm install -g opencode-ai"

    def upstreams(self, call: Invocation) -> dict[str, str]:
        """Every provider whose base URL the settings name, and the two whose base URL is known."""
        providers = _settings(call).get("provider")
        found = {"anthropic": f"{ANTHROPIC}/v1", "openai": OPENAI}
        for name, provider in (providers if isinstance(providers, dict) else {}).items():
            options = provider.get("options") if isinstance(provider, dict) else None
            url = options.get("baseURL") if isinstance(options, dict) else None
            if isinstance(url, str) and url.startswith("http"):
                found[name] = url
        return found

    def launch(self, call: Invocation, urls: Named, scratch: Path) -> Launch:
        """The base URLs, laid over what the person's variable says already."""
        content = _inline(call)
        over = {"provider": {name: {"options": {"baseURL": url}} for name, url in urls.items()}}
        return Launch(call.command, {_CONTENT: json.dumps(_laid_over(content, over))})


def _settings(call: Invocation) -> dict[str, Any]:
    """All settings as OpenCode lays them over each other: the person's, the file that a variable names, the project's from above, the variable."""
    folder = call.path("XDG_CONFIG_HOME", ".config") / "opencode"
    files = [folder / name for name in _NAMES]
    if call.environment.get("OPENCODE_CONFIG"):
        files.append(Path(call.environment["OPENCODE_CONFIG"]))
    root = next((parent for parent in (call.folder, *call.folder.parents) if (parent / ".git").exists()), call.folder)
    above = [call.folder, *call.folder.parents]
    inside = above[: above.index(root) + 1][::-1]
    files += [parent / name for parent in inside for name in _NAMES[1:]]
    files += [parent / ".opencode" / name for parent in inside for name in _NAMES[1:]]
    found: dict[str, Any] = {}
    for file in files:
        if os.path.isfile(file):
            found = _laid_over(found, json_object(file, "OpenCode's settings"))
    return _laid_over(found, _inline(call))


def _inline(call: Invocation) -> dict[str, Any]:
    try:
        found = json.loads(call.environment.get(_CONTENT) or "{}")
    except ValueError as error:
        raise ConfigError(f"{_CONTENT} is no JSON: {error}") from error
    return found if isinstance(found, dict) else {}


def _laid_over(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    both = dict(below)
    for name, value in above.items():
        mine = both.get(name)
        both[name] = _laid_over(mine, value) if isinstance(mine, dict) and isinstance(value, dict) else value
    return both
