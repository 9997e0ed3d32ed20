"""The rows of a report: all runs over the same sessions measured together, and the replays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...samples import CHAINS
from ..loaded import Origin
from ..results import Cache, Row
from ..run_setup import Setup
from ..runner import default_strategies, run_together
from .example import PUBLISHED_CEILING, PUBLISHED_WINDOW
from .record import Part
from .replays import kept_replays
from .wish import Work

__all__ = ["TOGETHER", "measured_rows"]

_CURVE_EXAMS = ("recognition", "supported", "continuation")
TOGETHER = (
    "measured together with the other runs; seconds of all processes, what runs share counted where it came first"
)


@dataclass(frozen=True)
class _Run:
    name: str
    command: str
    origins: Sequence[Origin]
    setup: Setup


def measured_rows(work: Work) -> dict[str, list[Row]]:
    """The rows by part; of a part for which a file was given, those in it."""
    found: dict[str, list[Row]] = {}
    wanted: list[_Run] = []
    for one in _runs(work):
        given = work.taken(one.name)
        if given is not None:
            found[one.name] = given
        elif work.wanted(one.name):
            wanted.append(one)
            found[one.name] = []
    if wanted:
        work.say(", ".join(one.name for one in wanted))
        made = run_together(
            [(one.origins, one.setup) for one in wanted], work.wish.cache, work.lanes, progress=work.show("boundaries")
        )
        for one, (rows, seconds) in zip(wanted, made, strict=True):
            found[one.name] = rows
            note = TOGETHER if len(wanted) > 1 else ""
            work.parts.append(Part(name=one.name, command=one.command, seconds=round(seconds, 1), note=note))
    if survival := _survival(work):
        found["survival"] = survival
    return {name: rows for name, rows in found.items() if rows or name in work.given.rows}


def _runs(work: Work) -> list[_Run]:
    wish, setup = work.wish, work.wish.setup
    by = _by(setup)
    last = setup.summarisers[-1:]
    only = f"--summariser {last[0]}"
    few = tuple(wish.curve_strategies)
    sizes = ",".join(map(str, wish.sizes))
    always = (*_seeds(setup), *_window(setup))
    runs = [
        _Run("run", work.run(*by, *always), wish.origins, setup),
        _Run(
            "chains",
            work.run("--synthetic --exams published", *by, *_seeds(setup), files=""),
            [Origin(None, 0, name) for name in CHAINS],
            _as_published(setup),
        ),
        _Run(
            "recall",
            work.run(f"--exams cloze,published --recall {wish.recall}", *by, *always, only),
            wish.origins,
            replace(setup, exams=("cloze", "published"), recall=wish.recall, summarisers=last),
        ),
    ]
    # Of what is fitted to a size no table shows the time, so it is not made once more for that.
    if few and wish.sizes:
        runs.append(
            _Run(
                "curves",
                work.run(f"--target {sizes} --exams {','.join(_CURVE_EXAMS)} --strategies", ",".join(few), *always, only),
                wish.origins,
                replace(setup, strategies=few, exams=_CURVE_EXAMS, targets=tuple(wish.sizes), summarisers=last, timed=False),
            )
        )  # fmt: skip
    if wish.equal is not None:
        command = work.run(f"--target {wish.rivals}", *by, *always, only)
        runs.append(_Run("equal", command, wish.origins, replace(wish.equal, summarisers=last, timed=False)))
    return runs


def _survival(work: Work) -> list[Row] | None:
    wish = work.wish
    given = work.taken("survival")
    if given is not None or not work.wanted("survival") or not (wish.windows or _kept(wish.replays)):
        return given
    windows = tuple(wish.windows) or (32_000,)
    told = ",".join(map(str, windows))
    with work.part("survival", work.run(f"--survival {told} --seeds 1", *_by(wish.setup))):
        return kept_replays(
            wish.origins,
            replace(wish.setup, seeds=1),
            windows,
            wish.replays,
            work.lanes,
            measure=bool(wish.windows),
            progress=work.show("replays"),
        )


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


def _by(setup: Setup) -> tuple[str, ...]:
    return () if setup.strategies == default_strategies() else ("--strategies", ",".join(setup.strategies))


def _seeds(setup: Setup) -> tuple[str, ...]:
    return () if setup.seeds == Setup(()).seeds else ("--seeds", str(setup.seeds))


def _window(setup: Setup) -> tuple[str, ...]:
    return () if setup.window == Setup(()).window else ("--window", str(setup.window))
