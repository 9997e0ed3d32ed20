"""`firsthand lab money`: what compactions cost, in the published convention and for a single compaction."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import ConfigError
from .lab_endpoint import PriceOption, PricesOption, listed, percents
from .output import stdout_json, table

if TYPE_CHECKING:
    from ..lab.money.own import OwnCosts, Pooled
    from ..lab.money.prices import Price

__all__ = ["register"]

_STRATEGIES = "coverage,futureos-deterministic,futureos-summarized,codex-local,pi,opencode-v1,opencode-v2"


def register(lab_app: typer.Typer) -> None:
    """Adds the command to the lab's group."""
    lab_app.command("money", epilog="Example: firsthand lab money session.jsonl --model claude-sonnet-4-5")(money)


def money(
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="FILES", help="Session files, or folders of them.")
    ] = None,
    model: Annotated[str, typer.Option("--model", help="The model whose price counts.")] = "",
    published: Annotated[
        bool, typer.Option("--published", help="Instead: the figures of the published experiment, computed anew.")
    ] = False,
    strategies: Annotated[str, typer.Option(help="Names, separated by commas.")] = _STRATEGIES,
    at: Annotated[
        str | None, typer.Option(help="Boundaries, in percent of the tokens; default: where the window is 80 % full.")
    ] = None,
    window: Annotated[int, typer.Option(min=1, help="Context window of the strategies' budgets.")] = 200_000,
    exam: Annotated[
        str, typer.Option(help="The exam whose points are paid for; answered by the literal reader.")
    ] = "supported",
    least: Annotated[int, typer.Option(min=0, help="Tokens of the smallest history that is costed.")] = 0,
    price: PriceOption = None,
    currency: Annotated[str, typer.Option(help="Of --price.")] = "USD",
    prices: PricesOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Say what a compaction costs and after how many turns it has paid for itself, from token counts and a price. No model is called."""
    if published:
        if files:
            raise ConfigError("--published computes the published figures and takes no files")
        _published(as_json)
        return
    from ..lab.money.own import own_costs, pooled
    from ..lab.money.prices import price_given, price_of, read_prices
    from ..lab.questions import EXAMS
    from ..strategies import strategy_class
    from .lab import read_sources

    if not files or not model:
        raise ConfigError("name session files and --model, or --published")
    if exam not in EXAMS or exam == "continuation":
        raise ConfigError(
            f"points are counted by one of: {', '.join(name for name in EXAMS if name != 'continuation')}"
        )
    names = listed(strategies)
    for name in names:
        strategy_class(name)
    shares = None if at is None else percents(at)
    own = read_prices(prices) if prices else None
    cost = price_of(model, own) if price is None else price_given(model, price, currency)
    found: list[OwnCosts] = []
    for source in read_sources(files):
        found += own_costs(source.transcript, names, cost, shares=shares, window=window, exam=exam, least=least)
    if as_json:
        _json(found, pooled(found), cost)
        return
    _print(found, pooled(found), cost, exam)


def _print(found: list[OwnCosts], sums: list[Pooled], price: Price, exam: str) -> None:
    unit = price.currency
    table(
        (
            "strategy",
            "cold",
            "cached",
            "turn, cold",
            "first turn",
            "later turn",
            "without",
            "break-even",
            "per point",
        ),
        [
            (
                one.strategy,
                _money(one.one_cold),
                _money(one.one_cached),
                _money(one.turn_cold),
                _money(one.first_turn),
                _money(one.turn),
                _money(one.baseline),
                _turns(one.break_even),
                _money(one.per_point),
            )
            for one in sums
        ],
        title=f"Modelled, {unit}, one compaction",
    )
    table(
        ("strategy", "compactions", "cold", "cached", "break-even", "per point"),
        [
            (
                one.strategy,
                one.compactions,
                _money(one.total_cold),
                _money(one.total_cached),
                _turns(one.published_break_even),
                _money(one.published_per_point),
            )
            for one in sums
        ],
        title=f"Modelled, {unit}, the published convention: all together against one turn",
    )
    table(
        ("strategy", "at", "session", "calls", "prompt", "answer", "own shape", "projection", "history", exam),
        [
            (
                row.strategy,
                row.boundary,
                row.session[:8],
                row.calls,
                row.prompt,
                row.completion,
                _shape(row),
                row.projection,
                row.history,
                f"{row.hits}/{row.of}",
            )
            for row in found
        ],
        title="Tokens that this was computed from (o200k, exact)",
    )
    typer.echo(
        f"{price.model}: {_rates(price)} {unit} for a million tokens ({price.source}). Cached: 98 % of what the summary request shares "
        "with the session's own; nothing where it has another system prompt or other tools. Turn, cold: all of it read anew; first turn: the "
        "new projection read anew, system prompt and tools cached; without: a cached turn of the session as it was. Break-even: turns "
        "until a compaction, and its cold first turn, have paid for themselves. Per point: that and 99 later turns, for each percentage point "
        f"of `{exam}` (reader: literal). Answer: as long as a stand-in by rules. Nothing here was charged or measured; see `firsthand lab "
        "cache` and the ledger of `firsthand lab ask` for that."
    )


def _shape(row: OwnCosts) -> str:
    return "-" if not row.calls else "yes" if row.shares else "no"


def _rates(price: Price) -> str:
    told = f"input {price.rates.input}, output {price.rates.output}, cached {price.rates.cache_read}"
    return told + "".join(
        f"; above {start:,} tokens {rates.input}, {rates.output}, {rates.cache_read}" for start, rates in price.tiers
    )


def _money(value: Decimal | None) -> str:
    if value is None:
        return ""
    return f"{value:.{max(2, 3 - value.adjusted())}f}".rstrip("0").rstrip(".") if value else "0"


def _turns(value: Decimal | None) -> str:
    return "never" if value is None else f"{value:.1f}"


def _json(found: list[OwnCosts], sums: list[Pooled], price: Price) -> None:
    from dataclasses import asdict

    import msgspec

    rows = [msgspec.to_builtins(asdict(row)) for row in found]
    stdout_json(
        {
            "price": msgspec.to_builtins(asdict(price)),
            "modelled": [msgspec.to_builtins(asdict(one)) for one in sums],
            "rows": rows,
        }
    )


def _published(as_json: bool) -> None:
    from ..lab.money.convention import published, rounded

    found = published()
    if as_json:
        from dataclasses import asdict

        import msgspec

        stdout_json([msgspec.to_builtins(asdict(one)) for one in found])
        return
    table(
        ("arm", "cold", "cached", "per turn", "break-even", "per point", "printed"),
        [
            (
                one.arm.name,
                rounded(one.cold, 2),
                rounded(one.cached, 2),
                rounded(one.per_turn, 6),
                "-" if one.break_even is None else rounded(one.break_even, 0),
                _money(rounded(one.per_point, 5)),
                " / ".join(one.arm.printed.values()),
            )
            for one in found
        ],
        title="The published convention, CNY: all 24 compactions together against one turn",
    )
    table(
        (
            "arm",
            "cold",
            "cached",
            "break-even",
            "per point",
            "break-even, cold first turn",
            "per point, cold first turn",
        ),
        [
            (
                one.arm.name,
                _money(rounded(one.single_cold, 4)),
                _money(rounded(one.single_cached, 4)),
                "-" if one.single_break_even is None else rounded(one.single_break_even, 1),
                _money(rounded(one.single_per_point, 6)),
                "" if one.with_first_turn is None else rounded(one.with_first_turn, 1),
                _money(rounded(one.with_first_turn_per_point, 6)),
            )
            for one in found
        ],
        title="The same for a single compaction, CNY",
    )
    for one in found:
        typer.echo(
            f"{one.arm.name}: {one.arm.prompt:,} prompt and {one.arm.completion:,} completion tokens; {one.arm.told}."
        )
    typer.echo(
        "Per point: a compaction and 100 turns for each percentage point of 178 values. Rates, CNY for a million tokens: input 1, output 4, "
        "cached 0.02; 98 % of a shared prefix taken as cached. Modelled by the study, not measured."
    )
