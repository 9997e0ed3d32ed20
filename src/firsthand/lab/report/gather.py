"""Makes a record: runs what needs no paid model, takes from caches and given files what is there, and notes the command of every part."""

from __future__ import annotations

import platform
import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from importlib import metadata
from pathlib import Path

from ... import __version__
from ...samples import CHAINS
from ...strategies import DEFAULT_STRATEGY
from ...tokens import O200kCounter
from ...transcript import Transcript
from ..audit import audit
from ..boundaries import EXAM_TAIL
from ..cache.stored import CacheLine
from ..compose import Composition, compose, total
from ..exams.continuation import STEPS
from ..inputs import Source
from ..loaded import Origin, RememberingCounter
from ..money.own import OwnCosts, own_costs
from ..money.prices import Price
from ..results import LEAST_QUESTIONS, Cache, Row
from ..run_setup import Setup
from ..runner import default_strategies, run
from .example import PUBLISHED_CEILING, PUBLISHED_WINDOW, budgets_of, example_of
from .given import Given, read_ledger, read_rows
from .record import AuditLine, Charged, Example, Input, Part, Record
from .replays import code_hash, kept_replays

__all__ = ["MONEY_STRATEGIES", "PARTS", "Wish", "gathered"]

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

MONEY_STRATEGIES = (
    "coverage",
    "futureos-deterministic",
    "futureos-summarized",
    "codex-local",
    "pi",
    "opencode-v1",
    "opencode-v2",
)
_MONEY_LEAST = 20_000
"""Tokens under which a session is not costed: nobody compacts it."""
_CURVE_EXAMS = ("recognition", "supported", "continuation")
_NAMED = 80
"""Characters that the names of files take in a command; where they are longer it says FILES."""
_PACKAGES = ("bpe-openai", "genai-prices", "jinja2", "matplotlib", "msgspec")


@dataclass(frozen=True)
class Wish:
    """What a report is to show."""

    command: str
    sources: Sequence[Source]
    """The sessions, in the order of their files."""
    files: Sequence[Path]
    """As the user named them."""
    origins: Sequence[Origin]
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


class _Work:
    def __init__(self, wish: Wish, say: Callable[[str], None], show: Callable[[int, int], None]) -> None:
        self.wish = wish
        self.given = read_rows(wish.rows)
        self.parts: list[Part] = []
        self.say = say
        self.show = show
        named = [str(path) for path in wish.files]
        short = len(shlex.join(named)) <= _NAMED
        self.files = shlex.join(named) if short else '"${FILES[@]}"'
        self.definition = "" if short else f"FILES=({shlex.join(named)})"

    def wanted(self, name: str) -> bool:
        return name in self.wish.parts and bool(self.wish.sources or name == "chains")

    @contextmanager
    def part(self, name: str, command: str, note: str = "") -> Iterator[None]:
        self.say(name)
        start = time.perf_counter()
        yield
        self.parts.append(Part(name=name, command=command, seconds=round(time.perf_counter() - start, 1), note=note))

    def taken(self, name: str) -> list[Row] | None:
        """The rows of a given file, in the place of a measurement."""
        found = self.given.rows.get(name)
        if found is not None:
            self.parts.append(_from_files(name, self.given, "run"))
        return found

    def run(self, *options: str, files: str | None = None) -> str:
        parts = ["firsthand lab run", self.files if files is None else files, *options]
        return " ".join(part for part in parts if part)


def _from_files(name: str, given: Given, command: str) -> Part:
    files = given.sources[name]
    named = ", ".join(f"{path.name} (sha256 {_hash(path)[:16]})" for path in files)
    out = "--json" if command in ("cache", "openbook") else f"--csv {shlex.quote(files[0].name)}"
    return Part(name=name, command=f"firsthand lab {command} ... {out}", seconds=0.0, note=f"rows taken from {named}")


