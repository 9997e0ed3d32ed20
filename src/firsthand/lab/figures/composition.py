"""The composition of sessions as a figure: one bar a session, its kinds side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ...errors import ConfigError, MissingExtraError
from ..compose import KINDS, Amount, Composition

__all__ = ["COLOURS", "draw"]

# Told apart in greyscale and by the colour-blind too (after Okabe and Ito's set).
COLOURS: dict[str, str] = {
    "user": "#d55e00",
    "assistant": "#0072b2",
    "reasoning": "#cc79a7",
    "tool call": "#56b4e9",
    "tool output": "#9a9a9a",
    "injected": "#e69f00",
    "media": "#009e73",
    "other": "#d9d9d9",
}


def draw(parts: Sequence[Composition], path: Path) -> None:
    """Writes the figure; the ending of the name says how (`.png`, `.svg`, `.pdf`).

    Args:
        parts: sessions and sums, one bar each, from the top.
        path: the file; its folder must exist.

    Raises:
        MissingExtraError: matplotlib is not installed.
        ConfigError: the ending names no kind of picture.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("a figure", "lab") from None
    known = FigureCanvasAgg.get_supported_filetypes()
    ending = path.suffix.removeprefix(".").lower()
    if ending not in known:
        raise ConfigError(f"a figure cannot be written as {path.name!r}; use one of: {', '.join(sorted(known))}")
    figure = Figure(figsize=(9.5, 1.6 + 0.34 * len(parts)), layout="constrained")
    axes = figure.add_subplot()
    positions = range(len(parts))
    left = [0.0] * len(parts)
    for kind in (kind for kind in KINDS if kind in COLOURS and any(kind in part.kinds for part in parts)):
        shares = [100 * part.kinds.get(kind, Amount()).tokens / max(1, part.counted.tokens) for part in parts]
        axes.barh(positions, shares, left=left, color=COLOURS[kind], label=kind, height=0.72)
        left = [before + share for before, share in zip(left, shares, strict=True)]
    # A dollar would start a formula, and names of files are not ours.
    axes.set_yticks(
        positions, [f"{_plain(part.source)}  {part.counted.tokens:,}".replace("$", r"\$") for part in parts], fontsize=8
    )
    axes.invert_yaxis()
    axes.set_xlim(0, 100)
    axes.set_xlabel(f"share of tokens ({parts[0].counter}), per cent; the number is the session's tokens", fontsize=8)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(length=0)
    figure.legend(loc="outside upper center", ncols=4, fontsize=8, frameon=False)
    figure.savefig(path, dpi=160)


def _plain(name: str) -> str:
    printable = "".join(char if char.isprintable() and ord(char) < 0x2E80 else "?" for char in name)
    return printable if len(printable) <= 40 else f"{printable[:37]}..."
