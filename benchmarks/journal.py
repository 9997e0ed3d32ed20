"""What a journal costs: importing, searching, and the size of its file. Needs a folder of real session files. All times are CPU time.

python benchmarks/journal.py import FILE         import against decoding the file's lines, with and without the search index
python benchmarks/journal.py search DIR [COPIES]  a journal with all sessions of DIR, copied: first pages by kind of query, and sizes
"""

from __future__ import annotations

import gc
import random
import re
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from firsthand.errors import FirsthandError
from firsthand.formats.detect import read_sessions
from firsthand.formats.files import Input
from firsthand.journal import Journal, append
from firsthand.journal.readable import passages
from firsthand.transcript import Entry, Marker, Transcript

_CJK = re.compile("[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]{2,6}")
_WORD = re.compile("[A-Za-z_]{3,}")
_ROUNDS = 7


def best(run: Callable[[], float], rounds: int = _ROUNDS) -> float:
    """The least of several times, in seconds."""
    times = []
    for _ in range(rounds):
        gc.collect()
        times.append(run())
    return min(times)


def timed(run: Callable[[], object]) -> float:
    """CPU time of one run, in seconds: other work on the machine and its disk do not count."""
    began = time.process_time()
    kept = run()
    took = time.process_time() - began
    del kept
    return took


def imports(path: Path) -> None:
    source = Input.open(path)
    decoder = msgspec.json.Decoder()
    lines = [line for line in source.data.split(b"\n") if line.strip()]
    decoded = best(lambda: timed(lambda: [decoder.decode(line) for line in lines]), 9)
    read = best(lambda: timed(lambda: read_sessions(source)))
    transcripts = read_sessions(source)

    def stored() -> float:
        with tempfile.TemporaryDirectory() as folder, Journal.open(Path(folder) / "j.db") as journal:
            return timed(lambda: [journal.import_transcript(transcript) for transcript in transcripts])

    with_index = best(stored)
    index_entries, append.index_entries = append.index_entries, lambda *_: None
    without_index = best(stored)
    append.index_entries = index_entries
    entries = sum(len(transcript.entries) for transcript in transcripts)
    print(
        f"{source.name}: {len(source.data) / 1e6:.1f} MB, {entries:,} entries; decoding its lines {decoded * 1e3:.1f} ms"
    )
    for name, took in (
        ("read into memory", read),
        ("read and stored, no search index", read + without_index),
        ("read and stored", read + with_index),
    ):
        print(f"  {name:34} {took * 1e3:7.1f} ms {took / decoded:6.1f} times")


def copied(transcript: Transcript, copy: int) -> Transcript:
    """The same session under other ids."""

    def other(name: str | None) -> str | None:
        return None if name is None else f"{name}.{copy}"

    def entry(old: Entry) -> Entry:
        return msgspec.structs.replace(old, id=f"{old.id}.{copy}", parent=other(old.parent))

    def marker(old: Marker) -> Marker:
        shown = tuple(f"{item}.{copy}" if isinstance(item, str) else item for item in old.shown)
        return msgspec.structs.replace(old, after=other(old.after), shown=shown)

    return msgspec.structs.replace(
        transcript,
        id=f"{transcript.id}.{copy}",
        entries=tuple(map(entry, transcript.entries)),
        leaf=other(transcript.leaf),
        markers=tuple(map(marker, transcript.markers)),
    )


def sessions(folder: Path) -> Iterator[Transcript]:
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            try:
                yield from read_sessions(path)
            except FirsthandError as error:
                print(f"  left out {path.name}: {error}", file=sys.stderr)


def queries(texts: list[str], chance: random.Random) -> dict[str, list[str]]:
    """Seeded queries of each kind."""
    long = [text for text in texts if len(text) > 60]
    words = Counter(word for text in texts[::7] for word in _WORD.findall(text[:5_000]))
    cjk = [run for text in texts for run in _CJK.findall(text[:20_000])]

    def part(text: str) -> str:
        start = chance.randrange(len(text) - 30)
        return text[start : start + chance.randint(8, 30)]

    def shuffled(text: str) -> str:
        letters = list(part(text))
        chance.shuffle(letters)
        return "".join(letters)

    return {
        "rare": [part(chance.choice(long)) for _ in range(200)],
        "common": [word for word, _ in words.most_common(100)],
        "two letters": ["th", "e ", "qx", "==", "0x", "\n\n", "zq", "ji", "//", "Xk"] * 5,
        "CJK": [chance.choice(cjk)[: chance.randint(2, 4)] for _ in range(200)] if cjk else [],
        "nowhere": [shuffled(chance.choice(long)) for _ in range(200)],
    }


def search(folder: Path, copies: int) -> None:
    found = list(sessions(folder))
    texts = [passage.text for one in found for entry in one.entries for passage in passages(entry)]
    visible = copies * sum(len(text.encode("utf-8", "replace")) for text in texts)
    with tempfile.TemporaryDirectory() as place, Journal.open(Path(place) / "j.db") as journal:
        took = timed(lambda: [journal.import_transcript(copied(one, n)) for n in range(copies) for one in found])
        count = sum(info.entries for info in journal.sessions())
        journal._database.fold_log()
        size = journal.path.stat().st_size
        print(f"{len(found) * copies} sessions, {count:,} entries, {visible / 1e6:.1f} MB of visible text")
        print(f"  stored in {took:.1f} s, {visible / took / 1e6:.1f} MB of text a second")
        print(f"  file {size / 1e6:.1f} MB, {size / visible:.2f} times the text")
        with journal.read() as connection:
            parts = connection.exec_driver_sql(
                "SELECT name, sum(pgsize) FROM dbstat GROUP BY name ORDER BY 2 DESC LIMIT 6"
            )
            print("  " + ", ".join(f"{name} {part / 1e6:.1f} MB" for name, part in parts))
        for kind, asked in queries(texts, random.Random(7)).items():
            times, hits, late = [], 0, 0
            for query in asked:
                began = time.process_time()
                page = journal.find(query, limit=20)
                times.append((time.process_time() - began) * 1e3)
                hits += len(page.matches)
                late += page.timed_out
            times.sort()
            p99 = times[int(len(times) * 0.99)] if times else 0
            print(
                f"  {kind:12} {len(asked):4} queries, median {statistics.median(times or [0]):6.1f} ms, p99 {p99:6.1f} ms, "
                f"most {max(times, default=0):6.1f} ms, {hits / max(1, len(asked)):.1f} matches, {late} cut short"
            )


def main() -> None:
    what, *rest = sys.argv[1:] or ["help"]
    if what == "import" and rest:
        imports(Path(rest[0]))
    elif what == "search" and rest:
        search(Path(rest[0]), int(rest[1]) if len(rest) > 1 else 10)
    else:
        print(__doc__)


if __name__ == "__main__":
    main()
