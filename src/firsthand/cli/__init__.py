"""The command line. One file per command group; each only calls the library."""

from __future__ import annotations

__all__ = ["main"]


def main() -> None:
    """Entry point of the `firsthand` command."""
    try:
        from .app import run
    except KeyboardInterrupt:
        # Interrupted before there was anything to interrupt.
        raise SystemExit(130) from None
    run()
