"""`firsthand lab ask`: a model reads what strategies keep, and is asked what it saw."""

from __future__ import annotations

from collections.abc import Sequence
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
    shown_progress,
    tell_money,
)
from .output import stderr, stdout_json, table, write_bytes

if TYPE_CHECKING:
    from ..lab.model.endpoint import Endpoint
    from ..lab.model.reading import Place, Plan, Reading
    from ..transcript import Transcript

__all__ = ["ask", "register"]


def register(lab_app: typer.Typer) -> None:
    """Adds the command to the lab's group."""
    lab_app.command(
        "ask",
        epilog="Example: firsthand lab ask session.jsonl --reader URL --model M --budget '1.50 USD' --strategies pi",
    )(ask)


def ask(
    reader: ReaderOption,
    model: ModelOption,
    budget: BudgetOption,
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="FILES", help="Session files, or folders of them.")
    ] = None,
    synthetic: Annotated[
        bool, typer.Option("--synthetic", help="Instead: the published experiment's chains, exam and way to ask.")
    ] = False,
    strategies: Annotated[
        str, typer.Option(help="Names, separated by commas.")
    ] = "coverage,futureos-deterministic,codex-local,pi,opencode-v1",
    exams: Annotated[str, typer.Option(help="recognition, cloze, published; several with commas.")] = "recognition",
    at: AtOption = "100",
    values: ValuesOption = 24,
    replicates: ReplicatesOption = 3,
    way: Annotated[
        str, typer.Option(help="session: in the session's own shape; published: as the published experiment asked.")
    ] = "session",
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
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be asked and could be spent; send nothing.")
    ] = False,
    csv_file: Annotated[Path | None, typer.Option("--csv", help="Write the rows here.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The rows as one JSON list on stdout.")] = False,
) -> None:
    """Let a model read the projections of strategies, and count what it reports of what is known to be in the history.

    Every call is reserved in a ledger before it is sent; a run that is repeated pays for no call twice.
    """
    from ..lab.model.jobs import Jobs
    from ..lab.model.reading import places, read
    from ..lab.model.results import as_csv, rows_of

    if synthetic == bool(files):
        raise ConfigError("name session files, or --synthetic, not both and not neither")
    if synthetic:
        way, exams = "published", "published"
    plan = plan_of(
        strategies,
        exams,
        at,
        values,
        replicates,
        way,
        shape,
        summariser,
        target,
        window,
        exam_tail,
        max_output,
        temperature,
    )
    if synthetic:
        plan = _published(plan)
    endpoint, most = endpoint_of(reader, model, budget, price, prices, extra, timeout)
    sessions = _chains() if synthetic else sessions_of(files or [])
    if dry_run:
        _estimate(list(places(sessions, _unsummarised(plan))), plan, endpoint)
        return
    with ledger_of(ledger, endpoint, most, retry_unresolved) as paid:
        calls = Jobs(endpoint, paid, jobs)
        found = list(places(sessions, plan, calls))
        result = read(found, plan, calls, progress=shown_progress("questions answered"))
        tell_money(paid, endpoint)
    shown = "examiner" if way == "published" else ("captured" if shape else "session")
    rows = rows_of(result.answers, f"model:{model}", way, shown)
    if csv_file is not None:
        write_bytes(csv_file, [as_csv(rows).encode("utf-8", "replace")])
        stderr(f"wrote {len(rows):,} rows: {csv_file}")
    if as_json:
        import msgspec

        stdout_json([msgspec.to_builtins(row) for row in rows])
    else:
        _print(result, plan, found, model)
    _tell_missing(result)
    if result.stopped or result.unresolved:
        raise typer.Exit(1)


def _published(plan: Plan) -> Plan:
    """The plan with the published experiment's window, ceiling and boundaries."""
    from dataclasses import replace

    return replace(plan, chains=True, window=1_000_000, output_ceiling=384_000, profile="futureos-e2")


def _chains() -> list[Transcript]:
    from ..samples import CHAINS, chain

    return [chain(name) for name in CHAINS]


