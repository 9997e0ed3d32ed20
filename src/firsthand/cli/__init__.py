"""The command line. One file per command group; each only calls the library."""

from __future__ import annotations

__all__ = ["main"]


def main() -> None:
    """Entry point of the `firsthand` command."""
    from .app import run

    run()
