"""Any other program: the variables that the providers' SDKs read."""

from __future__ import annotations

from pathlib import Path

from .base import ANTHROPIC, OPENAI, Invocation, Launch, Named

__all__ = ["AnyProgram"]


class AnyProgram:
    """A program that calls a provider through its SDK."""

    name = "a program with the OpenAI or Anthropic SDK"
    program = ""
    install = ""

    def upstreams(self, call: Invocation) -> dict[str, str]:
        """What the variables say, else the providers themselves."""
        told = call.environment
        return {
            "openai": told.get("OPENAI_BASE_URL") or OPENAI,
            "anthropic": told.get("ANTHROPIC_BASE_URL") or ANTHROPIC,
        }

    def launch(self, call: Invocation, urls: Named, scratch: Path) -> Launch:
        """The same variables."""
        return Launch(call.command, {f"{name.upper()}_BASE_URL": url for name, url in urls.items()})
