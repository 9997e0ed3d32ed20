"""`firsthand compact`: what would the next request still show?"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from ..codec import compact_json, encode
from ..errors import CompactionRefusedError, ConfigError
from ..strategies import DEFAULT_STRATEGY, strategy_by_name
from ..tokens import Counter, block_cost, counter_by_name, counter_for_model
from ..transcript import Entry, Transcript, View
from .output import stderr, stdout_json, table, write_bytes
from .source import JournalOption, session_source

if TYPE_CHECKING:
    from ..projection.plan import Fate, Plan
    from ..projection.report import Counts, Report
    from ..strategies.contract import Strategy
    from ..summary.model import HttpModel

__all__ = ["register"]

_WITH_SUMMARY = {"coverage": "coverage+summary", "futureos-deterministic": "futureos-summarized"}
"""Which strategy adds a summary to one that works by rules alone."""


def register(app: typer.Typer) -> None:
    """Adds the commands of this group."""
    app.command(
        "compact", epilog="Example: firsthand compact session.jsonl --window 200000 --to anthropic --out next.json"
    )(compact)


def compact(
    source: Annotated[str, typer.Argument(metavar="SESSION|FILE", help="A session of the journal, or a session file.")],
    strategy: Annotated[str, typer.Option(help="See `firsthand strategies`.")] = DEFAULT_STRATEGY,
    option: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="An option of the strategy; repeatable.")
    ] = None,
    window: Annotated[int, typer.Option(min=1, help="Context window in tokens.")] = 200_000,
    output_ceiling: Annotated[
        int | None, typer.Option(min=0, help="Output tokens that the request will ask for; default min(W/4, 32000).")
    ] = None,
    target: Annotated[int | None, typer.Option(min=1, help="Wanted size of the history afterwards, in tokens.")] = None,
    counter: Annotated[
        str | None,
        typer.Option(help="estimate, o200k, calibrated or calibrated:MODEL; default by the session's model."),
    ] = None,
    profile: Annotated[str, typer.Option(help="product, futureos-e3 or futureos-e2.")] = "product",
    to: Annotated[
        str | None, typer.Option(help="Write the messages as openai-chat, openai-responses, anthropic or text.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="File for the messages; stdout when only --to is given.")] = None,
    instructions: Annotated[str | None, typer.Option(help="Your note on what matters, kept verbatim.")] = None,
    summary: Annotated[
        bool,
        typer.Option(
            "--summary",
            help="Add a summary that a model writes; needs --model-url, and installs the result as --commit does.",
        ),
    ] = False,
    model_url: Annotated[
        str | None,
        typer.Option(
            envvar="FIRSTHAND_MODEL_URL", help="OpenAI-compatible endpoint, such as http://127.0.0.1:8080/v1."
        ),
    ] = None,
    model: Annotated[str, typer.Option(help="Name of the model at that endpoint.")] = "",
    commit: Annotated[
        bool,
        typer.Option("--commit", help="Install the result as the session's checkpoint (sessions of the journal only)."),
    ] = False,
    if_due: Annotated[bool, typer.Option("--if-due", help="Compact only when the trigger is reached.")] = False,
    session: Annotated[str | None, typer.Option(help="Which session, when the file holds several.")] = None,
    format_name: Annotated[
        str | None, typer.Option("--format", help="Format of the file; told by content when left out.")
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="List the fate of each block, and why each excerpt was chosen.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The report as one JSON object on stdout.")] = False,
    journal: JournalOption = None,
) -> None:
    """Decide what the next request still shows, write it, and say what was left out. Originals are never changed.

    A key for the model is taken from FIRSTHAND_MODEL_KEY.
    """
    if summary or commit:
        given = {
            "--to": to,
            "--out": out,
            "--if-due": if_due,
            "--explain": explain,
            "--session": session,
            "--format": format_name,
        }
        unheard = [name for name, value in given.items() if value] + (["--profile"] if profile != "product" else [])
        if unheard:
            raise ConfigError(
                f"--commit and --summary take no {', '.join(unheard)}; run `compact` again afterwards to see what is shown"
            )
        settings: dict[str, Any] = {"window": window, "output_ceiling": output_ceiling, "target": target, "auto": False}
        settings["strategy"] = _session_strategy(strategy, option or [], summary)
        if summary:
            settings["summariser"] = _summariser(model_url, model)
        if counter is not None:
            settings["counter"] = counter_by_name(counter)
        _install(source, settings, instructions, as_json, journal)
        return
    from ..budget import Budget
    from ..quick import compact_view
    from ..strategies.contract import CompactionRequest

    if as_json and to is not None and out is None:
        raise ConfigError("--json and --to both want stdout; give --out FILE for the messages")
    transcript, view, where = session_source(source, journal, session, format_name)
    used = _counter(counter, transcript)
    budget = Budget.of(
        window,
        output_ceiling,
        fixed=_fixed(transcript, used),
        counter=used,
        profile=profile,
        target=target,
    )
    chosen = strategy_by_name(strategy, **_options(option or []))
    request = CompactionRequest(
        trigger="automatic" if if_due else "manual",
        phase="pre_turn" if if_due else "standalone",
        instructions=instructions,
    )
    try:
        plan, shown, report = compact_view(view, budget, chosen, request)
    except CompactionRefusedError as error:
        if as_json:
            stdout_json(
                {
                    "strategy": strategy,
                    "window": window,
                    "input_limit": budget.input_limit,
                    "counter": used.name,
                    "outcome": "refused",
                    "reason": error.reason,
                    "message": str(error),
                    "sizes": error.sizes,
                }
            )
        raise
    if to is not None or out is not None:
        write_bytes(out, _written(shown, to or "openai-chat"))
    if as_json:
        value = msgspec.to_builtins(report)
        if explain:
            value["blocks"] = list(_explained(view, plan, used))
        stdout_json(value)
    elif to is not None and out is None:
        stderr(_headline(report))
    else:
        _print_report(transcript, report, where)
        if explain:
            table(
                ("entry", "block", "kind", "fate", "tokens", "shown", "why"),
                _gathered(_explained(view, plan, used)),
            )
        if out is not None:
            typer.echo(f"The next request's messages ({to or 'openai-chat'}): {out}")


def _session_strategy(name: str, pairs: Iterable[str], summary: bool) -> Strategy:
    """The strategy for a session of the journal: recomputed from originals where it can be."""
    options = _options(pairs)
    if name.startswith("futureos-"):
        options.setdefault("from_originals", True)
    return strategy_by_name(_WITH_SUMMARY.get(name, name) if summary else name, **options)


def _summariser(url: str | None, model: str) -> HttpModel:
    if url is None:
        raise ConfigError("--summary needs the endpoint of a model: --model-url URL, or FIRSTHAND_MODEL_URL")
    from ..summary.model import HttpModel

    return HttpModel(url, model=model, key=os.environ.get("FIRSTHAND_MODEL_KEY"))


def _install(
    source: str, settings: dict[str, Any], instructions: str | None, as_json: bool, journal: Path | None
) -> None:
    """Compacts a session of the journal for good, which means until `session undo`."""
    from ..journal import Journal
    from ..session.session import Session

    if Path(source).exists():
        raise ConfigError(f"--commit and --summary work on sessions of the journal; `firsthand import {source}` first")
    with Journal.open(journal) as store:
        info = store.session(source)
        system = store.meta(info.id).system
        session = Session.open(info.id, journal=store, model=info.model, **settings)
        outcome = session.compact(instructions, system=system)
    checkpoint = outcome.checkpoint
    if as_json:
        stdout_json(
            {
                "session": info.id,
                "outcome": outcome.kind,
                "reason": outcome.reason,
                "operation": outcome.operation,
                "checkpoint": None if checkpoint is None else checkpoint.id,
                "tokens_before": None if checkpoint is None else checkpoint.plan.tokens_before,
                "tokens_after": None if checkpoint is None else checkpoint.baseline,
                "reused": outcome.reused,
                "summary_usage": list(outcome.usage),
            }
        )
    elif checkpoint is None:
        typer.echo(f"{outcome.kind}: {outcome.reason}")
    else:
        because = f" ({outcome.reason})" if outcome.reason else ""
        typer.echo(
            f"{outcome.kind}{because}: {checkpoint.plan.tokens_before:,} -> {checkpoint.baseline:,} tokens, {checkpoint.id}"
        )
        typer.echo(f"`firsthand session undo {info.id}` takes it back")
    if outcome.kind == "failed":
        raise CompactionRefusedError("failed", outcome.reason, outcome.sizes)


def _counter(name: str | None, transcript: Transcript) -> Counter:
    return counter_for_model(transcript.model) if name is None else counter_by_name(name)


def _fixed(transcript: Transcript, counter: Counter) -> int:
    """System prompt and tools, where the session file records them beside the messages."""
    parts = (transcript.system or "", compact_json(list(transcript.tools)) if transcript.tools else "")
    return sum(counter.count(part) for part in parts)


def _options(pairs: Iterable[str]) -> dict[str, object]:
    options: dict[str, object] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise ConfigError(f"an option is NAME=VALUE, not {pair!r}")
        try:
            options[name.replace("-", "_")] = msgspec.json.decode(value)
        except msgspec.DecodeError:
            options[name.replace("-", "_")] = value
    return options


def _written(shown: tuple[Entry, ...], wire: str) -> Iterable[bytes]:
    from ..formats.wire import wire_by_name
    from ..formats.wire.text import as_text

    if wire == "text":
        return (as_text(shown).encode("utf-8", "replace"),)
    written = wire_by_name(wire).write(shown)
    body = {"messages" if wire != "openai-responses" else "input": written.messages}
    if written.system is not None:
        body = {"system": written.system, **body}
    return (encode(body), b"\n")


def _explained(view: View, plan: Plan | None, counter: Counter) -> Iterator[dict[str, Any]]:
    from ..projection.fates import block_kind, fates
    from ..projection.features.units import readable

    spans = {} if plan is None else {(one.entry, one.block): one.spans for one in plan.excerpts}
    for found in fates(view, plan):
        tokens = block_cost(found.block, counter)
        shown = tokens if found.fate == "kept" else None
        if found.fate == "excerpted" and (found.entry.id, found.number) in spans:
            text = readable(found.block)
            shown = counter.count("\n".join(text[a.start : a.end] for a in spans[found.entry.id, found.number]))
        yield {
            "entry": found.entry.id,
            "block": found.number,
            "kind": block_kind(found.entry, found.block),
            "fate": found.fate,
            "tokens": tokens,
            "shown": shown,
            "why": found.reason,
        }


def _gathered(rows: Iterable[dict[str, Any]]) -> Iterator[tuple[Any, ...]]:
    """The rows for a person: of blocks in a row that are left out without a reason, one line says how many and how large they are."""
    for plain, members in groupby(rows, key=lambda row: row["fate"] in ("omitted", "summarised") and not row["why"]):
        listed = list(members)
        if plain and len(listed) > 1:
            tokens = sum(row["tokens"] for row in listed)
            fates = "/".join(dict.fromkeys(row["fate"] for row in listed))
            yield listed[0]["entry"], None, f"{len(listed)} blocks", fates, tokens, None, f"up to {listed[-1]['entry']}"
        else:
            yield from (tuple(row.values()) for row in listed)


def _headline(report: Report) -> str:
    if report.outcome == "unchanged":
        return f"unchanged: {report.reason} ({report.tokens_before:,} tokens, {report.counter})"
    return f"{report.tokens_before:,} tokens before, {report.tokens_after:,} after ({report.counter}), strategy {report.strategy}"


def _print_report(transcript: Transcript, report: Report, where: str) -> None:
    from ..projection.fates import FATES, KINDS

    typer.echo(
        f"Session {transcript.id} ({transcript.format}"
        + (f", {transcript.model}" if transcript.model else "")
        + f"): {report.entries:,} entries"
    )
    typer.echo(
        f"Window {report.window:,}, input limit {report.input_limit:,}, counter {report.counter} ({report.counter_error})"
    )
    typer.echo(_headline(report))
    if report.outcome == "applied":
        typer.echo(
            f"Covered {report.covered:,} entries, of which {report.kept:,} stay as originals; "
            f"the newest {report.tail:,} are untouched"
        )
    met = [fate for fate in FATES if report.fates.get(fate)]
    rows = []
    for kind in KINDS:
        counts = {fate: report.fates[fate][kind] for fate in met if kind in report.fates[fate]}
        if counts:
            rows.append((kind, *(_blocks_and_tokens(counts, fate) for fate in met)))
    typer.echo()
    table(("blocks / tokens", *met), rows)
    typer.echo()
    for name, text in report.notes.items():
        typer.echo(f"{name}: {text}")
    if report.outcome == "applied":
        typer.echo(f"What was left out is {where}.")


def _blocks_and_tokens(counts: Mapping[Fate, Counts], fate: Fate) -> str:
    found = counts.get(fate)
    return f"{found.blocks:,} / {found.tokens:,}" if found is not None else ""
