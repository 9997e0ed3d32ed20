"""Figures of sessions and their windows: what fills them and where references point (2), a projection taken apart (7), triggers and targets (8)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from .style import FATES, bare, drawing, look

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["budget", "composition_and_references", "pipeline"]


def composition_and_references(kinds: Mapping[str, int], references: Mapping[str, int], boundaries: int) -> Figure:
    """Left: tokens by kind. Right: where values first stood that later steps really used, by source.

    Args:
        kinds: tokens by kind of block.
        references: distinct values of `continuation` by source; empty where nothing was asked.
        boundaries: at how many boundaries they were asked.
    """
    with drawing(9, 1.3 + 0.34 * max(len(kinds), len(references))) as figure:
        left, right = figure.add_subplot(1, 2, 1), figure.add_subplot(1, 2, 2)
        _shares(left, kinds, 0, "of tokens")
        left.set_title("What fills the window", fontsize=10)
        if references:
            _shares(right, references, 1, "of values")
        else:
            right.text(0.5, 0.5, "nothing was asked", ha="center", va="center", transform=right.transAxes)
            right.set_axis_off()
        right.set_title("Where later references point", fontsize=10)
        right.set_xlabel(
            f"% of {sum(references.values()):,} older values that the next steps used ({boundaries:,} boundaries)",
            fontsize=8,
        )
        left.set_xlabel(f"% of {sum(kinds.values()):,} tokens (o200k)", fontsize=8)
    return figure


def _shares(axes: Axes, parts: Mapping[str, int], place: int, told: str) -> None:
    whole = sum(parts.values()) or 1
    positions = range(len(parts))
    shares = [100 * part / whole for part in parts.values()]
    axes.barh(positions, shares, height=0.68, **look(place))
    for position, share, part in zip(positions, shares, parts.values(), strict=True):
        axes.text(share + 1.5, position, f"{share:.1f} %  ({part:,})", va="center", fontsize=8)
    axes.set_yticks(positions, list(parts))
    axes.set_ylim(len(parts) - 0.4, -0.6)
    axes.set_xlim(0, 135)
    axes.set_xticks(range(0, 101, 20))
    bare(axes, grid="x")


def pipeline(
    history: Sequence[tuple[str, int]], projection: Sequence[tuple[str, int]], title: str, told: str = ""
) -> Figure:
    """One complete projection: above the history with each stretch's fate, below what the next request shows, both in order.

    Args:
        history: (fate, tokens) in the order of the session; fates of `style.FATES`.
        projection: (what it is, tokens) in the order of the request.
        title: which projection.
        told: below it.
    """
    from matplotlib.patches import Patch

    with drawing(9, 3.6) as figure:
        above, below = figure.add_subplot(2, 1, 1), figure.add_subplot(2, 1, 2)
        whole = sum(tokens for _, tokens in history)
        at = 0
        for name, tokens in history:
            fill, hatch = FATES[name]
            # No edge between stretches: of thousands, edges would be all that is seen.
            above.barh(
                0, tokens, left=at, height=1, facecolor=fill, hatch=hatch or None, edgecolor="#555555", linewidth=0
            )
            at += tokens
        above.barh(0, whole, height=1, facecolor="none", edgecolor="black", linewidth=0.8)
        shown = sum(tokens for _, tokens in projection)
        parts = list(dict.fromkeys(name for name, _ in projection))
        at = 0
        for name, tokens in projection:
            kind = look(parts.index(name)) | {"linewidth": 0.0}
            below.barh(0, tokens, left=at, height=1, **kind)
            at += tokens
        below.barh(0, shown, height=1, facecolor="none", edgecolor="black", linewidth=0.8)
        for axes, size, name in ((above, whole, "the history"), (below, shown, "the next request")):
            axes.set_xlim(0, size or 1)
            axes.set_ylim(-0.5, 0.5)
            axes.set_yticks([])
            axes.spines[["top", "right", "left"]].set_visible(False)
            axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
            axes.set_title(f"{name}: {size:,} tokens", fontsize=9, loc="left")
        sums = _sums(history)
        above.legend(
            handles=[
                Patch(
                    facecolor=FATES[name][0],
                    hatch=FATES[name][1] or None,
                    edgecolor="black",
                    linewidth=0.6,
                    label=f"{name} {sums[name]:,}",
                )
                for name in FATES
                if name in sums
            ],
            loc="upper center",
            bbox_to_anchor=(0.5, -0.25),
            ncols=6,
            fontsize=8,
            frameon=False,
        )
        sums = _sums(projection)
        below.legend(
            handles=[Patch(**look(place), label=f"{name} {sums[name]:,}") for place, name in enumerate(parts)],
            loc="upper center",
            bbox_to_anchor=(0.5, -0.25),
            ncols=4,
            fontsize=8,
            frameon=False,
        )
        figure.suptitle(title, fontsize=10)
        below.set_xlabel(told, fontsize=8)
    return figure  # fmt: skip


def _sums(stretches: Sequence[tuple[str, int]]) -> dict[str, int]:
    sums: dict[str, int] = {}
    for name, tokens in stretches:
        sums[name] = sums.get(name, 0) + tokens
    return sums


def budget(
    windows: Sequence[tuple[str, Sequence[tuple[str, int]], int]], targets: Sequence[tuple[str, int, str]]
) -> Figure:
    """Above: how a window comes apart and where its trigger stands. Below: what may be used at most within a projection.

    Args:
        windows: (name, stretches of (what, tokens) that make up the window, trigger).
        targets: (what, tokens at most, who sets it).
    """
    from matplotlib.patches import Patch

    with drawing(9, 2.6 + 0.55 * len(windows) + 0.32 * len(targets)) as figure:
        above, below = figure.subplots(2, 1, height_ratios=[1 + len(windows), max(2, 0.62 * len(targets))])
        names = list(dict.fromkeys(name for _, parts, _ in windows for name, _ in parts))
        for place, (_, parts, trigger) in enumerate(windows):
            whole = sum(tokens for _, tokens in parts) or 1
            at = 0.0
            for name, tokens in parts:
                share = 100 * tokens / whole
                above.barh(place, share, left=at, height=0.6, **look(names.index(name)))
                at += share
            above.plot([100 * trigger / whole] * 2, [place - 0.42, place + 0.42], color="black", linewidth=2.2)
            above.text(
                100 * trigger / whole, place - 0.46, f"trigger {trigger:,}", ha="center", va="bottom", fontsize=8
            )
        above.set_yticks(range(len(windows)), [f"{name}\n{sum(t for _, t in parts):,}" for name, parts, _ in windows])
        above.set_ylim(len(windows) - 0.5, -0.85)
        above.set_xlim(0, 100)
        above.set_xlabel("% of the window", fontsize=8)
        bare(above)
        above.legend(
            handles=[Patch(**look(at), label=name) for at, name in enumerate(names)],
            loc="upper center",
            bbox_to_anchor=(0.5, -0.3),
            ncols=4,
            fontsize=8,
            frameon=False,
        )
        positions = range(len(targets))
        below.barh(positions, [tokens for _, tokens, _ in targets], height=0.66, **look(1))
        most = max((tokens for _, tokens, _ in targets), default=1)
        for position, (_, tokens, told) in zip(positions, targets, strict=True):
            below.text(tokens + 0.012 * most, position, f"{tokens:,}  {told}", va="center", fontsize=8)
        below.set_yticks(positions, [name for name, _, _ in targets])
        below.set_ylim(len(targets) - 0.4, -0.6)
        below.set_xlim(0, 1.75 * most)
        below.set_xlabel("tokens of a projection, at most", fontsize=8)
        below.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        bare(below, grid="x")
    return figure  # fmt: skip
