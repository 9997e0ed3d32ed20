"""The figures of a record: the nine of the published study for one's own runs, and the curves. Drawn from rows alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...strategies import strategy_by_name
from ...strategies.futureos.parts import SLOT
from ..compose import KINDS
from ..figures.costs import Bars, Side, cold_and_cached, point_costs, where_values_went
from ..figures.curves import curves_figure
from ..figures.scores import Arm, Cells, compression, three_way, waffle
from ..figures.windows import budget, composition_and_references, pipeline
from ..model.open_book import FATES
from ..money.convention import published
from ..money.own import pooled
from ..results import Row, Score, counted, scores
from .of_models import fates_of
from .of_money import per_point
from .of_rules import arm, asked_of, least_of
from .record import Record
from .tables import money, names

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["PUBLISHED_ROUNDS", "Picture", "pictures"]

_EXAM = "supported"
"""The exam of figures that show one: a value whose passage says what it was."""
_SIZE_EXAMS = ("recognition", "supported", "continuation")
_CONTAINED = ("shown", "unreported")
_ROUND_FATES = (*_CONTAINED, *(fate for fate in FATES if fate not in _CONTAINED))
PUBLISHED_ROUNDS: dict[str, dict[str, int]] = {
    "closed (published)": {"shown": 147, "unreported": 4, "never": 27},
    "first call forced (published)": {"shown": 146, "retrieved": 20, "unreported": 5, "searched": 3, "never": 4},
}
"""Where the published experiment's 178 values went (futureos.md 8.10)."""


@dataclass(frozen=True)
class Picture:
    """A figure with what belongs under it."""

    key: str
    """Its file's name without the ending."""
    title: str
    told: str
    """What it shows, for who cannot see it too."""
    command: str
    figure: Figure


def pictures(record: Record) -> list[Picture]:
    """All figures for which the record has rows, in the order of the published study's."""
    made: list[Callable[[Record], Iterator[Picture]]] = [
        _waffle,
        _composition,
        _three_way,
        _compression,
        _cost,
        _per_point,
        _pipeline,
        _budget,
        _open_book,
        _curves,
    ]
    return [picture for make in made for picture in make(record)]


def _main_arms(rows: Sequence[Row | Score]) -> list[str]:
    """One arm for each strategy: its last summariser, which is the stand-in or a model where it asks for summaries."""
    last: dict[str, str] = {}
    for row in rows:
        last[row.strategy] = arm(row)
    return list(last.values())


def _waffle(record: Record) -> Iterator[Picture]:
    rows = [
        row for row in record.rows.get("run", []) if row.exam == "published" and row.recall is None and counted(row)
    ]
    part = "run"
    if not rows:
        rows, part = [row for row in record.rows.get("chains", []) if counted(row)], "chains"
    chosen = _main_arms(rows)
    cells = []
    for name in chosen:
        counts: dict[str, tuple[int, int]] = {}
        for row in rows:
            if arm(row) == name:
                hits, of = counts.get(row.source, (0, 0))
                counts[row.source] = (hits + row.hits, of + row.of)
        cells.append(Cells(name, counts))
    if cells:
        told = "; ".join(
            f"{one.name} {sum(h for h, _ in one.counts.values()):,} of {sum(o for _, o in one.counts.values()):,}"
            for one in cells
        )
        yield Picture(
            "fig1-retention-waffle",
            "Every value of the published exam: is it still in the text?",
            f"Values shown, by rules: {told}. A strategy that left a history whole was asked less.",
            record.command_of(part),
            waffle(cells, "published exam, values shown in the projection (literal reader)"),
        )  # fmt: skip


def _composition(record: Record) -> Iterator[Picture]:
    if not record.compositions:
        return
    whole = record.compositions[-1]
    kinds = {
        kind: whole.kinds[kind].tokens
        for kind in KINDS
        if kind in whole.kinds and kind != "recorded" and whole.kinds[kind].tokens
    }
    rows = record.rows.get("run", [])
    references = asked_of(rows, "continuation")
    boundaries = len({(row.session, row.position) for row in rows if row.exam == "continuation"})
    commands = [record.command_of("compose")] + ([record.command_of("run")] if references else [])
    told = ", ".join(f"{kind} {100 * tokens / sum(kinds.values()):.1f} %" for kind, tokens in kinds.items())
    later = ", ".join(f"{source} {number:,}" for source, number in references.items()) or "nothing was asked"
    yield Picture(
        "fig2-context-composition",
        "What fills the window, and where later references point",
        f"Left: {told}. Right, values that the next steps really used and that nothing had brought back, by where they first stood: {later}.",
        "\n".join(commands),
        composition_and_references(kinds, references, boundaries),
    )


