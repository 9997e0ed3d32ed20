"""Makes a record: measures what needs no paid model, takes from caches and given files what is there, and notes the command of every part."""

from __future__ import annotations

import platform
import shlex
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

from ... import __version__
from ...strategies import DEFAULT_STRATEGY
from ...tokens import O200kCounter
from ..boundaries import EXAM_TAIL
from ..cache.stored import CacheLine
from ..compose import Composition, compose, total
from ..exams.continuation import STEPS
from ..inputs import Source
from ..lanes import opened_lanes
from ..loaded import RememberingCounter
from ..money.own import OwnCosts
from ..results import LEAST_QUESTIONS
from ..run_setup import Setup
from .example import budgets_of, example_of
from .given import read_ledger
from .of_each import Costing, Placed, audited, costed, of_each
from .record import AuditLine, Charged, Example, Input, Part, Record
from .replays import code_hash
from .runs import measured_rows
from .wish import PARTS, Wish, Work, hash_of, size_of_files

__all__ = ["MONEY_STRATEGIES", "PARTS", "Wish", "gathered"]

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
"""Tokens of history under which a session is not costed: nobody compacts it."""
_PACKAGES = ("bpe-openai", "genai-prices", "jinja2", "matplotlib", "msgspec")


def gathered(
    wish: Wish,
    *,
    say: Callable[[str], None] = lambda name: None,
    show: Callable[[str], Callable[[int, int], None]] = lambda what: lambda done, total: None,
) -> Record:
    """Everything that the report shows.

    Args:
        wish: what is asked for.
        say: told the name of each part before it is measured.
        show: gives for what is counted, such as boundaries, what is called with the finished and the whole number of it.
    """
    start = time.perf_counter()
    with opened_lanes(wish.workers) as lanes:
        work = Work(wish, lanes, say, show)
        compositions = _compositions(work)
        rows = measured_rows(work)
        audits, sessions = _audits(work)
        costs = _costs(work)
        example = _example(work)
    given = work.given
    cache, cache_model = _cache(work)
    for name, command, found in (("ask", "ask", given.model), ("openbook", "openbook", given.open_book)):
        if found:
            work.parts.append(work.from_files(name, command))
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
            "time": f"{time.perf_counter() - start:,.0f} seconds by the clock in {max(1, len(lanes))} processes",
        },
        inputs=_inputs(wish),
        files=work.definition,
        parts=tuple(work.parts),
        compositions=compositions,
        rows=rows,
        audits=audits,
        audited=sessions,
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


def _compositions(work: Work) -> tuple[Composition, ...]:
    if not work.wanted("compose"):
        return ()
    counter = RememberingCounter(O200kCounter())
    with work.part("compose", f"firsthand lab compose {work.files}"):
        files: dict[str, list[Composition]] = {}
        for source in work.wish.sources:
            files.setdefault(source.label, []).append(compose(source.transcript, counter, source=source.label))
        each = [found[0] if len(found) == 1 else total(found, name) for name, found in files.items()]
        return (*each, total(each))


def _placed(work: Work) -> list[Placed]:
    sources = work.wish.sources
    return [
        Placed(origin, source.label, len(source.transcript.entries))
        for origin, source in zip(work.wish.places(), sources, strict=True)
    ]


def _audits(work: Work) -> tuple[tuple[AuditLine, ...], int]:
    if not work.wanted("audit"):
        return (), 0
    with work.part("audit", f"firsthand lab audit {work.files}"):
        found, _ = of_each(audited, _placed(work), work.lanes)
    return tuple(found), len(work.wish.sources)


def _costs(work: Work) -> tuple[OwnCosts, ...]:
    wish = work.wish
    names = tuple(name for name in MONEY_STRATEGIES if name in wish.setup.strategies)
    if not work.wanted("money") or wish.price is None or not names:
        return ()
    command = (
        f"firsthand lab money {work.files} {wish.price_option} --strategies {','.join(names)} --least {_MONEY_LEAST}"
    )
    if wish.setup.window != Setup(()).window:
        command += f" --window {wish.setup.window}"
    asked = [
        Costing(one.origin, one.label, one.weight, names, wish.price, wish.setup.window, _MONEY_LEAST)
        for one in _placed(work)
    ]
    with work.part("money", command, f"sessions below {_MONEY_LEAST:,} tokens are not costed"):
        found, _ = of_each(costed, asked, work.lanes)
    return tuple(found)


def _example(work: Work) -> Example | None:
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


def _cache(work: Work) -> tuple[tuple[CacheLine, ...], str]:
    if work.given.cache:
        work.parts.append(work.from_files("cache", "cache"))
        return tuple(work.given.cache), ""
    if work.wish.stored_cache is None:
        return (), ""
    rows, model, command = work.wish.stored_cache
    work.parts.append(Part(name="cache", command=command, seconds=0.0, note="measured before, on this machine"))
    return tuple(rows), model


def _charged(work: Work) -> tuple[Charged, ...]:
    return tuple(map(read_ledger, work.wish.ledgers))


def _inputs(wish: Wish) -> tuple[Input, ...]:
    files: dict[Path, list[Source]] = {}
    for source in wish.sources:
        files.setdefault(source.path, []).append(source)
    found = [
        Input(
            name=path.name,
            sha256=hash_of(path),
            size=size_of_files(path),
            format=sources[0].transcript.format,
            sessions=len(sources),
            entries=sum(len(source.transcript.entries) for source in sources),
        )
        for path, sources in files.items()
    ]
    found += [
        Input(name=path.name, sha256=hash_of(path), size=size_of_files(path), format="rows", sessions=0, entries=0)
        for path in (*wish.rows, *wish.ledgers)
    ]
    return tuple(found)


def _versions() -> dict[str, str]:
    found = {"firsthand": __version__, "Python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found
