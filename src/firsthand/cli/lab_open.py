"""`firsthand lab openbook`: the reader may look into the history, or has lines of it attached."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import ConfigError
from .lab_asking import (
    AtOption,
    ExamTailOption,
    MaxOutputOption,
    ReplicatesOption,
    ShapeOption,
    SummariserOption,
    TargetOption,
    TemperatureOption,
    ValuesOption,
    WindowOption,
    plan_of,
    sessions_of,
    tell_missing,
)
from .lab_endpoint import (
    JOBS,
    BudgetOption,
    ExtraOption,
    JobsOption,
    LedgerOption,
    ModelOption,
    PriceOption,
    PricesOption,
    ReaderOption,
    RetryOption,
    TimeoutOption,
    endpoint_of,
    ledger_of,
    listed,
    shown_progress,
    tell_money,
)
from .output import stdout_json, table

if TYPE_CHECKING:
    from ..lab.model.open_book import OpenReading, Round

__all__ = ["register"]


def register(lab_app: typer.Typer) -> None:
    """Adds the command to the lab's group."""
    lab_app.command(
        "openbook", epilog="Example: firsthand lab openbook session.jsonl --reader URL --model M --budget '1.50 USD'"
    )(openbook)


def openbook(
    files: Annotated[list[Path], typer.Argument(metavar="FILES", help="Session files, or folders of them.")],
    reader: ReaderOption,
    model: ModelOption,
    budget: BudgetOption,
    rounds: Annotated[str | None, typer.Option(help="closed, closed-v2, tools, recall, forced; default all.")] = None,
    strategy: Annotated[str, typer.Option(help="Whose projection is read.")] = "futureos-deterministic",
    exam: Annotated[str, typer.Option(help="recognition or cloze.")] = "recognition",
    at: AtOption = "100",
    values: ValuesOption = 24,
    replicates: ReplicatesOption = 3,
    shape: ShapeOption = None,
    summariser: SummariserOption = "extractive",
    target: TargetOption = None,
    window: WindowOption = 200_000,
    exam_tail: ExamTailOption = 8_000,
    max_output: MaxOutputOption = 2_048,
    temperature: TemperatureOption = "0",
    price: PriceOption = None,
    prices: PricesOption = None,
    ledger: LedgerOption = None,
    retry_unresolved: RetryOption = False,
    jobs: JobsOption = JOBS,
    extra: ExtraOption = None,
    timeout: TimeoutOption = 600.0,
    as_json: Annotated[bool, typer.Option("--json", help="Every answer as one JSON list on stdout.")] = False,
) -> None:
    """Ask the same questions in rounds: closed, with history tools, with recall attached, with a forced first call.

    The session's own tools stay in the request; only the two history tools can be used. At most 24 calls and 262,144 bytes for a question.
    """
    from ..lab.model.jobs import Jobs
    from ..lab.model.open_book import open_book
    from ..lab.model.reading import places

    if exam not in ("recognition", "cloze"):
        raise ConfigError(f"open book asks recognition or cloze, not {exam!r}")
    chosen = _rounds(rounds)
    plan = plan_of(
        strategy,
        exam,
        at,
        values,
        replicates,
        "session",
        shape,
        summariser,
        target,
        window,
        exam_tail,
        max_output,
        temperature,
    )
    endpoint, most = endpoint_of(reader, model, budget, price, prices, extra, timeout)
    sessions = sessions_of(files)
    with ledger_of(ledger, endpoint, most, retry_unresolved) as paid:
        calls = Jobs(endpoint, paid, jobs)
        found = list(places(sessions, plan, calls))
        result = open_book(found, plan, chosen, calls, progress=shown_progress("questions answered"))
        tell_money(paid, endpoint)
    if as_json:
        stdout_json(_json(result))
    else:
        _print(result, chosen, model, strategy)
        for told in dict.fromkeys(place.shape.told for place in found):
            typer.echo(f"Asked with {told}, and the two history tools where the round has them.")
    tell_missing(result.stopped, result.unresolved)
    if result.stopped or result.unresolved:
        raise typer.Exit(1)


def _rounds(text: str | None) -> list[Round]:
    from ..lab.model.open_book import ROUNDS

    wanted = listed(text) or [one.name for one in ROUNDS]
    if unknown := set(wanted) - {one.name for one in ROUNDS}:
        raise ConfigError(
            f"there is no round {', '.join(sorted(unknown))}; choose of: {', '.join(one.name for one in ROUNDS)}"
        )
    return [one for one in ROUNDS if one.name in wanted]


def _print(result: OpenReading, rounds: list[Round], model: str, strategy: str) -> None:
    from ..lab.model.open_book import FATES

    rows: list[tuple[Any, ...]] = []
    for one in rounds:
        answers = result.of_round(one.name)
        ignored = result.ignored(one.name)
        if not answers and not ignored:
            continue
        fates = result.fates(one.name)
        values = sum(fates.values())
        reported = fates["shown"] + fates["retrieved"] + fates["guessed"]
        calls = [call for answer in answers for call in answer.calls]
        rows.append(
            (
                one.name,
                f"{reported}/{values}",
                *(fates[name] for name in FATES),
                f"{sum(answer.false_positives for answer in answers)}/{sum(len(answer.batch.decoys) for answer in answers)}",
                f"{sum(bool(answer.why) for answer in answers)}/{len(answers)}",
                f"{ignored}/{len(answers) + ignored}" if one.forced else "",
                f"{len(calls)} ({sum(call.status in ('denied', 'error') for call in calls)})",
            )
        )
    if rows:
        table(
            ("round", "reported", *FATES, "decoys", "invalid", "ignored", "calls (refused)"),
            rows,
            title=f"Values over all replicates, projection of {strategy} (reader: model:{model})",
        )
    for one in rounds:
        typer.echo(f"{one.name}: {one.told}.")
    typer.echo(
        "Reported: shown by the projection, retrieved by a tool or by recall, or guessed (neither showed it). Not reported: unreported though "
        "shown; searched for, or brought up by recall, and yet not reported; never searched for. Decoys: wrongly reported ones. Invalid: "
        "replies that were no answer. Ignored: the endpoint was told to force a first call and sent a reply without one; such a reply counts in no "
        "other column of its round."
    )


def _json(result: OpenReading) -> list[dict[str, Any]]:
    return [
        {
            "session": one.session,
            "boundary": one.boundary,
            "strategy": one.arm.strategy,
            "summariser": one.arm.summariser,
            "round": one.round,
            "replicate": one.replicate,
            "exam": one.batch.exam,
            "fates": {
                fate: sum(found == fate for found in one.fates.values()) for fate in dict.fromkeys(one.fates.values())
            },
            "values": len(one.batch.values),
            "decoys": len(one.batch.decoys),
            "false_positives": one.false_positives,
            "invalid": one.why,
            "recall_tokens": one.recalled,
            "ignored_forced_call": one.ignored,
            "steps": one.steps,
            "charged": one.charged,
            "calls": [{"tool": call.tool, "status": call.status, "bytes": call.size} for call in one.calls],
        }
        for one in result.answers
    ]
