"""Writes what the page on `coverage` shows: `python scripts/coverage_pages.py`. A test fails when any of it is stale.

`docs/strategies/coverage-samples.md` shows three projections of generated sessions, `docs/strategies/coverage.svg` what is covered for how many
tokens. Both come from the strategy itself, so they say what it does today.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from firsthand.budget import Budget
from firsthand.projection.coverage.greedy import Cover
from firsthand.projection.coverage.pool import Pool
from firsthand.projection.coverage.weights import heard, weights
from firsthand.projection.features.rows import extract, read_row
from firsthand.projection.features.units import Source
from firsthand.projection.plan import Plan
from firsthand.projection.render import project
from firsthand.samples import chain
from firsthand.strategies import strategy_by_name
from firsthand.strategies.contract import CompactionRequest
from firsthand.tokens import EstimateCounter
from firsthand.transcript import Text, ToolCall, View

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "strategies"
SAMPLES = FOLDER / "coverage-samples.md"
FIGURE = FOLDER / "coverage.svg"

SHOWN = (("pipeline", 1, 1_000), ("analysis", 2, 1_500), ("export", 4, 1_500))
"""Chain, stages, and the target in tokens."""
_WIDTH = 110
_LONGEST = 60
_CURVE = ("pipeline", 4, 3_000)


def samples() -> str:
    """The page with three projections."""
    parts = [
        "# Three projections",
        "What [`coverage`](coverage.md) makes of the synthetic chains (`firsthand sample NAME`), written by `python scripts/coverage_pages.py`.\n"
        "Long lines and long messages are cut on this page, not in the projection; a message's role stands in front of it. The counter is\n"
        "`estimate`. Logs are known by the one line in them that says something; a long review by its sections, for want of anything better.",
    ]
    for name, stages, target in SHOWN:
        view = chain(name, stages).view()
        plan = _plan(view, target)
        parts.append(f"## {name}, {len(view)} entries, {target:,} tokens")
        parts.append(f"{plan.tokens_before:,} tokens before, {plan.tokens_after:,} after; {plan.notes['excerpts']}.")
        parts.append("```text\n" + "\n".join(_messages(view, plan)) + "\n```")
        reasons = [f"{excerpt.entry}  {excerpt.reason}" for excerpt in plan.excerpts]
        parts.append("Why (`firsthand compact --explain`):")
        parts.append("```text\n" + "\n".join(map(_cut, reasons)) + "\n```")
    return "\n\n".join(parts) + "\n"


def figure() -> str:
    """The share of all worth that is covered for so many tokens: by the greedy, by the newest lines, by the richest lines."""
    name, stages, room = _CURVE
    view = chain(name, stages).view()
    pool = Pool.of(read_row(extract(entry)) for entry in view.entries)
    worths = weights(pool, heard(pool))
    costs = [size + 1 for size in pool.sizes]
    cover = Cover(pool, list(worths), costs)
    greedy = cover.spend(room, range(len(pool)))[0]
    newest = range(len(pool) - 1, -1, -1)
    alone = [sum(map(worths.__getitem__, pool.terms_of(unit))) for unit in range(len(pool))]
    richest = sorted(range(len(pool)), key=lambda unit: -alone[unit])
    total = sum(worths[term] for term in set(pool.terms))
    curves = [
        ("by worth per token, what is covered worth nothing (the greedy)", "#1b6ca8", list(_curve(pool, worths, costs, greedy, room))),
        ("the richest lines first, whatever they repeat", "#c26a1c", list(_curve(pool, worths, costs, richest, room))),
        ("the newest lines first", "#7a7a7a", list(_curve(pool, worths, costs, newest, room))),
    ]  # fmt: skip
    by_source = {source: sum(costs[unit] for unit in greedy if pool.run(unit).source is source) for source in Source}
    return _drawn(curves, total, room, by_source, f"{name}, {len(view)} entries, {len(pool):,} lines")


def _curve(
    pool: Pool, worths: Sequence[int], costs: Sequence[int], order: Sequence[int], room: int
) -> Iterator[tuple[int, int]]:
    left = list(worths)
    spent = covered = 0
    yield 0, 0
    for unit in order:
        if spent + costs[unit] > room:
            return
        spent += costs[unit]
        for term in pool.terms_of(unit):
            covered += left[term]
            left[term] = 0
        yield spent, covered


_LEFT, _TOP, _ACROSS, _DOWN = 60, 30, 560, 250


def _drawn(
    curves: Sequence[tuple[str, str, list[tuple[int, int]]]],
    total: int,
    room: int,
    by_source: dict[Source, int],
    title: str,
) -> str:
    most = max(covered for _, _, points in curves for _, covered in points)
    top = -(-100 * most // total // 10) * 10
    out = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 660 420" font-family="sans-serif" font-size="12">',
        '<rect width="660" height="420" fill="#ffffff"/>',
        f'<text x="{_LEFT}" y="18">Share of all worth that is covered ({title})</text>',
    ]
    for step in range(0, top + 1, 10):
        y = _TOP + _DOWN - _DOWN * step // top
        out.append(f'<line x1="{_LEFT}" y1="{y}" x2="{_LEFT + _ACROSS}" y2="{y}" stroke="#dddddd"/>')
        out.append(f'<text x="{_LEFT - 8}" y="{y + 4}" text-anchor="end">{step} %</text>')
    for step in range(0, room + 1, 1_000):
        x = _LEFT + _ACROSS * step // room
        out.append(f'<text x="{x}" y="{_TOP + _DOWN + 16}" text-anchor="middle">{step:,}</text>')
    out.append(
        f'<text x="{_LEFT + _ACROSS}" y="{_TOP + _DOWN + 32}" text-anchor="end">size of the lines (pieces, about tokens)</text>'
    )
    for number, (label, colour, points) in enumerate(curves):
        every = max(1, len(points) // 160)
        thinned = [*points[::every], points[-1]]
        drawn = " ".join(
            f"{_LEFT + _ACROSS * spent / room:.1f},{_TOP + _DOWN - _DOWN * 100 * covered / total / top:.1f}"
            for spent, covered in thinned
        )
        out.append(f'<polyline points="{drawn}" fill="none" stroke="{colour}" stroke-width="2"/>')
        y = _TOP + _DOWN + 50 + 18 * number
        out.append(
            f'<line x1="{_LEFT}" y1="{y - 4}" x2="{_LEFT + 24}" y2="{y - 4}" stroke="{colour}" stroke-width="2"/>'
        )
        out.append(f'<text x="{_LEFT + 32}" y="{y}">{label}</text>')
    spent = sum(by_source.values())
    says = ", ".join(f"{100 * size // spent} % {source.name.lower()}" for source, size in by_source.items() if size)
    out.append(f'<text x="{_LEFT}" y="{_TOP + _DOWN + 112}">The greedy\'s lines by whose they are: {says}</text>')
    return "\n".join([*out, "</svg>"]) + "\n"


def _plan(view: View, target: int) -> Plan:
    decision = strategy_by_name("coverage", target=target, fixed_target=True).plan(
        view, Budget.of(200_000, counter=EstimateCounter()), CompactionRequest(trigger="manual", phase="standalone")
    )
    assert isinstance(decision, Plan), decision
    return decision


def _messages(view: View, plan: Plan) -> Iterator[str]:
    for entry in project(view, plan):
        for block in entry.blocks:
            text = (
                block.text
                if isinstance(block, Text)
                else _of_call(block)
                if isinstance(block, ToolCall)
                else "(result)"
            )
            lines = text.split("\n")
            yield _cut(f"{entry.role}: {lines[0]}")
            for line in lines[1:_LONGEST]:
                yield _cut(f"  {line}")
            if len(lines) > _LONGEST:
                yield f"  (and {len(lines) - _LONGEST} lines more)"


def _of_call(call: ToolCall) -> str:
    return f"calls {call.name} {call.arguments}"


def _cut(line: str) -> str:
    return line if len(line) <= _WIDTH else line[: _WIDTH - 3] + "..."


if __name__ == "__main__":
    SAMPLES.write_text(samples())
    FIGURE.write_text(figure())
