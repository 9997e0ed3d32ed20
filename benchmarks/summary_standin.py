"""Is the lab's stand-in summariser strong enough? Against the readable summaries that clients recorded, at equal tokens, on the same history.

    python benchmarks/summary_standin.py FILES

Each recorded compaction with a readable summary gives a line: the stand-in gets the entries that the compaction covered since the one before, and as
many tokens as the recorded summary has. Both texts alone are put to the exams.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path

from firsthand.formats import read_sessions
from firsthand.lab.boundaries import Boundary
from firsthand.lab.questions import ask, questions
from firsthand.lab.summarisers import extract
from firsthand.lab.values import reading
from firsthand.tokens import O200kCounter, entry_cost
from firsthand.transcript import Entry, Text, View, typed_text

EXAMS = ("recognition", "recognition-tokens", "supported", "continuation", "constraints")


def summary_of(view: View, marker: object) -> str:
    shown = [item for item in marker.shown if isinstance(item, Entry)]  # type: ignore[attr-defined]
    texts = [
        block.text for entry in shown for block in entry.blocks if isinstance(block, Text) and block.origin == "summary"
    ]
    return "\n".join(texts)


def main(files: list[str]) -> None:
    counter = O200kCounter()
    totals: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(lambda: [0, 0]))
    for file in files:
        for transcript in read_sessions(Path(file)):
            view = transcript.view()
            costs = [entry_cost(entry, counter) for entry in view.entries]
            whole = "\n".join(reading(view.entries))
            for marker in view.markers:
                text = summary_of(view, marker)
                if marker.after not in view.positions or not marker.readable or not text.strip():
                    continue
                position = view.positions[marker.after] + 1
                size = counter.count(text)
                typed = [
                    text for entry in view.entries[:position] if entry.role == "user" for text in typed_text(entry)
                ]
                made = extract(reading(view.entries[:position]), size, counter, typed)
                asked = questions(
                    view.entries, Boundary(position, marker.id, "recorded"), costs, counter, exams=EXAMS, seeds=2,
                    occurs=lambda string, whole=whole: string in whole,
                )  # fmt: skip
                line = [
                    Path(file).name[:28],
                    marker.id[:8],
                    f"{position:>5}",
                    f"{size:>6}",
                    f"{counter.count(made):>6}",
                ]
                found: dict[str, dict[str, tuple[int, int]]] = {}
                for name, shown in (("recorded", text), ("extractive", made)):
                    entry = Entry(id="s", role="user", blocks=(Text(shown, origin="summary"),))
                    for one in ask(asked, (entry,), size):
                        hits, of = found.setdefault(one.exam, {}).get(name, (0, 0))
                        found[one.exam][name] = (hits + one.hits, of + one.of)
                        total = totals[one.exam][name]
                        total[0] += one.hits
                        total[1] += one.of
                for exam, both in found.items():
                    line.append(f"{exam[:16]} {both['recorded'][0]}:{both['extractive'][0]}/{both['recorded'][1]}")
                print("  ".join(line), flush=True)
    for exam, both in totals.items():
        print(
            f"{exam:<20}"
            + "".join(f"  {name} {hits}/{of} = {100 * hits / max(1, of):.1f} %" for name, (hits, of) in both.items())
        )


if __name__ == "__main__":
    main(sys.argv[1:])
