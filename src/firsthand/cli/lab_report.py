"""`firsthand lab report`: everything that needs no paid model, as one page to read, print and publish."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import ConfigError
from .lab_endpoint import PriceOption, PricesOption, listed, shown_progress
from .lab_setup import default_cache, setup_of, targets_of
from .output import stderr, stdout_json, write_bytes

if TYPE_CHECKING:
    from ..lab.report.gather import Wish
    from ..lab.report.pictures import Picture
    from ..lab.report.record import Record
    from ..lab.run_setup import Setup

__all__ = ["register"]

_MODEL = "claude-sonnet-4-5"


def register(lab_app: typer.Typer) -> None:
    """Adds the command to the lab's group."""
    lab_app.command("report", epilog="Example: firsthand lab report session.jsonl --out report.html")(report)


def report(
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="[FILES]", help="Session files, or folders of them.")
    ] = None,
    out: Annotated[Path, typer.Option(help="The page.")] = Path("report.html"),
    synthetic: Annotated[
        bool,
        typer.Option(
            "--synthetic",
            help="Instead of files: the published experiment's chains, written to a folder beside the page.",
        ),
    ] = False,
    report_only: Annotated[
        bool, typer.Option("--report-only", help="Measure nothing: make the page again from the rows stored beside it.")
    ] = False,
    stored: Annotated[
        Path | None, typer.Option(help="File of the stored rows; default beside the page, ending in .rows.json.gz.")
    ] = None,
    figures: Annotated[Path | None, typer.Option(help="Also write each figure here, as SVG and PNG.")] = None,
    rows: Annotated[
        list[Path] | None,
        typer.Option(
            help="Rows that lab run, ask, cache or openbook wrote (CSV or JSON), instead of measuring; repeatable."
        ),
    ] = None,
    ledger: Annotated[
        list[Path] | None, typer.Option(help="Ledger of paid calls, for what was charged; repeatable.")
    ] = None,
    strategies: Annotated[
        str | None, typer.Option(help="Names, separated by commas; default: all that run here.")
    ] = None,
    parts: Annotated[
        str | None,
        typer.Option(help="compose, run, chains, recall, curves, equal, survival, audit, money, example; default all."),
    ] = None,
    window: Annotated[int | None, typer.Option(min=1, help="Context window; default 200000.")] = None,
    sizes: Annotated[str, typer.Option(help="Sizes of the curves, in tokens.")] = "4000,16000,64000",
    target: Annotated[
        str | None,
        typer.Option(
            metavar="STRATEGY[:N][,...]", help="Also compare at these strategies' measured sizes; see `lab run`."
        ),
    ] = None,
    survival: Annotated[
        str | None,
        typer.Option(
            metavar="W[,W...]", help="Replay with these windows; without it, only what was replayed before is shown."
        ),
    ] = None,
    recall: Annotated[int, typer.Option(min=1, help="Tokens of the recall block.")] = 1_000,
    model: Annotated[str, typer.Option(help="The model whose price counts.")] = _MODEL,
    price: PriceOption = None,
    currency: Annotated[str, typer.Option(help="Of --price.")] = "USD",
    prices: PricesOption = None,
    seeds: Annotated[int, typer.Option(min=1, help="Draws.")] = 5,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; default one per core.")] = None,
    cache: Annotated[
        Path | None, typer.Option(help="File of finished measurements; default that of `lab run`.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Where everything was written, as one JSON object on stdout.")
    ] = False,
) -> None:
    """Measure what needs no paid model, and write one page that opens without a network.

    What `lab run` measured before is taken from its cache; an interrupted report goes on where it stopped.
    """
    from ..lab.report.record import read_record, write_record

    kept = stored or out.with_name(out.name.removesuffix(".html") + ".rows.json.gz")
    if report_only:
        if files or synthetic:
            raise ConfigError("--report-only takes the stored rows and no files")
        _written(read_record(kept), out, kept, figures, as_json)
        return
    if (synthetic and files) or not (synthetic or files or rows):
        raise ConfigError("name session files, or --synthetic, or files of --rows; or --report-only")
    from ..lab.report.gather import PARTS, gathered

    chosen = tuple(listed(parts)) or PARTS
    if unknown := set(chosen) - set(PARTS):
        raise ConfigError(f"there is no part {', '.join(sorted(unknown))}; choose of: {', '.join(PARTS)}")
    named = _chain_files(out) if synthetic else files or []
    setup = setup_of(False, strategies, "40,70,100", "forced", window, None, None, None, None, None, None, None, seeds)
    options = {
        "--strategies": strategies, "--parts": parts, "--window": window, "--sizes": None if sizes == "4000,16000,64000" else sizes,
        "--target": target, "--survival": survival, "--recall": None if recall == 1_000 else recall, "--model": None if model == _MODEL else model,
        "--price": price, "--currency": None if currency == "USD" else currency, "--prices": prices, "--seeds": None if seeds == 5 else seeds,
    }  # fmt: skip
    told = ["firsthand", "lab", "report", *(["--synthetic"] if synthetic else map(str, named)), "--out", str(out)]
    told += [part for name, value in options.items() if value is not None for part in (name, str(value))]
    told += [
        part
        for name, paths in (("--rows", rows), ("--ledger", ledger))
        for path in paths or []
        for part in (name, str(path))
    ]
    wish = _wish(
        shlex.join(told), named, setup, chosen, cache or default_cache(), sizes, target, survival, model, price, currency, prices
    )  # fmt: skip
    wish = replace(wish, rows=tuple(rows or ()), ledgers=tuple(ledger or ()), recall=recall, workers=workers)
    record = gathered(wish, say=lambda name: stderr(f"measuring: {name}"), show=shown_progress)
    write_record(record, kept)
    _written(record, out, kept, figures, as_json)


