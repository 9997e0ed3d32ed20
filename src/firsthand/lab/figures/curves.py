"""The lab's curves: how much of the older history a projection of a given size still shows, per strategy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import ConfigError
from ..results import Score
from .style import MARKERS, drawing, logarithmic, look, plain, save

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["curves", "curves_figure"]

_FORMATS = (".png", ".svg", ".pdf")
_PANELS = ("recognition", "supported", "continuation", "constraints")


def curves(found: Sequence[Score], path: Path) -> None:
    """Draws the curves into a file.

    Raises:
        ConfigError: the file's ending is of no known kind, or there is nothing to draw.
        MissingExtraError: matplotlib is not installed.
    """
    if path.suffix.lower() not in _FORMATS:
        raise ConfigError(f"a figure's file ends in {', '.join(_FORMATS)}, not {path.suffix!r}")
    figure = curves_figure(found)
    if figure is None:
        raise ConfigError(f"no exam of {', '.join(_PANELS)} has a judged session; there is nothing to draw")
    save(figure, path)


def curves_figure(found: Sequence[Score]) -> Figure | None:
    """One panel for each exam: median tokens of the projection (logarithmic) against the score, one line for each strategy.

    A strategy of one size is a point. Dashed: with the stand-in summariser or a model; the legend says which. None where there is nothing to draw.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    panels = [exam for exam in _PANELS if any(score.exam == exam and score.mean is not None for score in found)]
    if not panels:
        return None
    arms = list(dict.fromkeys((score.strategy, score.summariser) for score in found))
    with drawing(4.2 * len(panels), 4.2 + 0.08 * len(arms)) as figure:
        for number, exam in enumerate(panels, start=1):
            axes = figure.add_subplot(1, len(panels), number)
            for place, (strategy, by) in enumerate(arms):
                points = sorted(
                    (score.tokens, 100 * score.mean)
                    for score in found
                    if (score.strategy, score.summariser, score.exam) == (strategy, by, exam) and score.mean is not None
                )
                if points:
                    label = strategy if by == "-" else f"{strategy}, summary: {by}"
                    style = "-" if by in ("-", "none") else "--"
                    axes.plot(
                        *zip(*points, strict=True),
                        style,
                        color="#333333",
                        linewidth=1,
                        marker=MARKERS[place % len(MARKERS)],
                        markersize=6,
                        markerfacecolor=look(place)["facecolor"],
                        markeredgecolor="black",
                        label=plain(label),
                    )
            logarithmic(axes)
            axes.set_ylim(0, 100)
            axes.set_xlabel("tokens of the projection (o200k, median)", fontsize=8)
            axes.set_title(exam, fontsize=9)
            axes.grid(color="#dddddd", linewidth=0.6)
            axes.set_axisbelow(True)
            if number == 1:
                axes.set_ylabel("% of questions, mean over sessions")
        handles: dict[str, Any] = {}
        for axes in figure.axes:
            handles |= dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
        figure.legend(
            list(handles.values()), list(handles), loc="outside lower center", ncols=3, fontsize=8, frameon=False
        )
    return figure
