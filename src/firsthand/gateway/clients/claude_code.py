"""Claude Code: a variable, or, where the person's own settings set the same variable, a setting on the command line that goes before them."""

from __future__ import annotations

import json
from pathlib import Path

from ...errors import ConfigError
from .base import ANTHROPIC, Invocation, Launch, Named, json_object

__all__ = ["ClaudeCode"]

_URL = "ANTHROPIC_BASE_URL"
_ELSEWHERE = ("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY")


class ClaudeCode:
    """Claude Code, `claude`."""

    name = "Claude Code"
    program = "claude"
    install = "npm install -g @anthropic-ai/claude-code"

    def upstreams(self, call: Invocation) -> dict[str, str]:
        """Anthropic, or what `ANTHROPIC_BASE_URL` says."""
        told = {**call.environment, **self._own(call)}
        for name in _ELSEWHERE:
            if told.get(name) not in (None, "", "0", "false"):
                raise ConfigError(
                    f"{name} is set: Claude Code then speaks to a cloud's own API, where no gateway stands; unset it for this run"
                )
        return {"anthropic": told.get(_URL) or ANTHROPIC}

    def launch(self, call: Invocation, urls: Named, scratch: Path) -> Launch:
        """The variable, and the setting where one of the person's settings would go before the variable."""
        url = urls["anthropic"]
        if _URL not in self._own(call):
            return Launch(call.command, {_URL: url})
        given = list(call.options("--settings"))
        if given:
            raise ConfigError(
                f"your settings set {_URL}, and the call has --settings of its own; leave one of them out for this run"
            )
        program, *arguments = call.command
        return Launch((program, "--settings", json.dumps({"env": {_URL: url}}), *arguments), {_URL: url})

    def _own(self, call: Invocation) -> dict[str, str]:
        """Variables that the person's settings set; later files go before earlier ones."""
        found: dict[str, str] = {}
        folder = call.path("CLAUDE_CONFIG_DIR", ".claude")
        project = call.folder / ".claude"
        for file in (folder / "settings.json", project / "settings.json", project / "settings.local.json"):
            set_there = json_object(file, "Claude Code's settings").get("env")
            if isinstance(set_there, dict):
                found.update({str(name): str(value) for name, value in set_there.items()})
        return found
