"""The command line as a whole: which commands there are, and how errors end.

Exit codes: 0 done; 1 the input or the journal refused (one line on stderr says why); 2 wrong usage; 3 the compaction was refused, with the
sizes; 4 `verify` found damage; 130 interrupted.
"""

from __future__ import annotations

import io
import sys
from typing import Annotated

import typer

from .. import __version__
from ..errors import CompactionRefusedError, FirsthandError
from . import compaction, doctor, gateway, history, journal, lab, mcp, samples, session, strategies, upkeep, wrap
from .output import stderr

__all__ = ["EXIT_DAMAGED", "EXIT_ERROR", "EXIT_REFUSED", "app", "run"]

EXIT_ERROR = 1
EXIT_REFUSED = 3
EXIT_DAMAGED = 4
EXIT_INTERRUPTED = 130

_INTERRUPTED = "interrupted; what was committed before is safe"

app = typer.Typer(
    name="firsthand",
    help="Keeps the originals of a long agent session and decides what the model still sees.",
    epilog="Exit codes: 0 done, 1 refused input, 2 wrong usage, 3 compaction refused, 4 damage found, 130 interrupted.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"firsthand {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Keeps the originals of a long agent session and decides what the model still sees."""


for group in (compaction, history, journal, upkeep, session, strategies, samples, lab, gateway, wrap, doctor, mcp):
    group.register(app)


def run() -> None:
    """Runs a command; every error that firsthand raises on purpose becomes one clear line and an exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # In a locale that lacks a character its code is printed; a list of sessions must not end in a traceback.
            stream.reconfigure(errors="backslashreplace")
    try:
        app()
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):
            # Whoever read our output has enough of it; that is no failure.
            sys.exit(0)
        if end.code == EXIT_INTERRUPTED:
            stderr(_INTERRUPTED)
        raise
    except CompactionRefusedError as error:
        stderr(f"refused ({error.reason}): {error}")
        sys.exit(EXIT_REFUSED)
    except FirsthandError as error:
        stderr(f"error: {error}")
        sys.exit(EXIT_ERROR)
    except BrokenPipeError:
        # Whoever read our output has enough of it; Python would complain while it closes stdout.
        sys.stderr.close()
        sys.exit(0)
    except OSError as error:
        stderr(f"error: {error.filename or ''}{': ' if error.filename else ''}{error.strerror or error}")
        sys.exit(EXIT_ERROR)
    except KeyboardInterrupt:
        stderr(_INTERRUPTED)
        sys.exit(EXIT_INTERRUPTED)
