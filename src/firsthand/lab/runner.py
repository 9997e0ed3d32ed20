"""Runs strategies at the boundaries of many sessions, on all cores, and goes on where an interrupted run stopped."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from functools import lru_cache
from hashlib import blake2b
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path

from ..codec import compact_json
from ..strategies import strategy_by_name, strategy_class, strategy_names
from ..tokens import O200kCounter
from .boundaries import Boundary
from .lanes import in_lanes
from .loaded import Origin, loaded
from .measuring import CONTINUATION_SHARE, Job, Task, boundaries_of, measured
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
    "survey",
]

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


def survey(origin: Origin, setup: Setup) -> tuple[Offer, list[Task]]:
    """What a session lends to the decoys of the others, and its tasks."""
    session = loaded(origin)
    offer = offered(session.digest, session.view.entries)
    if not session.view.entries:
        return offer, []
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
    return offer, tasks


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


def measure(task: Task) -> list[tuple[str, list[Row]]]:
    """The rows of one task, by cache key."""
    return measured(task, loaded(task.origin))


def replay(origin: Origin, setup: Setup, windows: Sequence[int]) -> list[Row]:
    """Survival of one session: each strategy that needs no summary by rules, the others with the setup's last summariser.

    Strategies that are pure functions of the originals on request are replayed so, as a `Session` does by default.
    """
    transcript = loaded(origin).transcript
    rows: list[Row] = []
    for name in setup.strategies:
        made = strategy_by_name(name)
        if name == "recorded":
            continue
        options = {"from_originals": True} if made.options().get("from_originals") is False else {}
        for window in windows:
            rows += survive(
                transcript,
                strategy_by_name(name, **options),
                window,
                O200kCounter(),
                summariser=setup.summarisers[-1],
                model=setup.model,
                seeds=setup.seeds,
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
    workers = workers or os.cpu_count() or 1
    with ExitStack() as opened:
        # One process in each lane, so that what a session needs is made once; fresh interpreters: a fork would copy the threads of a display.
        lanes = [] if workers == 1 else [_process(opened) for _ in range(workers)]
        try:
            return _run(origins, setup, cache, lanes, progress)
        except BaseException:
            for lane in lanes:
                lane.shutdown(wait=False, cancel_futures=True)
            raise


def _process(opened: ExitStack) -> ProcessPoolExecutor:
    return opened.enter_context(ProcessPoolExecutor(1, mp_context=get_context("spawn")))


def _run(
    origins: Sequence[Origin],
    setup: Setup,
    cache: Cache,
    lanes: Sequence[ProcessPoolExecutor],
    progress: Callable[[int, int], None],
) -> list[Row]:
    surveys = list(_surveys(origins, setup, lanes))
    offers = list({offer.session: offer for offer, _ in surveys}.values())
    tasks = [task for offer, found in surveys for task in _among(found, strangers(offer.session, offers))]
    missing = [part for task in tasks if (part := _missing(task, cache)) is not None]
    done = len(tasks) - len(missing)
    progress(done, len(tasks))
    for found in in_lanes(measure, _by_session(missing), lanes):
        for key, rows in found:
            cache.add(key, rows)
        progress(done := done + 1, len(tasks))
    return [row for task in tasks for _, key in task.jobs for row in cache[key]]


def _surveys(
    origins: Sequence[Origin], setup: Setup, lanes: Sequence[ProcessPoolExecutor]
) -> Iterator[tuple[Offer, list[Task]]]:
    if not lanes:
        return map(survey, origins, repeat(setup))
    # Sessions of one file go to one lane, which reads the file once.
    paths = {
        path: number for number, path in enumerate(dict.fromkeys(origin.path or origin.chain for origin in origins))
    }
    futures = [
        lanes[paths[origin.path or origin.chain] % len(lanes)].submit(survey, origin, setup) for origin in origins
    ]
    return (future.result() for future in futures)


def _among(tasks: Sequence[Task], lent: Strangers) -> list[Task]:
    """The tasks with what other sessions lend, on which their decoys depend and so their rows."""
    mark = blake2b(compact_json([lent.parts, lent.lines]).encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
    return [
        replace(task, strangers=lent, jobs=tuple((job, f"{key}-{mark}") for job, key in task.jobs)) for task in tasks
    ]


def _by_session(tasks: Sequence[Task]) -> list[list[Task]]:
    """The tasks in groups of one session each, those with the longest histories first, so that no long one is left for the end."""
    groups: dict[Origin, list[Task]] = {}
    for task in tasks:
        groups.setdefault(task.origin, []).append(task)
    return sorted(groups.values(), key=lambda group: -sum(task.boundary.position for task in group))


def _missing(task: Task, cache: Cache) -> Task | None:
    jobs = tuple(pair for pair in task.jobs if pair[1] not in cache)
    return replace(task, jobs=jobs) if jobs else None
