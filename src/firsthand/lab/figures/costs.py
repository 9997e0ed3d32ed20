"""Figures of money and of the open book: compactions cold and cached (5), money of a point (6), where values went in each round (9)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .style import bare, drawing, labelled_bars, look, plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Bars", "Side", "cold_and_cached", "point_costs", "where_values_went"]


@dataclass(frozen=True)
class Side:
    """One half of a figure of money: its currency never meets the other's axis."""

    title: str
    currency: str
    names: Sequence[str]
    numbers: Sequence[Sequence[float]]
    """One list for each series, as long as `names`."""
    texts: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Bars:
    """One round, or one strategy: values by what became of them."""

    name: str
    counts: dict[str, int]


def cold_and_cached(sides: Sequence[Side]) -> Figure:
    """What one compaction's summary calls cost, nothing cached and with the prefix cached. Own sessions and published arms apart."""
    most = max(len(side.names) for side in sides)
    with drawing(4.7 * len(sides) + 0.6, 1.5 + 0.42 * most) as figure:
        for number, side in enumerate(sides, start=1):
            axes = figure.add_subplot(1, len(sides), number)
            largest = max([max(series, default=0.0) for series in side.numbers] or [0.0]) or 1.0
            for place, (label, series, texts) in enumerate(
                zip(("cold", "cached"), side.numbers, side.texts, strict=True)
            ):
                positions = [at + (place - 0.5) * 0.38 for at in range(len(side.names))]
                axes.barh(positions, series, height=0.36, label=label, **look(place))
                for position, value, text in zip(positions, series, texts, strict=True):
                    axes.text(value + 0.015 * largest, position, text, va="center", fontsize=7.5)
            axes.set_yticks(range(len(side.names)), [plain(name) for name in side.names])
            axes.set_ylim(len(side.names) - 0.4, -0.6)
            axes.set_xlim(0, 1.25 * largest)
            axes.set_title(side.title, fontsize=9)
            axes.set_xlabel(f"{side.currency} for one compaction, computed", fontsize=8)
            bare(axes, grid="x")
        handles, labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=2, fontsize=8, frameon=False)
    return figure


def point_costs(sides: Sequence[Side]) -> Figure:
    """One compaction and 100 turns, for each percentage point. Own sessions and published arms apart."""
    most = max(len(side.names) for side in sides)
    with drawing(4.7 * len(sides) + 0.6, 1.2 + 0.34 * most) as figure:
        for number, side in enumerate(sides, start=1):
            axes = figure.add_subplot(1, len(sides), number)
            labelled_bars(axes, side.names, side.numbers[0], side.texts[0], place=number)
            axes.set_title(side.title, fontsize=9)
            axes.set_xlabel(f"{side.currency} for a point, computed", fontsize=8)
    return figure


def where_values_went(
    bars: Sequence[Bars], kinds: Sequence[str], title: str, constant: str = "", contained: Sequence[str] = ()
) -> Figure:
    """Each round as one bar of values by what became of them.

    Args:
        bars: the rounds.
        kinds: what can become of a value, in the order of the bars.
        title: which values, and who reads.
        constant: a line below.
        contained: the kinds, first in order, that the projection shows; a thick line ends them in each bar.
    """
    used = [kind for kind in kinds if any(one.counts.get(kind) for one in bars)]
    with drawing(9, 1.6 + 0.38 * len(bars)) as figure:
        axes = figure.add_subplot()
        largest = max(sum(one.counts.values()) for one in bars) or 1
        for position, one in enumerate(bars):
            at = 0
            for kind in used:
                count = one.counts.get(kind, 0)
                if not count:
                    continue
                axes.barh(position, count, left=at, height=0.7, **look(kinds.index(kind)))
                if count > 0.04 * largest:
                    axes.text(
                        at + count / 2,
                        position,
                        f"{count:,}",
                        ha="center",
                        va="center",
                        fontsize=8,
                        bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.2},
                    )
                at += count
            if contained:
                ends = sum(one.counts.get(kind, 0) for kind in contained)
                axes.plot([ends, ends], [position - 0.47, position + 0.47], color="black", linewidth=2.4)
        axes.set_yticks(range(len(bars)), [plain(one.name) for one in bars])
        axes.set_ylim(len(bars) - 0.4, -0.6)
        axes.set_xlim(0, largest)
        axes.set_xlabel(f"values{f'; {constant}' if constant else ''}", fontsize=8)
        axes.set_title(title, fontsize=10)
        bare(axes)
        from matplotlib.patches import Patch

        figure.legend(
            handles=[Patch(**look(kinds.index(kind)), label=kind) for kind in used],
            loc="outside lower center",
            ncols=min(6, len(used)),
            fontsize=8,
            frameon=False,
        )
    return figure
