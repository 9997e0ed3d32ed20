"""Runs strategies at the boundaries of many sessions, on all cores, and goes on where an interrupted run stopped."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from hashlib import blake2b
from itertools import product
from pathlib import Path
from typing import TypeAlias

from ..codec import compact_json
from ..strategies import strategy_by_name, strategy_class, strategy_names
from ..tokens import O200kCounter
from .boundaries import Boundary
from .lanes import Lanes, in_lanes, opened_lanes
from .loaded import Loaded, Origin, counter_named, loaded, transcript_of
from .measuring import CONTINUATION_SHARE, Job, Kept, Task, boundaries_of, measured
from .results import Cache, Row
from .run_setup import Mode, Rival, Setup
from .strangers import Offer, Strangers, offered, strangers
from .survival import survive

__all__ = [
    "CONTINUATION_SHARE",
    "Job",
    "Mode",
    "Origin",
    "Rival",
    "Setup",
    "Task",
    "default_strategies",
    "measure",
    "replay",
    "run",
    "run_together",
    "survey",
]

Bundle: TypeAlias = tuple[tuple[int, Task], ...]
"""Tasks at one boundary of one session, each with the number of its run."""

_SERVER_SIDE = ("codex-remote-v1", "codex-remote-v2", "opencode-prune")
"""Left out unless named: their summaries come from a server, or they are one half of another strategy."""


def default_strategies() -> tuple[str, ...]:
    """All strategies but those whose summaries only a server makes."""
    return tuple(name for name in strategy_names() if name not in _SERVER_SIDE)


_APART = ("cli", "gateway", "testing", "session", "journal", "checkpoint.py", "quick.py")
"""What no measurement of a boundary runs."""


@lru_cache(maxsize=64)
def _code(*strategies: str) -> str:
    """Hash of our own source, so that no row outlives the code that made it; of the strategies only the named ones' own folders."""
    package = Path(__file__).resolve().parents[1]
    own = {tuple(strategy_class(name).__module__.split(".")[:3]) for name in strategies}
    digest = blake2b(digest_size=8)
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package).parts
        if (parts[0] in _APART and parts[:2] != ("session", "recall")) or parts[:2] in (
            ("lab", "cache"),
            ("lab", "figures"),
            ("lab", "model"),
            ("lab", "money"),
            ("lab", "report"),
        ):
            continue
        if parts[0] == "strategies" and len(parts) > 2 and (package.name, *parts[:2]) not in own:
            continue
        # The folders of the projection floor hold what only `coverage` is made of.
        if parts[0] == "projection" and len(parts) > 2 and (package.name, "strategies", "coverage") not in own:
            continue
        digest.update(path.read_bytes())
    return digest.hexdigest()


def survey(asked: tuple[Origin, Sequence[Setup]]) -> tuple[Origin, Offer, list[list[Task]]]:
    """What a session lends to the decoys of the others, and its tasks by setup."""
    origin, setups = asked
    session = loaded(origin)
    return origin, offered(session.digest, session.view.entries), [_tasks(session, origin, setup) for setup in setups]


def _tasks(session: Loaded, origin: Origin, setup: Setup) -> list[Task]:
    if not session.view.entries:
        return []
    compared = {rival.strategy for rival in setup.rivals}
    # Against a rival's size, a strategy without a knob for its own is a single point.
    jobs = [Job(name) for name in setup.strategies if not compared or (name not in compared and not _has_knob(name))]
    for rival in setup.rivals:
        jobs += [Job(rival.strategy, rival), *(Job(name, rival) for name in setup.strategies if name != rival.strategy)]
    tasks: list[Task] = []
    for boundary in boundaries_of(session, origin, setup):
        exams = tuple(exam for exam in setup.exams if exam != "continuation" or boundary.position < len(session.view))
        if boundary.label == f"{CONTINUATION_SHARE}%" and CONTINUATION_SHARE not in setup.shares:
            exams = tuple(exam for exam in exams if exam == "continuation")
        keys = tuple((job, _key(session.digest, boundary, job, exams, setup)) for job in jobs)
        tasks.append(Task(origin, setup, boundary, exams, keys))
    return tasks


