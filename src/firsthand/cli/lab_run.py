"""`firsthand lab run`: what survives a compaction, for every strategy, on your own sessions."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from ..errors import ConfigError, FirsthandError, FormatError
from .output import stderr, stdout_json, table, write_bytes

if TYPE_CHECKING:
    from ..lab.results import Row
    from ..lab.runner import Origin, Setup

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
        typer.Option(metavar="N[,N...]|STRATEGY", help="Sizes in tokens, or a strategy whose size the others get."),
    ] = None,
    summariser: Annotated[
        str | None,
        typer.Option(help="none, extractive (a stand-in by rules) or a URL; several with commas; default both."),
    ] = None,
    exams: Annotated[str | None, typer.Option(help="Exams, separated by commas; default all.")] = None,
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
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; default one per core.")] = None,
    csv_file: Annotated[Path | None, typer.Option("--csv", help="Write the rows here.")] = None,
    figure: Annotated[Path | None, typer.Option(help="Draw the curves here (.png, .svg, .pdf).")] = None,
    cache: Annotated[
        Path | None, typer.Option(help="File of finished measurements; default in your cache folder.")
    ] = None,
    no_cache: Annotated[bool, typer.Option("--no-cache", help="Measure everything anew and keep nothing.")] = False,
    by_kind: Annotated[bool, typer.Option("--by-kind", help="Also a table by source of the values.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The rows as one JSON list on stdout.")] = False,
) -> None:
    """Measure what strategies keep. One row per measurement; interrupted runs go on where they stopped."""
    from ..lab.results import Cache, as_csv, scores
    from ..lab.runner import run as measured

    if synthetic == bool(files):
        raise ConfigError("name session files, or --synthetic, not both and not neither")
    setup = _setup(synthetic, strategies, at, mode, window, target, summariser, exams, carry, seeds)
    origins = _origins(files or [])
    if survival is not None:
        _replayed(origins, setup, _windows(survival), csv_file, as_json)
        return
    store = Cache(None if no_cache else cache or _default_cache())
    rows = measured(origins, setup, store, workers=workers, progress=_progress())
    if csv_file is not None:
        write_bytes(csv_file, [as_csv(rows).encode("utf-8", "replace")])
        stderr(f"wrote {len(rows):,} rows: {csv_file}")
    if figure is not None:
        from ..lab.figures import curves

        curves(scores(rows, 1), figure)
        stderr(f"figure: {figure}")
    if as_json:
        stdout_json([msgspec.to_builtins(row) for row in rows])
        return
    _print(rows, setup, len(origins), by_kind, 1 if synthetic else None)


def _setup(
    synthetic: bool,
    strategies: str | None,
    at: str,
    mode: str,
    window: int | None,
    target: str | None,
    summariser: str | None,
    exams: str | None,
    carry: bool | None,
    seeds: int,
) -> Setup:
    from ..lab.questions import EXAMS
    from ..lab.runner import Setup, default_strategies
    from ..strategies import strategy_class

    if mode not in ("forced", "deployed"):
        raise ConfigError(f"the mode is forced or deployed, not {mode!r}")
    names = tuple(_listed(strategies)) or default_strategies()
    for name in names:
        strategy_class(name)
    asked = tuple(_listed(exams)) or EXAMS
    if unknown := set(asked) - set(EXAMS):
        raise ConfigError(f"there is no exam {', '.join(sorted(unknown))}; choose of: {', '.join(EXAMS)}")
    sizes, of = _target(target)
    if of is not None and of not in names:
        names = (of, *names)
    setup = Setup(
        strategies=names,
        shares=tuple(_percent(part) for part in _listed(at)),
        mode="deployed" if mode == "deployed" else "forced",
        window=window or (1_000_000 if synthetic else 200_000),
        targets=sizes or (None,),
        target_of=of,
        summarisers=tuple(_listed(summariser)) or ("none", "extractive"),
        exams=asked,
        seeds=seeds,
        carry=synthetic if carry is None else carry,
    )
    if synthetic:
        # The published experiment: ceiling declared, characters by the quarter-token rule, no system prompt.
        return _changed(setup, output_ceiling=384_000, profile="futureos-e2", counter="estimate")
    return setup


def _changed(setup: Setup, **changes: Any) -> Setup:
    """A changed copy."""
    from dataclasses import replace

    return replace(setup, **changes)


def _windows(text: str) -> list[int]:
    parts = _listed(text)
    if not parts or not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise ConfigError(f"windows are numbers of tokens, such as 32000,128000,200000, not {text!r}")
    return list(map(int, parts))


def _replayed(
    origins: Sequence[Origin], setup: Setup, windows: list[int], csv_file: Path | None, as_json: bool
) -> None:
    """Survival: one session after the other, since each replay has a journal of its own."""
    from ..lab.results import as_csv
    from ..lab.runner import replay

    show = _progress()
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
            (row.strategy, row.summariser, row.window, row.boundary, row.exam, row.session[:8], row.outcome, equal),
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


def _listed(text: str | None) -> list[str]:
    return [part.strip() for part in (text or "").split(",") if part.strip()]


def _percent(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 100:
        raise ConfigError(f"a boundary is a whole percentage from 1 to 100, not {text!r}")
    return int(text)


def _target(text: str | None) -> tuple[tuple[int, ...], str | None]:
    from ..strategies import strategy_class

    parts = _listed(text)
    if all(part.isdecimal() and int(part) > 0 for part in parts):
        return tuple(map(int, parts)), None
    if len(parts) != 1:
        raise ConfigError(f"a target is sizes in tokens or one strategy, not {text!r}")
    strategy_class(parts[0])
    return (), parts[0]


def _origins(files: Sequence[Path]) -> list[Origin]:
    """The sessions of the files; what cannot be read is said and left out.

    Raises:
        FormatError: no file holds a session.
    """
    from ..formats import read_sessions
    from ..lab.runner import Origin
    from ..samples import CHAINS

    if not files:
        return [Origin(None, 0, name) for name in CHAINS]
    found: list[Origin] = []
    for path in _expanded(files):
        try:
            sessions = read_sessions(path)
        except FirsthandError as error:
            stderr(f"left out: {error}")
            continue
        found += [Origin(str(path), number) for number, session in enumerate(sessions) if session.entries]
    if not found:
        raise FormatError(f"none of the {len(files)} files holds a session")
    return found


def _expanded(files: Sequence[Path]) -> Sequence[Path]:
    from ..lab.inputs import expanded

    return expanded(files)


def _default_cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "firsthand" / "lab-run.jsonl"


def _progress() -> Callable[[int, int], None]:
    """Says how far a run is, about twenty times in all; in place where stderr is a terminal."""
    last = -1

    def show(done: int, total: int) -> None:
        nonlocal last
        step = done * 20 // max(1, total)
        if step != last or done == total:
            last = step
            if sys.stderr.isatty():
                sys.stderr.write(f"\r{done:,} of {total:,} boundaries" + ("\n" if done == total else ""))
                sys.stderr.flush()
            else:
                stderr(f"{done:,} of {total:,} boundaries")

    return show


def _print(rows: Sequence[Row], setup: Setup, sessions: int, by_kind: bool, least: int | None) -> None:
    from ..lab.results import LEAST_QUESTIONS, scores

    found = scores(rows, LEAST_QUESTIONS if least is None else least)
    for exam in dict.fromkeys(score.exam for score in found):
        table(
            ("strategy", "summary", "target", "score %", "95 %", "questions", "sessions", "false", "tokens", "ms"),
            [
                (
                    score.strategy, score.summariser, score.target, _percents(score.mean), _interval(score.low, score.high), score.values,
                    f"{score.sessions}" + (f" (+{score.listed} not judged)" if score.listed else ""), score.false_positives, score.tokens,
                    f"{score.milliseconds:.0f}",
                )
                for score in found if score.exam == exam
            ],
            title=f"{exam} (reader: literal)",
        )  # fmt: skip
    if by_kind:
        _print_kinds(rows)
    if setup.mode == "forced":
        whole = {(row.session, row.boundary, row.strategy, row.target) for row in rows if row.outcome == "whole"}
        if whole:
            typer.echo(
                f"Not in the tables: {len(whole):,} times a strategy left a history whole that it thought short enough."
            )
    typer.echo(
        f"{sessions:,} sessions, mode {setup.mode}, window {setup.window:,}. Sizes: o200k, exact; medians. Summary `none`: the rules alone, a "
        "placeholder where a summary would stand; `extractive`: lines chosen by rules, 2,000 tokens at most, no model. Score: hits / questions "
        f"in each session, mean over sessions with at least {LEAST_QUESTIONS if least is None else least} questions. "
        "One row per measurement: --json or --csv."
    )


def _print_kinds(rows: Sequence[Row]) -> None:
    groups: dict[tuple[str, str, str], dict[str, list[int]]] = {}
    for row in rows:
        if row.outcome == "whole" and row.mode == "forced":
            continue
        cell = groups.setdefault((row.exam, row.strategy, row.summariser), {}).setdefault(row.source, [0, 0])
        cell[0] += row.hits
        cell[1] += row.of
    table(
        ("exam", "strategy", "summary", "user", "assistant", "call", "tool"),
        (
            (*key, *(f"{cells[kind][0]:,}/{cells[kind][1]:,}" if kind in cells else "" for kind in ("user", "assistant", "call", "tool")))
            for key, cells in groups.items()
        ),
        title="Hits / questions by source, all sessions",
    )  # fmt: skip


def _percents(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.1f}"


def _interval(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"{100 * low:.0f}-{100 * high:.0f}"
