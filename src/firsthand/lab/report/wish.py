"""What a report is asked to show, and what its parts have in common while it is made: lanes, given rows, commands and times."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from ..cache.stored import CacheLine
from ..inputs import Source
from ..lanes import Lanes
from ..loaded import Origin
from ..money.prices import Price
from ..results import Cache, Row
from ..run_setup import Setup
from .given import read_rows
from .record import Part

__all__ = ["PARTS", "Wish", "Work", "hash_of", "size_of_files"]

PARTS: tuple[str, ...] = (
    "compose",
    "run",
    "chains",
    "recall",
    "curves",
    "equal",
    "survival",
    "audit",
    "money",
    "example",
)
"""What is measured here, in this order; each can be left out."""

_NAMED = 80
"""Characters that the names of files take in a command; where they are longer it says FILES."""


@dataclass(frozen=True)
class Wish:
    """What a report is to show."""

    command: str
    sources: Sequence[Source]
    """The sessions, in the order of their files."""
    files: Sequence[Path]
    """As the user named them."""
    setup: Setup
    """Of the run at the default boundaries; the other runs differ from it in what their names say."""
    cache: Cache
    replays: Cache
    parts: Sequence[str] = PARTS
    sizes: Sequence[int] = (4_000, 16_000, 64_000)
    curve_strategies: Sequence[str] = ()
    recall: int = 1_000
    rivals: str = ""
    """As `lab run --target` takes them; empty for no comparison at equal size."""
    equal: Setup | None = None
    windows: Sequence[int] = ()
    """Survival is measured for these; with none, taken where it was measured before."""
    price: Price | None = None
    price_option: str = ""
    """How the command line of `lab money` names the price."""
    rows: Sequence[Path] = ()
    ledgers: Sequence[Path] = ()
    stored_cache: tuple[Sequence[CacheLine], str, str] | None = None
    """Measurements of `lab cache` that are kept: rows, model file, command."""
    workers: int | None = None
    now: str = ""

    @property
    def origins(self) -> list[Origin]:
        """Where the sessions come from that hold anything, each once."""
        found = zip(self.places(), self.sources, strict=True)
        return list(dict.fromkeys(place for place, source in found if source.transcript.entries))

    def places(self) -> list[Origin]:
        """Of each of `sources` its file and its place in it, empty sessions included."""
        numbers: dict[Path, int] = {}
        found = []
        for source in self.sources:
            number = numbers.get(source.path, 0)
            numbers[source.path] = number + 1
            found.append(Origin(str(source.path), number))
        return found


class Work:
    """A report while it is made.

    Args:
        wish: what is asked for.
        lanes: where sessions are measured.
        say: told the name of each part before it is measured.
        show: gives for what is counted what is called with the finished and the whole number of it.
    """

    def __init__(
        self,
        wish: Wish,
        lanes: Lanes,
        say: Callable[[str], None],
        show: Callable[[str], Callable[[int, int], None]],
    ) -> None:
        self.wish = wish
        self.lanes = lanes
        self.given = read_rows(wish.rows)
        self.parts: list[Part] = []
        self.say = say
        self.show = show
        named = [str(path) for path in wish.files]
        short = len(shlex.join(named)) <= _NAMED
        self.files = shlex.join(named) if short else '"${FILES[@]}"'
        self.definition = "" if short else f"FILES=({shlex.join(named)})"

    def wanted(self, name: str) -> bool:
        """Whether a part is to be measured."""
        return name in self.wish.parts and bool(self.wish.sources or name == "chains")

    @contextmanager
    def part(self, name: str, command: str, note: str = "") -> Iterator[None]:
        """Times a part and notes its command."""
        self.say(name)
        start = time.perf_counter()
        yield
        self.parts.append(Part(name=name, command=command, seconds=round(time.perf_counter() - start, 1), note=note))

    def taken(self, name: str) -> list[Row] | None:
        """The rows of a given file, in the place of a measurement."""
        found = self.given.rows.get(name)
        if found is not None:
            self.parts.append(self.from_files(name, "run"))
        return found

    def from_files(self, name: str, command: str) -> Part:
        """A part whose rows were given."""
        files = self.given.sources[name]
        named = ", ".join(f"{path.name} (sha256 {hash_of(path)[:16]})" for path in files)
        out = "--json" if command in ("cache", "openbook") else f"--csv {shlex.quote(files[0].name)}"
        return Part(
            name=name, command=f"firsthand lab {command} ... {out}", seconds=0.0, note=f"rows taken from {named}"
        )

    def run(self, *options: str, files: str | None = None) -> str:
        """The command line of `lab run` with these options."""
        parts = ["firsthand lab run", self.files if files is None else files, *options]
        return " ".join(part for part in parts if part)


def hash_of(path: Path) -> str:
    """Of a file its content's; of a folder that a reader knows, of all files in it in the order of their names."""
    digest = sha256()
    for file in _files(path):
        with file.open("rb") as opened:
            while part := opened.read(1 << 20):
                digest.update(part)
    return digest.hexdigest()


def size_of_files(path: Path) -> int:
    """Bytes of a file, or of all files in a folder."""
    return sum(file.stat().st_size for file in _files(path))


def _files(path: Path) -> list[Path]:
    return sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
