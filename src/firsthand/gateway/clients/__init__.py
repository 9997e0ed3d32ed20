"""How each client is told to talk to a gateway for one run, with its own settings kept otherwise; one file per client.

Nothing of the person's is written: a client gets options on its command line, variables, or a file in a folder that goes away with the run.
"""

from __future__ import annotations

from .base import ClientSettings, Invocation, Launch, Named
from .claude_code import ClaudeCode
from .codex import Codex
from .opencode import OpenCode
from .pi import Pi
from .sdk import AnyProgram

__all__ = ["CLIENTS", "ClientSettings", "Invocation", "Launch", "Named", "client_of"]

CLIENTS: tuple[ClientSettings, ...] = (Codex(), ClaudeCode(), OpenCode(), Pi())


def client_of(program: str) -> ClientSettings:
    """The client that a program is, by its file's name; any other program counts as one that uses the providers' SDKs."""
    name = program.replace("\\", "/").rpartition("/")[2].removesuffix(".exe").removesuffix(".cmd")
    return next((client for client in CLIENTS if client.program == name), AnyProgram())