def _wish(
    command: str,
    files: Sequence[Path],
    setup: Setup,
    parts: Sequence[str],
    cache: Path,
    sizes: str,
    target: str | None,
    survival: str | None,
    model: str,
    price: str | None,
    currency: str,
    prices: Path | None,
) -> Wish:
    from ..lab.cache.stored import kept_measurements
    from ..lab.inputs import expanded
    from ..lab.money.prices import price_given, price_of, read_prices
    from ..lab.report.gather import Wish
    from ..lab.results import Cache
    from ..strategies import strategy_by_name
    from .lab import read_sources

    # A file that is named twice, or in a folder that is named too, is one file.
    sources = list(read_sources(list(dict.fromkeys(expanded(files))))) if files else []
    sizes_, none = targets_of(sizes)
    more, rivals = targets_of(target)
    windows, no_names = targets_of(survival)
    if none or more or no_names:
        raise ConfigError("--sizes and --survival take numbers of tokens, and --target names of strategies")
    own = read_prices(prices) if prices else None
    cost = price_of(model, own) if price is None else price_given(model, price, currency)
    given = f" --price {price}" + (f" --currency {currency}" if currency != "USD" else "") if price else ""
    table = f" --prices {shlex.quote(str(prices))}" if prices else ""
    return Wish(
        command=command,
        sources=sources,
        files=files,
        setup=setup,
        cache=Cache(cache),
        replays=Cache(cache.with_name("lab-replays.jsonl")),
        parts=parts,
        sizes=sizes_,
        curve_strategies=[name for name in setup.strategies if strategy_by_name(name).at_size(8_000) is not None],
        rivals=target or "",
        equal=replace(setup, rivals=rivals, targets=(None,)) if rivals else None,
        windows=windows,
        price=cost,
        price_option=f"--model {shlex.quote(model)}{given}{table}",
        stored_cache=kept_measurements(cache.parent),
        now=f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
    )


def _chain_files(out: Path) -> list[Path]:
    """The chains as files, so that they are inputs like any others."""
    from ..codec import encode
    from ..formats.wire import wire_by_name
    from ..samples import CHAINS, chain

    folder = out.with_name(out.name.removesuffix(".html") + ".chains")
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for name in CHAINS:
        path = folder / f"{name}.jsonl"
        messages = wire_by_name("openai-chat").write(chain(name).entries).messages
        write_bytes(path, [b"\n".join(map(encode, messages)) + b"\n"])
        made.append(path)
    return made


def _written(record: Record, out: Path, kept: Path, figures: Path | None, as_json: bool) -> None:
    from ..lab.report.page import MOST_BYTES, page
    from ..lab.report.pictures import pictures

    drawn = pictures(record)
    made = page(record, drawn).encode("utf-8", "replace")
    write_bytes(out, [made])
    names = _drawn(drawn, figures) if figures is not None else []
    if as_json:
        stdout_json({"page": str(out), "bytes": len(made), "rows": str(kept), "figures": [str(path) for path in names]})
    else:
        typer.echo(f"{out}: {len(made):,} bytes. Stored rows: {kept}; again from them: --report-only.")
    if len(made) > MOST_BYTES:
        stderr(f"the page is larger than {MOST_BYTES:,} bytes; leave out --parts, or name fewer files")


def _drawn(drawn: Sequence[Picture], folder: Path) -> list[Path]:
    from ..lab.figures.style import picture

    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for one in drawn:
        for kind in ("svg", "png"):
            path = folder / f"{one.key}.{kind}"
            write_bytes(path, [picture(one.figure, kind)])
            made.append(path)
    return made