def _own_size(record: Record) -> list[Score]:
    """Scores at own size of one arm for each strategy."""
    found = scores([row for row in record.rows.get("run", []) if row.recall is None], least_of(record))
    chosen = set(_main_arms(found))
    return [score for score in found if arm(score) in chosen and score.mean is not None]


def _arms(found: Sequence[Score], exam: str) -> list[Arm]:
    return [
        Arm(arm(score), exam, score.mean, score.low, score.high, score.tokens, score.values)
        for score in found
        if score.exam == exam and score.mean is not None
    ]


def _three_way(record: Record) -> Iterator[Picture]:
    found = _own_size(record)
    exam = _EXAM if any(score.exam == _EXAM for score in found) else next((score.exam for score in found), "")
    arms = sorted(_arms(found, exam), key=lambda one: -one.share)
    if not arms:
        return
    spent = per_point(record)
    money_of = {arm(score): spent[score.strategy] for score in found if score.strategy in spent}
    texts = {one.strategy: money(one.per_point) for one in pooled(record.costs)}
    cost = {arm(score): (money_of[arm(score)], texts[score.strategy]) for score in found if arm(score) in money_of}
    commands = [record.command_of("run")] + ([record.command_of("money")] if cost else [])
    yield Picture(
        "fig3-three-way",
        "What is shown, how large it is, what a point costs",
        f"Three panels that belong together: `{exam}` in per cent of {max(one.values for one in arms):,} values, tokens, and the computed money "
        "of a point. Strategies at their own sizes.",
        "\n".join(commands),
        three_way(arms, cost, record.price.currency if record.price else ""),
    )


def _compression(record: Record) -> Iterator[Picture]:
    found = _own_size(record)
    arms = [one for exam in _SIZE_EXAMS for one in _arms(found, exam)]
    if arms:
        yield Picture(
            "fig4-compression-vs-recall",
            "Size against what is shown",
            "Each mark is a strategy at its own size: further left is smaller, further up shows more. By rules.",
            record.command_of("run"),
            compression(arms),
        )


def _cost(record: Record) -> Iterator[Picture]:
    sides = []
    sums = [one for one in pooled(record.costs) if one.one_cold]
    if sums and record.price is not None:
        sides.append(
            Side(
                f"your sessions, price of {record.price.model}",
                record.price.currency,
                [one.strategy for one in sums],
                [[float(one.one_cold) for one in sums], [float(one.one_cached) for one in sums]],
                [[money(one.one_cold) for one in sums], [money(one.one_cached) for one in sums]],
            )
        )
    arms = [one for one in published() if one.cold]
    sides.append(
        Side(
            "published arms, single compaction",
            "CNY",
            [one.arm.name for one in arms],
            [[float(one.single_cold) for one in arms], [float(one.single_cached) for one in arms]],
            [[money(one.single_cold) for one in arms], [money(one.single_cached) for one in arms]],
        )
    )
    commands = ([record.command_of("money")] if len(sides) > 1 else []) + ["firsthand lab money --published"]
    yield Picture(
        "fig5-cost",
        "What one compaction's summary costs, cold and cached",
        "Computed. Strategies that call no model cost nothing and are left out. The two halves have their own sessions, prices and currencies.",
        "\n".join(commands),
        cold_and_cached(sides),
    )


def _per_point(record: Record) -> Iterator[Picture]:
    sides = []
    sums = [one for one in pooled(record.costs) if one.per_point is not None]
    if sums and record.price is not None:
        sides.append(
            Side(
                f"your sessions, points of {record.costs[0].exam} (rules)",
                record.price.currency,
                [one.strategy for one in sums],
                [[float(one.per_point or 0) for one in sums]],
                [[money(one.per_point) for one in sums]],
            )
        )
    arms = published()
    sides.append(
        Side(
            "published arms, points a model reported",
            "CNY",
            [one.arm.name for one in arms],
            [[float(one.with_first_turn_per_point) for one in arms]],
            [[money(one.with_first_turn_per_point) for one in arms]],
        )
    )
    commands = ([record.command_of("money")] if len(sides) > 1 else []) + ["firsthand lab money --published"]
    yield Picture(
        "fig6-cost-per-recall",
        "One compaction and 100 turns, for each point",
        "Computed, of a single compaction, its first turn cold. A point on the left is not a point on the right: other exams, other readers.",
        "\n".join(commands),
        point_costs(sides),
    )


