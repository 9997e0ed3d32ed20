"""`firsthand lab run`: what survives a compaction, for every strategy, on your own sessions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from ..errors import ConfigError
from .lab_endpoint import JOBS, LedgerOption, PriceOption, PricesOption, listed, shown_progress
from .lab_setup import default_cache, origins_of, setup_of, targets_of
from .output import stderr, stdout_json, table, write_bytes

if TYPE_CHECKING:
    from ..lab.loaded import Origin
    from ..lab.results import Row
    from ..lab.run_setup import Setup

__all__ = ["register"]


def register(lab_app: typer.Typer) -> None:
    """Adds the command to the lab's group."""
    lab_app.command("run", epilog="Example: firsthand lab run session.jsonl --strategies futureos-deterministic,pi")(
        run
    )


def run(
    files: Annotated[list[Path] | None, typer.Argument(metavar="FILES", help="Session files.")] = None,
    synthetic: Annotated[
        bool, typer.Option("--synthetic", help="The three chains of the published experiment.")
    ] = False,
    strategies: Annotated[
        str | None, typer.Option(help="Names, separated by commas; default: all that run here.")
    ] = None,
    at: Annotated[str, typer.Option(help="Boundaries, in percent of the tokens.")] = "40,70,100",
    mode: Annotated[str, typer.Option(help="forced, or deployed: only where the strategy's trigger fires.")] = "forced",
    window: Annotated[
        int | None, typer.Option(min=1, help="Context window; default 200000, synthetic 1000000.")
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            metavar="N[,N...]|STRATEGY[:N][,...]",
            help="Sizes in tokens; or strategies (at N tokens) whose measured size the others get at each boundary, free and with that tail forced.",
        ),
    ] = None,
    counter: Annotated[
        str | None,
        typer.Option(
            help="Counter of the strategies' budgets: model, estimate or exact; default exact where a size is asked for, else model."
        ),
    ] = None,
    summariser: Annotated[
        str | None,
        typer.Option(help="none, extractive (a stand-in by rules) or a URL; several with commas; default both."),
    ] = None,
    model: Annotated[str | None, typer.Option(help="Name of the model, where the summariser is a URL.")] = None,
    exams: Annotated[str | None, typer.Option(help="Exams, separated by commas; default all.")] = None,
    recall: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="TOKENS", help="Ask cloze and published also with a recall block of at most so many tokens."
        ),
    ] = None,
    carry: Annotated[
        bool | None, typer.Option("--carry/--fresh", help="Hand on each strategy's own plan; default synthetic only.")
    ] = None,
    survival: Annotated[
        str | None,
        typer.Option(
            metavar="W[,W...]", help="Instead: replay with these windows; exams after compactions 1, 5 and 20."
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Draws.")] = 5,
    reader: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Instead: let a model (--model) read the projections, within --budget; `lab ask` with this command's strategies and boundaries.",
        ),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(metavar="AMOUNT", help="With --reader: the most that all calls may cost, such as '1.50 USD'."),
    ] = None,
    price: PriceOption = None,
    prices: PricesOption = None,
    ledger: LedgerOption = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, max=64, help=f"With --reader: calls at a time; default {JOBS}.")
    ] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; default one per core.")] = None,
    csv_file: Annotated[Path | None, typer.Option("--csv", help="Write the rows here.")] = None,
    figure: Annotated[Path | None, typer.Option(help="Draw the curves here (.png, .svg, .pdf).")] = None,
    cache: Annotated[
        Path | None, typer.Option(help="File of finished measurements; default in your cache folder.")
    ] = None,
    no_cache: Annotated[bool, typer.Option("--no-cache", help="Measure everything anew and keep nothing.")] = False,
    by_kind: Annotated[bool, typer.Option("--by-kind", help="Also a table by source of the values.")] = False,
    by_session: Annotated[bool, typer.Option("--by-session", help="Also a table of each session.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The rows as one JSON list on stdout.")] = False,
) -> None:
    """Measure what strategies keep. One row per measurement; interrupted runs go on where they stopped."""
    from ..lab.results import Cache, as_csv, scores
    from ..lab.runner import run as measured

    if synthetic == bool(files):
        raise ConfigError("name session files, or --synthetic, not both and not neither")
    if reader is not None:
        _read(
            reader,
            budget,
            files,
            synthetic,
            strategies,
            at,
            mode,
            window,
            target,
            summariser,
            model,
            exams,
            price,
            prices,
            ledger,
            jobs,
            csv_file,
            as_json,
        )
        return
    if (budget, price, prices, ledger, jobs) != (None, None, None, None, None):
        raise ConfigError("--budget, --price, --prices, --ledger and --jobs go with --reader")
    setup = setup_of(
        synthetic, strategies, at, mode, window, target, counter, summariser, model, exams, recall, carry, seeds
    )
    origins = origins_of(files or [])
    if survival is not None:
        if setup.rivals:
            raise ConfigError(
                "--survival replays with its own compactions, so no rival has a size there; give --target in tokens"
            )
        _replayed(origins, setup, _windows(survival), csv_file, as_json)
        return
    store = Cache(None if no_cache else cache or default_cache())
    rows = measured(origins, setup, store, workers=workers, progress=shown_progress("boundaries"))
    if csv_file is not None:
        write_bytes(csv_file, [as_csv(rows).encode("utf-8", "replace")])
        stderr(f"wrote {len(rows):,} rows: {csv_file}")
    if figure is not None:
        from ..lab.figures.curves import curves

        curves(scores(rows, 1), figure)
        stderr(f"figure: {figure}")
    if as_json:
        stdout_json([msgspec.to_builtins(row) for row in rows])
        return
    from .lab_run_tables import print_run

    print_run(rows, setup, len(origins), by_kind=by_kind, by_session=by_session, least=1 if synthetic else None)


