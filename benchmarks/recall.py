"""What recall brings back on real sessions: `cloze` and `published` with a block, what decoys bring, and how long it takes.

python benchmarks/recall.py FOLDER [--half report] [--most 1000] [--strategy futureos-deterministic] [--target TOKENS]

Sessions are taken by turns into two halves, `tune` and `report`, in the order of their names; what was tuned was tuned on the first.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean, median
from typing import NamedTuple

from firsthand.budget import Budget
from firsthand.errors import FirsthandError
from firsthand.formats import read_sessions
from firsthand.lab.boundaries import boundaries, deciles, exam_tail
from firsthand.lab.exams import published
from firsthand.lab.exams.cloze import question
from firsthand.lab.exams.recognition import draw
from firsthand.lab.exams.supported import askable, supported
from firsthand.lab.passages import Passages
from firsthand.lab.values import homes, literal, pieces, reading
from firsthand.projection.plan import Plan
from firsthand.projection.render import project
from firsthand.projection.repair import repair
from firsthand.session.recall import recall_over
from firsthand.strategies import strategy_by_name
from firsthand.strategies.contract import CompactionRequest
from firsthand.tokens import O200kCounter, counter_for_model, entry_cost
from firsthand.transcript import Entry, Transcript, View

LEAST_TOKENS = 40_000
DECOYS = 24


class Cut(NamedTuple):
    """One boundary, and what was asked there."""

    label: str
    asked: int
    alone: int
    """Answered by the projection alone."""
    known: int
    """Answered with recall."""
    published: int
    published_alone: int
    published_known: int
    tokens: Sequence[int]
    """Sizes of the blocks that questions brought."""
    decoys: int
    attached: int
    """Decoys that brought a block."""
    milliseconds: float
    index_seconds: float


def sessions(folder: Path, half: str) -> list[tuple[str, Transcript]]:
    """The longest session of each file that has at least `LEAST_TOKENS`, of one half or of both."""
    found: list[tuple[str, Transcript]] = []
    for path in sorted(
        file for file in folder.rglob("*") if file.is_file() and file.suffix in (".gz", ".jsonl", ".json")
    ):
        try:
            read = read_sessions(path)
        except FirsthandError:
            continue
        longest = max(read, key=lambda transcript: len(transcript.path()), default=None)
        if longest is None:
            continue
        counter = counter_for_model("gpt")
        if sum(entry_cost(entry, counter) for entry in longest.path()) >= LEAST_TOKENS:
            found.append((path.name.split(".")[0], longest))
    return [pair for number, pair in enumerate(found) if half == "both" or number % 2 == (half == "report")]


def questions_of(transcript: Transcript) -> list[str]:
    """Masked lines of a session, as decoys for another one."""
    values = list(homes(transcript.path()).values())
    step = max(1, len(values) // (4 * DECOYS))
    return [line for value in values[::step] if (line := question(value))]


def decoys_for(transcript: Transcript, others: Sequence[Sequence[str]]) -> list[str]:
    """Masked lines of other sessions, none of which occurs in this one."""
    text = "\n".join(reading(transcript.path()))
    lines = [line for other in others for line in other[:: max(1, len(other) // DECOYS)] if line not in text]
    return lines[:: max(1, len(lines) // DECOYS)][:DECOYS]


def projection(view: View, strategy: str, target: int | None, model: str | None) -> tuple[Entry, ...]:
    """What a strategy shows of a history after a compaction that was asked for."""
    made = strategy_by_name(strategy)
    if target is not None:
        made = made.at_size(target) or made
    budget = Budget.of(200_000, counter=counter_for_model(model))
    plan = made.plan(view, budget, CompactionRequest(trigger="manual", phase="standalone"))
    return repair(project(view, plan if isinstance(plan, Plan) else None)).entries


def cuts(
    transcript: Transcript, strategy: str, target: int | None, most: int, decoys: Sequence[str], verbose: bool
) -> list[Cut]:
    """What is answered at each boundary."""
    exact = O200kCounter()
    view = transcript.view()
    costs = [entry_cost(entry, exact) for entry in view.entries]
    out: list[Cut] = []
    for boundary in boundaries(view, (40, 70, 100), costs, recorded=False):
        history = view.entries[: boundary.position]
        at = View(history)
        projected = projection(at, strategy, target, transcript.model)
        start = time.perf_counter()
        recall = recall_over(history, projected, exact, most)
        indexed = time.perf_counter() - start
        tail = exam_tail(view.entries, boundary.position, exact)
        tail_text = "\n".join(text for entry in history[tail:] for _, text in pieces(entry))
        drawn = draw(homes(history), deciles(costs[: boundary.position]), tail_text, 1).older[0]
        words = askable(drawn)
        values = [value for value in drawn if value.text in words]
        passages = Passages(reading(projected), frozenset(reading(history)))
        alone = supported(values, words, passages)
        known = set(alone)
        sizes: list[int] = []
        times: list[float] = []
        missed: list[str] = []
        for value in values:
            asked = question(value)
            if value.text in known or asked is None:
                continue
            start = time.perf_counter()
            block = recall(asked)
            times.append((time.perf_counter() - start) * 1e3)
            if block is not None:
                sizes.append(exact.count(block))
                assert sizes[-1] <= most
                if Passages([literal(block)]).supports(value, words[value.text]):
                    known.add(value.text)
                    continue
            missed.append(
                f"{value.kind:9} {value.text!r:40.40} {'-' if block is None else sizes[-1]:>5} {asked[:150]!r}"
            )
        if verbose:
            print("\n".join(missed[:: max(1, len(missed) // 14)]))
        attached = 0
        for line in decoys:
            block = recall(line)
            attached += block is not None
            if verbose and block is not None:
                print("DECOY", repr(line[:160]), "->", "\n".join(block.splitlines()[1:4])[:400])
        sheet = published.questionnaire(history, boundary.stage)
        rendered = published.rendered(projected)
        message = "Do these occur above? " + ", ".join(sheet.order)
        block = recall(message) or ""
        with_block = sheet.contained(rendered + "\n" + block)
        alone_published = sheet.contained(rendered)
        if verbose:
            print(
                "PUBLISHED missing",
                [value for (value, _), hit in zip(sheet.values, with_block, strict=True) if not hit],
            )
        out.append(
            Cut(
                boundary.label, len(values), len(alone), len(known), len(sheet.values), sum(alone_published), sum(with_block), sizes,
                len(decoys), attached, median(times or [0.0]), indexed,
            )
        )  # fmt: skip
    return out


def main() -> None:
    """Prints a line per session and the means over sessions."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--half", choices=("tune", "report", "both"), default="both")
    parser.add_argument("--most", type=int, default=1_000)
    parser.add_argument("--strategy", default="futureos-deterministic")
    parser.add_argument("--target", type=int)
    parser.add_argument("--only", default="")
    parser.add_argument("--verbose", action="store_true")
    given = parser.parse_args()
    chosen = sessions(given.folder, given.half)
    asked_lines = {name: questions_of(transcript) for name, transcript in chosen}
    share: Callable[[int, int], float] = lambda hits, of: hits / of if of else 1.0  # noqa: E731
    rows = []
    print(
        f"{'session':28} {'asked':>6} {'alone':>6} {'recall':>6} | {'publ':>5} {'alone':>6} {'recall':>6} | "
        f"{'decoys':>6} {'hit':>4} | tokens  ms  index s"
    )
    for name, transcript in chosen:
        if given.only and given.only not in name:
            continue
        decoys = decoys_for(transcript, [lines for other, lines in asked_lines.items() if other != name])
        found = cuts(transcript, given.strategy, given.target, given.most, decoys, given.verbose)
        total = Cut(
            name, *(sum(cut[at] for cut in found) for at in range(1, 7)), [size for cut in found for size in cut.tokens],
            *(sum(cut[at] for cut in found) for at in (8, 9)), max(cut.milliseconds for cut in found), max(cut.index_seconds for cut in found),
        )  # fmt: skip
        row = (
            share(total.alone, total.asked), share(total.known, total.asked), share(total.published_alone, total.published),
            share(total.published_known, total.published), share(total.attached, total.decoys),
        )  # fmt: skip
        rows.append(row)
        print(
            f"{name:28} {total.asked:6} {row[0]:6.3f} {row[1]:6.3f} | {total.published:5} {row[2]:6.3f} {row[3]:6.3f} | "
            f"{total.decoys:6} {total.attached:4} | {mean(total.tokens or [0]):5.0f} {total.milliseconds:5.1f} {total.index_seconds:5.2f}",
            flush=True,
        )
    if rows:
        print(
            f"{'mean over sessions':28} {'':6} " + " ".join(f"{mean(row[at] for row in rows):6.3f}" for at in range(5))
        )


if __name__ == "__main__":
    main()
