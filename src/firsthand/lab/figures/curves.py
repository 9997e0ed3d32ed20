"""The lab's curves: how much of the older history a projection of a given size still shows, per strategy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ...errors import ConfigError, MissingExtraError
from ..results import Score

__all__ = ["curves"]

_FORMATS = (".png", ".svg", ".pdf")
_PANELS = ("recognition", "supported", "continuation", "constraints")


def curves(found: Sequence[Score], path: Path) -> None:
    """Draws one panel for each exam: median tokens of the projection (logarithmic) against the score, one line for each strategy.

    A strategy of one size is a point. Dashed: with the stand-in summariser or a model; the legend says which.

    Raises:
        ConfigError: the file's ending is of no known kind, or there is nothing to draw.
        MissingExtraError: matplotlib is not installed.
    """
    if path.suffix.lower() not in _FORMATS:
        raise ConfigError(f"a figure's file ends in {', '.join(_FORMATS)}, not {path.suffix!r}")
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("drawing figures", "lab") from None
    panels = [exam for exam in _PANELS if any(score.exam == exam and score.mean is not None for score in found)]
    if not panels:
        raise ConfigError(f"no exam of {', '.join(_PANELS)} has a judged session; there is nothing to draw")
    figure = Figure(figsize=(6 * len(panels), 5), layout="constrained")
    arms = list(dict.fromkeys((score.strategy, score.summariser) for score in found))
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
                    marker="osD^v<>ph*"[place % 10],
                    color=f"C{place % 10}",
                    label=label,
                )
        axes.set_xscale("log")
        axes.set_ylim(0, 100)
        axes.set_xlabel("tokens of the projection (o200k, median)")
        axes.set_title(exam)
        if number == 1:
            axes.set_ylabel("% of questions, mean over sessions")
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize="small")
    figure.savefig(path, dpi=150)