def gathered(
    wish: Wish,
    *,
    say: Callable[[str], None] = lambda name: None,
    show: Callable[[int, int], None] = lambda done, total: None,
) -> Record:
    """Everything that the report shows.

    Args:
        wish: what is asked for.
        say: told the name of each part before it is measured.
        show: called with the finished and the whole number of tasks of a run.
    """
    work = _Work(wish, say, show)
    counter = RememberingCounter(O200kCounter())
    compositions = _compositions(work, counter)
    rows = _rows(work)
    audits, audited = _audits(work, counter)
    costs = _costs(work)
    example = _example(work)
    given = work.given
    cache, cache_model = _cache(work)
    for name, command, found in (("ask", "ask", given.model), ("openbook", "openbook", given.open_book)):
        if found:
            work.parts.append(_from_files(name, given, command))
    setup = wish.setup
    return Record(
        command=wish.command,
        made=wish.now,
        versions=_versions(),
        code=code_hash(),
        settings={
            "strategies": ", ".join(setup.strategies),
            "boundaries": ", ".join(f"{share} %" for share in setup.shares)
            + " of a session's tokens, and where its client compacted",
            "window": f"{setup.window:,} tokens",
            "draws": f"{setup.seeds} (seeds 0 to {setup.seeds - 1})",
            "bootstrap": "1,000 rounds over sessions, seed 0",
            "published exam": "seeds 9000 + stage and 1000 + stage, as published",
            "exam tail": f"{EXAM_TAIL:,} tokens",
            "continuation": f"{STEPS} model responses",
            "least questions": f"{LEAST_QUESTIONS} for a session to be judged",
        },
        inputs=_inputs(wish),
        files=work.definition,
        parts=tuple(work.parts),
        compositions=compositions,
        rows=rows,
        audits=audits,
        audited=audited,
        costs=costs,
        price=wish.price if costs else None,
        cache=cache,
        cache_model=cache_model,
        model_rows=tuple(given.model),
        open_book=tuple(given.open_book),
        charged=_charged(work),
        example=example,
        budgets=budgets_of(setup.window),
    )


def _compositions(work: _Work, counter: RememberingCounter) -> tuple[Composition, ...]:
    if not work.wanted("compose"):
        return ()
    with work.part("compose", f"firsthand lab compose {work.files}"):
        files: dict[str, list[Composition]] = {}
        for source in work.wish.sources:
            files.setdefault(source.label, []).append(compose(source.transcript, counter, source=source.label))
        each = [found[0] if len(found) == 1 else total(found, name) for name, found in files.items()]
        return (*each, total(each))


def _rows(work: _Work) -> dict[str, list[Row]]:
    wish, setup = work.wish, work.wish.setup
    chains = [Origin(None, 0, name) for name in CHAINS]
    by = () if setup.strategies == default_strategies() else ("--strategies", ",".join(setup.strategies))
    few = tuple(wish.curve_strategies)
    sizes = ",".join(map(str, wish.sizes))
    plans: list[tuple[str, str, Sequence[Origin], Setup | None]] = [
        ("run", work.run(*by, *_seeds(setup), *_window(setup)), wish.origins, setup),
        (
            "chains",
            work.run("--synthetic --exams published", *by, *_seeds(setup), files=""),
            chains,
            _as_published(setup),
        ),
        (
            "recall",
            work.run(f"--exams cloze,published --recall {wish.recall}", *by, *_seeds(setup), *_window(setup)),
            wish.origins,
            replace(setup, exams=("cloze", "published"), recall=wish.recall, summarisers=setup.summarisers[-1:]),
        ),
        (
            "curves",
            work.run(f"--target {sizes} --exams {','.join(_CURVE_EXAMS)} --strategies", ",".join(few), *_seeds(setup), *_window(setup)),
            wish.origins,
            replace(setup, strategies=few, exams=_CURVE_EXAMS, targets=tuple(wish.sizes), summarisers=setup.summarisers[-1:])
            if few and wish.sizes
            else None,
        ),
        ("equal", work.run(f"--target {wish.rivals}", *by, *_seeds(setup), *_window(setup)), wish.origins, wish.equal),
    ]  # fmt: skip
    found: dict[str, list[Row]] = {}
    for name, command, origins, chosen in plans:
        given = work.taken(name)
        if given is not None:
            found[name] = given
        elif chosen is not None and work.wanted(name):
            only = f" --summariser {chosen.summarisers[-1]}" if len(chosen.summarisers) == 1 else ""
            with work.part(name, command + only):
                found[name] = run(origins, chosen, wish.cache, workers=wish.workers, progress=work.show)
    survival = work.taken("survival")
    if survival is None and work.wanted("survival") and (wish.windows or _kept(wish.replays)):
        windows = tuple(wish.windows) or (32_000,)
        told = ",".join(map(str, windows))
        with work.part("survival", work.run(f"--survival {told} --seeds 1", *by)):
            survival = kept_replays(
                wish.origins,
                replace(setup, seeds=1),
                windows,
                wish.replays,
                measure=bool(wish.windows),
                progress=work.show,
            )
    if survival:
        found["survival"] = survival
    return found


def _kept(cache: Cache) -> bool:
    return cache.path is not None and cache.path.exists() and cache.path.stat().st_size > 0


def _as_published(setup: Setup) -> Setup:
    """The setup of `lab run --synthetic`."""
    return replace(
        setup,
        exams=("published",),
        window=PUBLISHED_WINDOW,
        output_ceiling=PUBLISHED_CEILING,
        profile="futureos-e2",
        counter="estimate",
        carry=True,
    )


