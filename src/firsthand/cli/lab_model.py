"""`firsthand lab ask`: a model reads what strategies keep, and is asked what it saw."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import ConfigError
from .lab_endpoint import (
    BudgetOption,
    ExtraOption,
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
    percents,
    shown_progress,
    tell_money,
)
from .output import stderr, stdout_json, table, write_bytes

if TYPE_CHECKING:
    from ..lab.model.endpoint import Endpoint
    from ..lab.model.reading import Place, Plan, Reading
    from ..transcript import Transcript

__all__ = ["plan_of", "register", "sessions_of"]


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
    at: Annotated[str, typer.Option(help="Boundaries, in percent of the tokens.")] = "100",
    values: Annotated[int, typer.Option(min=1, help="Values asked at each boundary and exam; as many decoys.")] = 24,
    replicates: Annotated[int, typer.Option(min=1, help="Times that each question is put.")] = 3,
    way: Annotated[
        str, typer.Option(help="session: in the session's own shape; published: as the published experiment asked.")
    ] = "session",
    shape: Annotated[
        Path | None, typer.Option(help="System prompt and tools that `firsthand lab capture` took from a client.")
    ] = None,
    summariser: Annotated[
        str, typer.Option(help="Who writes summaries: none, extractive (rules), or model: the reader itself.")
    ] = "extractive",
    target: Annotated[int | None, typer.Option(min=1, help="Size of the projections, in tokens.")] = None,
    window: Annotated[int, typer.Option(min=1, help="Context window of the strategies' budgets.")] = 200_000,
    exam_tail: Annotated[
        int, typer.Option(min=0, help="Tokens of the newest entries whose values are not asked; 0 for short sessions.")
    ] = 8_000,
    max_output: Annotated[int, typer.Option(min=16, help="Output cap of each answer.")] = 2_048,
    temperature: Annotated[str, typer.Option(help="A number, or `none` for endpoints that take none.")] = "0",
    price: PriceOption = None,
    prices: PricesOption = None,
    ledger: LedgerOption = None,
    retry_unresolved: RetryOption = False,
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
        found = list(places(sessions, plan, endpoint=endpoint, ledger=paid))
        result = read(found, plan, endpoint, paid, progress=shown_progress("questions answered"))
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


def plan_of(
    strategies: str,
    exams: str,
    at: str,
    values: int,
    replicates: int,
    way: str,
    shape: Path | None,
    summariser: str,
    target: int | None,
    window: int,
    exam_tail: int,
    max_output: int,
    temperature: str,
) -> Plan:
    """What a user asked for.

    Raises:
        ConfigError: an option that cannot work.
        UnknownNameError: no strategy of that name.
    """
    from ..lab.arms import Arm
    from ..lab.model.batches import MODEL_EXAMS
    from ..lab.model.reading import Plan
    from ..lab.model.shape import read_shape
    from ..strategies import strategy_class

    if way not in ("session", "published"):
        raise ConfigError(f"the way is session or published, not {way!r}")
    if summariser not in ("none", "extractive", "model"):
        raise ConfigError(f"the summariser is none, extractive or model, not {summariser!r}")
    if unknown := set(listed(exams)) - set(MODEL_EXAMS):
        raise ConfigError(f"a model is not asked {', '.join(sorted(unknown))}; choose of: {', '.join(MODEL_EXAMS)}")
    names = listed(strategies)
    for name in names:
        strategy_class(name)
    return Plan(
        arms=tuple(Arm(name, target, summariser) for name in names),
        exams=tuple(exam for exam in MODEL_EXAMS if exam in listed(exams)),
        shares=percents(at),
        values=values,
        replicates=replicates,
        way="published" if way == "published" else "session",
        shape=None if shape is None else read_shape(shape),
        exam_tail=exam_tail,
        window=window,
        max_output=max_output,
        temperature=_number(temperature),
    )


def _published(plan: Plan) -> Plan:
    """The plan with the published experiment's window, ceiling and boundaries."""
    from dataclasses import replace

    return replace(plan, chains=True, window=1_000_000, output_ceiling=384_000, profile="futureos-e2")


def _chains() -> list[Transcript]:
    from ..samples import CHAINS, chain

    return [chain(name) for name in CHAINS]


def _number(text: str) -> float | None:
    if text == "none":
        return None
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 2:
        raise ConfigError(f"a temperature is a number from 0 to 2, or `none`, not {text!r}")
    return number


def _unsummarised(plan: Plan) -> Plan:
    """The plan with the stand-in in the model's place, to see sizes without paying."""
    from dataclasses import replace

    return replace(
        plan,
        arms=tuple(replace(arm, summariser="extractive") if arm.summariser == "model" else arm for arm in plan.arms),
    )


def sessions_of(files: Sequence[Path]) -> list[Transcript]:
    """The sessions of the files that hold anything, each once: their ids tell the ledger's calls apart.

    Raises:
        FormatError: a file is not there, or none can be read.
    """
    from .lab import read_sources

    found: dict[str, Transcript] = {}
    for source in read_sources(files):
        if source.transcript.id in found:
            stderr(f"left out: {source.path} holds the session {source.transcript.id} once more")
        elif source.transcript.entries:
            found[source.transcript.id] = source.transcript
    return list(found.values())


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
    if result.stopped:
        stderr(f"stopped: {result.stopped}")
    for line in result.unresolved[:10]:
        stderr(f"no reply: {line}")
    if len(result.unresolved) > 10:
        stderr(f"no reply: {len(result.unresolved) - 10:,} more calls")
    if result.asked < result.planned:
        stderr(
            f"{result.asked:,} of {result.planned:,} questions have a reply; {result.unpaired:,} replies are not scored, since another arm "
            "lacks a reply to the same question"
        )
