"""Figures of what survives: every value as a mark (1), three measures side by side (3), size against score (4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Any

from .style import MARKERS, bare, drawing, labelled_bars, logarithmic, look, plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Arm", "Cells", "compression", "three_way", "waffle"]

_ACROSS = 20
_SOURCES = ("user", "assistant", "call", "tool")
_MARKS = {"user": "s", "assistant": "o", "call": "D", "tool": "^"}


@dataclass(frozen=True)
class Cells:
    """One strategy's values: how many were asked and shown, by source."""

    name: str
    counts: dict[str, tuple[int, int]]
    """Hits and questions by source."""


@dataclass(frozen=True)
class Arm:
    """One strategy's score at its own size."""

    name: str
    exam: str
    share: float
    """0 to 1."""
    low: float | None
    high: float | None
    tokens: int
    values: int
    """Asked."""


def waffle(found: Sequence[Cells], title: str) -> Figure:
    """Every value that was asked as one mark, filled where the projection shows it; the marks tell where the value first stood."""
    columns = min(4, len(found))
    lines = -(-len(found) // columns)
    most = max(sum(of for _, of in one.counts.values()) for one in found)
    # Of very many values each mark stands for several.
    each = max(1, -(-most // 500))
    rows = max(sum(ceil(ceil(of / each) / _ACROSS) for _, of in one.counts.values()) for one in found)
    height = 0.55 + 0.13 * rows
    with drawing(2.5 * columns, lines * height + 0.7) as figure:
        for number, one in enumerate(found, start=1):
            axes = figure.add_subplot(lines, columns, number)
            place = 0
            for source in _SOURCES:
                hits, of = one.counts.get(source, (0, 0))
                if not of:
                    continue
                marks, filled = -(-of // each), round(hits / each)
                for full, some in ((True, range(filled)), (False, range(filled, marks))):
                    at = [place + mark for mark in some]
                    axes.scatter(
                        [spot % _ACROSS for spot in at],
                        [spot // _ACROSS for spot in at],
                        s=14,
                        marker=_MARKS[source],
                        facecolor="black" if full else "white",
                        edgecolor="black" if full else "#777777",
                        linewidth=0.6,
                    )
                # Each source begins a line of its own.
                place = -(-(place + marks) // _ACROSS) * _ACROSS
            hits, of = (sum(cell[at] for cell in one.counts.values()) for at in (0, 1))
            axes.set_title(f"{plain(one.name, 34)}\n{hits:,} of {of:,} ({100 * hits / max(1, of):.0f} %)", fontsize=8)
            axes.set_xlim(-0.8, _ACROSS - 0.2)
            axes.set_ylim(rows - 0.3, -0.8)
            axes.set_axis_off()
        from matplotlib.lines import Line2D

        there = [source for source in _SOURCES if any(source in one.counts for one in found)]
        handles = [
            Line2D([], [], marker=_MARKS[source], linestyle="", color="black", markersize=5, label=f"{source}, shown")
            for source in there
        ]
        hollow: dict[str, Any] = {"markerfacecolor": "white", "markeredgecolor": "#777777"}
        handles.append(Line2D([], [], marker="o", linestyle="", markersize=5, label="not shown", **hollow))
        per = "" if each == 1 else f"; a mark is {each} values"
        figure.suptitle(f"{title}{per}", fontsize=10)
        figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), fontsize=8, frameon=False)
    return figure


def three_way(arms: Sequence[Arm], cost: dict[str, tuple[float, str]], currency: str) -> Figure:
    """Score, size and computed money of a point, strategy by strategy.

    Args:
        arms: one for each strategy, of one exam.
        cost: money of a point by the arm's name, with its text; may lack some.
        currency: of the money.
    """
    panels = 3 if cost else 2
    labels = [arm.name for arm in arms]
    with drawing(1.8 + 2.7 * panels, 1.2 + 0.32 * len(arms)) as figure:
        axes = figure.add_subplot(1, panels, 1)
        labelled_bars(axes, labels, [100 * arm.share for arm in arms], [f"{100 * arm.share:.1f}" for arm in arms])
        for at, arm in enumerate(arms):
            if arm.low is not None and arm.high is not None:
                axes.plot(
                    [100 * arm.low, 100 * arm.high],
                    [at + 0.42, at + 0.42],
                    "|-",
                    color="#555555",
                    linewidth=0.8,
                    markersize=4,
                )
        axes.set_title(f"% of values shown ({arms[0].exam})", fontsize=9)
        axes.set_xlabel("rules; line: 95 % over sessions", fontsize=8)
        second = figure.add_subplot(1, panels, 2)
        labelled_bars(second, labels, [arm.tokens for arm in arms], [f"{arm.tokens:,}" for arm in arms], place=2)
        second.set_title("tokens of the projection", fontsize=9)
        second.set_xlabel("o200k, median", fontsize=8)
        second.set_yticklabels([])
        if cost:
            third = figure.add_subplot(1, panels, 3)
            labelled_bars(
                third,
                labels,
                [cost.get(arm.name, (0.0, ""))[0] for arm in arms],
                [cost.get(arm.name, (0.0, "not computed"))[1] for arm in arms],
                place=1,
            )
            third.set_title("money for each point", fontsize=9)
            third.set_xlabel(f"computed, {currency}", fontsize=8)
            third.set_yticklabels([])
    return figure  # fmt: skip


def compression(arms: Sequence[Arm]) -> Figure:
    """Size (logarithmic) against score, one panel for each exam, one mark for each strategy."""
    exams = list(dict.fromkeys(arm.exam for arm in arms))
    names = list(dict.fromkeys(arm.name for arm in arms))
    with drawing(3.9 * len(exams), 4.6 + 0.1 * len(names)) as figure:
        for number, exam in enumerate(exams, start=1):
            axes = figure.add_subplot(1, len(exams), number)
            for arm in arms:
                if arm.exam != exam:
                    continue
                place = names.index(arm.name)
                fill = look(place)["facecolor"]
                axes.scatter(
                    arm.tokens,
                    100 * arm.share,
                    marker=MARKERS[place % len(MARKERS)],
                    s=70,
                    facecolor=fill,
                    edgecolor="black",
                    linewidth=0.9,
                    label=plain(arm.name),
                    zorder=3,
                )
            logarithmic(axes)
            axes.set_ylim(-3, 103)
            asked = max(arm.values for arm in arms if arm.exam == exam)
            axes.set_title(f"{exam} ({asked:,} values)", fontsize=9)
            axes.set_xlabel("tokens of the projection (o200k, median)", fontsize=8)
            if number == 1:
                axes.set_ylabel("% of values shown (rules)")
            bare(axes, grid="both")
        handles: dict[str, Any] = {}
        for axes in figure.axes:
            handles |= dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
        figure.legend(
            list(handles.values()), list(handles), loc="outside lower center", ncols=3, fontsize=8, frameon=False
        )
    return figure
