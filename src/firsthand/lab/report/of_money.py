"""Tables of money and caches. Computed, charged, measured and published numbers never share a column, and each title says which it is."""

from __future__ import annotations

from ..money.convention import published, rounded
from ..money.own import pooled
from ..money.prices import Price, amount
from .record import Record
from .tables import Table, figure, money, percent, turns

__all__ = ["cache_tables", "charged_table", "own_money_tables", "per_point", "published_money_tables"]


def own_money_tables(record: Record) -> list[Table]:
    """What compactions of the measured sessions would cost, in both conventions; computed."""
    if not record.costs or record.price is None:
        return []
    command, unit = record.command_of("money"), record.price.currency
    sums = pooled(record.costs)
    exam = record.costs[0].exam
    asked = {one.strategy: sum(row.of for row in record.costs if row.strategy == one.strategy) for one in sums}
    return [
        Table(
            "money",
            f"Computed, {unit}, one compaction",
            (
                "strategy",
                "cold",
                "cached",
                "turn, cold",
                "first turn",
                "later turn",
                "without",
                "break-even, turns",
                "per point",
            ),
            tuple(
                (
                    one.strategy,
                    money(one.one_cold),
                    money(one.one_cached),
                    money(one.turn_cold),
                    money(one.first_turn),
                    money(one.turn),
                    money(one.baseline),
                    turns(one.break_even),
                    money(one.per_point),
                )
                for one in sums
            ),
            command,
            f"{_told(record.price)}. Token counts times a price; nothing was charged. First turn: the new projection read anew. Without: a cached "
            f"turn of the session as it was. Per point: a compaction and 100 turns, the first one cold, for each point of `{exam}` "
            f"(literal reader; values asked: {_asked(asked)}). Answers as long as a stand-in's by rules.",
        ),
        Table(
            "money-published-convention",
            f"Computed, {unit}, the published convention: all compactions together against one turn",
            ("strategy", "compactions", "cold", "cached", "break-even, turns", "per point"),
            tuple(
                (
                    one.strategy,
                    figure(one.compactions),
                    money(one.total_cold),
                    money(one.total_cached),
                    turns(one.published_break_even),
                    money(one.published_per_point),
                )
                for one in sums
            ),
            command,
            "As the published study counts, for comparison with its table only: break-even and cost per point grow with the number of boundaries. "
            f"Points as above (values asked: {_asked(asked)}).",
        ),
    ]


def _asked(asked: dict[str, int]) -> str:
    numbers = sorted(set(asked.values()))
    return f"{numbers[0]:,}" if len(numbers) == 1 else f"{numbers[0]:,} to {numbers[-1]:,}, by strategy"


def _told(price: Price) -> str:
    rates = price.rates
    return (
        f"{price.model}: input {rates.input}, output {rates.output}, cached {rates.cache_read} {price.currency} for a million tokens "
        f"({price.source})"
    )


def published_money_tables() -> list[Table]:
    """The published figures, computed anew from the published token counts."""
    found = published()
    command = "firsthand lab money --published"
    return [
        Table(
            "published-money",
            "The published study's arms, computed anew in its convention, CNY",
            ("arm", "cold", "cached", "per turn", "break-even, turns", "per point", "as printed"),
            tuple(
                (
                    one.arm.name,
                    money(rounded(one.cold, 2)),
                    money(rounded(one.cached, 2)),
                    f"{rounded(one.per_turn, 6)}",
                    "-" if one.break_even is None else f"{rounded(one.break_even, 0)}",
                    money(rounded(one.per_point, 5)),
                    " / ".join(one.arm.printed.values()),
                )
                for one in found
            ),
            command,
            "All 24 compactions together against one turn; points are of 178 values that a model reported.",
        ),
        Table(
            "published-money-single",
            "The same for a single compaction, CNY",
            ("arm", "cold", "cached", "break-even", "per point", "break-even, cold first turn", "per point, cold first turn"),
            tuple(
                (
                    one.arm.name,
                    money(rounded(one.single_cold, 4)),
                    money(rounded(one.single_cached, 4)),
                    "-" if one.single_break_even is None else f"{rounded(one.single_break_even, 1)}",
                    money(rounded(one.single_per_point, 6)),
                    "" if one.with_first_turn is None else f"{rounded(one.with_first_turn, 1)}",
                    money(rounded(one.with_first_turn_per_point, 6)),
                )
                for one in found
            ),
            command,
            "Divided by the 24 compactions first; in the last two columns the first turn after a compaction is read cold, as it is. 178 values.",
        ),
    ]  # fmt: skip


def charged_table(record: Record) -> Table | None:
    """What was really paid."""
    if not record.charged:
        return None
    return Table(
        "charged",
        "Charged: what ledgers say was paid",
        ("ledger", "charged", "reserved", "for summaries", "answered", "failed", "outcome unknown"),
        tuple(
            (
                one.file,
                amount(one.charged, one.currency),
                amount(one.reserved, one.currency),
                amount(one.summaries, one.currency),
                figure(one.answered),
                figure(one.failed),
                figure(one.unresolved),
            )
            for one in record.charged
        ),
        record.command,
        "By the usage that the provider reported; where that is missing, the reservation stands.",
    )


def cache_tables(record: Record) -> list[Table]:
    """What a prefix cache served, measured; and what was said of the same requests."""
    if not record.cache:
        return []
    command = record.command_of("cache")
    told = f", tokens of {record.cache_model}" if record.cache_model else ""
    return [
        Table(
            "cache",
            f"Measured: what a real prefix cache served{told}",
            ("request", "prompt", "before the instruction", "from the cache", "measured %", "bar", "held"),
            tuple(
                (
                    one.request,
                    figure(one.prompt),
                    figure(one.before),
                    figure(one.cached),
                    percent(one.measured),
                    one.bar,
                    "yes" if one.holds else "NO",
                )
                for one in record.cache
            ),
            command,
            "Before each request the session's own last request was sent again, so the cache held that and nothing else.",
        ),
        Table(
            "cache-modelled",
            "Not measured: the same requests",
            ("request", "modelled %", "published"),
            tuple((one.request, percent(one.modelled), one.published) for one in record.cache),
            command,
            "Modelled: common beginning of the texts with tools rendered first, as hosted providers do. Published: measured by the study on a "
            "hosted model.",
        ),
    ]


def per_point(record: Record) -> dict[str, float]:
    """Computed money of a point, by strategy, for figures."""
    return {one.strategy: float(one.per_point) for one in pooled(record.costs) if one.per_point is not None}