def _pipeline(record: Record) -> Iterator[Picture]:
    example = record.example
    if example is None:
        return
    by = "" if example.summariser == "-" else f", summary {example.summariser}"
    kinds = ", ".join(
        f"{kind} {found.get('kept', 0):,} of {sum(found.values()):,} whole" for kind, found in example.kinds.items()
    )
    yield Picture(
        "fig7-pipeline",
        "One complete projection",
        f"What became of each stretch of a session, and what the next request shows. Tokens of originals by kind: {kinds}.",
        record.command_of("example"),
        pipeline(
            [(one.name, one.tokens) for one in example.history],
            [(one.name, one.tokens) for one in example.projection],
            f"{example.strategy}{by}, the first {example.position:,} entries of {example.source}, window {example.window:,}",
        ),
    )


def _budget(record: Record) -> Iterator[Picture]:
    if not record.budgets:
        return
    windows = []
    for line in record.budgets:
        parts = [
            ("system prompt and tools", line.fixed),
            ("messages, up to the input limit", line.input_limit - line.fixed),
            ("margin", line.margin),
            ("output ceiling", line.output_ceiling),
        ]
        windows.append((line.name, [part for part in parts if part[1] > 0], line.trigger))
    own = record.budgets[0]
    options = strategy_by_name("coverage").options()
    target = min(int(options["target"]), own.max_target)
    targets = [
        ("history, any strategy", own.max_target, "three quarters of the room, 128,000 at most"),
        ("coverage: target", target, "its option target"),
        ("coverage: user text whole", target * int(options["user"]) // 100, f"{options['user']} % of the target"),
        ("coverage: newest steps", target * int(options["tail"]) // 100, f"{options['tail']} % of the target"),
        ("futureos: soft target", min(32_000, own.max_target), "as published"),
        ("futureos: recent tail", own.keep_recent, "a quarter of the trigger, 8,000 at most"),
        ("futureos: evidence index", SLOT, "as published"),
    ]
    yield Picture(
        "fig8-budget",
        "Where the trigger comes from, and what a projection may take",
        "Above, the window's parts; the thick line is the trigger: four fifths of the window or the input limit, whichever is lower. Below, "
        f"limits of a projection in a window of {own.window:,} tokens.",
        record.command,
        budget(windows, targets),
    )


def _open_book(record: Record) -> Iterator[Picture]:
    if record.open_book:
        rounds = names(str(one["round"]) for one in record.open_book)
        bars = [Bars(name, fates_of([one for one in record.open_book if one["round"] == name])) for name in rounds]
        never = min(one.counts.get("never", 0) for one in bars)
        yield Picture(
            "fig9-open-book",
            "Open book: where the values went in each round",
            "Reported by a model: shown by the projection, retrieved, or guessed. Not reported: unreported though shown, searched for, never "
            "searched for.",
            record.command_of("openbook"),
            where_values_went(
                bars,
                _ROUND_FATES,
                "values over all replicates (reader: a model)",
                f"right of the thick line: not in the projection; never searched for in any round: {never:,} at least",
                _CONTAINED,
            ),
        )
    recalled = _recalled(record)
    if recalled:
        yield Picture(
            "fig9-recall",
            "With a recall block: where the values of the published exam went",
            "By rules, no model: shown by the projection, brought back by a block that the question's own words found, or in neither.",
            record.command_of("recall"),
            where_values_went(
                recalled, ("shown", "brought back", "neither"), "values of the published exam (literal reader)"
            ),
        )
    yield Picture(
        "fig9-published",
        "The published open book, for comparison",
        "The published experiment's 178 values; the 27 that the closed round never searched for are what the forced first call went for.",
        "futureos.md 8.10: published figures, not measured here",
        where_values_went(
            [Bars(name, counts) for name, counts in PUBLISHED_ROUNDS.items()],
            _ROUND_FATES,
            "published: 178 values, summarized arm (reader: a model)",
            "right of the thick line: the constant 27 that the projection does not show",
            _CONTAINED,
        ),
    )


def _recalled(record: Record) -> list[Bars]:
    rows = [row for row in record.rows.get("recall", []) if counted(row)]
    bars = []
    for name in _main_arms(rows):
        own = [row for row in rows if arm(row) == name]
        shown = sum(row.hits for row in own if row.exam == "published")
        both = [row for row in own if row.exam == "published+recall"]
        hits, of = sum(row.hits for row in both), sum(row.of for row in both)
        if of:
            bars.append(Bars(name, {"shown": shown, "brought back": hits - shown, "neither": of - hits}))
    return bars


def _curves(record: Record) -> Iterator[Picture]:
    figure = curves_figure(scores(record.rows.get("curves", []), least_of(record)))
    if figure is not None:
        yield Picture(
            "curves",
            "What is shown at sizes that were asked for",
            "Each line is a strategy set to several sizes, at the median size that came out. By rules.",
            record.command_of("curves"),
            figure,
        )
