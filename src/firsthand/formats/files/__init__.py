"""Readers of session files, one file per format.

`READERS` are ours. Other packages add theirs through the entry-point group `firsthand.formats`: an object, or a class without
arguments, that satisfies `firsthand.formats.files.base.Reader`. They are loaded only when no reader of ours knows a file, or by name.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points

from ...errors import ConfigError, UnknownNameError
from .aider import AiderReader
from .base import Input, Reader
from .claude_code.reader import ClaudeCodeReader
from .codex.reader import CodexReader
from .cursor import CursorReader
from .firsthand import FirsthandReader
from .gemini.reader import GeminiReader
from .messages import MessagesReader
from .opencode.reader import OpenCodeReader
from .openhands.reader import OpenHandsReader
from .pi.reader import PiReader
from .swe_agent.reader import SweAgentReader
from .tau_bench import TauBenchReader

__all__ = ["ENTRY_POINTS", "READERS", "Input", "Reader", "format_names", "reader_by_name", "third_party_readers"]

ENTRY_POINTS = "firsthand.formats"

# Asked in this order. Message lists stand before OpenCode, whose ids look like those of the providers.
READERS: tuple[Reader, ...] = (
    FirsthandReader(),
    ClaudeCodeReader(),
    CodexReader(),
    PiReader(),
    GeminiReader(),
    SweAgentReader(),
    TauBenchReader(),
    OpenHandsReader(),
    CursorReader(),
    AiderReader(),
    MessagesReader("openai-chat", "OpenAI Chat Completions API"),
    MessagesReader("openai-responses", "OpenAI Responses API"),
    MessagesReader("anthropic", "Anthropic Messages API"),
    OpenCodeReader(),
)


def format_names() -> list[str]:
    """The names of all formats, ours and those of other packages, without loading the latter."""
    return [*(reader.name for reader in READERS), *(point.name for point in entry_points(group=ENTRY_POINTS))]


def reader_by_name(name: str) -> Reader:
    """The reader of the format `name`.

    Raises:
        UnknownNameError: there is none of that name.
        ConfigError: another package's reader of that name cannot be loaded.
    """
    for reader in READERS:
        if reader.name == name:
            return reader
    if any(point.name == name for point in entry_points(group=ENTRY_POINTS)):
        return _loaded(name)
    raise UnknownNameError("format", name, format_names())


def third_party_readers() -> tuple[Reader, ...]:
    """The readers that other packages bring.

    Raises:
        ConfigError: one of them cannot be loaded; names it.
    """
    return tuple(_loaded(point.name) for point in entry_points(group=ENTRY_POINTS))


@cache
def _loaded(name: str) -> Reader:
    (point, *_) = entry_points(group=ENTRY_POINTS, name=name)
    try:
        found = point.load()
        reader = found() if isinstance(found, type) else found
        whole = callable(reader.sniff) and callable(reader.read) and isinstance(reader.name, str)
    except Exception as error:
        raise ConfigError(
            f"the reader {name!r} of another package ({point.value}) cannot be loaded: {error}; fix or uninstall the package"
        ) from error
    if not whole:
        raise ConfigError(f"{point.value}, registered as the reader {name!r}, has no name, sniff and read")
    return reader  # type: ignore[no-any-return]
