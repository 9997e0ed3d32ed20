"""How figures look: readable in black and white, so every series has a hatch or a marker of its own beside its grey."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import ConfigError, MissingExtraError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "FATES",
    "HATCHES",
    "MARKERS",
    "SOURCES",
    "bare",
    "drawing",
    "labelled_bars",
    "logarithmic",
    "look",
    "picture",
    "plain",
    "save",
]

MARKERS = "osD^v<>ph*X"
HATCHES = ("", "////", "..", "xxx", "---", "\\\\\\\\", "++", "oo", "|||", "**")
_GREYS = ("#3b3b3b", "#ffffff", "#d6d6d6", "#f4f4f4", "#9c9c9c", "#ffffff", "#c4c4c4", "#ececec", "#ffffff", "#b0b0b0")

SOURCES: dict[str, tuple[str, str]] = {
    "user": ("#222222", ""),
    "assistant": ("#8c8c8c", ""),
    "call": ("#ffffff", "////"),
    "tool": ("#e6e6e6", ".."),
}
"""Fill and hatch of each source of values."""

FATES: dict[str, tuple[str, str]] = {
    "kept": ("#222222", ""),
    "tail": ("#8c8c8c", ""),
    "excerpted": ("#d9d9d9", "////"),
    "indexed": ("#ffffff", "xxx"),
    "summarised": ("#ffffff", "---"),
    "omitted": ("#ffffff", ""),
}
"""Fill and hatch of each fate of a block."""


def look(place: int) -> dict[str, Any]:
    """Fill, hatch and edge of the series at a place."""
    return {
        "facecolor": _GREYS[place % len(_GREYS)],
        "hatch": HATCHES[place % len(HATCHES)],
        "edgecolor": "black",
        "linewidth": 0.7,
    }


@contextmanager
def _styled() -> Iterator[None]:
    try:
        from matplotlib import rc_context
    except ImportError:
        raise MissingExtraError("drawing figures", "lab") from None
    # Names come out of sessions: a dollar would start a formula. Fixed salt: the same figure, the same bytes.
    settings: Any = {
        "text.parse_math": False,
        "svg.hashsalt": "firsthand",
        "svg.fonttype": "path",
        "hatch.linewidth": 0.7,
        "font.size": 9,
        "font.family": "DejaVu Sans",
    }
    with rc_context(settings):
        yield


@contextmanager
def drawing(width: float, height: float) -> Iterator[Figure]:
    """An empty figure, in inches.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    with _styled():
        from matplotlib.figure import Figure

        yield Figure(figsize=(width, height), layout="constrained")


def picture(figure: Figure, kind: str) -> bytes:
    """The figure as a file's bytes.

    Args:
        figure: drawn.
        kind: svg, png or pdf.
    """
    out = io.BytesIO()
    dates = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind, {})
    with _styled():
        figure.savefig(out, format=kind, dpi=150, metadata=dates or None)
    return out.getvalue()


def save(figure: Figure, path: Path) -> None:
    """Writes the figure; the ending says how.

    Raises:
        ConfigError: an ending of another kind than svg, png and pdf.
    """
    kind = path.suffix.lower().removeprefix(".")
    if kind not in ("svg", "png", "pdf"):
        raise ConfigError(f"a figure's file ends in .svg, .png or .pdf, not {path.suffix!r}")
    path.write_bytes(picture(figure, kind))


def bare(axes: Axes, *, grid: str = "") -> None:
    """Axes without a box, with faint lines behind the data where wanted."""
    axes.spines[["top", "right"]].set_visible(False)
    if grid:
        axes.grid(axis=grid, color="#dddddd", linewidth=0.6)  # type: ignore[arg-type]
        axes.set_axisbelow(True)


def logarithmic(axes: Axes) -> None:
    """Sizes on a logarithmic axis, in thousands (k)."""
    from matplotlib.ticker import LogLocator, NullFormatter

    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=8))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value / 1_000:g}k" if value >= 1_000 else f"{value:g}")
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.tick_params(axis="x", labelsize=8)


def plain(name: str, most: int = 40) -> str:
    """A name that the font has letters for, cut to so many."""
    printable = "".join(char if char.isprintable() and ord(char) < 0x2E80 else "?" for char in name)
    return printable if len(printable) <= most else f"{printable[: most - 3]}..."


def labelled_bars(
    axes: Axes, labels: Sequence[str], numbers: Sequence[float], texts: Sequence[str], *, place: int = 0
) -> None:
    """Bars from left to right, one a label from the top, each with its number written at its end.

    Args:
        axes: where.
        labels: names at the left.
        numbers: lengths.
        texts: what is written at the ends.
        place: of the series, for its look.
    """
    positions = range(len(labels))
    axes.barh(positions, numbers, height=0.68, **look(place))
    most = max([*numbers, 0.0]) or 1.0
    for position, number, text in zip(positions, numbers, texts, strict=True):
        axes.text(number + 0.02 * most, position, text, va="center", fontsize=8)
    axes.set_yticks(positions, [plain(label) for label in labels])
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.set_xlim(0, 1.28 * most)
    axes.locator_params(axis="x", nbins=5)
    bare(axes, grid="x")