def _seeds(setup: Setup) -> tuple[str, ...]:
    return () if setup.seeds == Setup(()).seeds else ("--seeds", str(setup.seeds))


def _window(setup: Setup) -> tuple[str, ...]:
    return () if setup.window == Setup(()).window else ("--window", str(setup.window))


def _audits(work: _Work, counter: RememberingCounter) -> tuple[tuple[AuditLine, ...], int]:
    if not work.wanted("audit"):
        return (), 0
    with work.part("audit", f"firsthand lab audit {work.files}"):
        found = [
            AuditLine.of_audit(row)
            for source in work.wish.sources
            for row in audit(source.transcript, counter, source=source.label, strategy=DEFAULT_STRATEGY)
        ]
    return tuple(found), len(work.wish.sources)


def _costs(work: _Work) -> tuple[OwnCosts, ...]:
    wish = work.wish
    if not work.wanted("money") or wish.price is None:
        return ()
    names = [name for name in MONEY_STRATEGIES if name in wish.setup.strategies]
    large = {source.path for source in wish.sources if _large(source.transcript)}
    # All sessions of such a file, so that the command prints the same sums.
    chosen = [source for source in wish.sources if source.path in large]
    files = sorted(map(str, large))
    if not names or not chosen:
        return ()
    left = len({source.path for source in wish.sources}) - len(files)
    note = f"{left:,} files without a session of {_MONEY_LEAST:,} tokens are not costed" if left else ""
    named = work.files if not left else shlex.join(files)
    command = f"firsthand lab money {named} {wish.price_option} --strategies {','.join(names)}"
    if wish.setup.window != Setup(()).window:
        command += f" --window {wish.setup.window}"
    with work.part("money", command, note):
        return tuple(
            one
            for source in chosen
            for one in own_costs(source.transcript, names, wish.price, window=wish.setup.window)
        )


def _large(session: Transcript) -> bool:
    # Four characters for a token is too many for no text that a session holds, so nothing large is left out.
    characters = 0
    for entry in session.entries:
        characters += sum(len(getattr(block, "text", "")) for block in entry.blocks)
        if characters >= 3 * _MONEY_LEAST:
            return True
    return False


def _example(work: _Work) -> Example | None:
    wish = work.wish
    if not work.wanted("example"):
        return None
    names = wish.setup.strategies
    strategy = "coverage" if "coverage" in names else DEFAULT_STRATEGY
    source = max(wish.sources, key=lambda one: len(one.transcript.entries))
    command = (
        f"firsthand compact {shlex.quote(str(source.path))} --strategy {strategy} --window {wish.setup.window} --json"
    )
    if sum(one.path == source.path for one in wish.sources) > 1:
        command += f" --session {shlex.quote(source.transcript.id)}"
    with work.part("example", command):
        return example_of(source.transcript, source.label, strategy, wish.setup.window)


def _cache(work: _Work) -> tuple[tuple[CacheLine, ...], str]:
    if work.given.cache:
        work.parts.append(_from_files("cache", work.given, "cache"))
        return tuple(work.given.cache), ""
    if work.wish.stored_cache is None:
        return (), ""
    rows, model, command = work.wish.stored_cache
    work.parts.append(Part(name="cache", command=command, seconds=0.0, note="measured before, on this machine"))
    return tuple(rows), model


def _charged(work: _Work) -> tuple[Charged, ...]:
    return tuple(map(read_ledger, work.wish.ledgers))


def _inputs(wish: Wish) -> tuple[Input, ...]:
    files: dict[Path, list[Source]] = {}
    for source in wish.sources:
        files.setdefault(source.path, []).append(source)
    found = [
        Input(
            name=path.name,
            sha256=_hash(path),
            size=_size(path),
            format=sources[0].transcript.format,
            sessions=len(sources),
            entries=sum(len(source.transcript.entries) for source in sources),
        )
        for path, sources in files.items()
    ]
    found += [
        Input(name=path.name, sha256=_hash(path), size=_size(path), format="rows", sessions=0, entries=0)
        for path in (*wish.rows, *wish.ledgers)
    ]
    return tuple(found)


def _hash(path: Path) -> str:
    """Of a file its content's; of a folder that a reader knows, of all files in it in the order of their names."""
    digest = sha256()
    for file in _files(path):
        with file.open("rb") as opened:
            while part := opened.read(1 << 20):
                digest.update(part)
    return digest.hexdigest()


def _size(path: Path) -> int:
    return sum(file.stat().st_size for file in _files(path))


def _files(path: Path) -> list[Path]:
    return sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]


def _versions() -> dict[str, str]:
    found = {"firsthand": __version__, "Python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found