def _read(
    reader: str,
    budget: str | None,
    files: list[Path] | None,
    synthetic: bool,
    strategies: str | None,
    at: str,
    mode: str,
    window: int | None,
    target: str | None,
    summariser: str | None,
    model: str | None,
    exams: str | None,
    price: str | None,
    prices: Path | None,
    ledger: Path | None,
    jobs: int | None,
    csv_file: Path | None,
    as_json: bool,
) -> None:
    """A model in the place of the literal reader; its rows and tables are its own, so no column holds both."""
    from ..lab.model.batches import MODEL_EXAMS
    from ..lab.runner import default_strategies
    from .lab_model import ask

    if budget is None or model is None:
        raise ConfigError("--reader needs --model and --budget: every call is paid for")
    sizes, rivals = targets_of(target)
    if rivals or len(sizes) > 1 or mode != "forced":
        raise ConfigError("a model reads at one size, forced; for other runs leave out --reader")
    by = listed(summariser) or ["extractive"]
    if len(by) > 1:
        raise ConfigError("a model reads with one summariser at a time; name none or extractive, or the reader itself")
    ask(
        reader=reader,
        model=model,
        budget=budget,
        files=files,
        synthetic=synthetic,
        strategies=strategies or ",".join(default_strategies()),
        exams=exams or ",".join(name for name in MODEL_EXAMS if name != "published"),
        at=at,
        summariser="model" if by[0] == reader else by[0],
        target=sizes[0] if sizes else None,
        window=window or 200_000,
        price=price,
        prices=prices,
        ledger=ledger,
        jobs=jobs or JOBS,
        csv_file=csv_file,
        as_json=as_json,
    )


def _windows(text: str) -> list[int]:
    parts = listed(text)
    if not parts or not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise ConfigError(f"windows are numbers of tokens, such as 32000,128000,200000, not {text!r}")
    return list(map(int, parts))


def _sized(row: Row) -> str:
    return row.strategy if row.target is None else f"{row.strategy} at {row.target:,}"


def _replayed(
    origins: Sequence[Origin], setup: Setup, windows: list[int], csv_file: Path | None, as_json: bool
) -> None:
    """Survival: one session after the other, since each replay has a journal of its own."""
    from ..lab.results import as_csv
    from ..lab.runner import replay

    show = shown_progress("boundaries")
    rows: list[Row] = []
    for number, origin in enumerate(origins, start=1):
        rows += replay(origin, setup, windows)
        show(number, len(origins))
    if csv_file is not None:
        write_bytes(csv_file, [as_csv(rows).encode("utf-8", "replace")])
        stderr(f"wrote {len(rows):,} rows: {csv_file}")
    if as_json:
        stdout_json([msgspec.to_builtins(row) for row in rows])
        return
    cells: dict[tuple[object, ...], list[int]] = {}
    for row in rows:
        equal = "" if row.equal is None else "yes" if row.equal else "no"
        cell = cells.setdefault(
            (_sized(row), row.summariser, row.window, row.boundary, row.exam, row.session[:8], row.outcome, equal),
            [0, 0, row.tokens],
        )
        cell[0] += row.hits
        cell[1] += row.of
    table(
        ("strategy", "summary", "window", "after", "exam", "session", "outcome", "at once", "hits", "tokens"),
        ((*key, f"{hits}/{of}", tokens) for key, (hits, of, tokens) in cells.items()),
        title="Survival (reader: literal)",
    )
    typer.echo(
        "`at once`: whether the plan equals the one computed at once from the originals; empty where that needs a summary."
    )