def _unsummarised(plan: Plan) -> Plan:
    """The plan with the stand-in in the model's place, to see sizes without paying."""
    from dataclasses import replace

    return replace(
        plan,
        arms=tuple(replace(arm, summariser="extractive") if arm.summariser == "model" else arm for arm in plan.arms),
    )


def _estimate(found: Sequence[Place], plan: Plan, endpoint: Endpoint) -> None:
    from ..codec import encode
    from ..lab.model.bodies import question_body
    from ..lab.money.prices import amount
    from ..projection.repair import repair

    rows: list[tuple[Any, ...]] = []
    total = calls = 0
    for place in found:
        for arm, made in place.shown:
            worst = sum(
                endpoint.price.worst(
                    len(
                        encode(
                            question_body(
                                plan.way,
                                place.shape,
                                repair(made.entries).entries,
                                batch.text,
                                max_output=plan.max_output,
                            )
                        )
                    ),
                    plan.max_output,
                )
                for batch in place.batches
            )
            asked = len(place.batches) * plan.replicates
            rows.append(
                (
                    place.session.id,
                    place.boundary.label,
                    arm.strategy,
                    made.outcome,
                    asked,
                    amount(worst * plan.replicates, endpoint.price.currency),
                )
            )
            total += worst * plan.replicates
            calls += asked
    table(("session", "at", "strategy", "outcome", "calls", "at the very most"), rows, title="Nothing was sent")
    typer.echo(
        f"{calls:,} calls, at the very most {amount(total, endpoint.price.currency)} (a token for each byte, nothing cached, every answer at "
        f"its cap), summaries by the model not counted. Price: {endpoint.price.source}."
    )


def _print(result: Reading, plan: Plan, found: Sequence[Place], model: str) -> None:
    from ..lab.model.results import LEAST_REPLICATES, model_scores

    scores = model_scores(result.answers)
    for exam in plan.exams:
        chosen = [score for score in scores if score.exam == exam]
        if not chosen:
            continue
        table(
            (
                "strategy",
                "summary",
                "reported %",
                "95 %",
                "replicates %",
                "values",
                "wrong decoys",
                "no answer",
                "tokens",
            ),
            [
                (
                    score.strategy,
                    score.summariser,
                    f"{100 * score.share:.1f}",
                    "" if score.low is None or score.high is None else f"{100 * score.low:.0f}-{100 * score.high:.0f}",
                    " ".join(f"{100 * share:.0f}" for share in score.replicates),
                    score.values,
                    f"{score.false_positives}/{score.decoys}",
                    f"{score.invalid}/{score.replies}",
                    score.tokens,
                )
                for score in chosen
            ],
            title=f"{exam} (reader: model:{model}; asked: {plan.way} way; interval over {chosen[0].over})",
        )
        table(
            ("strategy", "summary", "shown %"),
            [(score.strategy, score.summariser, f"{100 * score.contained:.1f}") for score in chosen],
            title=f"{exam}, the same values (reader: literal)",
        )
    for told in dict.fromkeys(place.shape.told for place in found):
        typer.echo(f"Asked with {told if plan.way == 'session' else 'the system prompt of the examiner, no tools'}.")
        if plan.way == "published":
            break
    if plan.replicates < LEAST_REPLICATES:
        typer.echo(
            f"{plan.replicates} replicates: a difference under 5 points says nothing; ask for {LEAST_REPLICATES}."
        )
    typer.echo(
        f"{len(result.answers):,} replies scored. Reported: values that the reply named, of those asked; mean over sessions, replicates pooled. "
        "Abstaining is right on a decoy and wrong on a value. A reply that is no answer reports nothing."
    )


def _tell_missing(result: Reading) -> None:
    tell_missing(result.stopped, result.unresolved)
    if result.asked < result.planned:
        stderr(
            f"{result.asked:,} of {result.planned:,} questions have a reply; {result.unpaired:,} replies are not scored, since another arm "
            "lacks a reply to the same question"
        )
