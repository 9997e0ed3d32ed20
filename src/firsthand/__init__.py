"""firsthand: context compaction for LLM agents that keeps the originals.

`compact` is the quick start: messages in, messages and a report out. `Session` keeps a journal and compacts by itself. Everything else is
imported from the module that it lives in.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .budget import Budget
    from .projection.report import Report
    from .quick import Compacted, compact
    from .session.session import AsyncSession, Session
    from .transcript import Entry, Transcript, View

__version__ = "0.1.0"

__all__ = [
    "AsyncSession",
    "Budget",
    "Compacted",
    "Entry",
    "Report",
    "Session",
    "Transcript",
    "View",
    "__version__",
    "compact",
]

_HOMES = {
    "Budget": "budget",
    "Compacted": "quick",
    "Entry": "transcript",
    "Report": "projection.report",
    "AsyncSession": "session.session",
    "Session": "session.session",
    "Transcript": "transcript",
    "View": "transcript",
    "compact": "quick",
}


def __getattr__(name: str) -> Any:
    """Imports a public name when it is first used, so that `import firsthand` costs next to nothing."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)
