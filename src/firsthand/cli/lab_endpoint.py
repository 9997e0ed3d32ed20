"""What the lab's commands that pay for a model have in common: endpoint, price, budget, ledger, and how money is told."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from ..errors import ConfigError
from .output import stderr

if TYPE_CHECKING:
    from ..lab.model.endpoint import Endpoint
    from ..lab.model.ledger import Ledger

__all__ = [
    "JOBS",
    "BudgetOption",
    "ExtraOption",
    "JobsOption",
    "LedgerOption",
    "ModelOption",
    "PriceOption",
    "PricesOption",
    "ReaderOption",
    "RetryOption",
    "TimeoutOption",
    "endpoint_of",
    "ledger_of",
    "listed",
    "percents",
    "shown_progress",
    "tell_money",
]

ReaderOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--reader", metavar="URL", help="Base URL of an OpenAI-compatible endpoint; key: FIRSTHAND_MODEL_KEY."
    ),
]
ModelOption: TypeAlias = Annotated[str, typer.Option("--model", help="The model's name there.")]
BudgetOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--budget", metavar="AMOUNT", help="The most that the ledger's calls may cost together, such as '1.50 USD'."
    ),
]
PriceOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--price", metavar="IN,OUT[,CACHED]", help="For a million tokens each; default: looked up. 0,0: free."
    ),
]
PricesOption: TypeAlias = Annotated[
    Path | None, typer.Option("--prices", help="TOML file with prices of your own, which go before the registry's.")
]
LedgerOption: TypeAlias = Annotated[
    Path | None,
    typer.Option("--ledger", help="File of paid calls; default in your cache folder, one for each currency."),
]
RetryOption: TypeAlias = Annotated[
    bool,
    typer.Option("--retry-unresolved", help="Try calls once more that failed or whose reply is not known; both count."),
]
ExtraOption: TypeAlias = Annotated[
    str | None,
    typer.Option("--extra", metavar="JSON", help="More fields of every request, such as a switch for reasoning."),
]
JOBS = 4
JobsOption: TypeAlias = Annotated[
    int,
    typer.Option(
        "--jobs",
        min=1,
        max=64,
        help="Calls at a time; 1 makes them one after the other.",
    ),
]
TimeoutOption: TypeAlias = Annotated[float, typer.Option(min=1, help="Seconds for one answer.")]

_BUDGET = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]{3})?\s*")


def endpoint_of(
    url: str,
    model: str,
    budget: str,
    price: str | None,
    prices: Path | None,
    extra: str | None,
    timeout: float,
) -> tuple[Endpoint, int]:
    """The endpoint with its price, and the budget in picos of the price's currency.

    Raises:
        ConfigError: no price is known, an amount is none, or budget and price are of two currencies.
    """
    from ..lab.model.endpoint import Endpoint
    from ..lab.money.prices import picos, price_given, price_of, read_prices

    found = _BUDGET.fullmatch(budget)
    if found is None:
        raise ConfigError(f"a budget is an amount and a currency, such as '1.50 USD', not {budget!r}")
    named = (found[2] or "").upper()
    own = read_prices(prices) if prices else None
    cost = price_of(model, own, url=url) if price is None else price_given(model, price, named or "USD")
    if named and named != cost.currency:
        raise ConfigError(
            f"the budget is in {named}, and the price of {model} in {cost.currency}; give both in one currency"
        )
    return Endpoint(url, model, cost, os.environ.get("FIRSTHAND_MODEL_KEY"), timeout, _fields(extra)), picos(found[1])


def _fields(extra: str | None) -> dict[str, Any] | None:
    from ..codec import decode

    if extra is None:
        return None
    try:
        value = decode(extra)
    except ValueError:
        value = None
    if not isinstance(value, dict) or value.keys() & {"messages", "model", "tools", "stream"}:
        raise ConfigError("--extra is a JSON object without messages, model, tools and stream")
    return value


def ledger_of(path: Path | None, endpoint: Endpoint, budget: int, retry: bool) -> Ledger:
    """The ledger that a user named, or the one of the price's currency; not open yet."""
    from ..lab.model.ledger import Ledger

    currency = endpoint.price.currency
    return Ledger(path or _default(currency), currency=currency, budget=budget, retry=retry)


def _default(currency: str) -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "firsthand" / f"lab-calls-{currency.lower()}.db"


def tell_money(ledger: Ledger, endpoint: Endpoint) -> None:
    """What was spent, on stderr, and where the calls are."""
    from ..lab.money.prices import amount

    spent = ledger.spent()
    currency = ledger.currency
    stderr(
        f"{ledger.path}: {amount(spent.charged, currency)} charged and {amount(spent.reserved, currency)} reserved of a budget of "
        f"{amount(ledger.budget, currency)}, {amount(spent.summaries, currency)} of it for summaries; {spent.answered:,} calls answered, "
        f"{spent.failed:,} failed, {spent.unresolved:,} of unknown outcome, {spent.abandoned:,} tried again. Price: {endpoint.price.source}."
    )


def listed(text: str | None) -> list[str]:
    """The parts of an option that takes several, separated by commas."""
    return [part.strip() for part in (text or "").split(",") if part.strip()]


def percents(text: str) -> tuple[int, ...]:
    """Boundaries, in percent.

    Raises:
        ConfigError: one is no whole number from 1 to 100.
    """
    parts = listed(text)
    for part in parts:
        if not part.isdecimal() or not 1 <= int(part) <= 100:
            raise ConfigError(f"a boundary is a whole percentage from 1 to 100, not {part!r}")
    return tuple(map(int, parts))


_SILENT = 30.0
"""Seconds after which progress is said whatever it is."""


def shown_progress(what: str) -> Callable[[int, int], None]:
    """Says how far a run is, about twenty times in all, and oftener where that is slow; in place where stderr is a terminal."""
    last = -1
    said = 0.0

    def show(done: int, total: int) -> None:
        nonlocal last, said
        step = done * 20 // max(1, total)
        if step != last or done == total or time.monotonic() - said > _SILENT:
            last, said = step, time.monotonic()
            if sys.stderr.isatty():
                sys.stderr.write(f"\r{done:,} of {total:,} {what}" + ("\n" if done == total else ""))
                sys.stderr.flush()
            else:
                stderr(f"{done:,} of {total:,} {what}")

    return show