def _has_knob(strategy: str) -> bool:
    return strategy_by_name(strategy).at_size(8_000) is not None


def _key(digest: str, boundary: Boundary, job: Job, exams: Sequence[str], setup: Setup) -> str:
    made = strategy_by_name(job.strategy)
    names = (job.strategy,) if job.rival is None else (job.strategy, job.rival.strategy)
    against = None if job.rival is None else [job.rival.label, strategy_by_name(job.rival.strategy).options()]
    parts = [
        _code(*names), digest, boundary.position, boundary.stage, job.strategy, made.version, made.options(), exams, setup.mode, setup.window,
        setup.output_ceiling, setup.profile, setup.counter, setup.sized_counter, setup.targets if job.rival is None else None, against,
        setup.summarisers, setup.model, setup.seeds, setup.recall, setup.carry, setup.shares if setup.carry or setup.mode == "deployed" else None,
    ]  # fmt: skip
    return blake2b(compact_json(parts).encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def measure(bundle: Bundle) -> list[tuple[int, float, list[tuple[str, list[Row]]]]]:
    """Of each task in a bundle its number, the seconds that it took, and its rows by cache key. What several need is made for the first."""
    found: list[tuple[int, float, list[tuple[str, list[Row]]]]] = []
    kept: Kept = {}
    for number, task in bundle:
        start = time.perf_counter()
        rows = measured(task, loaded(task.origin), kept)
        found.append((number, time.perf_counter() - start, rows))
    return found


def replay(origin: Origin, setup: Setup, windows: Sequence[int]) -> list[Row]:
    """Survival of one session: each strategy that needs no summary by rules, the others with the setup's last summariser.

    At its own size or, where the setup names sizes, at each of them that it has a knob for, counted as the setup says. Strategies that are pure
    functions of the originals on request are replayed so, as a `Session` does by default.
    """
    transcript = transcript_of(origin)
    rows: list[Row] = []
    for name in setup.strategies:
        made = strategy_by_name(name)
        if name == "recorded":
            continue
        options = {"from_originals": True} if made.options().get("from_originals") is False else {}
        own = strategy_by_name(name, **options)
        sized = [(target, own if target is None else own.at_size(target)) for target in setup.targets]
        for window, (target, strategy) in product(windows, sized):
            if strategy is not None:
                rows += survive(
                    transcript,
                    strategy,
                    window,
                    O200kCounter(),
                    summariser=setup.summarisers[-1],
                    model=setup.model,
                    seeds=setup.seeds,
                    target=target,
                    own_counter=counter_named(
                        setup.counter if target is None else setup.sized_counter, transcript.model
                    ),
                )
    return rows


def run(
    origins: Sequence[Origin],
    setup: Setup,
    cache: Cache,
    *,
    workers: int | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[Row]:
    """All rows, in the order of sessions, boundaries and strategies, whatever order they were measured in.

    Args:
        origins: the sessions.
        setup: how they are measured.
        cache: what was measured before is taken from it, and what is measured now is added at once.
        workers: processes; None for one per core, 1 for none beside this one.
        progress: called with the finished and the whole number of tasks.
    """
    with opened_lanes(workers) as lanes:
        ((rows, _),) = run_together([(origins, setup)], cache, lanes, progress=progress)
    return rows


def run_together(
    wanted: Sequence[tuple[Sequence[Origin], Setup]],
    cache: Cache,
    lanes: Lanes,
    *,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[tuple[list[Row], float]]:
    """Several runs at once: the rows of each as `run` gives them, and the seconds that it took, summed over processes.

    Each session is read and counted once for all of them. Where they cut it at the same place, what they have in common is made once: equal
    plans, and equal questions.

    Args:
        wanted: sessions and setup of each run.
        cache: what was measured before is taken from it, and what is measured now is added at once.
        lanes: where it is measured.
        progress: called with the finished and the whole number of boundaries.
    """
    tasks = _all_tasks(wanted, cache, lanes)
    bundles: dict[tuple[Origin, int], list[tuple[int, Task]]] = {}
    for number, found in enumerate(tasks):
        for task in found:
            bundle = bundles.setdefault((task.origin, task.boundary.position), [])
            if (missing := _missing(task, cache)) is not None:
                bundle.append((number, missing))
    left = [tuple(bundle) for bundle in bundles.values() if bundle]
    done = len(bundles) - len(left)
    progress(done, len(bundles))
    seconds = [0.0] * len(wanted)
    for measured_ in in_lanes(measure, _by_session(left), lanes):
        for number, spent, made in measured_:
            seconds[number] += spent
            for key, rows in made:
                cache.add(key, rows)
        progress(done := done + 1, len(bundles))
    return [
        ([row for task in found for _, key in task.jobs for row in cache[key]], spent)
        for found, spent in zip(tasks, seconds, strict=True)
    ]


def _all_tasks(wanted: Sequence[tuple[Sequence[Origin], Setup]], cache: Cache, lanes: Lanes) -> list[list[Task]]:
    """The tasks of each run, in the order of its sessions."""
    numbers: dict[Origin, list[int]] = {}
    for number, (origins, _) in enumerate(wanted):
        for origin in dict.fromkeys(origins):
            numbers.setdefault(origin, []).append(number)
    # Sessions of one file go to one lane, which reads the file once.
    files: dict[str | None, list[tuple[Origin, list[Setup]]]] = {}
    for origin, of in numbers.items():
        files.setdefault(origin.path or origin.chain, []).append((origin, [wanted[number][1] for number in of]))
    offers: dict[Origin, Offer] = {}
    found: dict[tuple[Origin, int], list[Task]] = {}
    for origin, offer, by_setup in in_lanes(survey, list(files.values()), lanes):
        offers[origin] = offer
        for number, tasks in zip(numbers[origin], by_setup, strict=True):
            found[origin, number] = tasks
    all_tasks: list[list[Task]] = []
    for number, (origins, _) in enumerate(wanted):
        lent = list({offers[origin].session: offers[origin] for origin in origins}.values())
        all_tasks.append(
            [
                task
                for origin in origins
                for task in _among(found[origin, number], strangers(offers[origin].session, lent), cache)
            ]
        )
    return all_tasks


def _among(tasks: Sequence[Task], lent: Strangers, cache: Cache) -> list[Task]:
    """The tasks with what other sessions lend, on which their decoys depend and so their rows."""
    mark = blake2b(compact_json([lent.parts, lent.lines]).encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
    return [
        replace(
            task,
            strangers=lent,
            jobs=tuple((job, _timed_or_not(task.setup, job, f"{key}-{mark}", cache)) for job, key in task.jobs),
        )
        for task in tasks
    ]


def _timed_or_not(setup: Setup, job: Job, key: str, cache: Cache) -> str:
    """The key of rows whose plans need no time: that of timed ones where these are there, which are as good."""
    fitted = job.rival is not None or setup.targets != (None,)
    return key if setup.timed or not fitted or key in cache else f"{key}~"


def _by_session(bundles: Sequence[Bundle]) -> list[list[Bundle]]:
    """The bundles in groups of one session each, those with the longest histories first, so that no long one is left for the end."""
    groups: dict[Origin, list[Bundle]] = {}
    for bundle in bundles:
        groups.setdefault(bundle[0][1].origin, []).append(bundle)
    for group in groups.values():
        group.sort(key=lambda bundle: bundle[0][1].boundary.position)
    return sorted(groups.values(), key=lambda group: -sum(bundle[0][1].boundary.position for bundle in group))


def _missing(task: Task, cache: Cache) -> Task | None:
    jobs = tuple(pair for pair in task.jobs if pair[1] not in cache)
    return replace(task, jobs=jobs) if jobs else None
