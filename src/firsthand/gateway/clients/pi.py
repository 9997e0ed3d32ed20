"""Pi: an extension for this run sets the base URL of each provider, which goes before its own settings."""

from __future__ import annotations

import json
from pathlib import Path

from .base import ANTHROPIC, OPENAI, Invocation, Launch, Named, json_object

__all__ = ["Pi"]

_SUBCOMMANDS = frozenset({"install", "remove", "uninstall", "update", "list", "config"})
"""Words that make a call one about packages, which takes no extension."""


class Pi:
    """Pi, `pi`."""

    name = "Pi"
    program = "pi"
    install = "npm install -g @earendil-works/pi-coding-agent"

    def upstreams(self, call: Invocation) -> dict[str, str]:
        """Every provider whose base URL the settings name, and the two whose base URL is known."""
        folder = call.path("PI_CODING_AGENT_DIR", ".pi/agent")
        providers = json_object(folder / "models.json", "Pi's models").get("providers")
        found = {"anthropic": ANTHROPIC, "openai": OPENAI}
        for name, provider in (providers if isinstance(providers, dict) else {}).items():
            url = provider.get("baseUrl") if isinstance(provider, dict) else None
            if isinstance(url, str) and url.startswith("http"):
                found[name] = url
        return found

    def launch(self, call: Invocation, urls: Named, scratch: Path) -> Launch:
        """The extension, in front of the person's own arguments."""
        program, *arguments = call.command
        if arguments and arguments[0] in _SUBCOMMANDS:
            return Launch(call.command)
        extension = scratch / "firsthand-gateway.js"
        lines = [
            f"  pi.registerProvider({json.dumps(name)}, {{ baseUrl: {json.dumps(url)} }});"
            for name, url in urls.items()
        ]
        extension.write_text("\n".join(["export default function (pi) {", *lines, "}", ""]))
        return Launch((program, "-e", str(extension), *arguments))
